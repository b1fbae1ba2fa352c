"""Find children by the words of a question."""

from typing import Any

from haystack import component
from haystack.dataclasses import Document

from shiguan.stores.embedded.language_search import EdgeRetriever


@component
class QdrantEdgeBM25Retriever(EdgeRetriever):
    """
    Finds the documents that share words with a question.

    It stands behind the TenantFilter, beside the embedding retriever, and before the joiner. What it returns is light:
    no content and only the meta that the fetcher of parents needs, because these are read later.

    ```python
    retriever = QdrantEdgeBM25Retriever(document_store=store, top_k=5)
    retriever.run(query="书", filters=tenant)["documents"]  # finds 他的书
    ```
    """

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """
        Search.

        :param query: The question; one without words, or of stop words only, finds nothing.
        :param filters: What may be found, from `TenantFilter`; without it nothing is searched.
        :param top_k: How many documents of a language at most, for this call.
        :returns: `documents`: the best first, equal scores by id. Scores are BM25: above 0, no upper bound.
        :raises FilterError: If the filter is malformed.
        :raises RefusedError: If it names no tenant.
        """
        return {"documents": self.search_each_language(self.document_store.bm25_retrieval, query, filters, top_k)}
