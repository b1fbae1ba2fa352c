"""A stand-in for Elasticsearch 8: the few calls that Shiguan makes, kept in memory, over real HTTP."""

import math
from collections import Counter
from typing import Any, ClassVar

from tests.doubles.recording_server import RecordingServer, Reply, Request

from shiguan.text.terms import terms

_SYSTEM = {"_doc", "_bulk", "_search", "_count", "_mget", "_refresh", "_delete_by_query", "_mapping"}


class StandInElasticsearch(RecordingServer):
    """
    Keeps `indexes` (name -> documents by id), `mappings`, `settings` and `templates`.

    Words are those of `shiguan.text.terms`, not those of the analysis that an index asks for: the stand-in shows
    which requests are made and that filters, pages and errors are handled, not how Elasticsearch ranks. `refuse` maps a
    document's id to the error that `_bulk` gives it.
    """

    headers: ClassVar = {"X-Elastic-Product": "Elasticsearch"}

    def __init__(self) -> None:
        super().__init__()
        self.indexes: dict[str, dict[str, dict[str, Any]]] = {}
        self.mappings: dict[str, dict[str, Any]] = {}
        self.settings: dict[str, dict[str, Any]] = {}
        self.templates: dict[str, dict[str, Any]] = {}
        self.refuse: dict[str, dict[str, Any]] = {}
        self.versions: dict[str, int] = {}

    def answer(self, request: Request) -> Reply:
        if self.api_key and request.headers.get("authorization") != f"ApiKey {self.api_key}":
            return _error(401, "security_exception", "unable to authenticate")
        parts = [part for part in request.path.split("/") if part]
        if not parts:
            return Reply(
                {"version": {"number": "8.19.0", "build_flavor": "default"}, "tagline": "You Know, for Search"}
            )
        if parts[0] == "_cluster":
            return Reply({"status": "green"})
        if parts[0] == "_index_template":
            return self._template(request, parts[1])
        if len(parts) == 1:
            return self._index(request, parts[0])
        name, action = parts[0], parts[1]
        assert action in _SYSTEM, f"the stand-in does not know {request.path}"
        if name not in self.indexes:
            return _error(404, "index_not_found_exception", f"no such index [{name}]")
        return getattr(self, action)(name, request)

    def _template(self, request: Request, name: str) -> Reply:
        if request.method == "PUT":
            self.templates[name] = request.body
            return Reply({"acknowledged": True})
        if name not in self.templates:
            return _error(404, "resource_not_found_exception", f"index template matching [{name}] not found")
        return Reply({"index_templates": [{"name": name, "index_template": self.templates[name]}]})

    def _index(self, request: Request, name: str) -> Reply:
        if request.method == "PUT":
            if name in self.indexes:
                return _error(400, "resource_already_exists_exception", f"index [{name}] already exists")
            template = next((t["template"] for t in self.templates.values() if name in t["index_patterns"]), {})
            self.indexes[name] = {}
            self.mappings[name] = (request.body or {}).get("mappings") or template.get("mappings", {})
            self.settings[name] = template.get("settings", {})
            return Reply({"acknowledged": True, "index": name})
        return Reply({}, status=200 if name in self.indexes else 404)

    def _mapping(self, name: str, request: Request) -> Reply:
        return Reply({name: {"mappings": self.mappings[name]}})

    def _refresh(self, name: str, request: Request) -> Reply:
        return Reply({"_shards": {"failed": 0}})

    def _bulk(self, name: str, request: Request) -> Reply:
        documents, items, lines = self.indexes[name], [], iter(request.body)
        for line in lines:
            action, head = next(iter(line.items()))
            source = None if action == "delete" else next(lines)
            item: dict[str, Any] = {"_index": name, "_id": head["_id"]}
            if head["_id"] in self.refuse:
                item |= {"status": 400, "error": self.refuse[head["_id"]]}
            elif action == "delete":
                found = documents.pop(head["_id"], None)
                item |= {"status": 200 if found else 404, "result": "deleted" if found else "not_found"}
            elif action == "create" and head["_id"] in documents:
                error = {"type": "version_conflict_engine_exception", "reason": "document already exists"}
                item |= {"status": 409, "error": error}
            else:
                documents[head["_id"]] = source
                item |= {"status": 201, "result": "created"}
            items.append({action: item})
        return Reply({"errors": any("error" in next(iter(i.values())) for i in items), "items": items})

    def _doc(self, name: str, request: Request) -> Reply:
        """One document by id: read, written if it is as it was (`if_seq_no`) or not there (`op_type`), removed."""
        documents, key = self.indexes[name], request.path.rsplit("/", 1)[1]
        found = documents.get(key)
        if request.method == "GET":
            state = {"_seq_no": self.versions.get(key, 0), "_primary_term": 1, "_source": found} if found else {}
            return Reply({"_index": name, "_id": key, "found": bool(found), **state}, status=200 if found else 404)
        if request.method == "DELETE":
            self.versions[key] = self.versions.get(key, 0) + 1
            documents.pop(key, None)
            return Reply({"_id": key, "result": "deleted" if found else "not_found"}, status=200 if found else 404)
        expected = request.query.get("if_seq_no")
        stale = expected is not None and (not found or int(expected) != self.versions.get(key, 0))
        if stale or (found and request.query.get("op_type") == "create"):
            return _error(409, "version_conflict_engine_exception", "the document is another one by now")
        self.versions[key] = self.versions.get(key, 0) + 1
        documents[key] = request.body
        return Reply({"_index": name, "_id": key, "result": "updated" if found else "created"})

    def _mget(self, name: str, request: Request) -> Reply:
        found = self.indexes[name]
        return Reply({"docs": [{"_index": name, "_id": i, "found": i in found} for i in request.body["ids"]]})

    def _count(self, name: str, request: Request) -> Reply:
        return Reply({"count": len(self._matching(name, request.body))})

    def _delete_by_query(self, name: str, request: Request) -> Reply:
        found = self._matching(name, request.body)
        for key in found:
            del self.indexes[name][key]
        return Reply({"deleted": len(found)})

    def _matching(self, name: str, body: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
        query = (body or {}).get("query") or {"match_all": {}}
        return {key: doc for key, doc in self.indexes[name].items() if matches(query, doc, self._typed(name))}

    def _typed(self, name: str) -> dict[str, str]:
        return {field: spec["type"] for field, spec in self.mappings[name].get("properties", {}).items()}

    def _search(self, name: str, request: Request) -> Reply:
        body = request.body or {}
        found = self._matching(name, body)
        scores = self._scores(name, body.get("query", {}), found)
        places = {key: _place(key, found[key], body.get("sort") or []) for key in found}
        if body.get("sort"):
            order = sorted(found, key=lambda key: places[key][0])
            after = body.get("search_after")
            if after is not None:
                passed = next((at for at, key in enumerate(order) if places[key][1] == after), None)
                assert passed is not None, "the stand-in goes on behind a document that is still there"
                order = order[passed + 1 :]
        else:
            order = sorted(found, key=lambda key: (-scores.get(key, 0.0), key))
        total = len(found)
        first = int(body.get("from", request.query.get("from", 0)))
        size = int(body.get("size", 10))
        assert first + size <= 10_000, "Elasticsearch answers no more"
        hits = [
            {
                "_id": key,
                "_score": None if body.get("sort") else scores.get(key, 0.0),
                **({"sort": places[key][1]} if body.get("sort") else {}),
                **({} if body.get("_source") is False else {"_source": _chosen(found[key], body.get("_source"))}),
            }
            for key in order[first : first + size]
        ]
        return Reply({"hits": {"total": {"value": total, "relation": "eq"}, "hits": hits}})

    def _scores(self, name: str, query: dict[str, Any], found: dict[str, Any]) -> dict[str, float]:
        text = next((part["multi_match"]["query"] for part in _parts(query) if "multi_match" in part), None)
        if text is None:
            return {}
        documents = self.indexes[name].values()
        frequency = Counter(term for document in documents for term in set(_words(document)))
        wanted = set(terms(text))
        scores = {}
        for key, document in found.items():
            counts = Counter(_words(document))
            scores[key] = sum(
                math.log(1 + (len(documents) - frequency[t] + 0.5) / (frequency[t] + 0.5)) * counts[t] / (counts[t] + 1)
                for t in wanted
                if t in counts
            )
        return scores


def matches(query: dict[str, Any], document: dict[str, Any], types: dict[str, str]) -> bool:
    """Decide as Elasticsearch does, for the queries that filters become; unknown fields hold nothing."""
    kind, body = next(iter(query.items()))
    if kind == "match_all":
        return True
    if kind == "multi_match":
        return not set(terms(body["query"])).isdisjoint(_words(document))
    if kind == "bool":
        return _bool(body, document, types)
    assert kind in ("term", "terms", "range"), f"the stand-in does not know the query {kind}"
    field, wanted = next(iter(body.items()))
    value = document.get(field) if field in types else None
    if value is None:
        return False
    if kind == "range":
        tests = {"gt": value.__gt__, "gte": value.__ge__, "lt": value.__lt__, "lte": value.__le__}
        return all(_holds(value, sign, bound) for sign, bound in wanted.items() if sign in tests)
    return value in (wanted if kind == "terms" else [wanted])


def _holds(value: Any, sign: str, bound: Any) -> bool:
    return {"gt": value > bound, "gte": value >= bound, "lt": value < bound, "lte": value <= bound}[sign]


def _bool(body: dict[str, Any], document: dict[str, Any], types: dict[str, str]) -> bool:
    def parts(name: str) -> list[dict[str, Any]]:
        value = body.get(name, [])
        return value if isinstance(value, list) else [value]

    return (
        all(matches(part, document, types) for name in ("must", "filter") for part in parts(name))
        and not any(matches(part, document, types) for part in parts("must_not"))
        and (not parts("should") or any(matches(part, document, types) for part in parts("should")))
    )


def _parts(query: dict[str, Any]) -> list[dict[str, Any]]:
    must = query.get("bool", {}).get("must", [])
    return must if isinstance(must, list) else [must]


def _words(document: dict[str, Any]) -> list[str]:
    return terms(f"{document.get('title') or ''}\n{document.get('content') or ''}")


def _place(key: str, document: dict[str, Any], sort: list[dict[str, Any]]) -> tuple[list[Any], list[Any]]:
    """Give what a document is sorted by, as compared and as Elasticsearch tells it."""
    compared, told = [], []
    for field, how in ((name, how) for part in sort for name, how in part.items()):
        rules = {"order": how} if isinstance(how, str) else how
        value = key if field == "id" else document.get(field, rules.get("missing"))
        assert value is not None, f"the stand-in sorts by {field} only where it is there"
        told.append(value)
        compared.append(-value if rules["order"] == "desc" else value)
    return compared, told


def _error(status: int, kind: str, reason: str) -> Reply:
    error = {"type": kind, "reason": reason, "root_cause": [{"type": kind, "reason": reason}]}
    return Reply({"error": error, "status": status}, status=status)


def _chosen(source: dict[str, Any], fields: Any) -> dict[str, Any]:
    return {name: source[name] for name in fields["includes"] if name in source} if isinstance(fields, dict) else source
