"""A tool of the agent: searches the library in the model's words."""

from typing import Any

from haystack import Document, component

from shiguan.agent.tools import AgentTool
from shiguan.llm.calls import blocking, warm_up_generator
from shiguan.serialization import Serializable


@component
class LibrarySearch(Serializable, AgentTool):
    """
    Searches the library in the model's words.

    The tool `search_library` of `ToolAgent`: the mode's own search, under the same filters.

    Example:
    ```python
    search = LibrarySearch(retriever)
    search.run("Where did An Lushan rise?", filters=filters)["documents"]  # parents, best first
    ```
    """

    tool_name = "search_library"

    def __init__(self, retriever: Any) -> None:
        """
        Set the search.

        :param retriever: A `PassageRetriever`, the mode's search; the `top_k` of its parent fetcher is the number of
            passages.
        """
        self.retriever = retriever

    def warm_up(self) -> None:
        """Load the embedder's model; a second call does nothing."""
        warm_up_generator(self.retriever)

    @component.output_types(documents=list[Document], warnings=list[str])
    async def run_async(self, query: str, filters: dict[str, Any] | None = None) -> dict[str, Any]:
        """
        Search.

        :param query: What to search for.
        :param filters: What may be found, from `TenantFilter`.
        :returns: `documents`, parents, best first; `warnings`.
        """
        found = await self.retriever.run_async(query=query, filters=filters)
        return {"documents": found["documents"], "warnings": found["warnings"]}

    run = blocking(run_async)
