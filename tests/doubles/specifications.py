"""What the stand-ins were asked, held against the servers' own specifications, where these are."""

import importlib.util
import json
import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "specs"
_NEWEST = {"es": "elasticsearch-9.5.0.jsonschema.json", "qdrant": "qdrant-1.19.openapi.json"}
_OLDEST = {"es": "elasticsearch-8.19.1.jsonschema.json", "qdrant": "qdrant-1.15.openapi.json"}
# Endpoints that the trimmed specifications leave out.
_LEFT_OUT = re.compile(r"/_(doc|settings)\b|/facet$")
_seen: set[str] = set()


def wrong(server, requests):
    """Say what of some requests is not as the server's specification has it; each shape is looked at once."""
    found = []
    for request in requests if FOLDER.is_dir() else []:
        body = _short(request.body)
        shape = json.dumps([server, request.method, _generic(request.path), sorted(request.query), _shape(body)])
        if shape in _seen or _LEFT_OUT.search(request.path) or request.method in ("PATCH", "DELETE"):
            continue
        _seen.add(shape)
        call = {"method": request.method, "path": request.path, "query": request.query, "body": body, "status": 500}
        for name in (_NEWEST[server], _OLDEST[server]):
            endpoint, faults, _ = _spec(name).check(call)
            found += [f"{name}: {endpoint}: {fault}" for fault in faults if not _newer(name, fault)]
    return found


def _newer(name, fault):
    # Older servers leave out what they do not know; it makes the graph smaller, and nothing else.
    return name == _OLDEST["qdrant"] and "field_schema" in fault


def _short(body):
    """Leave out what the specifications are cut by, and all but the first of many alike."""
    if isinstance(body, list):
        return [_short(part) for part in body[:4]]
    if not isinstance(body, dict):
        return body
    return {key: _short(part) for key, part in body.items() if key != "aggs"}


def _shape(body):
    if isinstance(body, list):
        return sorted({json.dumps(_shape(part)) for part in body})
    return {key: _shape(part) for key, part in body.items()} if isinstance(body, dict) else type(body).__name__


def _generic(path):
    return re.sub(r"^/(collections/)?[^/_]+", r"/\1name", path)


@cache
def _spec(name):
    found = importlib.util.spec_from_file_location("validate_recorded", FOLDER / "validate_recorded.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module.Spec(FOLDER / name)
