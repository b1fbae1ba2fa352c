"""Searches the library: the first step of the mode `agent`, and a tool of its model."""

from typing import Any

from haystack import Document, component

from shiguan.agent.tools import AgentTool
from shiguan.llm.calls import NestingComponent, warm_up_generator


@component
class LibrarySearch(AgentTool, NestingComponent):
    """
    Finds passages of the library for a question, or for whatever else the model wants to know.

    Stands first in the mode `agent`, with the person's question, and among the tools of `ToolAgent` as
    `search_library`: one search in two places, under the same filters.

    Example:
    ```python
    search = LibrarySearch(retriever, parent_fetcher=fetcher)
    search.run("Where did An Lushan rise?", filters=filters)["documents"]  # parents, best first
    ```
    """

    tool_name = "search_library"
    tenant_readers = ("retriever", "parent_fetcher")

    def __init__(self, retriever: Any, *, parent_fetcher: Any) -> None:
        """
        Name what finds sentences, and what gets their passages.

        :param retriever: A `MultiQueryHybridRetriever`, or what takes `queries`, `filters` and `retrieval` like it.
        :param parent_fetcher: A `ParentDocumentFetcher`; its `top_k` is how many passages are found.
        """
        self.retriever = retriever
        self.parent_fetcher = parent_fetcher

    def warm_up(self) -> None:
        """Load the embedder's model; a second call does nothing."""
        warm_up_generator(self.retriever)

    @component.output_types(documents=list[Document], nearest=list[Document], warnings=list[str])
    def run(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        retrieval: str = "hybrid",
    ) -> dict[str, Any]:
        """
        Search.

        :param query: What to search for.
        :param filters: What may be found, from `TenantFilter`.
        :param top_k: How many passages at most, for this call.
        :param retrieval: `words` or `vectors` to take passages from one of the two searches alone.
        :returns: `documents`, parents, best first; `nearest`, the children nearest by their vectors; `warnings`.
        """
        found = self.retriever.run(queries=[query], filters=filters, retrieval=retrieval)
        fetched = self.parent_fetcher.run(documents=found["documents"], filters=filters, top_k=top_k)
        warnings = [*found.get("warnings", []), *fetched["warnings"]]
        return {"documents": fetched["documents"], "nearest": found["nearest"], "warnings": warnings}
