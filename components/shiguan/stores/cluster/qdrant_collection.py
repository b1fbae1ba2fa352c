"""One collection of a Qdrant server: making it, and its state."""

from typing import Any

from qdrant_client import QdrantClient
from qdrant_client.http import models
from qdrant_client.http.exceptions import UnexpectedResponse

from shiguan.errors import StoreError
from shiguan.stores.cluster.served_store import missing
from shiguan.stores.cluster.server import Server

_CONFLICTS = (400, 409)
# Kilobytes of vectors from which a segment gets its graph; 0 postpones all graphs.
_GRAPH_FROM = 10_000
_STATES = {
    "red": "an optimisation failed: see the server's log and its disks",
    "grey": "its graphs wait for an update, as after a restart in the middle of making them: run `shiguan stores init`",
}


class QdrantCollection:
    """See `ServerPart`; `config` and `payload_indexes` say what the collection looks like."""

    def __init__(self, server: Server, name: str, config: dict[str, Any], payload_indexes: dict[str, Any]) -> None:
        self.server = server
        self.name = name
        self.config = config
        self.payload_indexes = payload_indexes

    def check(self, client: QdrantClient) -> None:
        """Refuse to go on without the collection, or with one of other vectors."""
        if not client.collection_exists(self.name):
            raise StoreError(
                f"{self.server.place} has no collection `{self.name}`. Make it with `shiguan stores init`, then run "
                "the same again."
            )
        differences = self._vector_differences(client.get_collection(self.name))
        if differences:
            raise StoreError(
                f"The collection {self.name} of {self.server.place} does not fit the deployment's files: "
                f"{'; '.join(differences)}. Vectors of another embedder are made anew: give the collection another "
                "name in the files, run `shiguan stores init`, then `shiguan ingest --resume`."
            )

    def make(self, client: QdrantClient) -> list[str]:
        """See `ServerPart`. Never deletes: Haystack's own way can remove what another process has just made."""
        done = [f"collection {self.name} {'made' if self._create(client) else 'was there'}"]
        info = client.get_collection(self.name)
        wanted = {field: schema for field, schema in self.payload_indexes.items() if field not in info.payload_schema}
        for field, schema in wanted.items():
            client.create_payload_index(self.name, field_name=field, field_schema=schema, wait=True)
        if wanted:
            done.append(f"payload indexes made: {', '.join(wanted)}")
        if _postponed(info) or info.status.value == "grey":
            self.make_graphs(client)
            done.append("graphs are made now; this had been interrupted")
        self.check(client)
        return done

    def make_graphs(self, client: QdrantClient, *, now: bool = True) -> None:
        """Let the server make the graphs now, or postpone them while much is written."""
        client.update_collection(
            self.name,
            optimizers_config=models.OptimizersConfigDiff(indexing_threshold=_GRAPH_FROM if now else 0),
        )

    def state(self, client: QdrantClient) -> dict[str, Any]:
        version = client.info().version
        if not client.collection_exists(self.name):
            return missing(version, "collection", self.name)
        info = client.get_collection(self.name)
        health = str(info.status.value)
        problems = self._vector_differences(info)
        absent = [field for field in self.payload_indexes if field not in info.payload_schema]
        if absent:
            problems.append(f"payload indexes are missing: {', '.join(absent)}; `shiguan stores init` makes them")
        if _postponed(info):
            problems.append("it makes no graphs: a large load runs, or was interrupted; then run `shiguan stores init`")
        elif health in _STATES:
            problems.append(_STATES[health])
        # Graphs with other settings find nothing wrong, but are slower or find less.
        notes = [
            f"note: `{name}` of its graphs is {found}, the files say {wanted}; it serves, and docs/operating.md says "
            "how to change it"
            for name, wanted in (self.config.get("hnsw_config") or {}).items()
            if (found := getattr(info.config.hnsw_config, name, None)) != wanted
        ]
        if health == "yellow":
            notes.append("note: graphs are being made; searches are right, and slower until that is done")
        return {
            "version": version,
            "health": health,
            "documents": int(client.count(self.name, exact=True).count),
            "indexed": info.indexed_vectors_count or 0,
            "problems": problems,
            "notes": notes,
        }

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

    def _create(self, client: QdrantClient) -> bool:
        if client.collection_exists(self.name):
            return False
        try:
            client.create_collection(self.name, **self.config)
        except UnexpectedResponse as error:
            if error.status_code not in _CONFLICTS or not client.collection_exists(self.name):
                raise
            return False
        return True


def _postponed(info: Any) -> bool:
    return bool(info.config.optimizer_config.indexing_threshold == 0)
