"""Find children by an embedding."""

import asyncio
from typing import Any

from haystack import component
from haystack.dataclasses import Document

from shiguan.stores.embedded.qdrant_edge_bm25_retriever import search_each_language
from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore
from shiguan.tenants import require_filters


@component
class QdrantEdgeEmbeddingRetriever:
    """
    Finds the documents whose embeddings are nearest to that of a question.

    It stands behind the TenantFilter, beside the BM25 retriever, and before the joiner. What it returns is light:
    no content and only the meta that the fetcher of parents needs, because these are read later.

    ```python
    retriever = QdrantEdgeEmbeddingRetriever(document_store=store, top_k=5)
    retriever.run(query_embedding=[0.1] * 384, filters=tenant)["documents"]
    ```
    """

    def __init__(self, document_store: QdrantEdgeDocumentStore, *, top_k: int = 50) -> None:
        """
        Describe the search.

        :param document_store: The store, with vectors.
        :param top_k: How many documents at most, in each language of the library.
        :raises ValueError: If `top_k` is not positive or the store is another one.
        """
        if not isinstance(document_store, QdrantEdgeDocumentStore):
            raise ValueError(
                f"`document_store` must be a QdrantEdgeDocumentStore, got `{type(document_store).__name__}`"
            )
        if top_k < 1:
            raise ValueError(f"`top_k` must be positive, got {top_k}")
        self.document_store = document_store
        self.top_k = top_k

    @component.output_types(documents=list[Document], warnings=list[str])
    def run(
        self, query_embedding: list[float], filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, Any]:
        """
        Search.

        :param query_embedding: Shape: (embedding_dim,). An empty one finds nothing: no model embedded the question.
        :param filters: What may be found, from `TenantFilter`; without it nothing is searched.
        :param top_k: How many documents of a language at most, for this call.
        :returns: `documents`: the best first, equal scores by id. Scores are as the store's `similarity` says;
            `warnings`: a sentence where passages have no vector yet, or one of another embedder.
        :raises FilterError: If the filter is malformed.
        :raises RefusedError: If it names no tenant.
        """
        if not query_embedding:
            return {"documents": [], "warnings": []}
        arguments, store = self._arguments(query_embedding, filters, top_k), self.document_store
        documents = search_each_language(store.embedding_retrieval, store.holds, **arguments)
        return {"documents": documents, "warnings": store.vector_warnings(arguments["filters"])}

    @component.output_types(documents=list[Document], warnings=list[str])
    async def run_async(
        self, query_embedding: list[float], filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, Any]:
        """
        Search, without stopping the event loop.

        :param query_embedding: As `run`.
        :param filters: As `run`.
        :param top_k: As `run`.
        :returns: As `run`.
        """
        return await asyncio.to_thread(self.run, query_embedding, filters, top_k)

    def _arguments(
        self, query_embedding: list[float], filters: dict[str, Any] | None, top_k: int | None
    ) -> dict[str, Any]:
        return {
            "query_embedding": query_embedding,
            "filters": require_filters(filters, type(self).__name__),
            "top_k": self.top_k if top_k is None else top_k,
        }
