"""Finds children by their vectors in Qdrant."""

from typing import Any

from haystack import Document, component
from haystack_integrations.components.retrievers.qdrant import (
    QdrantEmbeddingRetriever as HaystackQdrantEmbeddingRetriever,
)

from shiguan.stores.cluster.qdrant_store import QdrantStore
from shiguan.stores.cluster.schema import servable
from shiguan.tenants import require_filters


@component
class QdrantEmbeddingRetriever:
    """
    Finds the children closest in meaning to the question: Haystack's own retriever, with checked filters.

    Stands beside the word retriever, before the fusion. Scores are cosines (-1 to 1, higher is closer). Filters are
    checked first: Qdrant's conversion reads some of Haystack's conditions in its own way, and those are written
    otherwise or refused.
    """

    def __init__(self, document_store: QdrantStore, *, top_k: int = 10) -> None:
        """
        Keep the store.

        :param document_store: Where the children's vectors are.
        :param top_k: How many children to return at most.
        :raises ValueError: If `top_k` is not positive.
        """
        if top_k < 1:
            raise ValueError(f"`top_k` must be positive, got {top_k}.")
        self.document_store = document_store
        self.top_k = top_k
        self._retriever = HaystackQdrantEmbeddingRetriever(document_store=document_store, top_k=top_k)

    @component.output_types(documents=list[Document])
    def run(
        self, query_embedding: list[float], filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, Any]:
        """
        Find children.

        :param query_embedding: The question's vector. Shape: (embedding_dim,).
        :param filters: What may be found, from `TenantFilter`.
        :param top_k: How many children to return at most, for this call.
        :returns: `documents`, children with their score, best first, without their embeddings.
        :raises RefusedError: If the filters ask what this deployment cannot answer.
        :raises StoreError: If the server cannot be reached or refuses.
        """
        checked = servable(require_filters(filters, type(self).__name__), self.document_store.keyword_fields or ())
        with self.document_store.server.reporting():
            return dict(self._retriever.run(query_embedding=query_embedding, filters=checked, top_k=top_k))
