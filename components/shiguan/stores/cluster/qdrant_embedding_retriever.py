"""Haystack's retriever by vectors, on the store of this deployment."""

from typing import Any, Self

from haystack import component, default_from_dict
from haystack_integrations.components.retrievers.qdrant import QdrantEmbeddingRetriever as Haystacks


@component
class QdrantEmbeddingRetriever(Haystacks):
    """Haystack's `QdrantEmbeddingRetriever`, loaded with a `QdrantStore`, not only Haystack's own."""

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Load it with the store that the file names."""
        return default_from_dict(cls, data)
