"""Haystack's Qdrant document store, for the children's vectors."""

import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any
from uuid import UUID

from haystack.dataclasses import Document
from haystack.document_stores.errors import DuplicateDocumentError
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

from shiguan.errors import StoreError, StoreFormatError
from shiguan.haystack_compat import QdrantHooks
from shiguan.llm.run import warn
from shiguan.stores import HIT_FIELDS, PipelineStore, is_model, other_vectors
from shiguan.stores.cluster.schema import KEYWORD_FIELDS, NUMBER_FIELDS, servable
from shiguan.stores.cluster.server import Server
from shiguan.tenants import TenantGuarded
from shiguan.text.passages import SharedDocument

_PAGE = 10_000  # ids in one answer
_VECTOR_PAGE = 1_000  # vectors in one answer, some 20 MB of JSON
_EMBEDDER = "shiguan_embedder"  # in the collection's metadata, which Qdrant keeps since 1.16
_DELETED = 1_000  # children in one request
_HITS = ["id", *(f"meta.{field}" for field in HIT_FIELDS)]
_CONFLICTS = (400, 409)
# How many candidates are compared by their full vectors.
_OVERSAMPLING = 2.0
# Used often, so kept in memory; the indexes of the other filter fields are on disk.
_IN_MEMORY = ("source_id", "file_id", "source", "language")


