"""Haystack's Elasticsearch document store, for passages."""

import threading
from typing import Any

from elasticsearch import AsyncElasticsearch, Elasticsearch
from haystack import default_from_dict, default_to_dict
from haystack.utils import Secret

from shiguan.errors import StoreError
from shiguan.stores.cluster.elasticsearch_operations import ElasticsearchOperations
from shiguan.stores.cluster.elasticsearch_schema import ElasticsearchSchema
from shiguan.stores.cluster.elasticsearch_setup import inspect_index, make_index
from shiguan.stores.cluster.server import Server
from shiguan.tenants import TenantGuarded


class ElasticsearchStore(TenantGuarded, ElasticsearchOperations):
    """
    Keeps passages, by their words or by id alone, in one index of an Elasticsearch cluster.

    Haystack's store does the retrieval; this adds what it leaves open. The address and the key come from the
    environment. The index is made by `set_up` (`shiguan stores init`) and never by a write, for an index made in
    passing would lack its analysis. Reading goes past 10,000 passages, and passages by id come in one request. A write
    names what the server refused, passage by passage. Whatever fails names the server and the next step.

    Embeddings are not sent: vectors are Qdrant's.

    The asynchronous methods run their twins in a thread: Haystack's asynchronous client belongs to the event loop that
    first used it, and a pipeline outside a server gets a new loop with every run.
    """

    def __init__(
        self,
        index: str,
        *,
        address: Secret = Secret.from_env_var("SHIGUAN_ELASTICSEARCH_URL"),  # noqa: B008  Haystack's way
        api_key: Secret | None = Secret.from_env_var("SHIGUAN_ELASTICSEARCH_API_KEY", strict=False),  # noqa: B008
        searched: bool = True,
        bm25_fields: list[str] | None = None,
        bm25_k1: float = 1.2,
        bm25_b: float = 0.75,
        keyword_fields: list[str] | None = None,
        shards: int = 1,
        timeout: float = 10.0,
    ) -> None:
        """Describe the store; nothing is opened yet."""
        if not index or index != index.lower() or index[0] in "-_+." or not set(index).isdisjoint(' "*\\<|,>/?#:'):
            raise ValueError(f"`index` must be a lower-case Elasticsearch index name, got {index!r}.")
        if bm25_k1 < 0 or not 0 <= bm25_b <= 1:
            raise ValueError(f"BM25 needs `bm25_k1` >= 0 and `bm25_b` from 0 to 1, got {bm25_k1} and {bm25_b}.")
        if shards < 1:
            raise ValueError(f"`shards` must be positive, got {shards}.")
        if timeout <= 0:
            raise ValueError(f"`timeout` must be positive, got {timeout}.")
        self.index = index
        self.address = address
        self.api_key = api_key
        self.searched = searched
        self.bm25_fields = bm25_fields
        self.bm25_k1 = bm25_k1
        self.bm25_b = bm25_b
        self.keyword_fields = keyword_fields
        self.shards = shards
        self.timeout = timeout
        self.server = Server("Elasticsearch", address, "SHIGUAN_ELASTICSEARCH_URL", "SHIGUAN_ELASTICSEARCH_API_KEY")
        self.schema = ElasticsearchSchema(
            searched, tuple(keyword_fields or ()), tuple(bm25_fields or ()), bm25_k1, bm25_b, shards
        )
        self._opening = threading.Lock()
        super().__init__(index=index, api_key=api_key, api_key_id=None, request_timeout=timeout)

    def to_dict(self) -> dict[str, Any]:
        """Write the store's parameters, without secrets."""
        return default_to_dict(
            self,
            index=self.index,
            address=self.address.to_dict(),
            api_key=self.api_key.to_dict() if self.api_key else None,
            searched=self.searched,
            bm25_fields=self.bm25_fields,
            bm25_k1=self.bm25_k1,
            bm25_b=self.bm25_b,
            keyword_fields=self.keyword_fields,
            shards=self.shards,
            timeout=self.timeout,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "ElasticsearchStore":
        """Make a store from its parameters."""
        return default_from_dict(cls, data)

    def set_up(self) -> list[str]:
        """Make the index template and the index, where they are not there yet; safe to run twice, and twice at once."""
        with self.server.reporting(), self._connect() as client:
            done = make_index(client, self.index, self.schema)
        return [f"{self.server.place}: {clause}" for clause in done]

    def status(self) -> list[dict[str, Any]]:
        """Tell how the index does."""
        entry = {"server": self.server.place, "name": self.index}
        try:
            with self.server.reporting(), self._connect() as client:
                return [{**entry, **inspect_index(client, self.index, self.schema)}]
        except StoreError as error:
            return [{**entry, "version": None, "health": "unreachable", "documents": None, "problems": [str(error)]}]

    def _connect(self) -> Elasticsearch:
        return Elasticsearch(
            self.server.urls(), api_key=self._handle_auth(), headers=self._headers, request_timeout=self.timeout
        )

    def _ensure_initialized(self) -> None:
        # In place of Haystack's, which keeps a client whose first call failed and would make the index itself.
        with self._opening:
            if self._client is not None:
                return
            client = self._connect()
            try:
                with self.server.reporting():
                    if not client.indices.exists(index=self.index):
                        raise StoreError(
                            f"{self.server.place} has no index `{self.index}`. Make it with `shiguan stores init`."
                        )
            except BaseException:
                client.close()
                raise
            self._client = client

    def _create_async_client(self) -> AsyncElasticsearch:
        raise NotImplementedError(
            "ElasticsearchStore has no asynchronous client: it would belong to one event loop. Call the synchronous "
            "method in a thread."
        )
