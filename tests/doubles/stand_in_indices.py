"""What the stand-in for Elasticsearch knows of indexes: templates, aliases, tasks, copies and snapshots."""

import copy
import re
from typing import Any

from tests.doubles.recording_server import RecordingServer, Reply, Request

SHARDS = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}


class Aliased(dict[str, Any]):
    """What is kept by an index's name, found by its alias too."""

    def __init__(self, aliases: dict[str, str]) -> None:
        super().__init__()
        self.aliases = aliases

    def __missing__(self, name: str) -> Any:
        if name not in self.aliases:
            raise KeyError(name)
        return self[self.aliases[name]]


class StandInIndices(RecordingServer):
    """The administration; `running` is how often a task is still running when it is looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.aliases: dict[str, str] = {}
        self.indexes = Aliased(self.aliases)
        self.mappings = Aliased(self.aliases)
        self.settings = Aliased(self.aliases)
        self.templates: dict[str, dict[str, Any]] = {}
        self.refuse: dict[str, dict[str, Any]] = {}
        self.versions: dict[str, int] = {}
        self.tasks: dict[str, dict[str, Any]] = {}
        self.snapshots: dict[str, dict[str, Any]] = {}
        self.running = 0

    def resolve(self, name: str) -> str:
        return self.aliases.get(name, name)

    def begin(self, request: Request, done: dict[str, Any]) -> Reply:
        """Give the outcome of some work, or a task that will have it."""
        if request.query.get("wait_for_completion") != "false":
            return Reply(done)
        task = f"node:{len(self.tasks) + 1}"
        self.tasks[task] = done
        return Reply({"task": task})

    def administer(self, request: Request, parts: list[str]) -> Reply:
        action = parts[0]
        if action == "_cluster":
            name = self.resolve(parts[2]) if len(parts) > 2 else None
            return Reply({"status": "green" if name is None or name in self.indexes else "red", "timed_out": False})
        if action == "_index_template":
            return self._template(request, parts[1])
        if action == "_aliases":
            return self._move(request.body["actions"])
        if action == "_tasks":
            self.running -= 1
            done = self.running < 0
            return Reply({"completed": done, "task": {}, **({"response": self.tasks[parts[1]]} if done else {})})
        if action == "_reindex":
            return self._reindex(request)
        assert action == "_snapshot", f"the stand-in does not know {request.path}"
        return self._snapshot(request, parts)

    def _template(self, request: Request, name: str) -> Reply:
        if request.method == "PUT":
            self.templates[name] = request.body
            return Reply({"acknowledged": True})
        if name not in self.templates:
            return error_reply(404, "resource_not_found_exception", f"index template matching [{name}] not found")
        return Reply({"index_templates": [{"name": name, "index_template": self.templates[name]}]})

    def index(self, request: Request, name: str) -> Reply:
        if request.method == "PUT":
            return self._create(name, request.body or {})
        return Reply({}, status=200 if self.resolve(name) in self.indexes else 404)

    def _create(self, name: str, body: dict[str, Any]) -> Reply:
        if name in self.indexes or name in self.aliases:
            return error_reply(400, "resource_already_exists_exception", f"index [{name}] already exists")
        fitting = (t["template"] for t in self.templates.values() for p in t["index_patterns"] if _fits(p, name))
        template = next(fitting, {})
        self.indexes[name] = {}
        self.mappings[name] = body.get("mappings") or template.get("mappings", {})
        self.settings[name] = {
            **template.get("settings", {}),
            **({"own": body["settings"]} if "settings" in body else {}),
        }
        for alias in body.get("aliases", {}):
            self.aliases[alias] = name
        return Reply({"acknowledged": True, "shards_acknowledged": True, "index": name})

    def aliases_of(self, pattern: str) -> Reply:
        names = [name for name in self.indexes if _fits(self.resolve(pattern), name)]
        return Reply({name: {"aliases": {a: {} for a, to in self.aliases.items() if to == name}} for name in names})

    def _move(self, actions: list[dict[str, Any]]) -> Reply:
        for action in actions:
            kind, body = next(iter(action.items()))
            if kind == "remove":
                assert self.aliases.pop(body["alias"]) == body["index"]
            else:
                assert kind == "add"
                assert body["alias"] not in self.aliases, "one name for two indexes"
                self.aliases[body["alias"]] = body["index"]
        return Reply({"acknowledged": True, "errors": False})

    def _reindex(self, request: Request) -> Reply:
        body = request.body
        assert body["dest"]["op_type"] == "create"
        source, target = self.indexes[body["source"]["index"]], self.indexes[body["dest"]["index"]]
        new = {key: copy.deepcopy(document) for key, document in source.items() if key not in target}
        target.update(new)
        conflicts = len(source) - len(new)
        assert not conflicts or body["conflicts"] == "proceed"
        done = {"took": 1, "timed_out": False, "total": len(source), "created": len(new), "updated": 0, "deleted": 0}
        return self.begin(request, {**done, "version_conflicts": conflicts, "failures": []})

    def _snapshot(self, request: Request, parts: list[str]) -> Reply:
        if len(parts) == 2 or parts[2] == "_verify":
            return Reply({"nodes": {}} if parts[2:] else {"acknowledged": True})
        name = parts[2]
        if request.method == "GET":
            found = [s["entry"] for key, s in self.snapshots.items() if _fits(name, key)]
            missing = not found and "*" not in name
            missed = error_reply(404, "snapshot_missing_exception", f"[shiguan:{name}] is missing")
            return missed if missing else Reply({"snapshots": found, "total": len(found), "remaining": 0})
        if parts[3:] == ["_restore"]:
            kept = self.snapshots[name]
            target = re.sub(request.body["rename_pattern"], request.body["rename_replacement"], kept["index"])
            assert target not in self.indexes, "an open index of that name exists"
            for part in ("indexes", "mappings", "settings"):
                getattr(self, part)[target] = copy.deepcopy(kept[part])
            return Reply({"accepted": True})
        (index,) = request.body["indices"]
        parts_kept = {part: copy.deepcopy(getattr(self, part)[index]) for part in ("indexes", "mappings", "settings")}
        entry = {"snapshot": name, "uuid": name, "state": "SUCCESS", "indices": [index], "failures": []}
        entry |= {"metadata": request.body["metadata"], "shards": {"total": 1, "failed": 0, "successful": 1}}
        self.snapshots[name] = {"index": index, "entry": entry, **parts_kept}
        return Reply({"accepted": True})


def _fits(pattern: str, name: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace("\\*", ".*"), name) is not None


def error_reply(status: int, kind: str, reason: str) -> Reply:
    error = {"type": kind, "reason": reason, "root_cause": [{"type": kind, "reason": reason}]}
    return Reply({"error": error, "status": status}, status=status)
