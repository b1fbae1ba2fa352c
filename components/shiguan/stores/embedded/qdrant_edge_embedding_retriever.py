"""Find children by an embedding."""

from typing import Any

from haystack import component
from haystack.dataclasses import Document

from shiguan.stores.embedded.qdrant_edge_bm25_retriever import (
    LEAST_DEVIATION_OF_COSINES,
    EdgeRetriever,
    best_first,
    scaled,
)
from shiguan.text.passages import ALL_EMBEDDED


@component
class QdrantEdgeEmbeddingRetriever(EdgeRetriever):
    """
    Finds the documents whose embeddings are nearest to that of a question.

    It comes after the TenantFilter, beside the BM25 retriever, and before the joiner. The documents have no content and
    only the meta that the fetcher of parents needs, because the rest is read later.

    ```python
    retriever = QdrantEdgeEmbeddingRetriever(document_store=store, top_k=5)
    retriever.run(query_embedding=[0.1] * 384, filters=tenant)["documents"]
    ```
    """

    @component.output_types(documents=list[Document], warnings=list[str])
    def run(
        self, query_embedding: list[float], filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, Any]:
        """
        Search.

        :param query_embedding: Shape: (embedding_dim,). An empty one finds nothing: no model embedded the question.
        :param filters: What may be found, from `TenantFilter`; without it nothing is searched.
        :param top_k: How many documents of a language at most, for this call.
        :returns: `documents`: the best first, equal scores by id. Scores are cosines (-1 to 1), or scaled; the
            first has `meta["all_embedded"]` if every passage has its vector. `warnings`: a sentence where passages have
            no vector yet, or one of another embedder.
        :raises FilterError: If the filter is malformed.
        :raises RefusedError: If it names no tenant.
        """
        if not query_embedding:
            return {"documents": [], "warnings": []}
        store = self.document_store
        documents = self.search_each_language(store.embedding_retrieval, query_embedding, filters, top_k)
        if self.scale_score:
            documents = best_first(scaled(documents, LEAST_DEVIATION_OF_COSINES))
        warnings = store.vector_warnings(filters)
        if documents and not warnings:
            documents[0].meta[ALL_EMBEDDED] = True
        return {"documents": documents, "warnings": warnings}
