"""One index of an Elasticsearch cluster: making it, writing and reading it."""

from collections.abc import Iterable, Iterator
from typing import Any

from elasticsearch import BadRequestError, Elasticsearch, helpers

from shiguan.errors import StoreError
from shiguan.stores.cluster.schema import ElasticsearchSchema
from shiguan.stores.cluster.served_store import ServedStore

_BULK = 2_000  # entries in one write, some 2 MB
_BULK_SECONDS = 60.0
_NEXT = "an index is never changed, a new one has a new name: see `A new index` in docs/operating.md"


class ElasticsearchIndex(ServedStore):
    """A store in an index of Elasticsearch; the schema says what the index looks like."""

    schema: ElasticsearchSchema

    def _check(self, client: Elasticsearch) -> None:
        # A write would make one in passing, without its analysis.
        if not client.indices.exists(index=self.index):
            raise self._missing("index")

    def _make(self, client: Elasticsearch) -> list[str]:
        try:
            made = not client.indices.exists(index=self.index) and client.indices.create(
                index=self.index, mappings=self.schema.mappings(), settings=self.schema.settings()
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

    def _write(self, actions: Iterable[dict[str, Any]], *, verb: str, count: int) -> None:
        """Write or delete entries in batches, which are found when it ends, and name those that the server refused."""
        client = self._connect()
        refused: list[tuple[str, str]] = []
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
            entry = next(iter(item.values()))
            if not done and not (verb == "delete" and entry["status"] == 404):
                refused.append((entry["_id"], f"status {entry['status']}: {cause(entry)}"))
        self.server.whole(patient.indices.refresh(index=self.index))
        if refused:
            raise self.server.refusal(verb, refused, count, self.index)

    def _entries(self, query: dict[str, Any], *, sort: list[Any], page: int, source: Any) -> Iterator[dict[str, Any]]:
        """Find all entries that match, page by page, in an order in which no two are equal."""
        client = self._connect()
        after: list[Any] | None = None
        while True:
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

    def _differences(self, client: Elasticsearch) -> list[str]:
        found = client.indices.get_mapping(index=self.index)
        if len(found) != 1:
            raise StoreError(
                f"`{self.index}` of {self.server.place} is an alias of {', '.join(sorted(found))}; expected one."
            )
        return self.schema.differences(next(iter(found.values()))["mappings"])


def cause(entry: dict[str, Any]) -> str:
    """Explain why one entry of an answer failed."""
    error = entry.get("error")
    return f"{error.get('type')}: {error.get('reason')}" if isinstance(error, dict) else str(error or "no reason given")
