"""What the embedded document store does, synchronously."""

from typing import Any

from haystack.dataclasses import Document
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from qdrant_edge import CountRequest, EdgeShard, PayloadSelector

from shiguan.errors import StoreError
from shiguan.stores.embedded import points
from shiguan.stores.embedded.point_writer import PointWriter
from shiguan.stores.embedded.reading import existing_ids, resolve, scroll, search_terms, search_vectors
from shiguan.stores.embedded.vector_operations import VectorOperations

_BATCH = 256
_DELETED = 10_000
_IDS_ONLY = PayloadSelector.Include([points.ID])
_META_ONLY = PayloadSelector.Include([points.ID, points.META])


class StoreOperations(VectorOperations):
    """The synchronous methods of `QdrantEdgeDocumentStore`, which says where the data are and what is baked in."""

    name: str
    embedding_dim: int | None
    return_embedding: bool

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
                self._shard.upsert(edge, new, _embedded(batch))
        return len(documents)

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """Give the documents that match."""
        with self._shard.read() as edge:
            records = list(scroll(edge, filters, True, self._vectors(self.return_embedding)))
        records.sort(key=_order)
        return [_document(record, self.return_embedding) for record in records]

    def get_documents_by_id(self, document_ids: list[str], with_embedding: bool = False) -> list[Document]:
        """Give documents by id, in one call."""
        wanted = {points.point_id(document_id): None for document_id in document_ids}
        if not wanted:
            return []
        with self._shard.read() as edge:
            vectors = self._vectors(with_embedding)
            records = edge.retrieve(list(wanted), with_payload=True, with_vector=vectors)
        found = {document.id: document for document in (_document(record, with_embedding) for record in records)}
        return [found[document_id] for document_id in document_ids if document_id in found]

    def existing_ids(self, document_ids: list[str]) -> set[str]:
        """Tell which documents are stored."""
        if not document_ids:
            return set()
        with self._shard.read() as edge:
            return existing_ids(edge, document_ids)

    def list_meta(self, filters: dict[str, Any] | None, fields: list[str]) -> list[dict[str, Any]]:
        """Give some meta fields of the documents that match, without reading the documents."""
        return self._metas(filters, PayloadSelector.Include([points.meta_path(field) for field in fields]))

    def list_ids(self, filters: dict[str, Any] | None = None) -> list[str]:
        """Give the ids of the documents that match, without reading the documents."""
        with self._shard.read() as edge:
            return [record.payload[points.ID] for record in scroll(edge, filters, _IDS_ONLY)]

    def count_documents(self) -> int:
        """Count the documents."""
        return self.count_documents_by_filter({})

    def count_documents_by_filter(self, filters: dict[str, Any]) -> int:
        """Count the documents that match."""
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

    def bm25_retrieval(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        *,
        top_k: int = 50,
        meta_fields: list[str] | None = None,
        return_content: bool = False,
    ) -> list[Document]:
        """Find documents by the words of a question."""
        if not self._format().bm25:
            raise StoreError(
                f"The store `{self.name}` cannot be searched by words, because its `bm25` is off. Search the store of "
                "children, or set `bm25: true` and ingest again into another folder."
            )
        with self._shard.read() as edge:
            return search_terms(
                edge,
                query,
                filters,
                live_statistics=self._shard.stale_statistics,
                top_k=top_k,
                meta_fields=meta_fields,
                return_content=return_content,
            )

    def embedding_retrieval(
        self,
        query_embedding: list[float],
        filters: dict[str, Any] | None = None,
        *,
        top_k: int = 50,
        meta_fields: list[str] | None = None,
        return_content: bool = False,
    ) -> list[Document]:
        """Find documents by an embedding."""
        vector = PointWriter(self._format()).query_vector(query_embedding)
        if self.other_vectors():
            return []
        with self._shard.read() as edge:
            return search_vectors(
                edge, vector, filters, top_k=top_k, meta_fields=meta_fields, return_content=return_content
            )

    def _metas(self, filters: dict[str, Any] | None, wanted: Any = _META_ONLY) -> list[dict[str, Any]]:
        with self._shard.read() as edge:
            records = scroll(edge, filters, wanted)
            return [points.decode_meta(record.payload.get(points.META) or {}) for record in records]

    def _vectors(self, wanted: bool) -> list[str] | bool:
        return [points.DENSE] if wanted and self._format().embedding_dim else False


def _document(record: Any, with_embedding: bool) -> Document:
    return points.decode_document(record.payload, (record.vector or {}) if with_embedding else None)


def _embedded(documents: list[Document]) -> int:
    return sum(document.embedding is not None for document in documents)


def _order(record: Any) -> int:
    order: int = record.payload[points.ORDER]
    return order


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
