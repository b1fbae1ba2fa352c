"""Reads more of a book around a passage that the model has seen."""

from typing import Any

from haystack import Document, component
from haystack.document_stores.types import DocumentStore

from shiguan.agent.tools import AgentTool, WrongArgumentsError
from shiguan.tenants import all_of, require_filters


@component
class PassageReader(AgentTool):
    """
    Gives the model what stands before and behind a passage, when an answer runs over its edge.

    The tool `read_passage` of `ToolAgent`. The model names the number of a passage that it was shown, never an id, and
    the neighbours are read under the tenant's filters: nothing that a model says leads into another library.
    """

    tool_name = "read_passage"

    def __init__(self, document_store: DocumentStore) -> None:
        """
        Name the store of the parents.

        :param document_store: Where the parents are.
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
        passage = next((one for one in passages or [] if one.meta.get("number") == number), None)
        if passage is None or not {"source_id", "position"} <= passage.meta.keys():
            of_library = [one.meta["number"] for one in passages or [] if "source_id" in one.meta]
            raise WrongArgumentsError(
                f"[{number}] is not a passage of the library; its passages are: {of_library}"[:200]
            )
        place = passage.meta["position"]
        around: list[dict[str, Any]] = [
            require_filters(filters, type(self).__name__),
            {"field": "meta.source_id", "operator": "==", "value": passage.meta["source_id"]},
            {"field": "meta.position", "operator": ">=", "value": place - 1},
            {"field": "meta.position", "operator": "<=", "value": place + 1},
        ]
        found = self.document_store.filter_documents(all_of(*around))
        return {"documents": sorted(found, key=lambda one: one.meta["position"])}
