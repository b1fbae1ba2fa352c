"""Says which languages a library is in."""

from typing import Any

from haystack import component
from haystack.document_stores.types import DocumentStore

from shiguan.tenants import require_filters


@component
class LibraryLanguages:
    """
    Says in which languages the books are that a question may be answered from.

    Stands between `TenantFilter` and `QueryRewriter`, which adds a wording in each language that the question is not
    in. A book's language is what it was ingested with. The embedded store looks it up once after each
    write, the cluster once a minute.

    Example:
    ```python
    LibraryLanguages(store).run(filters)   # {"languages": ["zh", "en"]}
    ```
    """

    def __init__(self, document_store: DocumentStore) -> None:
        """
        Name the store of the parents.

        :param document_store: One of Shiguan's stores; of another one nothing is known.
        """
        self.document_store = document_store

    @component.output_types(languages=list[str])
    def run(self, filters: dict[str, Any] | None = None) -> dict[str, list[str]]:
        """
        Look them up.

        :param filters: What may be found, from `TenantFilter`.
        :returns: `languages`, ISO 639-1, that of most passages first.
        """
        allowed = require_filters(filters, type(self).__name__)
        count = getattr(self.document_store, "count_languages", None)
        passages = count(allowed) if count else {}
        most_first = sorted(passages, key=lambda code: (-passages[code], code))
        return {"languages": [code for code in most_first if code not in ("und", "None", "")]}
