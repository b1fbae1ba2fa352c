"""Finds children by their words in Elasticsearch."""

from typing import Any

from haystack import Document, component
from haystack_integrations.components.retrievers.elasticsearch import (
    ElasticsearchBM25Retriever as HaystackElasticsearchBM25Retriever,
)

from shiguan.stores.cluster.elasticsearch_store import ElasticsearchStore
from shiguan.stores.cluster.schema import servable
from shiguan.tenants import require_filters


@component
class ElasticsearchBM25Retriever:
    """
    Finds the children that share words with the question: Haystack's own retriever, kept exact.

    Stands beside the vector retriever, before the fusion. Words match as they are (Haystack's default lets 2024 match
    2023), scores stay as BM25 gives them (from 0, higher is better), and filters are checked first, so that what
    Elasticsearch would read in another way than Qdrant is refused rather than answered.
    """

    def __init__(self, document_store: ElasticsearchStore, *, top_k: int = 10) -> None:
        """
        Keep the store.

        :param document_store: Where the children are.
        :param top_k: How many children to return at most.
        :raises ValueError: If `top_k` is not positive.
        """
        if top_k < 1:
            raise ValueError(f"`top_k` must be positive, got {top_k}.")
        self.document_store = document_store
        self.top_k = top_k
        self._retriever = HaystackElasticsearchBM25Retriever(document_store=document_store, fuzziness="0", top_k=top_k)

    @component.output_types(documents=list[Document])
    def run(self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None) -> dict[str, Any]:
        """
        Find children.

        :param query: The question.
        :param filters: What may be found, from `TenantFilter`.
        :param top_k: How many children to return at most, for this call.
        :returns: `documents`, children with their score, best first.
        :raises RefusedError: If the filters ask what this deployment cannot answer.
        :raises StoreError: If the server cannot be reached or refuses.
        """
        checked = servable(require_filters(filters, type(self).__name__), self.document_store.schema.keyword_fields)
        with self.document_store.server.reporting():
            return dict(self._retriever.run(query=query, filters=checked, top_k=top_k))
