"""What the stand-in for Elasticsearch knows of indexes: how they are made, and the states that they can be in."""

from typing import Any

from tests.doubles.recording_server import RecordingServer, Reply, Request

SHARDS = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
_BLOCKS = {
    "write": (403, "FORBIDDEN/8/index write (api)"),
    "read_only": (403, "FORBIDDEN/5/index read-only (api)"),
    "read_only_allow_delete": (
        429,
        "TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark, index has read-only-allow-delete block",
    ),
}


class Aliased(dict[str, Any]):
    """What is kept by an index's name, found by its alias too."""

    def __init__(self, aliases: dict[str, str]) -> None:
        super().__init__()
        self.aliases = aliases

    def __contains__(self, name: object) -> bool:
        return super().__contains__(self.aliases.get(str(name), name))

    def __missing__(self, name: str) -> Any:
        if name not in self.aliases:
            raise KeyError(name)
        return self[self.aliases[name]]


class StandInIndices(RecordingServer):
    """
    Indexes and their states, as Elasticsearch 8.19.0 has shown them.

    `recovering` is how many more answers find the primaries not there: health is `recovering_health` (of a primary that
    is brought back from a snapshot yellow, of any other red), searches and counts get 503, writes wait. `fresh` is the
    same for each index from when it is made. `blocks` has the blocks of an index by name. Names in `aliases` stand for
    another index.
    """

    def __init__(self) -> None:
        super().__init__()
        self.aliases: dict[str, str] = {}
        self.indexes = Aliased(self.aliases)
        self.mappings = Aliased(self.aliases)
        self.settings = Aliased(self.aliases)
        self.blocks: dict[str, set[str]] = {}
        self.refuse: dict[str, dict[str, Any]] = {}
        self.versions: dict[str, int] = {}
        self.recovering = 0
        self.recovering_health = "red"
        self.fresh = 0

    def resolve(self, name: str) -> str:
        return self.aliases.get(name, name)

    def recovers(self) -> bool:
        """Say whether the primaries are still not there; each answer brings them nearer."""
        self.recovering -= 1
        return self.recovering >= 0

    def unavailable(self) -> Reply:
        cause = {"type": "no_shard_available_action_exception", "reason": "[n1][indices:data/read/search[phase/query]]"}
        error = {"root_cause": [cause], "type": "search_phase_execution_exception", "reason": "all shards failed"}
        return Reply({"error": error | {"phase": "query", "grouped": True}, "status": 503}, status=503)

    def blocked(self, name: str, *, deletes: bool = False) -> tuple[int, dict[str, str]] | None:
        """Give the status and the error with which an index refuses a write."""
        for block, (status, text) in _BLOCKS.items():
            if block in self.blocks.get(name, ()) and not (deletes and block == "read_only_allow_delete"):
                reason = f"index [{name}] blocked by: [{text}];"
                return status, {"type": "cluster_block_exception", "reason": reason}
        return None

    def administer(self, request: Request, parts: list[str]) -> Reply:
        assert parts[:2] == ["_cluster", "health"], f"the stand-in does not know {request.path}"
        name = self.resolve(parts[2])
        assert name in self.indexes, "of a missing index the server waits for its time to run out"
        if request.query.get("wait_for_no_initializing_shards") == "true":
            self.recovering = 0
        waiting = self.recovers()
        return Reply(
            {
                "cluster_name": "stand-in", "status": self.recovering_health if waiting else "green",
                "timed_out": False, "number_of_nodes": 1, "number_of_data_nodes": 1,
                "active_primary_shards": int(not waiting), "active_shards": int(not waiting), "relocating_shards": 0,
                "initializing_shards": int(waiting), "unassigned_shards": 0, "unassigned_primary_shards": 0,
                "delayed_unassigned_shards": 0, "number_of_pending_tasks": 0, "number_of_in_flight_fetch": 0,
                "task_max_waiting_in_queue_millis": 0, "active_shards_percent_as_number": 0.0 if waiting else 100.0,
            }
        )  # fmt: skip

    def index(self, request: Request, name: str) -> Reply:
        if request.method == "PUT":
            return self._create(name, request.body or {})
        if request.method == "DELETE":
            for kept in (self.indexes, self.mappings, self.settings):
                kept.pop(self.resolve(name), None)
            return Reply({"acknowledged": True})
        return Reply({}, status=200 if name in self.indexes else 404)

    def _create(self, name: str, body: dict[str, Any]) -> Reply:
        if name in self.indexes:
            return error_reply(400, "resource_already_exists_exception", f"index [{name}] already exists")
        self.indexes[name] = {}
        self.mappings[name] = body.get("mappings", {})
        self.settings[name] = body.get("settings", {})
        self.recovering = self.fresh
        return Reply({"acknowledged": True, "shards_acknowledged": not self.fresh, "index": name})

    def _settings(self, name: str, request: Request) -> Reply:
        ((setting, value),) = request.body.items()
        self.blocks[name] = {setting.removeprefix("index.blocks.")} if value else set()
        return Reply({"acknowledged": True})

    def _mapping(self, name: str, request: Request) -> Reply:
        return Reply({name: {"mappings": self.mappings[name]}})

    def _refresh(self, name: str, request: Request) -> Reply:
        return Reply({"_shards": SHARDS})


def error_reply(status: int, kind: str, reason: str) -> Reply:
    error = {"type": kind, "reason": reason, "root_cause": [{"type": kind, "reason": reason}]}
    return Reply({"error": error, "status": status}, status=status)
