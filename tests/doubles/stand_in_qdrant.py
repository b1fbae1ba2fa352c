"""A stand-in for the Qdrant server: its REST calls, answered by the client library's own local mode, over real HTTP."""

from collections import Counter
from typing import Any

from pydantic import TypeAdapter
from qdrant_client import QdrantClient
from qdrant_client.http import models
from tests.doubles.recording_server import RecordingServer, Reply, Request


class StandInQdrant(RecordingServer):
    """
    Keeps collections in `QdrantClient(":memory:")`, which filters and compares vectors as the server does.

    What that has not (payload indexes, graphs, quantisation) is written down in `configs` and `payload_schemas`.
    """

    kind = "qdrant"

    def __init__(self) -> None:
        super().__init__()
        self.local = QdrantClient(":memory:", force_disable_check_same_thread=True)
        self.configs: dict[str, dict[str, Any]] = {}
        self.payload_schemas: dict[str, dict[str, Any]] = {}

    def __exit__(self, *arguments: object) -> None:
        super().__exit__(*arguments)
        self.local.close()

    def answer(self, request: Request) -> Reply:
        if self.api_key and request.headers.get("api-key") != self.api_key:
            return Reply("Invalid API key or JWT", status=401)
        parts = [part for part in request.path.split("/") if part]
        if not parts:
            return Reply({"title": "qdrant - vector search engine", "version": "1.19.0"})
        assert parts[0] == "collections", f"the stand-in does not know {request.path}"
        return self._collection(parts[1], "/".join(parts[2:]), request)

    def _collection(self, name: str, action: str, request: Request) -> Reply:
        if action == "exists":
            return _result({"exists": name in self.configs})
        if not action and request.method == "PUT":
            return self._create(name, request.body)
        if name not in self.configs:
            return _error(404, f"Not found: Collection `{name}` doesn't exist!")
        if not action and request.method == "PATCH":
            metadata = request.body.pop("metadata", {})  # merged; a key without a value goes
            kept = {**(self.configs[name].get("metadata") or {}), **metadata}
            self.configs[name] |= request.body
            self.configs[name]["metadata"] = {key: value for key, value in kept.items() if value is not None}
            return _result(True)
        if not action:
            return _result(self._info(name)) if request.method == "GET" else self._drop(name)
        if action == "index":
            schema = request.body["field_schema"]
            kind = schema if isinstance(schema, str) else schema["type"]
            entry = {"data_type": kind, "points": 0}
            if isinstance(schema, dict):
                entry["params"] = schema
            self.payload_schemas[name][request.body["field_name"]] = entry
            return _result({"operation_id": 1, "status": "completed"})
        return self._points(name, request.method, action, request.body)

    def _create(self, name: str, body: dict[str, Any]) -> Reply:
        if name in self.configs:
            return _error(409, f"Wrong input: Collection `{name}` already exists!")
        vectors = TypeAdapter(models.VectorParams).validate_python(body["vectors"])
        self.local.create_collection(name, vectors_config=vectors)
        self.configs[name] = dict(body)
        self.payload_schemas[name] = {}
        return _result(True)

    def _drop(self, name: str) -> Reply:
        self.local.delete_collection(name)
        del self.configs[name], self.payload_schemas[name]
        return _result(True)

    def _info(self, name: str) -> dict[str, Any]:
        body = self.configs[name]
        graph = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000}
        segments = {
            "deleted_threshold": 0.2, "vacuum_min_vector_number": 1000, "default_segment_number": 0,
            "flush_interval_sec": 5,
        }  # fmt: skip
        config = {
            "params": {"vectors": body["vectors"], "on_disk_payload": body.get("on_disk_payload")},
            "hnsw_config": {**graph, **(body.get("hnsw_config") or {})},
            "optimizer_config": {**segments, **(body.get("optimizers_config") or {})},
            "wal_config": {"wal_capacity_mb": 32, "wal_segments_ahead": 0},
            "quantization_config": body.get("quantization_config"),
            "metadata": body.get("metadata"),
        }
        counts = {"segments_count": 1, "indexed_vectors_count": 0, "points_count": self.local.count(name).count}
        state = {"status": "green", "optimizer_status": "ok", **counts}
        return {**state, "config": config, "payload_schema": self.payload_schemas[name]}

    def _facet(self, name: str, key: str, condition: Any, limit: int) -> list[dict[str, Any]]:
        """Count by value as the server does; the local mode writes what could be a UUID as one, with dashes."""
        points, _ = self.local.scroll(name, condition, limit=1_000_000)
        counts = Counter(value for point in points if (value := _at(point.payload, key)) is not None)
        return [{"value": value, "count": count} for value, count in counts.most_common(limit)]

    def _points(self, name: str, method: str, action: str, body: dict[str, Any]) -> Reply:
        condition = TypeAdapter(models.Filter | None).validate_python(body.get("filter"))
        if action == "points" and method == "PUT":
            size = self.configs[name]["vectors"]["size"]
            for point in body["points"]:
                if len(point["vector"]) not in (0, size):
                    got = len(point["vector"])
                    return _error(400, f"Wrong input: Vector dimension error: expected dim: {size}, got {got}")
            self.local.upsert(name, [models.PointStruct.model_validate(point) for point in body["points"]])
            return _result({"operation_id": 1, "status": "completed"})
        if action == "points":
            vectors = body.get("with_vector", False)
            wanted = body.get("with_payload", True)
            return _result(self.local.retrieve(name, body["ids"], with_payload=wanted, with_vectors=vectors))
        if action == "facet":
            return _result({"hits": self._facet(name, body["key"], condition, body["limit"])})
        if action == "points/count":
            return _result(self.local.count(name, count_filter=condition))
        if action == "points/scroll":
            wanted = {"with_payload": body.get("with_payload", True), "with_vectors": body.get("with_vector", False)}
            page = {"limit": body["limit"], "offset": body.get("offset")}
            points, offset = self.local.scroll(name, condition, **page, **wanted)
            return _result({"points": [point.model_dump() for point in points], "next_page_offset": offset})
        if action == "points/query":
            wanted = {"limit": body["limit"], "with_payload": body["with_payload"]}
            found = self.local.query_points(name, query=body["query"]["nearest"], query_filter=condition, **wanted)
            return _result({"points": [{**point.model_dump(), "version": 0} for point in found.points]})
        if action == "points/delete":
            self.local.delete(name, body.get("points", condition))
            return _result({"operation_id": 1, "status": "completed"})
        raise AssertionError(f"the stand-in does not know {method} {action}")


def _at(payload: Any, path: str) -> Any:
    for key in path.split("."):
        payload = (payload or {}).get(key)
    return payload


def _result(value: Any) -> Reply:
    if isinstance(value, list):
        value = [entry if isinstance(entry, dict) else entry.model_dump() for entry in value]
    elif hasattr(value, "model_dump"):
        value = value.model_dump()
    return Reply({"result": value, "status": "ok", "time": 0.0})


def _error(status: int, message: str) -> Reply:
    return Reply({"status": {"error": message}, "time": 0.0}, status=status)
