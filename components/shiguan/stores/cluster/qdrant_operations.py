"""What the Qdrant store reads and writes, apart from where it is and what its collection looks like."""

import asyncio
from collections.abc import Iterator
from typing import Any

from haystack.dataclasses import Document
from haystack.document_stores.types import DuplicatePolicy
from haystack_integrations.document_stores.qdrant import QdrantDocumentStore
from haystack_integrations.document_stores.qdrant.converters import (
    convert_haystack_documents_to_qdrant_points,
    convert_id,
)
from haystack_integrations.document_stores.qdrant.filters import convert_filters_to_qdrant
from qdrant_client import QdrantClient
from qdrant_client.http.exceptions import UnexpectedResponse

from shiguan.errors import StoreError
from shiguan.stores.cluster.servable_filters import servable
from shiguan.stores.cluster.server import Server

_PAGE = 10_000  # ids in one answer
_NAMED = 5


class QdrantOperations(QdrantDocumentStore):
    """The reading and writing methods of `QdrantStore`, which says where it is and how it is made."""

    server: Server
    keyword_fields: list[str] | None

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """Store children in batches; when it returns, they are found."""
        client = self._open_client()
        with self.server.reporting():
            chosen = self._handle_duplicate_documents(documents, policy)
        refused: list[tuple[str, str]] = []
        for start in range(0, len(chosen), self.write_batch_size):
            refused += self._upsert(client, chosen[start : start + self.write_batch_size])
        if refused:
            named = "; ".join(f"`{document_id}` ({reason})" for document_id, reason in refused[:_NAMED])
            more = f" and {len(refused) - _NAMED:,} more" if len(refused) > _NAMED else ""
            raise StoreError(
                f"{self.server.place} refused to write {len(refused):,} of {len(chosen):,} passages in {self.index}: "
                f"{named}{more}. The others are done. See to the cause and run the same again; only what is missing "
                "is repeated."
            )
        return len(chosen)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete children; ids that are not stored are no error."""
        self._open_client()
        with self.server.reporting():
            for start in range(0, len(document_ids), _PAGE):
                super().delete_documents(document_ids[start : start + _PAGE])

    def list_ids(self, filters: dict[str, Any] | None = None) -> list[str]:
        """Give the ids of the children that match, without reading vectors."""
        return [str(payload["id"]) for payload in self._payloads(filters, ["id"])]

    def list_meta(self, filters: dict[str, Any] | None, fields: list[str]) -> list[dict[str, Any]]:
        """Give some meta fields of the children that match, without reading vectors."""
        wanted = [f"meta.{field}" for field in fields]
        return [payload.get("meta") or {} for payload in self._payloads(filters, wanted)]

    def existing_ids(self, document_ids: list[str]) -> set[str]:
        """Tell which children are stored."""
        client = self._open_client()
        found: set[str] = set()
        for start in range(0, len(document_ids), _PAGE):
            points = {_point_id(document_id): document_id for document_id in document_ids[start : start + _PAGE]}
            with self.server.reporting():
                records = client.retrieve(self.index, ids=list(points), with_payload=False)
            found |= {points[str(record.id).replace("-", "")] for record in records}
        return found

    def count_documents(self) -> int:
        """Count the children."""
        with self.server.reporting():
            return int(super().count_documents())

    def delete_by_filter(self, filters: dict[str, Any]) -> int:
        """Delete the children that match."""
        if not filters:
            raise ValueError("`filters` must name what to delete, got none.")
        with self.server.reporting():
            return int(super().delete_by_filter(servable(filters, self.keyword_fields or ())))

    async def write_documents_async(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """See `write_documents`."""
        return await asyncio.to_thread(self.write_documents, documents, policy)

    def _upsert(self, client: QdrantClient, batch: list[Document]) -> list[tuple[str, str]]:
        """Write a batch; where the server refuses it, find out which of its children it means."""
        points = convert_haystack_documents_to_qdrant_points(batch, use_sparse_embeddings=False)
        try:
            with self.server.reporting():
                client.upsert(self.index, points=points, wait=True)
        except StoreError as error:
            cause = error.__cause__
            if not isinstance(cause, UnexpectedResponse) or cause.status_code not in (400, 422):
                raise
            if len(batch) > 1:
                return [fault for document in batch for fault in self._upsert(client, [document])]
            return [(batch[0].id, cause.content.decode("utf-8", "replace")[:200])]
        return []

    def _payloads(self, filters: dict[str, Any] | None, fields: list[str]) -> Iterator[dict[str, Any]]:
        condition = convert_filters_to_qdrant(servable(filters, self.keyword_fields or ()))
        client = self._open_client()
        offset: Any = None
        while True:
            with self.server.reporting():
                records, offset = client.scroll(
                    self.index, scroll_filter=condition, limit=_PAGE, offset=offset, with_payload=fields
                )
            yield from (record.payload or {} for record in records)
            if offset is None:
                return

    def _open_client(self) -> QdrantClient:
        self._initialize_client()
        if self._client is None:
            raise StoreError(f"The connection to {self.server.place} was closed. Try again.")
        return self._client


def _point_id(document_id: str) -> str:
    return str(convert_id(document_id))
