"""A stand-in for Elasticsearch 8: the few calls that Shiguan makes, kept in memory, over real HTTP."""

import math
import operator
from collections import Counter
from typing import Any, ClassVar

from tests.doubles.recording_server import Reply, Request
from tests.doubles.stand_in_indices import SHARDS, StandInIndices, error_reply

from shiguan.text.terms import terms

_SYSTEM = {"_doc", "_bulk", "_search", "_count", "_mget", "_refresh", "_mapping", "_settings"}
_MAX_TERMS = 65_536
_SIGNS = {"gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le}
_VERSION = {
    "number": "8.19.0", "build_flavor": "default", "build_date": "2025-07-23T22:10:18.138215839Z", "build_hash": "0",
    "build_snapshot": False, "build_type": "docker", "lucene_version": "9.12.2",
    "minimum_index_compatibility_version": "7.0.0", "minimum_wire_compatibility_version": "7.17.0",
}  # fmt: skip


class StandInElasticsearch(StandInIndices):
    """
    Keeps `indexes` (name or alias -> documents by id), `mappings` and `settings`; see `StandInIndices` for their states.

    Words are those of `shiguan.text.terms`, not those of the analysis that an index asks for: the stand-in shows
    which requests are made and that filters, pages and errors are handled, not how Elasticsearch ranks. `refuse` maps a
    document's id to the error that `_bulk` gives it.
    """

    kind = "es"
    headers: ClassVar = {"X-Elastic-Product": "Elasticsearch"}

    def answer(self, request: Request) -> Reply:
        if self.api_key and request.headers.get("authorization") != f"ApiKey {self.api_key}":
            return error_reply(401, "security_exception", "unable to authenticate")
        parts = [part for part in request.path.split("/") if part]
        if not parts:
            names = {"name": "stand-in", "cluster_name": "stand-in", "cluster_uuid": "0"}
            return Reply({**names, "version": _VERSION, "tagline": "You Know, for Search"})
        if parts[0].startswith("_"):
            return self.administer(request, parts)
        if len(parts) == 1:
            return self.index(request, parts[0])
        name, action = self.resolve(parts[0]), parts[1]
        assert action in _SYSTEM, f"the stand-in does not know {request.path}"
        if name not in self.indexes:
            return error_reply(404, "index_not_found_exception", f"no such index [{name}]")
        return getattr(self, action)(name, request)

    def _bulk(self, name: str, request: Request) -> Reply:
        documents, items, lines = self.indexes[name], [], iter(request.body)
        state = {"_version": 1, "_seq_no": 0, "_primary_term": 1, "_shards": SHARDS}
        for line in lines:
            action, head = next(iter(line.items()))
            source = None if action == "delete" else next(lines)
            item: dict[str, Any] = {"_index": name, "_id": head["_id"], **state}
            blocked = self.blocked(name, deletes=action == "delete")
            if blocked:
                item |= {"status": blocked[0], "error": blocked[1]}
            elif head["_id"] in self.refuse:
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
        return Reply({"took": 1, "errors": any("error" in next(iter(i.values())) for i in items), "items": items})

    def _doc(self, name: str, request: Request) -> Reply:
        """One document by id: read, written if it is as it was (`if_seq_no`) or not there (`op_type`), removed."""
        documents, key = self.indexes[name], request.path.rsplit("/", 1)[1]
        found = documents.get(key)
        blocked = self.blocked(name, deletes=request.method == "DELETE") if request.method != "GET" else None
        if blocked:
            return error_reply(blocked[0], blocked[1]["type"], blocked[1]["reason"])
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
            return error_reply(409, "version_conflict_engine_exception", "the document is another one by now")
        self.versions[key] = self.versions.get(key, 0) + 1
        documents[key] = request.body
        return Reply({"_index": name, "_id": key, "result": "updated" if found else "created"})

    def _mget(self, name: str, request: Request) -> Reply:
        found = self.indexes[name]
        return Reply({"docs": [{"_index": name, "_id": i, "found": i in found} for i in request.body["ids"]]})

    def _count(self, name: str, request: Request) -> Reply:
        if self.recovers():
            return self.unavailable()
        return self._refused(request) or Reply({"count": len(self._matching(name, request.body)), "_shards": SHARDS})

    def _refused(self, request: Request) -> Reply | None:
        """Refuse more terms than `index.max_terms_count` lets through."""
        most = max((len(values) for values in _term_lists(request.body)), default=0)
        if most <= _MAX_TERMS:
            return None
        reason = f"The number of terms [{most}] used in the Terms Query request has exceeded the allowed maximum of"
        return error_reply(400, "illegal_argument_exception", f"{reason} [{_MAX_TERMS}].")

    def _matching(self, name: str, body: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
        query = _with_sets((body or {}).get("query") or {"match_all": {}})
        types = self._typed(name)
        return {key: doc for key, doc in self.indexes[name].items() if matches(query, doc, types)}

    def _typed(self, name: str) -> dict[str, str]:
        return {field: spec["type"] for field, spec in self.mappings[name].get("properties", {}).items()}

    def _search(self, name: str, request: Request) -> Reply:
        if self.recovers():
            return self.unavailable()
        if refused := self._refused(request):
            return refused
        body = request.body or {}
        assert request.query.get("allow_partial_search_results") == "false", "a part would pass as the whole"
        found = self._matching(name, body)
        scores = self._scores(name, body.get("query", {}), found)
        places = {key: _place(key, found[key], body.get("sort") or []) for key in found}
        if body.get("sort"):
            order = sorted(found, key=lambda key: places[key][0])
            if body.get("search_after") is not None:
                after = _compared(body["search_after"], body["sort"])
                order = [key for key in order if places[key][0] > after]
        else:
            order = sorted(found, key=lambda key: (-scores.get(key, 0.0), key))
        first, size = int(body.get("from", request.query.get("from", 0))), int(body.get("size", 10))
        assert first + size <= 10_000, "Elasticsearch answers no more"
        hits = [
            {
                "_index": name,
                "_id": key,
                "_score": None if body.get("sort") else scores.get(key, 0.0),
                **({"sort": places[key][1]} if body.get("sort") else {}),
                **({} if body.get("_source") is False else {"_source": _chosen(found[key], body.get("_source"))}),
            }
            for key in order[first : first + size]
        ]
        answer: dict[str, Any] = {"took": 1, "timed_out": False, "_shards": SHARDS, "hits": {"hits": hits}}
        answer["hits"]["max_score"] = max((hit["_score"] or 0.0 for hit in hits), default=None) if hits else None
        if body.get("track_total_hits", True):
            answer["hits"]["total"] = {"value": len(found), "relation": "eq"}
        if "aggs" in body:
            answer["aggregations"] = {name: _composite(part, found) for name, part in body["aggs"].items()}
        return Reply(answer)

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
        return all(_SIGNS[sign](value, bound) for sign, bound in wanted.items() if sign in _SIGNS)
    return value in (wanted if kind == "terms" else [wanted])


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
    told = []
    for field, how in ((name, how) for part in sort for name, how in part.items()):
        rules = {"order": how} if isinstance(how, str) else how
        value = key if field == "id" else document.get(field, rules.get("missing"))
        assert value is not None, f"the stand-in sorts by {field} only where it is there"
        told.append(value)
    return _compared(told, sort), told


def _compared(values: list[Any], sort: list[dict[str, Any]]) -> list[Any]:
    orders = [how if isinstance(how, str) else how["order"] for part in sort for how in part.values()]
    return [-value if order == "desc" else value for value, order in zip(values, orders, strict=True)]


def _composite(aggregation: dict[str, Any], found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Group by the values of some fields, a page at a time, with what is asked of each group."""
    composite = aggregation["composite"]
    fields = {name: how["terms"]["field"] for source in composite["sources"] for name, how in source.items()}
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for document in found.values():
        key = tuple(document.get(field) for field in fields.values())
        if None not in key:
            groups.setdefault(key, []).append(document)
    after = tuple(composite["after"].values()) if "after" in composite else ()
    page = [key for key in sorted(groups) if key > after][: composite["size"]]
    buckets = [
        {"key": dict(zip(fields, key, strict=True)), "doc_count": len(groups[key]), **_inside(aggregation, groups[key])}
        for key in page
    ]
    return {"buckets": buckets, **({"after_key": buckets[-1]["key"]} if buckets else {})}


def _inside(aggregation: dict[str, Any], documents: list[dict[str, Any]]) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for name, part in aggregation.get("aggs", {}).items():
        kind, body = next(iter(part.items()))
        if kind == "cardinality":
            answers[name] = {"value": len({document.get(body["field"]) for document in documents})}
        elif kind == "terms":
            counts = Counter(document[body["field"]] for document in documents if document.get(body["field"]))
            answers[name] = {"buckets": [{"key": k, "doc_count": n} for k, n in counts.most_common(body["size"])]}
        else:
            assert kind == "top_hits", f"the stand-in does not know the aggregation {kind}"
            answers[name] = {"hits": {"hits": [{"_source": _chosen(d, body["_source"])} for d in documents[:1]]}}
    return answers


def _term_lists(query: Any) -> list[list[Any]]:
    if isinstance(query, list):
        return [found for part in query for found in _term_lists(part)]
    if not isinstance(query, dict):
        return []
    here = [values for values in query.get("terms", {}).values() if isinstance(values, list)]
    return here + [found for key, part in query.items() if key not in ("terms", "aggs") for found in _term_lists(part)]


def _with_sets(query: Any) -> Any:
    """Write the values of `terms` as sets, so that many are compared with in no time."""
    if isinstance(query, list):
        return [_with_sets(part) for part in query]
    if not isinstance(query, dict):
        return query
    return {
        key: {field: frozenset(values) for field, values in part.items()} if key == "terms" else _with_sets(part)
        for key, part in query.items()
    }


def _chosen(source: dict[str, Any], fields: Any) -> dict[str, Any]:
    return {name: source[name] for name in fields["includes"] if name in source} if isinstance(fields, dict) else source
