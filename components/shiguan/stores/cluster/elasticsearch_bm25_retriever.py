"""Haystack's retriever by words, on the store of this deployment."""

from typing import Any, Self

from haystack import component, default_from_dict
from haystack_integrations.components.retrievers.elasticsearch import ElasticsearchBM25Retriever as Haystacks


@component
class ElasticsearchBM25Retriever(Haystacks):
    """Haystack's `ElasticsearchBM25Retriever`, loaded with an `ElasticsearchStore`, not only Haystack's own."""

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Load it with the store that the file names."""
        return default_from_dict(cls, data)
