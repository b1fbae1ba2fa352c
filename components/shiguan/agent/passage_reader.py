"""Reads more of a book around a passage that the model has seen."""

from typing import Any

from haystack import Document, component
from haystack.document_stores.types import DocumentStore

from shiguan.agent.tools import AgentTool, WrongArgumentsError
from shiguan.tenants import all_of, require_filters, where


@component
class PassageReader(AgentTool):
    """
    Gives the model the passages before and after one, for answers that cross its edge.

    The tool `read_passage` of `ToolAgent`. The model names the number of a passage that it was shown, never an id, and
    the neighbours are read under the tenant's filters: a model cannot reach another tenant's library.
    """

    tool_name = "read_passage"

    def __init__(self, document_store: DocumentStore) -> None:
        """
        Set the store.

        :param document_store: The store of the parents.
        """
        self.document_store = document_store

    @component.output_types(documents=list[Document])
    def run(
        self, number: int, passages: list[Document] | None = None, filters: dict[str, Any] | None = None
    ) -> dict[str, list[Document]]:
        """
        Read.

        :param number: The number of a passage of the library.
        :param passages: The numbered passages so far.
        :param filters: What may be read, from `TenantFilter`.
        :returns: `documents`, the passage and its neighbours, in the order of the book.
        :raises WrongArgumentsError: If no passage of the library has the number.
        :raises RefusedError: If `filters` are missing.
        """
        passage = next((known for known in passages or [] if known.meta.get("number") == number), None)
        if passage is None or not {"source_id", "position"} <= passage.meta.keys():
            of_library = [known.meta["number"] for known in passages or [] if "source_id" in known.meta]
            raise WrongArgumentsError(
                f"[{number}] is not a passage of the library; its passages are: {of_library}"[:200]
            )
        place = passage.meta["position"]
        near = where("meta.position", ">=", place - 1), where("meta.position", "<=", place + 1)
        allowed = require_filters(filters, type(self).__name__)
        of_source = where("meta.source_id", "==", passage.meta["source_id"])
        found = self.document_store.filter_documents(all_of(allowed, of_source, *near))
        return {"documents": sorted(found, key=lambda parent: parent.meta["position"])}