class QdrantStore(TenantGuarded, QdrantHooks, PipelineStore, QdrantDocumentStore):  # type: ignore[misc]  # fewer ways to count
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
        embedding_model: str | None = None,
        keyword_fields: list[str] | None = None,
        on_disk: bool = False,
        hnsw_config: dict[str, Any] | None = None,
        optimizers_config: dict[str, Any] | None = None,
        quantization_config: dict[str, Any] | None = None,
        shard_number: int | None = None,
        replication_factor: int | None = None,
    ) -> None:
        """
        Describe the collection; nothing is opened yet.

        :param index: Its name.
        :param embedding_dim: Length of the embeddings.
        :param embedding_model: The model that questions are embedded with, as the identity of the children's embedder
            begins. If the collection's vectors were made with another one, none is found; None skips this check.
        :param keyword_fields: More meta fields that filters may name.
        :param on_disk: Whether full vectors are on disk rather than in memory.
        :param hnsw_config: How graphs are made; this and what follows, as Qdrant names it: see docs/operating.md.
        :param optimizers_config: How segments are made, such as `indexing_threshold` and `default_segment_number`.
        :param quantization_config: How vectors are shortened.
        :param shard_number: In how many parts the collection is made.
        :param replication_factor: How many copies of each part there are.
        :raises ValueError: If a parameter is out of its range.
        """
        if not index or not set(index).isdisjoint('/ \\?#:*"<>|'):
            raise ValueError(f"`index` must be a plain collection name, got {index!r}.")
        if embedding_dim < 1:
            raise ValueError(f"`embedding_dim` must be positive, got {embedding_dim}.")
        config: dict[str, Any] = {
            "on_disk_payload": True,  # children are read a few at a time
            "hnsw_config": hnsw_config,
            "optimizers_config": optimizers_config,
            "quantization_config": quantization_config,
            "shard_number": shard_number,
            "replication_factor": replication_factor,
        }
        super().__init__(index=index, embedding_dim=embedding_dim, on_disk=on_disk, progress_bar=False, **config)
        self.embedding_model = embedding_model
        self.keyword_fields = keyword_fields
        vectors = models.VectorParams(size=embedding_dim, distance=models.Distance.COSINE, on_disk=on_disk)
        self.config = {"vectors_config": vectors, **config}
        self.server = Server("Qdrant", self._check)
        self._other_lately = lru_cache(1)(lambda _: self.other_vectors())

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
        if info.points_count and not _embedder_of(info):
            done.append("what made its vectors is not recorded; the next ingest records the embedder of the files")
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

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """Store children in batches; when it returns, they are found."""
        keeps = policy in (DuplicatePolicy.SKIP, DuplicatePolicy.FAIL)
        chosen, client = self._new(documents, policy) if keeps else documents, self.server.client()
        refused: list[tuple[str, str]] = []
        for start in range(0, len(chosen), self.write_batch_size):
            refused += self._upsert(client, chosen[start : start + self.write_batch_size])
        if refused:
            raise self.server.refusal("write", refused, len(chosen), self.index)
        return len(chosen)

    def _new(self, documents: list[Document], policy: DuplicatePolicy) -> list[Document]:
        once = {document.id: document for document in reversed(documents)}
        stored = self.existing_ids(list(once))
        if stored and policy == DuplicatePolicy.FAIL:
            raise DuplicateDocumentError(
                f"{self.index} already has {', '.join(f'`{one}`' for one in sorted(stored)[:5])}. Write them with "
                "another policy, or leave them out."
            )
        return [document for document in reversed(once.values()) if document.id not in stored]

    def write_vectors(self, documents: list[Document], *, model: str) -> int:
        """Store children with the vectors of an embedder, which is recorded; those of another one are not mixed."""
        info = self._info()
        if (other := self._others(info, model)) is not None:
            raise StoreFormatError(other)
        if not is_model(_embedder_of(info), model):
            self._record_embedder(model)
        return self.write_documents(documents, policy=DuplicatePolicy.OVERWRITE)

    def embedder(self) -> str | None:
        """Return the identity of the embedder that made the vectors; None if none was recorded."""
        return _embedder_of(self._info())

    def other_vectors(self, model: str | None = None) -> str | None:
        """Explain that the vectors are those of another embedder; None if they are not."""
        wanted = model or self.embedding_model
        if wanted is None:
            return None
        info = self._info()
        if model is not None and info.points_count and _embedder_of(info) is None:
            self._record_embedder(model)  # vectors from before it was recorded are taken to be its own
            return None
        return self._others(info, wanted)

    def drop_vectors(self) -> None:
        """Delete the vectors of all tenants, so that another embedder's can be written."""
        self._delete(record.id for record in self._records({}, with_payload=False))
        # Last, so that after an interruption what is left still counts as the other's.
        self._record_embedder(None)

    def _info(self) -> models.CollectionInfo:
        with self.server.connected() as client:
            info: models.CollectionInfo = client.get_collection(self.index)
            return info

    def _others(self, info: models.CollectionInfo, wanted: str) -> str | None:
        found = _embedder_of(info)
        if found is None or is_model(found, wanted) or not info.points_count:
            return None
        return other_vectors(f"{self.index} of {self.server.place}", found, wanted)

    def _record_embedder(self, model: str | None) -> None:
        with self.server.connected() as client:
            client.update_collection(self.index, metadata={_EMBEDDER: model})

    def existing_ids(self, document_ids: list[str]) -> set[str]:
        """Find which children are stored, that is have a vector."""
        by_point = {_point_id(document_id): document_id for document_id in document_ids}
        with self.server.connected() as client:
            records = client.retrieve(self.index, list(by_point), with_payload=False, with_vectors=False)
        return {by_point[str(record.id)] for record in records}

    def read_vectors(self, filters: dict[str, Any]) -> dict[str, list[float]]:
        """Read the vectors of the children that match, by their ids."""
        records = self._records(filters, with_payload=["id"], with_vectors=True, page=_VECTOR_PAGE)
        return {record.payload["id"]: record.vector for record in records}

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete children; ids that are not stored are ignored."""
        self._delete(map(_point_id, document_ids))

    def iter_ids(self, filters: dict[str, Any] | None = None) -> Iterator[str]:
        """Return the ids of the children that match, page by page, without reading vectors."""
        return (str(record.payload["id"]) for record in self._records(filters, with_payload=["id"]))

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
        return self._delete(record.id for record in self._records(filters, with_payload=False))

    def _delete(self, points: Iterable[Any]) -> int:
        left, count = iter(points), 0
        with self.server.connected() as client:
            while some := list(islice(left, _DELETED)):
                client.delete(self.index, points_selector=models.PointIdsList(points=some), wait=True)
                count += len(some)
        return count

    def query_by_embedding(
        self,
        query_embedding: list[float],
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        scale_score: bool = False,
        **_: Any,
    ) -> list[Document]:
        """Find the nearest children; what Haystack's retriever calls, without its thresholds and groups."""
        if top_k < 1:
            raise ValueError(f"`top_k` must be positive, got {top_k}.")
        condition = self._condition(filters)
        if not query_embedding or self._made_by_others():  # no model embedded the question, or another the children
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

    def _made_by_others(self) -> bool:
        """Whether the vectors are another embedder's, which a warning says; looked up once a minute."""
        other = self._other_lately(int(time.monotonic() / 60)) if self.embedding_model else None
        if other is not None:
            warn(other)
        return other is not None

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

    def _records(
        self, filters: dict[str, Any] | None, *, with_payload: Any, with_vectors: bool = False, page: int = _PAGE
    ) -> Iterator[Any]:
        condition = self._condition(filters)
        offset: Any = None
        while True:
            with self.server.connected() as client:
                records, offset = client.scroll(
                    self.index,
                    scroll_filter=condition,
                    limit=page,
                    offset=offset,
                    with_payload=with_payload,
                    with_vectors=with_vectors,
                )
            yield from records
            if offset is None:
                return

    def _condition(self, filters: dict[str, Any] | None) -> Any:
        return convert_filters_to_qdrant(servable(filters, self.keyword_fields or ()))


def _embedder_of(info: models.CollectionInfo) -> str | None:
    found = (info.config.metadata or {}).get(_EMBEDDER)
    return found if isinstance(found, str) else None


def _point_id(document_id: str) -> str:
    """Return Qdrant's id of a child, as Qdrant writes it: with dashes."""
    return str(UUID(convert_id(document_id)))
