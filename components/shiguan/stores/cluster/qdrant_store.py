"""Haystack's Qdrant document store, for the children's vectors."""

import threading
import warnings
from collections.abc import Iterator
from typing import Any

from haystack.dataclasses import Document
from haystack.document_stores.types import DuplicatePolicy
from haystack.utils import Secret
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
from shiguan.stores import PipelineStore
from shiguan.stores.cluster.servable_filters import KEYWORD_FIELDS, NUMBER_FIELDS, servable
from shiguan.stores.cluster.server import Server
from shiguan.tenants import TenantGuarded

_PAGE = 10_000  # ids in one answer


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
            raise self.server.refusal("write", refused, len(chosen), self.index)
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


# Asked for often, so kept in memory; the other fields that filters may name have their indexes on disk.
_IN_MEMORY = ("source_id", "file_id", "source", "language")


class QdrantStore(TenantGuarded, PipelineStore, QdrantOperations):  # type: ignore[misc]  # fewer ways to count
    """
    Keeps children with their vectors in one collection of a Qdrant server.

    Haystack's store does the retrieval; this adds what it leaves open. The address and the key come from the
    environment. The collection and its payload indexes are made by `set_up` (`shiguan stores init`) and never in
    passing; Haystack's own way can delete a collection that another process has just made. A write names what the
    server refused, child by child. Whatever fails names the server and the next step.
    """

    def __init__(
        self,
        index: str,
        *,
        embedding_dim: int,
        address: Secret = Secret.from_env_var("SHIGUAN_QDRANT_URL"),  # noqa: B008  Haystack's way
        api_key: Secret | None = Secret.from_env_var("SHIGUAN_QDRANT_API_KEY", strict=False),  # noqa: B008
        keyword_fields: list[str] | None = None,
        on_disk: bool = False,
        hnsw_config: dict[str, Any] | None = None,
        quantization_config: dict[str, Any] | None = None,
        shard_number: int | None = None,
        replication_factor: int | None = None,
        timeout: int = 10,
    ) -> None:
        """Describe the store; nothing is opened yet."""
        if not index or not set(index).isdisjoint('/ \\?#:*"<>|'):
            raise ValueError(f"`index` must be a plain collection name, got {index!r}.")
        if embedding_dim < 1:
            raise ValueError(f"`embedding_dim` must be positive, got {embedding_dim}.")
        if timeout <= 0:
            raise ValueError(f"`timeout` must be positive, got {timeout}.")
        super().__init__(
            index=index,
            embedding_dim=embedding_dim,
            api_key=api_key,
            on_disk=on_disk,
            on_disk_payload=True,  # children are read a few at a time
            hnsw_config=hnsw_config,
            quantization_config=quantization_config,
            shard_number=shard_number,
            replication_factor=replication_factor,
            timeout=timeout,
            progress_bar=False,
        )
        self.address = address
        self.keyword_fields = keyword_fields
        self.server = Server("Qdrant", address, "SHIGUAN_QDRANT_URL", "SHIGUAN_QDRANT_API_KEY")
        self._opening = threading.Lock()

    def set_up(self) -> list[str]:
        """Make the collection and its payload indexes where they are missing; safe to run twice, even at once."""
        client = self._connect()
        try:
            with self.server.reporting():
                done = make_collection(client, self.index, self._config(), self._payload_indexes())
                self._check_vectors(client)
        finally:
            client.close()
        return [f"{self.server.place}: {clause}" for clause in done]

    def status(self) -> list[dict[str, Any]]:
        """Tell how the collection does."""
        entry = {"server": self.server.place, "name": self.index}
        client = self._connect()
        try:
            with self.server.reporting():
                return [{**entry, **inspect_collection(client, self.index, self._config(), self._payload_indexes())}]
        except StoreError as error:
            return [{**entry, "version": None, "health": "unreachable", "documents": None, "problems": [str(error)]}]
        finally:
            client.close()

    def _config(self) -> dict[str, Any]:
        vectors, _ = self._prepare_collection_config(self.embedding_dim, self.get_distance(self.similarity))
        return {"vectors_config": vectors, **self._prepare_collection_params()}

    def _payload_indexes(self) -> dict[str, Any]:
        # Qdrant keeps the passages of a tenant together, and answers within one as if it were alone.
        keyword, integer = models.KeywordIndexType.KEYWORD, models.IntegerIndexType.INTEGER
        indexes: dict[str, Any] = {"meta.tenant_id": models.KeywordIndexParams(type=keyword, is_tenant=True)}
        for name in (*KEYWORD_FIELDS, *(self.keyword_fields or ())):
            on_disk = name not in _IN_MEMORY
            indexes.setdefault(f"meta.{name}", models.KeywordIndexParams(type=keyword, on_disk=on_disk))
        for name in NUMBER_FIELDS:
            indexes[f"meta.{name}"] = models.IntegerIndexParams(type=integer, lookup=True, range=True, on_disk=True)
        return indexes | {"id": models.KeywordIndexParams(type=keyword, on_disk=True)}

    def _check_vectors(self, client: QdrantClient) -> None:
        differences = vector_differences(client.get_collection(self.index), self._config()["vectors_config"])
        if differences:
            raise StoreError(
                f"The collection {self.index} of {self.server.place} does not fit the deployment's files: "
                f"{'; '.join(differences)}. Give the collection another name in the files, run `shiguan stores init` "
                "and copy, as docs/deploy.md describes."
            )

    def _connect(self) -> QdrantClient:
        with warnings.catch_warnings():
            # Whether a key may travel without encryption is the operator's decision, see docs/deploy.md.
            warnings.filterwarnings("ignore", message="Api key is used with an insecure connection")
            return QdrantClient(
                url=self.server.urls()[0],
                api_key=self.api_key.resolve_value() if self.api_key else None,
                timeout=self.timeout,
                check_compatibility=False,
            )

    def _initialize_client(self) -> None:
        # In place of Haystack's, which keeps a client whose first call failed and would make the collection itself.
        with self._opening:
            if self._client is not None:
                return
            client = self._connect()
            try:
                with self.server.reporting():
                    if not client.collection_exists(self.index):
                        raise StoreError(
                            f"{self.server.place} has no collection `{self.index}`. Make it with `shiguan stores init`."
                        )
                    self._check_vectors(client)
            except BaseException:
                client.close()
                raise
            self._client = client

    async def _initialize_async_client(self) -> None:
        raise NotImplementedError(
            "QdrantStore has no asynchronous client: it would belong to one event loop. Call the synchronous method in "
            "a thread."
        )


