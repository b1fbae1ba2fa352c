"""What the embedded document store does, synchronously."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from haystack.dataclasses import Document
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from qdrant_edge import CountRequest, EdgeShard, PayloadSelector, PointVectors

from shiguan.errors import StoreError
from shiguan.stores.embedded import points
from shiguan.stores.embedded.reading import (
    count_values,
    count_vectors,
    existing_ids,
    list_files,
    page,
    pages,
    resolve,
    scroll,
    search_terms,
    search_vectors,
    without_vector,
)
from shiguan.stores.embedded.shard_format import PointWriter, ShardFormat, is_model, other_vectors
from shiguan.stores.embedded.shards import Shard

Found = TypeVar("Found")

_BATCH = 256
_DELETED = 10_000
_IDS_ONLY = PayloadSelector.Include([points.ID])
_IN_ORDER = PayloadSelector.Include([points.ID, points.ORDER])
# A server's tenants ask with a filter each; more different ones than this are counted anew.
_MOST_COUNTS = 1000


class StoreOperations(ABC):
    """
    The synchronous methods of `QdrantEdgeDocumentStore`, which says where the data are and what is baked in.

    Documents may be written first, to be found by their words, and get their vectors later.
    """

    name: str
    embedding_dim: int | None
    embedding_model: str | None

    @property
    @abstractmethod
    def _shard(self) -> Shard:
        """The open folder."""

    @abstractmethod
    def _format(self) -> ShardFormat:
        """Say what documents are written with."""

    def list_ids_without_vector(self, filters: dict[str, Any] | None = None) -> list[str]:
        """Give the ids of the documents that have no vector yet."""
        with self._shard.read() as edge:
            records = pages(edge, without_vector(edge, filters), _IN_ORDER)
            rows = [(payload[points.ORDER], payload[points.ID]) for payload in (record.payload for record in records)]
        return [document_id for _, document_id in sorted(rows)]

    def write_vectors(self, documents: list[Document], *, model: str) -> int:
        """
        Give stored documents their vectors; when it returns, these are on disk.

        Nothing else of the documents is written, and of an embedding what the search needs: float32, of length 1.
        """
        writer = PointWriter(self._format())
        vectors = {document.id: writer.document_vector(document) for document in documents}
        with self._shard.write() as edge:
            stored = existing_ids(edge, list(vectors))
            batch = [
                PointVectors(points.point_id(document_id), {points.DENSE: vector.tolist()})
                for document_id, vector in vectors.items()
                if document_id in stored
            ]
            if batch:
                self._shard.claim_vectors(edge, model)
                self._shard.add_vectors(edge, batch)
        return len(batch)

    def drop_vectors(self) -> None:
        """Forget all vectors, so that another embedder's can be written; documents and their words stay."""
        self._shard.drop_vectors()

    def other_vectors(self, model: str | None = None) -> str | None:
        """Tell whether the vectors are those of another embedder."""
        wanted = model or self.embedding_model
        shard = self._shard
        found = shard.format.embedding_model
        if wanted is None or is_model(found, wanted) or not self._count("with a vector", None):
            return None
        return other_vectors(shard.folder, found, wanted)

    def vector_warnings(self, filters: dict[str, Any] | None) -> list[str]:
        """Say what a search by vectors cannot find; counted once after each write."""
        other = self.other_vectors()
        if other is not None:
            return [other]
        if not self._count("without a vector", None):
            return []
        missing = self._count("without a vector", filters)
        if not missing:
            return []
        return [
            f"{missing:,} of {self._count('all', filters):,} retrieval units have no vector yet and were searched by "
            "their words alone. `shiguan ingest --resume` makes the missing ones."
        ]

    def holds(self, filters: dict[str, Any]) -> bool:
        """Whether there is anything under the filters; counted once after each write."""
        return bool(self._count("all", filters))

    def count_by_file(self, filters: dict[str, Any] | None = None) -> dict[str, tuple[int, int]]:
        """Count the documents of each file; counted once after each write."""

        def count(edge: EdgeShard) -> dict[str, tuple[int, int]]:
            words = count_values(edge, "file_id", resolve(edge, filters))
            missing = count_values(edge, "file_id", without_vector(edge, filters))
            return {file: (count, count - missing.get(file, 0)) for file, count in words.items()}

        return self._once("by file", filters, count)

    def count_languages(self, filters: dict[str, Any] | None = None) -> dict[str, int]:
        """Count the documents in each language; counted once after each write."""
        return self._once("languages", filters, lambda edge: count_values(edge, "language", resolve(edge, filters)))

    def list_files(self, filters: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Tell of each file what its documents say; looked up once after each write, without reading all of them."""
        return self._once("files", filters, lambda edge: list_files(edge, filters))

    def _count(self, which: str, filters: dict[str, Any] | None) -> int:
        def count(edge: EdgeShard) -> int:
            if which == "with a vector":
                return count_vectors(edge)
            condition = resolve(edge, filters) if which == "all" else without_vector(edge, filters)
            return int(edge.count(CountRequest(exact=True, filter=condition)))

        return self._once(which, filters, count)

    def _once(self, which: str, filters: dict[str, Any] | None, find: Callable[[EdgeShard], Found]) -> Found:
        counts = self._shard.counts
        key = f"{which} {json.dumps(filters, sort_keys=True, default=str)}"
        if key not in counts:
            with self._shard.read() as edge:
                found = find(edge)
            if len(counts) < _MOST_COUNTS:
                counts[key] = found
            return found
        kept: Found = counts[key]
        return kept

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """Store documents."""
        if not isinstance(documents, list) or not all(isinstance(document, Document) for document in documents):
            raise ValueError("`documents` must be a list of Documents.")
        writer = PointWriter(self._format())
        with self._shard.write() as edge:
            if policy != DuplicatePolicy.OVERWRITE:
                documents = _without_duplicates(edge, documents, policy)
            if any(document.embedding is not None for document in documents):
                self._shard.claim_vectors(edge, self.embedding_model)
            orders = self._shard.next_orders(len(documents))
            for start in range(0, len(documents), _BATCH):
                batch = documents[start : start + _BATCH]
                rows = zip(batch, orders[start:], strict=False)
                new = [writer.point(document, order) for document, order in rows]
                self._shard.upsert(edge, new, sum(document.embedding is not None for document in batch))
        return len(documents)

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """Give the documents that match."""
        vectors = [points.DENSE] if self._format().embedding_dim else False
        with self._shard.read() as edge:
            records = list(scroll(edge, filters, True, vectors))
        records.sort(key=lambda record: record.payload[points.ORDER])
        return [points.decode_document(record.payload, record.vector or {}) for record in records]

    def get_documents_by_id(self, document_ids: list[str]) -> list[Document]:
        """Give documents by id, without embeddings, in one call."""
        wanted = {points.point_id(document_id): None for document_id in document_ids}
        if not wanted:
            return []
        with self._shard.read() as edge:
            records: list[Any] = edge.retrieve(list(wanted), with_payload=True, with_vector=False)
        found = {document.id: document for document in (points.decode_document(record.payload) for record in records)}
        return [found[document_id] for document_id in document_ids if document_id in found]

    def existing_ids(self, document_ids: list[str]) -> set[str]:
        """Tell which documents are stored."""
        if not document_ids:
            return set()
        with self._shard.read() as edge:
            return existing_ids(edge, document_ids)

    def list_meta(self, filters: dict[str, Any] | None, fields: list[str]) -> list[dict[str, Any]]:
        """Give some meta fields of the documents that match, without reading the documents."""
        wanted = PayloadSelector.Include([points.meta_path(field) for field in fields])
        with self._shard.read() as edge:
            return [
                points.decode_meta(record.payload.get(points.META) or {}) for record in scroll(edge, filters, wanted)
            ]

    def list_ids(self, filters: dict[str, Any] | None = None) -> list[str]:
        """Give the ids of the documents that match, without reading the documents."""
        return list(self.iter_ids(filters))

    def iter_ids(self, filters: dict[str, Any] | None = None) -> Iterator[str]:
        """Give the ids of the documents that match, page by page; whoever stops in between holds nothing up."""
        offset = None
        with self._shard.read() as edge:
            condition = resolve(edge, filters)
        while True:
            with self._shard.read() as edge:
                records, offset = page(edge, offset, condition, _IDS_ONLY)
            yield from (record.payload[points.ID] for record in records)
            if offset is None:
                return

    def count_documents(self) -> int:
        return self.count_documents_by_filter({})

    def count_documents_by_filter(self, filters: dict[str, Any]) -> int:
        with self._shard.read() as edge:
            return int(edge.count(CountRequest(exact=True, filter=resolve(edge, filters))))

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete documents; ids that are not stored are no error."""
        if document_ids:
            with self._shard.write() as edge:
                self._shard.delete(edge, [points.point_id(document_id) for document_id in document_ids])

    def delete_all_documents(self) -> None:
        """Delete every document and keep the store."""
        self.delete_by_filter({})

    def delete_by_filter(self, filters: dict[str, Any]) -> int:
        """Delete the documents that match."""
        with self._shard.write() as edge:
            doomed = [str(record.id) for record in scroll(edge, filters, False)]
            for start in range(0, len(doomed), _DELETED):
                self._shard.delete(edge, doomed[start : start + _DELETED])
        return len(doomed)

    def bm25_retrieval(self, query: str, filters: dict[str, Any] | None = None, *, top_k: int = 50) -> list[Document]:
        """Find documents by the words of a question."""
        if not self._format().bm25:
            raise StoreError(
                f"The store `{self.name}` cannot be searched by words, because its `bm25` is off. Search the store of "
                "children, or set `bm25: true` and ingest again into another folder."
            )
        with self._shard.read() as edge:
            return search_terms(edge, query, filters, live_statistics=self._shard.stale_statistics, top_k=top_k)

    def embedding_retrieval(
        self, query_embedding: list[float], filters: dict[str, Any] | None = None, *, top_k: int = 50
    ) -> list[Document]:
        """Find documents by an embedding."""
        vector = PointWriter(self._format()).query_vector(query_embedding)
        if self.other_vectors():
            return []
        with self._shard.read() as edge:
            return search_vectors(edge, vector, filters, top_k=top_k)


def _without_duplicates(edge: EdgeShard, documents: list[Document], policy: DuplicatePolicy) -> list[Document]:
    stored = existing_ids(edge, [document.id for document in documents])
    fresh: dict[str, Document] = {}
    for document in documents:
        if document.id not in stored and document.id not in fresh:
            fresh[document.id] = document
        elif policy != DuplicatePolicy.SKIP:
            raise DuplicateDocumentError(
                f"The document `{document.id}` is stored already or comes twice; none of {len(documents)} was written. "
                "Use the policy OVERWRITE to replace it or SKIP to keep it."
            )
    return list(fresh.values())
