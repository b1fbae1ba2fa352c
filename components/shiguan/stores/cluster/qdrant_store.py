"""Haystack's Qdrant document store, for the children's vectors."""

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
from qdrant_client.http import models
from qdrant_client.http.exceptions import UnexpectedResponse

from shiguan.errors import StoreError
from shiguan.stores import HIT_FIELDS, PipelineStore
from shiguan.stores.cluster.schema import KEYWORD_FIELDS, NUMBER_FIELDS, servable
from shiguan.stores.cluster.server import Server
from shiguan.tenants import TenantGuarded
from shiguan.text.passages import SharedDocument

_PAGE = 10_000  # ids in one answer
_DELETED = 1_000  # children in one request
_HITS = ["id", *(f"meta.{field}" for field in HIT_FIELDS)]
_CONFLICTS = (400, 409)
# How many candidates are compared by their full vectors.
_OVERSAMPLING = 2.0
# Used often, so kept in memory; the indexes of the other filter fields are on disk.
_IN_MEMORY = ("source_id", "file_id", "source", "language")


class QdrantStore(TenantGuarded, PipelineStore, QdrantDocumentStore):  # type: ignore[misc]  # fewer ways to count
    """
    Keeps children with their vectors in one collection of a Qdrant server.

    Haystack's store and its `QdrantEmbeddingRetriever` do the retrieval; this adds what they lack. The address and the
    key come from the environment. The collection and its payload indexes are made by `set_up` (`shiguan stores init`)
    and never by a write; Haystack's own way can delete a collection that another process has just made. Filters are
    checked, and written so that Qdrant reads them as Haystack means them. A write names each child that the server
    refused. Every error names the server and the next step.

    Scores are cosines (-1 to 1, higher is closer). Hits have no content, and only the meta that the fetcher of parents
    needs.
    """

    def __init__(
        self,
        index: str,
        *,
        embedding_dim: int,
        keyword_fields: list[str] | None = None,
        on_disk: bool = False,
        hnsw_config: dict[str, Any] | None = None,
        quantization_config: dict[str, Any] | None = None,
        shard_number: int | None = None,
        replication_factor: int | None = None,
    ) -> None:
        if not index or not set(index).isdisjoint('/ \\?#:*"<>|'):
            raise ValueError(f"`index` must be a plain collection name, got {index!r}.")
        if embedding_dim < 1:
            raise ValueError(f"`embedding_dim` must be positive, got {embedding_dim}.")
        super().__init__(
            index=index,
            embedding_dim=embedding_dim,
            on_disk=on_disk,
            on_disk_payload=True,  # children are read a few at a time
            hnsw_config=hnsw_config,
            quantization_config=quantization_config,
            shard_number=shard_number,
            replication_factor=replication_factor,
            progress_bar=False,
        )
        self.keyword_fields = keyword_fields
        vectors, _ = self._prepare_collection_config(embedding_dim, self.get_distance(self.similarity))
        self.config = {"vectors_config": vectors, **self._prepare_collection_params()}
        self.server = Server("Qdrant", self._check)

    def set_up(self) -> list[str]:
        """Make what is missing; safe to run twice, and twice at once."""
        return self.server.set_up(self._make)

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        self.server.close()

    def _check(self, client: QdrantClient) -> None:
        if not client.collection_exists(self.index):
            raise self.server.missing("collection", self.index)
        differences = self._vector_differences(client.get_collection(self.index))
        if differences:
            raise StoreError(
                f"The collection {self.index} of {self.server.place} does not fit the deployment's files: "
                f"{'; '.join(differences)}. Vectors of another embedder are made anew: give the collection another "
                "name in the files, run `shiguan stores init`, then `shiguan ingest --resume`."
            )

    def _make(self, client: QdrantClient) -> list[str]:
        # Never deletes: Haystack's own way can remove what another process has just made.
        made = False
        try:
            made = not client.collection_exists(self.index) and client.create_collection(self.index, **self.config)
        except UnexpectedResponse as error:
            if error.status_code not in _CONFLICTS or not client.collection_exists(self.index):
                raise
        done = [f"collection {self.index} {'made' if made else 'was there'}"]
        info = client.get_collection(self.index)
        wanted = {
            field: schema for field, schema in self._payload_indexes().items() if field not in info.payload_schema
        }
        for field, schema in wanted.items():
            client.create_payload_index(self.index, field_name=field, field_schema=schema, wait=True)
        if wanted:
            done.append(f"payload indexes made: {', '.join(wanted)}")
        self._check(client)
        return done

    def _vector_differences(self, info: Any) -> list[str]:
        actual, expected = info.config.params.vectors, self.config["vectors_config"]
        if actual is None or isinstance(actual, dict):
            return ["it holds named vectors and was not made by `shiguan stores init`"]
        found = []
        if actual.size != expected.size:
            found.append(f"its vectors have {actual.size} dimensions, the embedder's {expected.size}")
        if actual.distance != expected.distance:
            found.append(f"its distance is {actual.distance.value}, expected {expected.distance.value}")
        return found

    def _payload_indexes(self) -> dict[str, Any]:
        # Qdrant stores the passages of a tenant together, and searches within it as if it were alone. Each question
        # has a tenant, so only the tenant's index adds links to the graph.
        keyword, integer = models.KeywordIndexType.KEYWORD, models.IntegerIndexType.INTEGER
        indexes: dict[str, Any] = {"meta.tenant_id": models.KeywordIndexParams(type=keyword, is_tenant=True)}
        for name in (*KEYWORD_FIELDS, *(self.keyword_fields or ())):
            on_disk = name not in _IN_MEMORY
            plain = models.KeywordIndexParams(type=keyword, on_disk=on_disk, enable_hnsw=False)
            indexes.setdefault(f"meta.{name}", plain)
        for name in NUMBER_FIELDS:
            indexes[f"meta.{name}"] = models.IntegerIndexParams(
                type=integer, lookup=True, range=True, on_disk=True, enable_hnsw=False
            )
        return indexes | {"id": models.KeywordIndexParams(type=keyword, on_disk=True, enable_hnsw=False)}

    def _initialize_client(self) -> None:
        # In place of Haystack's, which keeps a client whose first call failed and would make the collection itself.
        self._client = self.server.client()

    async def _initialize_async_client(self) -> None:
        raise NotImplementedError(
            "QdrantStore has no asynchronous client, which would belong to one event loop. Call the synchronous method "
            "in a thread."
        )

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """Store children in batches; when it returns, they are found."""
        with self.server.connected() as client:
            chosen = self._handle_duplicate_documents(documents, policy)
        refused: list[tuple[str, str]] = []
        for start in range(0, len(chosen), self.write_batch_size):
            refused += self._upsert(client, chosen[start : start + self.write_batch_size])
        if refused:
            raise self.server.refusal("write", refused, len(chosen), self.index)
        return len(chosen)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete children; ids that are not stored are ignored."""
        self._delete([_point_id(document_id) for document_id in document_ids])

    def list_ids(self, filters: dict[str, Any] | None = None) -> list[str]:
        """Give the ids of the children that match, without reading vectors."""
        return [str(record.payload["id"]) for record in self._records(filters, with_payload=["id"])]

    def count_documents(self) -> int:
        return self.count_documents_by_filter({})

    def count_documents_by_filter(self, filters: dict[str, Any]) -> int:
        with self.server.connected() as client:
            return int(client.count(self.index, count_filter=self._condition(filters), exact=True).count)

    def count_by_file(self, filters: dict[str, Any] | None, files: int) -> dict[str, int]:
        """Count the children of each file, of which there are at most so many."""
        with self.server.connected() as client:
            answer = client.facet(
                self.index, "meta.file_id", facet_filter=self._condition(filters), limit=max(files, 1), exact=True
            )
        return {str(hit.value): hit.count for hit in answer.hits}

    def delete_by_filter(self, filters: dict[str, Any]) -> int:
        """Delete the children that match, a thousand at a time: no request takes long, however many there are."""
        if not filters:
            raise ValueError("`filters` must name what to delete, got none.")
        return self._delete([record.id for record in self._records(filters, with_payload=False)])

    def _delete(self, points: list[Any]) -> int:
        with self.server.connected() as client:
            for start in range(0, len(points), _DELETED):
                some = models.PointIdsList(points=points[start : start + _DELETED])
                client.delete(self.index, points_selector=some, wait=True)
        return len(points)

    def _query_by_embedding(  # type: ignore[override]  # thresholds and groups are left out
        self,
        query_embedding: list[float],
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        scale_score: bool = False,
        **_: Any,
    ) -> list[Document]:
        # In place of Haystack's, which its retriever calls: that one sets no search parameters and reads all payload.
        if top_k < 1:
            raise ValueError(f"`top_k` must be positive, got {top_k}.")
        condition = self._condition(filters)
        if not query_embedding:  # no model embedded the question
            return []
        quantization = models.QuantizationSearchParams(rescore=True, oversampling=_OVERSAMPLING)
        with self.server.connected() as client:
            answer = client.query_points(
                self.index,
                query=query_embedding,
                query_filter=condition,
                search_params=models.SearchParams(hnsw_ef=max(128, 2 * top_k), quantization=quantization),
                limit=top_k,
                with_payload=_HITS,
            )
        return [
            SharedDocument(
                id=payload["id"],
                meta=payload.get("meta") or {},
                score=(point.score + 1) / 2 if scale_score else point.score,
            )
            for point, payload in ((point, point.payload or {}) for point in answer.points)
        ]

    async def _query_by_embedding_async(  # type: ignore[override]  # as above
        self, query_embedding: list[float], **options: Any
    ) -> list[Document]:
        return await asyncio.to_thread(self._query_by_embedding, query_embedding, **options)

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

    def _records(self, filters: dict[str, Any] | None, *, with_payload: Any) -> Iterator[Any]:
        condition = self._condition(filters)
        offset: Any = None
        while True:
            with self.server.connected() as client:
                records, offset = client.scroll(
                    self.index, scroll_filter=condition, limit=_PAGE, offset=offset, with_payload=with_payload
                )
            yield from records
            if offset is None:
                return

    def _condition(self, filters: dict[str, Any] | None) -> Any:
        return convert_filters_to_qdrant(servable(filters, self.keyword_fields or ()))


def _point_id(document_id: str) -> str:
    return str(convert_id(document_id))
