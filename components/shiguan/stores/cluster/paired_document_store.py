"""One document store made of two: words in the one, vectors in the other."""

import secrets
from collections.abc import Iterator
from itertools import chain, islice, takewhile
from typing import Any

from haystack import Document
from haystack.document_stores.types import DuplicatePolicy

from shiguan.stores import PipelineStore
from shiguan.stores.cluster.elasticsearch_store import ElasticsearchStore
from shiguan.stores.cluster.qdrant_store import QdrantStore
from shiguan.tenants import TenantGuarded

_PAGE = 10_000


class PairedDocumentStore(TenantGuarded, PipelineStore):
    """
    Keeps every child twice: its words in Elasticsearch, its vector in Qdrant.

    The index pipeline writes, compares and removes children through it as if they were in one place. Words come first
    and are searchable at once; a child has its vector if Qdrant has it. A child is left over if either has it.
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
        return [*self.words.set_up(), *self.vectors.set_up()]

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """Store children: words first, because a child that is found by its vector must be readable."""
        written = self.words.write_documents(documents, policy=policy)
        embedded = [document for document in documents if document.embedding is not None]
        if embedded:
            self.vectors.write_documents(embedded, policy=policy)
        return written

    def write_vectors(self, documents: list[Document], *, model: str) -> int:
        """Write the vectors of stored children."""
        return self.vectors.write_vectors(documents, model=model)

    def list_ids_without_vector(self, filters: dict[str, Any] | None = None) -> list[str]:
        """List the ids of the children that Qdrant does not have yet."""
        return sorted(self.iter_ids_without_vector(filters))

    def iter_ids_without_vector(self, filters: dict[str, Any] | None = None) -> Iterator[str]:
        """List the same page by page, from a random place on: processes that do it at once share the work."""
        start = secrets.token_hex(8)
        before = takewhile(lambda one: one <= start, self.words.iter_ids(filters))
        ids = chain(self.words.iter_ids(filters, after=start), before)
        while page := list(islice(ids, _PAGE)):
            there = self.vectors.existing_ids(page)
            yield from (one for one in page if one not in there)

    def count_without_vector(self, filters: dict[str, Any] | None = None) -> int:
        """Count the children that Qdrant does not have yet, or fewer where it has some that are left over."""
        given = filters or {}
        counts = self.words.count_documents_by_filter(given) - self.vectors.count_documents_by_filter(given)
        return max(counts, 0)

    def embedder(self) -> str | None:
        return self.vectors.embedder()

    def other_vectors(self, model: str | None = None) -> str | None:
        return self.vectors.other_vectors(model)

    def drop_vectors(self) -> None:
        self.vectors.drop_vectors()

    def read_vectors(self, filters: dict[str, Any]) -> dict[str, list[float]]:
        return self.vectors.read_vectors(filters)

    def count_by_file(self, filters: dict[str, Any] | None = None) -> dict[str, tuple[int, int]]:
        words = self.words.count_by_file(filters)
        vectors = self.vectors.count_by_file(filters, len(words))
        return {file: (count, vectors.get(file, 0)) for file, count in words.items()}

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete children from both: vectors first, so that everything found is readable."""
        self.vectors.delete_documents(document_ids)
        self.words.delete_documents(document_ids)

    def delete_by_filter(self, filters: dict[str, Any]) -> int:
        self.vectors.delete_by_filter(filters)
        return self.words.delete_by_filter(filters)

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        return self.words.filter_documents(filters)

    def bm25_retrieval(self, query: str, *, filters: dict[str, Any], top_k: int) -> list[Document]:
        return self.words.bm25_retrieval(query, filters=filters, top_k=top_k)

    def list_meta(self, filters: dict[str, Any] | None, fields: list[str]) -> list[dict[str, Any]]:
        return self.words.list_meta(filters, fields)

    def existing_ids(self, document_ids: list[str]) -> set[str]:
        return self.words.existing_ids(document_ids)

    def list_ids(self, filters: dict[str, Any] | None = None) -> list[str]:
        """List the ids of the children that match in either."""
        return sorted({*self.words.iter_ids(filters), *self.vectors.iter_ids(filters)})

    def iter_ids(self, filters: dict[str, Any] | None = None) -> Iterator[str]:
        return self.words.iter_ids(filters)

    def count_documents_by_filter(self, filters: dict[str, Any]) -> int:
        """Count the children that match and can be read; both stores are asked, to check that they work."""
        self.vectors.count_documents_by_filter(filters)
        return self.words.count_documents_by_filter(filters)

    def unscoped(self) -> "PairedDocumentStore":
        """Return the same pair for maintenance, over all tenants; never use it in a pipeline."""
        pair = super().unscoped()
        pair.words, pair.vectors = self.words.unscoped(), self.vectors.unscoped()
        return pair

    def close(self) -> None:
        self.words.close()
        self.vectors.close()