_CONFLICTS = (400, 409)


def make_collection(
    client: QdrantClient, collection: str, config: dict[str, Any], payload_indexes: dict[str, Any]
) -> list[str]:
    """
    Make the collection and its payload indexes, where they are not there yet.

    Never deletes: Haystack's own way removes a collection that another process made in between. Runs as often as one
    likes, also at once from several machines.
    """
    done = [f"collection {collection} was there"]
    if not client.collection_exists(collection):
        try:
            client.create_collection(collection, **config)
            done = [f"collection {collection} made"]
        except UnexpectedResponse as error:
            if error.status_code not in _CONFLICTS or not client.collection_exists(collection):
                raise
    existing = client.get_collection(collection).payload_schema
    missing = {field: schema for field, schema in payload_indexes.items() if field not in existing}
    for field, schema in missing.items():
        client.create_payload_index(collection, field_name=field, field_schema=schema, wait=True)
    if missing:
        done.append(f"payload indexes made: {', '.join(missing)}")
    return done


def inspect_collection(
    client: QdrantClient, collection: str, config: dict[str, Any], payload_indexes: dict[str, Any]
) -> dict[str, Any]:
    """Tell how a collection does."""
    version = client.info().version
    if not client.collection_exists(collection):
        return {
            "version": version,
            "health": "missing",
            "documents": None,
            "problems": [f"the collection {collection} is missing; `shiguan stores init` makes it"],
        }
    info = client.get_collection(collection)
    missing = [field for field in payload_indexes if field not in info.payload_schema]
    problems = [f"{collection}: {difference}" for difference in vector_differences(info, config["vectors_config"])]
    if missing:
        problems.append(f"payload indexes are missing: {', '.join(missing)}; `shiguan stores init` makes them")
    if str(info.status.value) == "red":
        problems.append(f"an optimisation of {collection} failed; see the server's log and its disks")
    return {
        "version": version,
        "health": str(info.status.value),
        "documents": client.count(collection, exact=True).count,
        "indexed": info.indexed_vectors_count or 0,
        "problems": problems,
    }


def vector_differences(info: Any, expected: Any) -> list[str]:
    """Compare a collection's vectors with what they should be."""
    actual = info.config.params.vectors
    if actual is None or isinstance(actual, dict):
        return ["it holds named vectors and was not made by `shiguan stores init`"]
    found = []
    if actual.size != expected.size:
        found.append(f"its vectors have {actual.size} dimensions, the embedder's {expected.size}")
    if actual.distance != expected.distance:
        found.append(f"its distance is {actual.distance.value}, expected {expected.distance.value}")
    return found
