"""One index of an Elasticsearch cluster: making it, writing and reading it."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from elasticsearch import BadRequestError, Elasticsearch, helpers

from shiguan.errors import StoreError
from shiguan.resources import text_hash
from shiguan.stores.cluster.server import Server

_BULK = 2_000  # entries in one write, some 2 MB
_BULK_SECONDS = 60.0
_NEXT = "an index is never changed, a new one has a new name: see `A new index` in docs/operating.md"


class ElasticsearchIndex:
    """A store in an index of Elasticsearch, which has these fields; others are kept and not indexed."""

    index: str
    fields: dict[str, Any]
    shards = 1
    settings: dict[str, Any] | None = None

    def _on(self, index: str, fields: dict[str, Any]) -> None:
        """Describe the index; nothing is opened yet."""
        self.index, self.fields, self.server = index, fields, Server("Elasticsearch", self._check)

    def _words(self) -> dict[str, Any]:
        """Return the settings of an index that is searched by words."""
        return {}

    def set_up(self) -> list[str]:
        """Make what is missing; safe to run twice, and twice at once."""
        return self.server.set_up(self._make)

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        self.server.close()

    def _check(self, client: Elasticsearch) -> None:
        # A write would make one in passing, without its analysis.
        if not client.indices.exists(index=self.index):
            raise self.server.missing("index", self.index)

    def _make(self, client: Elasticsearch) -> list[str]:
        try:
            made = not client.indices.exists(index=self.index) and client.indices.create(
                index=self.index, mappings=self._mappings(), settings={"index": self._settings()}
            )
        except BadRequestError as error:
            if error.error != "resource_already_exists_exception":
                raise
            made = False
        # It may be used at once; an index that is being restored is yellow and cannot be read yet.
        client.options(ignore_status=408).cluster.health(
            index=self.index, wait_for_no_initializing_shards=True, timeout="50s"
        )
        if made:
            return [f"index {self.index} made"]
        if differences := self._differences(client):
            raise StoreError(
                f"The index `{self.index}` of {self.server.place} differs from the deployment's files: "
                f"{'; '.join(differences)}. Correct the files, or make another one; {_NEXT}."
            )
        return [f"index {self.index} was there"]

    def _mappings(self) -> dict[str, Any]:
        """Describe the fields, with a hash of them and of how words are made: neither can be changed."""
        analysis = self._words().get("analysis", {})
        analysis.get("filter", {}).pop("shiguan_stop", None)  # other stop words serve as well
        made = text_hash(json.dumps([self.fields, analysis], sort_keys=True))[:16]
        return {"dynamic": False, "properties": self.fields, "_meta": {"shiguan": made}}

    def _settings(self) -> dict[str, Any]:
        # Replicas follow the number of nodes: none on a single one, which is then green, one copy on more.
        own = self.settings or {}
        return {"number_of_shards": self.shards, "auto_expand_replicas": "0-1", **own, **self._words()}

    def _differences(self, client: Elasticsearch) -> list[str]:
        found = client.indices.get_mapping(index=self.index)
        if len(found) != 1:
            raise StoreError(
                f"`{self.index}` of {self.server.place} is an alias of {', '.join(sorted(found))}; expected one."
            )
        mappings = next(iter(found.values()))["mappings"]
        differences = []
        if str(mappings.get("dynamic", True)).lower() != "false":
            differences.append("`dynamic` is not false, so documents can add fields")
        if mappings.get("_meta", {}).get("shiguan") != self._mappings()["_meta"]["shiguan"]:
            differences.append("its fields or words are those of other files or of another version")
        return differences

    def _write(self, actions: Iterable[dict[str, Any]], *, verb: str) -> int:
        """Write or delete in batches, found when it ends; count them, and name at the end what the server refused."""
        refused: list[tuple[str, str]] = []
        count = 0
        with self.server.connected() as client:
            patient = client.options(request_timeout=_BULK_SECONDS)
            for done, item in helpers.streaming_bulk(
                patient,
                actions,
                index=self.index,
                chunk_size=_BULK,
                raise_on_error=False,
                max_retries=3,
                initial_backoff=1,
            ):
                count += 1
                entry = next(iter(item.values()))
                if not done and not (verb == "delete" and entry["status"] == 404):
                    refused.append((entry["_id"], f"status {entry['status']}: {cause(entry)}"))
            if count:
                self.server.whole(patient.indices.refresh(index=self.index))
        if refused:
            raise self.server.refusal(verb, refused, count, self.index)
        return count

    def _delete(self, ids: Iterable[str]) -> int:
        """Delete entries; ids that are not stored are ignored."""
        return self._write(({"_op_type": "delete", "_id": one} for one in ids), verb="delete")

    def _entries(
        self, query: dict[str, Any], *, sort: list[Any], page: int, source: Any, after: list[Any] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Find all entries that match, page by page, in an order in which no two are equal; or those after a place."""
        while True:
            with self.server.connected() as client:
                answer = client.search(
                    index=self.index,
                    allow_partial_search_results=False,
                    query=query,
                    size=page,
                    sort=sort,
                    search_after=after,
                    source=source,
                    track_total_hits=False,
                )
            found = self.server.whole(answer)["hits"]["hits"]
            yield from found
            if len(found) < page:
                return
            after = found[-1]["sort"]


def cause(entry: dict[str, Any]) -> str:
    """Explain why one entry of an answer failed."""
    error = entry.get("error")
    return f"{error.get('type')}: {error.get('reason')}" if isinstance(error, dict) else str(error or "no reason given")
