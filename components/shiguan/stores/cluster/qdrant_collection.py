"""One collection of a Qdrant server behind its alias: made, inspected, copied, saved and brought back."""

from collections.abc import Iterator
from typing import Any

from qdrant_client import QdrantClient
from qdrant_client.http import models
from qdrant_client.http.exceptions import UnexpectedResponse

from shiguan.errors import StoreError
from shiguan.stores.cluster.generations import Generations
from shiguan.stores.cluster.server import Server

_CONFLICTS = (400, 409)
_PAGE = 1_000
_WITH_VECTORS = 256
# Kilobytes of vectors in a segment from which it gets its graph; 0 lets a bulk load go by without.
_GRAPH_FROM = 10_000
SNAPSHOTS = "file:///backups/qdrant"
"""Where the server finds its own snapshots (`QDRANT__STORAGE__SNAPSHOTS_PATH` of docker-compose.yml)."""


class QdrantCollection(Generations):
    """See `Generations`; `config` and `payload_indexes` say what each new collection looks like."""

    kind = "a collection"
    slow_seconds = 6 * 3_600

    def __init__(self, server: Server, name: str, config: dict[str, Any], payload_indexes: dict[str, Any]) -> None:
        super().__init__(server, name)
        self.config = config
        self.payload_indexes = payload_indexes

    def made(self, client: QdrantClient) -> list[str]:
        """See `Generations`. Never deletes: Haystack's own way can remove what another process has just made."""
        _, current = self.names(client)
        done = [f"collection {current} was there"]
        if current is None:
            current = f"{self.name}-000001"
            made = self._create(client, current)
            done = [f"collection {current} {'made' if made else 'was there'}"]
            self.point(client, None, current)
        done += self._index_payload(client, current)
        if _waits(client.get_collection(current)):
            self.build_graphs(client, current)
            done.append(f"graphs of {current} are made now; a large load had been interrupted")
        self.check_vectors(client)
        return done

    def state(self, client: QdrantClient) -> dict[str, Any]:
        version = client.info().version
        _, current = self.names(client)
        if current is None:
            return self.missing(version)
        info = client.get_collection(current)
        problems = [f"{current}: {difference}" for difference in self._vector_differences(info)]
        missing = [field for field in self.payload_indexes if field not in info.payload_schema]
        if missing:
            problems.append(f"payload indexes are missing: {', '.join(missing)}; `shiguan stores init` makes them")
        if str(info.status.value) == "red":
            problems.append(f"an optimisation of {current} failed; see the server's log and its disks")
        if _waits(info):
            problems.append(
                f"{current} makes no graphs: a large load runs, or was interrupted; then run `shiguan stores init`"
            )
        # Nothing is found wrongly by graphs that are made otherwise, but slower or less of it.
        graphs = [
            f"`{name}` of its graphs is {found}, the files say {wanted}"
            for name, wanted in (self.config.get("hnsw_config") or {}).items()
            if (found := getattr(info.config.hnsw_config, name, None)) != wanted
        ]
        return {
            "version": version,
            "health": str(info.status.value),
            "documents": self.count(client, current),
            "indexed": info.indexed_vectors_count or 0,
            "problems": problems,
            "notes": [f"{current}: {note}; `shiguan stores reindex` makes one that has it" for note in graphs],
            "copy_needed": bool(graphs),
        }

    def check_vectors(self, client: QdrantClient) -> None:
        """Refuse a collection of other vectors."""
        differences = self._vector_differences(client.get_collection(self.name))
        if differences:
            raise StoreError(
                f"The collection {self.name} of {self.server.place} does not fit the deployment's files: "
                f"{'; '.join(differences)}. Vectors of another embedder are made anew: give the collection another "
                "name in the files, run `shiguan stores init`, then `shiguan ingest --resume`."
            )

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

    def names(self, client: QdrantClient) -> tuple[list[str], str | None]:
        names = self.numbered(entry.name for entry in client.get_collections().collections)
        there = client.collection_exists(self.name)
        aliases = {entry.alias_name: entry.collection_name for entry in client.get_aliases().aliases}
        if there and self.name not in aliases:
            raise self.misplaced()
        return names, aliases.get(self.name)

    def count(self, client: QdrantClient, index: str) -> int:
        return int(client.count(index, exact=True).count)

    def fill(self, client: QdrantClient, source: str, target: str) -> None:
        """See `Generations`. Vectors travel along; the graph is made when all are there."""
        self._create(client, target, optimizers_config=models.OptimizersConfigDiff(indexing_threshold=0))
        self._index_payload(client, target)
        for ids in _pages_of_ids(client, source):
            known = {record.id for record in client.retrieve(target, ids=ids, with_payload=False)}
            missing = [point for point in ids if point not in known]
            for start in range(0, len(missing), _WITH_VECTORS):
                some = missing[start : start + _WITH_VECTORS]
                records: list[Any] = client.retrieve(source, ids=some, with_payload=True, with_vectors=True)
                points = [models.PointStruct(id=r.id, vector=r.vector or {}, payload=r.payload) for r in records]
                client.upsert(target, points=points, wait=True)
        self.build_graphs(client, target)

    def build_graphs(self, client: QdrantClient, collection: str | None = None, *, now: bool = True) -> None:
        """Let the server make the graphs of what is there, or wait with them while much is written."""
        threshold = _GRAPH_FROM if now else 0
        client.update_collection(
            collection or self.names(client)[1] or self.name,
            optimizers_config=models.OptimizersConfigDiff(indexing_threshold=threshold),
        )

    def check_ready(self, client: QdrantClient, target: str) -> None:
        status = client.get_collection(target).status.value
        if status != "green":
            raise StoreError(
                f"{target} of {self.server.place} is {status}: its graphs are still being made, and searches would "
                "be slow. See `shiguan stores status` and switch later."
            )

    def point(self, client: QdrantClient, source: str | None, target: str) -> None:
        made = models.CreateAlias(collection_name=target, alias_name=self.name)
        operations: list[Any] = [models.CreateAliasOperation(create_alias=made)]
        if source is not None:
            operations.insert(0, models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=self.name)))
        client.update_collection_aliases(change_aliases_operations=operations)

    def snapshot(
        self, client: QdrantClient, backup: str, saved: dict[str, Any], notes: dict[str, Any]
    ) -> dict[str, Any]:
        """See `Generations`; the server chooses its name."""
        del backup, notes
        snapshot = client.create_snapshot(saved["index"], wait=True)
        if snapshot is None:
            raise StoreError(f"{self.server.place} made no snapshot of {saved['index']}. See its log and its disks.")
        return {"snapshot": snapshot.name}

    def load(self, client: QdrantClient, backup: str, saved: dict[str, Any], target: str) -> None:
        del backup
        location = f"{SNAPSHOTS}/{saved['index']}/{saved['snapshot']}"
        client.recover_snapshot(target, location=location, priority=models.SnapshotPriority.SNAPSHOT, wait=True)

    def verify(self, backup: str, saved: dict[str, Any]) -> list[str]:
        del backup
        with self.connected() as client:
            found = {entry.name: entry.size for entry in client.list_snapshots(saved["index"])}
        if found.get(saved["snapshot"]):
            return []
        return [f"{self.server.place}: the snapshot {saved['snapshot']} of {saved['index']} is not there"]

    def _create(self, client: QdrantClient, collection: str, **options: Any) -> bool:
        if client.collection_exists(collection):
            return False
        try:
            client.create_collection(collection, **{**self.config, **options})
        except UnexpectedResponse as error:
            if error.status_code not in _CONFLICTS or not client.collection_exists(collection):
                raise
            return False
        return True

    def _index_payload(self, client: QdrantClient, collection: str) -> list[str]:
        existing = client.get_collection(collection).payload_schema
        missing = {field: schema for field, schema in self.payload_indexes.items() if field not in existing}
        for field, schema in missing.items():
            client.create_payload_index(collection, field_name=field, field_schema=schema, wait=True)
        return [f"payload indexes made: {', '.join(missing)}"] if missing else []


def _waits(info: Any) -> bool:
    return bool(info.config.optimizer_config.indexing_threshold == 0)


def _pages_of_ids(client: QdrantClient, collection: str) -> Iterator[list[Any]]:
    offset: Any = None
    while True:
        records, offset = client.scroll(collection, limit=_PAGE, offset=offset, with_payload=False)
        yield [record.id for record in records]
        if offset is None:
            return
