"""Haystack's Qdrant document store, for the children's vectors."""

import threading
import warnings
from typing import Any

from haystack import default_from_dict, default_to_dict
from haystack.utils import Secret
from qdrant_client import QdrantClient
from qdrant_client.http import models

from shiguan.errors import StoreError
from shiguan.stores.cluster.qdrant_operations import QdrantOperations
from shiguan.stores.cluster.qdrant_setup import inspect_collection, make_collection, vector_differences
from shiguan.stores.cluster.servable_filters import KEYWORD_FIELDS, NUMBER_FIELDS
from shiguan.stores.cluster.server import Server
from shiguan.tenants import TenantGuarded

# Asked for often, so kept in memory; the other fields that filters may name have their indexes on disk.
_IN_MEMORY = ("source_id", "file_id", "source", "language")


class QdrantStore(TenantGuarded, QdrantOperations):
    """
    Keeps children with their vectors in one collection of a Qdrant server.

    Haystack's store does the retrieval; this adds what it leaves open. The address and the key come from the
    environment. The collection and its payload indexes are made by `set_up` (`shiguan stores init`) and never in
    passing; Haystack's own way can delete a collection that another process has just made. A write names what the
    server refused, child by child. Whatever fails names the server and the next step.

    The asynchronous methods run their twins in a thread, as those of `ElasticsearchStore` do.
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

    def to_dict(self) -> dict[str, Any]:
        """Write the store's parameters, without secrets."""
        return default_to_dict(
            self,
            index=self.index,
            embedding_dim=self.embedding_dim,
            address=self.address.to_dict(),
            api_key=self.api_key.to_dict() if self.api_key else None,
            keyword_fields=self.keyword_fields,
            on_disk=self.on_disk,
            hnsw_config=self.hnsw_config,
            quantization_config=self.quantization_config,
            shard_number=self.shard_number,
            replication_factor=self.replication_factor,
            timeout=self.timeout,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "QdrantStore":
        """Make a store from its parameters."""
        return default_from_dict(cls, data)

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
