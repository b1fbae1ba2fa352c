"""Stand-ins whose children are numbers: as many as a test likes, of which nothing but a bit each is kept."""

from bisect import bisect_left, bisect_right
from typing import Any
from uuid import UUID

from haystack_integrations.document_stores.qdrant.converters import convert_id
from tests.doubles.recording_server import Reply, Request
from tests.doubles.stand_in_elasticsearch import StandInElasticsearch
from tests.doubles.stand_in_indices import SHARDS
from tests.doubles.stand_in_qdrant import StandInQdrant

META = {"tenant_id": "t", "file_id": "f", "source": "f.txt", "source_id": "s"}


class Numbers:
    """Which of the ids `0000000`, `0000001`, ... are there, in the order of some names for them."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.there = bytearray(b"\1" * len(names))

    def page(self, first: int, size: int) -> list[int]:
        found: list[int] = []
        while len(found) < size and (first := self.there.find(1, first)) >= 0:
            found.append(first)
            first += 1
        return found

    def put(self, name: str, there: int) -> bool:
        """Add or remove one; whether that changed anything."""
        at = bisect_left(self.names, name)
        assert self.names[at] == name
        changed, self.there[at] = self.there[at] != there, there
        return changed

    def has(self, name: str) -> bool:
        at = bisect_left(self.names, name)
        return at < len(self.names) and self.names[at] == name and bool(self.there[at])


class GeneratedElasticsearch(StandInElasticsearch):
    """Has so many children of one tenant in each index; answers what does not look at their text."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.numbers = Numbers([f"{number:07d}" for number in range(count)])

    def reply(self, request: Request) -> Reply:
        self.requests.clear()
        return super().reply(request)

    def _count(self, name: str, request: Request) -> Reply:
        return Reply({"count": self.numbers.there.count(1), "_shards": SHARDS})

    def _search(self, name: str, request: Request) -> Reply:
        body, numbers = request.body, self.numbers
        assert body["sort"] == [{"id": "asc"}]
        after, named = body.get("search_after", [""])[0], _ids(body["query"])
        if named is None:
            found = [numbers.names[at] for at in numbers.page(bisect_right(numbers.names, after), body["size"])]
        else:
            found = [one for one in sorted(named) if one > after and numbers.has(one)][: body["size"]]
        hits = [{"_index": name, "_id": one, "_score": None, "sort": [one]} for one in found]
        if body["_source"] is not False:
            hits = [{**hit, "_source": {"id": hit["_id"], "content": "text", **META}} for hit in hits]
        return Reply({"took": 1, "timed_out": False, "_shards": SHARDS, "hits": {"hits": hits}})

    def _bulk(self, name: str, request: Request) -> Reply:
        items = []
        for line in request.body:
            one = line["delete"]["_id"]
            status = 200 if self.numbers.put(one, 0) else 404
            items.append({"delete": {"_index": name, "_id": one, "status": status, "result": "deleted"}})
        return Reply({"took": 1, "errors": False, "items": items})


class GeneratedQdrant(StandInQdrant):
    """Has the vectors of all the same children but the first `missing`."""

    def __init__(self, count: int, missing: int) -> None:
        super().__init__()
        points = [str(UUID(convert_id(f"{number:07d}"))) for number in range(count)]
        self.numbers = Numbers(sorted(points))
        for point in points[:missing]:
            self.numbers.put(point, 0)

    def reply(self, request: Request) -> Reply:
        self.requests.clear()
        return super().reply(request)

    def _info(self, name: str) -> dict[str, Any]:
        return super()._info(name) | {"points_count": self.numbers.there.count(1)}

    def _points(self, name: str, method: str, action: str, body: dict[str, Any]) -> Reply:
        numbers = self.numbers
        if action == "points/count":
            return _result({"count": numbers.there.count(1)})
        if action == "points" and method == "POST":
            found = [one for one in body["ids"] if numbers.has(one)]
            return _result([{"id": one, "payload": None, "vector": None} for one in found])
        if action == "points/scroll":
            first = bisect_left(numbers.names, body.get("offset") or "")
            found = [numbers.names[at] for at in numbers.page(first, body["limit"] + 1)]
            following = found.pop() if len(found) > body["limit"] else None
            return _result({"points": [{"id": one} for one in found], "next_page_offset": following})
        points = body["points"]
        for point in points:
            numbers.put(str(UUID(point["id"])) if method == "PUT" else point, int(method == "PUT"))
        return _result({"operation_id": 1, "status": "completed"})


def _ids(query: Any) -> list[str] | None:
    """The ids that a query is limited to, if it is."""
    if isinstance(query, list):
        return next(filter(None, map(_ids, query)), None)
    if not isinstance(query, dict):
        return None
    return query["terms"]["id"] if "id" in query.get("terms", ()) else _ids(list(query.values()))


def _result(value: Any) -> Reply:
    return Reply({"result": value, "status": "ok", "time": 0.0})
