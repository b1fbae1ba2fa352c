"""A mode's own search as one component, for stages that search by themselves."""

import asyncio
from typing import Any

from haystack import Document, component
from haystack.components.embedders.types.protocol import TextEmbedder
from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers.types import EmbeddingRetriever, TextRetriever

from shiguan.llm.calls import blocking, run_nested_async, warm_up_generator
from shiguan.retrieval.language_balancer import LanguageBalancer
from shiguan.retrieval.parent_document_fetcher import ParentDocumentFetcher
from shiguan.serialization import Serializable


@component
class PassageRetriever(Serializable):
    """
    Searches by words and by vectors, joins the two lists, and returns whole passages.

    Does what several nodes do in a mode, for stages that search by themselves: `SubQuestionAnswerer`, and the tool with
    which the agent searches the library. In a file its parts are the nodes of the mode, by their anchors.

    Example in YAML:
    ```yaml
    retriever:
      type: shiguan.retrieval.passage_retriever.PassageRetriever
      init_parameters: {bm25_retriever: *bm25_retriever, text_embedder: *text_embedder, joiner: *joiner, …}
    ```
    """

    def __init__(
        self,
        bm25_retriever: TextRetriever,
        *,
        text_embedder: TextEmbedder,
        embedding_retriever: EmbeddingRetriever,
        joiner: DocumentJoiner,
        parent_fetcher: ParentDocumentFetcher,
        language_balancer: LanguageBalancer | None = None,
    ) -> None:
        """
        Set the parts.

        :param bm25_retriever: Finds children by words.
        :param text_embedder: Embeds the question; if the embedding is empty, the search is by words alone.
        :param embedding_retriever: Finds children by vectors.
        :param joiner: Joins the two lists.
        :param parent_fetcher: Fetches the parents of children.
        :param language_balancer: Weights the languages of the library; without it all count alike.
        """
        self.bm25_retriever = bm25_retriever
        self.text_embedder = text_embedder
        self.embedding_retriever = embedding_retriever
        self.joiner = joiner
        self.parent_fetcher = parent_fetcher
        self.language_balancer = language_balancer

    def warm_up(self) -> None:
        """Load the embedder's model; a second call does nothing."""
        for part in (self.bm25_retriever, self.text_embedder, self.embedding_retriever):
            warm_up_generator(part)

    @component.output_types(documents=list[Document], warnings=list[str])
    async def run_async(self, query: str, filters: dict[str, Any] | None = None) -> dict[str, Any]:
        """
        Search.

        :param query: What to search for.
        :param filters: What may be found, from `TenantFilter`.
        :returns: `documents`, parents, best first; `warnings`.
        """
        self.warm_up()
        words, (nearest, warnings) = await asyncio.gather(
            run_nested_async(self.bm25_retriever, query=query, filters=filters), self._nearest(query, filters)
        )
        found = self.joiner.run(documents=[words["documents"], nearest])["documents"]
        if self.language_balancer is not None:
            inputs = {"query": query, "documents": found, "nearest": nearest, "filters": filters}
            balanced = await run_nested_async(self.language_balancer, **inputs)
            found, warnings = balanced["documents"], [*warnings, *(balanced.get("warnings") or [])]
        fetched = await run_nested_async(self.parent_fetcher, documents=found, filters=filters)
        return {"documents": fetched["documents"], "warnings": [*warnings, *fetched["warnings"]]}

    run = blocking(run_async)

    async def _nearest(self, query: str, filters: dict[str, Any] | None) -> tuple[list[Document], list[str]]:
        embedded = await run_nested_async(self.text_embedder, text=query)
        warnings = list(embedded.get("warnings") or [])
        if not embedded["embedding"]:
            return [], warnings
        found = await run_nested_async(self.embedding_retriever, query_embedding=embedded["embedding"], filters=filters)
        return found["documents"], [*warnings, *(found.get("warnings") or [])]
