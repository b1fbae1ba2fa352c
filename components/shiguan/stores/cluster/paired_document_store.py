"""One document store made of two: words in the one, vectors in the other."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from haystack import Document
from haystack.document_stores.types import DuplicatePolicy

from shiguan.stores import PipelineStore
from shiguan.stores.cluster.elasticsearch_store import ElasticsearchStore
from shiguan.stores.cluster.qdrant_store import QdrantStore


class PairedDocumentStore(PipelineStore):
    """
    Keeps every child twice: its words in Elasticsearch, its vector in Qdrant.

    Stands behind the children's writer, so that the index pipeline writes, compares and removes children as if they
    were in one place. Words come first and are searchable at once; a child has its vector where Qdrant has it. A child
    counts as left over where either has it.
    """

    def __init__(self, words: ElasticsearchStore, *, vectors: QdrantStore) -> None:
        """
        Keep the two stores.

        :param words: Where children are found by their words, and read.
        :param vectors: Where children are found by their vectors.
        """
        self.words = words
        self.vectors = vectors

    def set_up(self) -> list[str]:
        """Make what is not there yet in both."""
        return [*self.words.set_up(), *self.vectors.set_up()]

    def status(self) -> list[dict[str, Any]]:
        """Describe both."""
        return [*self.words.status(), *self.vectors.status()]

    @contextmanager
    def bulk_loading(self) -> Iterator[None]:
        """Write much at once; it is found, and has its graphs, when this ends."""
        with self.words.bulk_loading(), self.vectors.bulk_loading():
            yield

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """Store children: words first, for a child that is found by its vector must be readable."""
        written = self.words.write_documents(documents, policy=policy)
        embedded = [document for document in documents if document.embedding is not None]
        if embedded:
            self.vectors.write_documents(embedded, policy=policy)
        return written

    def write_vectors(self, documents: list[Document], *, model: str) -> int:
        """Give stored children their vectors."""
        del model
        return self.vectors.write_documents(documents, policy=DuplicatePolicy.OVERWRITE)

    def list_ids_without_vector(self, filters: dict[str, Any] | None = None) -> list[str]:
        """Give the ids of the children that Qdrant does not have yet."""
        return sorted({*self.words.list_ids(filters)}.difference(self.vectors.list_ids(filters)))

    def other_vectors(self, model: str | None = None) -> str | None:  # noqa: ARG002
        """Tell whether the vectors are another embedder's, which a collection does not say."""
        return None

    def drop_vectors(self) -> None:
        """Do nothing: another embedder has another collection, see docs/deploy.md."""

    def count_by_file(self, filters: dict[str, Any] | None = None) -> dict[str, tuple[int, int]]:
        """Count the children of each file."""
        words = self.words.count_by_file(filters)
        vectors = self.vectors.count_by_file(filters, len(words))
        return {file: (count, vectors.get(file, 0)) for file, count in words.items()}

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete children from both: vectors first, so that nothing that is found is unreadable."""
        self.vectors.delete_documents(document_ids)
        self.words.delete_documents(document_ids)

    def delete_by_filter(self, filters: dict[str, Any]) -> int:
        """Delete the children that match from both."""
        self.vectors.delete_by_filter(filters)
        return self.words.delete_by_filter(filters)

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """Give the children that match, without embeddings."""
        return self.words.filter_documents(filters)

    def list_meta(self, filters: dict[str, Any] | None, fields: list[str]) -> list[dict[str, Any]]:
        """Give some meta fields of the children that match, without reading the children."""
        return self.words.list_meta(filters, fields)

    def existing_ids(self, document_ids: list[str]) -> set[str]:
        """Tell which children are stored."""
        return self.words.existing_ids(document_ids)

    def list_ids(self, filters: dict[str, Any] | None = None) -> list[str]:
        """Give the ids of the children that match in either."""
        return sorted({*self.words.list_ids(filters), *self.vectors.list_ids(filters)})

    def iter_ids(self, filters: dict[str, Any] | None = None) -> Iterator[str]:
        """Give the ids of the children that can be read, page by page."""
        return self.words.iter_ids(filters)

    def count_documents(self) -> int:
        return self.words.count_documents()

    def count_documents_by_filter(self, filters: dict[str, Any]) -> int:
        """Count the children that match and can be read; the server that watches its stores by it asks both."""
        self.vectors.count_documents_by_filter(filters)
        return self.words.count_documents_by_filter(filters)

    def unscoped(self) -> "PairedDocumentStore":
        """Give the same pair for maintenance, over all tenants; never hand it to a pipeline."""
        return PairedDocumentStore(self.words.unscoped(), vectors=self.vectors.unscoped())

    def close(self) -> None:
        """Close both connections; the next use opens them again."""
        self.words.close()
        self.vectors.close()
