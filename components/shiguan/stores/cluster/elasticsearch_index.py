"""One index of an Elasticsearch cluster behind its alias: made, inspected, copied, saved and brought back."""

from collections.abc import Callable
from math import inf
from typing import Any

from elasticsearch import BadRequestError, ConflictError, Elasticsearch, NotFoundError
from tenacity import (
    Retrying,
    retry,
    retry_if_exception_type,
    retry_if_result,
    stop_after_attempt,
    stop_after_delay,
    wait_exponential,
)

from shiguan.errors import StoreError
from shiguan.stores.cluster.generations import Generations
from shiguan.stores.cluster.schema import ElasticsearchSchema
from shiguan.stores.cluster.server import Server

_BATCH = 2_000
_REPOSITORY = "shiguan"
_LONGEST_RESTORE = 6 * 3_600


def _until(
    done: Callable[[Any], bool], ask: Callable[..., Any], *asked: Any, seconds: float = inf, **words: Any
) -> Any:
    """Ask again after 0.1 to 10 seconds until it is done, or so long; gives the last answer."""
    waiting = Retrying(
        retry=retry_if_result(lambda answer: not done(answer)),
        wait=wait_exponential(0.1, max=10),
        stop=stop_after_delay(seconds),
        retry_error_callback=lambda state: state.outcome and state.outcome.result(),
    )
    return waiting(ask, *asked, **words)


def finished(client: Elasticsearch, server: Server, task: str) -> dict[str, Any]:
    """Wait until a task on the server has ended, however long it takes, and give what came of it."""
    # The client's own method warns of a technical preview each time; the call is as old as tasks.
    ask, headers = client.perform_request, {"accept": "application/json"}
    answer = _until(lambda answer: answer["completed"], ask, "GET", f"/_tasks/{task}", headers=headers)
    if answer.get("error"):
        error = answer["error"]
        raise StoreError(
            f"{server.place} gave up a task it had begun ({error.get('type')}: {error.get('reason')}). What it did "
            "stays done; see to the cause and run the same again."
        )
    return dict(server.whole(answer["response"]))


def delete_matching(client: Elasticsearch, server: Server, index: str, query: dict[str, Any]) -> int:
    """Delete what matches, as a task of the server; what changed meanwhile is looked at again."""
    deleted = 0
    while True:
        task = client.delete_by_query(
            index=index, query=query, conflicts="proceed", slices="auto", wait_for_completion=False
        )["task"]
        done = finished(client, server, task)
        server.whole(client.indices.refresh(index=index))
        deleted += int(done["deleted"])
        if not done.get("version_conflicts") or not done["deleted"]:
            return deleted


class ElasticsearchIndex(Generations):
    """See `Generations`; the schema says what each new index looks like."""

    kind = "an index"
    slow_seconds = 60
    keeps_notes = True

    def __init__(self, server: Server, name: str, schema: ElasticsearchSchema) -> None:
        super().__init__(server, name)
        self.schema = schema

    def made(self, client: Elasticsearch) -> list[str]:
        done = [self._write_template(client)]
        _, current = self.names(client)
        if current is None:
            first = f"{self.name}-000001"
            made = self._create(client, first, aliases={self.name: {"is_write_index": True}})
            return [*done, f"index {first} {'made' if made else 'was there'}"]
        breaking, harmless = self.schema.differences(self._mappings(client, current))
        if breaking:
            raise StoreError(
                f"The index {current} is there and differs from the deployment's files: {'; '.join(breaking)}. "
                "`shiguan stores reindex` makes the next one from it, while this one serves."
            )
        return [*done, f"index {current} was there", *(_note(text) for text in harmless)]

    def state(self, client: Elasticsearch) -> dict[str, Any]:
        version = client.info()["version"]["number"]
        problems = self._template_problems(client)
        _, current = self.names(client)
        if current is None:
            return self.missing(version, *problems)
        breaking, harmless = self.schema.differences(self._mappings(client, current))
        problems += [f"{current}: {text}; `shiguan stores reindex` makes one that fits" for text in breaking]
        health = client.cluster.health(index=current, timeout="1s")["status"]
        if health == "red":
            problems.append(f"a shard of {current} is not there; see the server's log and its disks")
        return {
            "version": version,
            "health": health,
            "documents": self.count(client, current) if health != "red" else None,
            "problems": problems,
            "notes": [f"{current}: {_note(text)}" for text in harmless],
            "copy_needed": bool(breaking or harmless),
        }

    def names(self, client: Elasticsearch) -> tuple[list[str], str | None]:
        found = client.indices.get_alias(index=f"{self.name}-*")
        names = self.numbered(found)
        current = [name for name in names if self.name in found[name]["aliases"]]
        if not current and client.indices.exists(index=self.name):
            # Somebody may have made it since the first look.
            current = list(client.indices.get_alias(index=self.name))
        if self.name in current:
            raise self.misplaced()
        if len(current) > 1:
            raise StoreError(
                f"The alias `{self.name}` of {self.server.place} stands for {' and '.join(current)}. Remove it from "
                "all but one of them."
            )
        return names, current[0] if current else None

    def count(self, client: Elasticsearch, index: str) -> int:
        self.server.whole(client.indices.refresh(index=index))
        return int(self.server.whole(client.count(index=index))["count"])

    def fill(self, client: Elasticsearch, source: str, target: str) -> None:
        self._write_template(client)
        if not self._create(client, target, settings={"index": {"refresh_interval": "-1"}}):
            breaking, _ = self.schema.differences(self._mappings(client, target))
            if breaking:
                raise StoreError(
                    f"The index {target} was begun with other files ({'; '.join(breaking)}). Delete it and run "
                    "`shiguan stores reindex` again."
                )
        task = client.reindex(
            source={"index": source, "size": _BATCH},
            dest={"index": target, "op_type": "create"},
            conflicts="proceed",  # what an interrupted copy has brought is not brought again
            slices="auto",
            wait_for_completion=False,
        )["task"]
        finished(client, self.server, task)
        client.indices.put_settings(index=target, settings={"index": {"refresh_interval": None}})

    def point(self, client: Elasticsearch, source: str | None, target: str) -> None:
        actions: list[dict[str, Any]] = [{"add": {"index": target, "alias": self.name, "is_write_index": True}}]
        if source is not None:
            actions.insert(0, {"remove": {"index": source, "alias": self.name}})
        client.indices.update_aliases(actions=actions)

    def snapshot(
        self, client: Elasticsearch, backup: str, saved: dict[str, Any], notes: dict[str, Any]
    ) -> dict[str, Any]:
        """See `Generations`; it is named after the backup and this index, and `notes` travel in it."""
        self._open_repository(client)
        snapshot = f"{backup}-{self.name}"
        client.snapshot.create(
            repository=_REPOSITORY,
            snapshot=snapshot,
            indices=[saved["index"]],
            include_global_state=False,
            metadata={"shiguan": {**notes, self.name: saved}},
            wait_for_completion=False,
        )
        state = _until(lambda found: found["state"] != "IN_PROGRESS", self._snapshot, client, snapshot)["state"]
        if state != "SUCCESS":
            raise StoreError(
                f"{self.server.place} could not take the snapshot {snapshot} whole ({state}). See the server's log, "
                "then run the same again."
            )
        return {}

    def saved(self, backup: str) -> dict[str, Any]:
        """Read what the snapshot's notes say."""
        with self.connected() as client:
            self._open_repository(client)
            try:
                snapshot = self._snapshot(client, f"{backup}-{self.name}")
            except NotFoundError as error:
                raise StoreError(
                    f"{self.server.place} has no backup `{backup}` of `{self.name}`. `shiguan stores verify` without a "
                    "name lists what there is."
                ) from error
            return dict(snapshot["metadata"]["shiguan"])

    def backups(self) -> list[str]:
        """List the backups by name, the newest last."""
        with self.connected() as client:
            self._open_repository(client)
            found = client.snapshot.get(repository=_REPOSITORY, snapshot="*")["snapshots"]
        names = sorted(entry["snapshot"] for entry in found)
        return [name.removesuffix(f"-{self.name}") for name in names if name.endswith(f"-{self.name}")]

    def load(self, client: Elasticsearch, backup: str, saved: dict[str, Any], target: str) -> None:
        client.snapshot.restore(
            repository=_REPOSITORY,
            snapshot=f"{backup}-{self.name}",
            indices=[saved["index"]],
            rename_pattern=".+",
            rename_replacement=target,
            include_aliases=False,
            wait_for_completion=False,
        )
        wanted: dict[str, Any] = {"index": target, "wait_for_status": "yellow", "timeout": "30s"}
        whole = client.cluster.health
        found = _until(lambda health: health["status"] != "red", whole, seconds=_LONGEST_RESTORE, **wanted)
        if found["status"] == "red":
            raise StoreError(f"{self.server.place} did not bring {target} back whole. See its log and its disks.")

    def verify(self, backup: str, saved: dict[str, Any]) -> list[str]:
        with self.connected() as client:
            client.snapshot.verify_repository(name=_REPOSITORY)
            snapshot = self._snapshot(client, f"{backup}-{self.name}")
        problems = []
        if snapshot["state"] != "SUCCESS" or snapshot["shards"]["failed"]:
            problems.append(f"its state is {snapshot['state']}, {snapshot['shards']['failed']} shards failed")
        if saved["index"] not in snapshot["indices"]:
            problems.append(f"it does not hold {saved['index']}")
        return [f"{self.server.place}: {snapshot['snapshot']}: {problem}" for problem in problems]

    def _mappings(self, client: Elasticsearch, index: str) -> dict[str, Any]:
        return dict(client.indices.get_mapping(index=index)[index]["mappings"])

    def _write_template(self, client: Elasticsearch) -> str:
        template = self.schema.template(self.name)
        # The client calls `_meta` by another name, for a leading underscore is private in Python.
        arguments = {key.removeprefix("_"): value for key, value in template.items()}
        # Two processes that write the same template at once: one gets a conflict, and finds it written the next time.
        again = retry(
            retry=retry_if_exception_type((ConflictError, BadRequestError)), stop=stop_after_attempt(3), reraise=True
        )
        again(client.indices.put_index_template)(name=self.name, create=False, **arguments)
        return f"template {self.name} written"

    def _template_problems(self, client: Elasticsearch) -> list[str]:
        try:
            stored = client.indices.get_index_template(name=self.name)["index_templates"][0]["index_template"]
        except NotFoundError:
            return [f"the template {self.name} is missing; `shiguan stores init` writes it"]
        if stored["template"].get("mappings", {}).get("_meta") == self.schema.mappings()["_meta"]:
            return []
        return [f"the template {self.name} is that of another version; `shiguan stores init` writes it"]

    def _create(self, client: Elasticsearch, index: str, **options: Any) -> bool:
        try:
            client.indices.create(index=index, **options)
        except (BadRequestError, ConflictError) as error:
            if error.error != "resource_already_exists_exception":
                raise
            return False
        # An index that is made in passing, such as on a busy master, is waited for here and not by the first write.
        client.cluster.health(index=index, wait_for_status="yellow", timeout="50s")
        return True

    def _open_repository(self, client: Elasticsearch) -> None:
        settings = {"location": _REPOSITORY, "compress": True}
        client.snapshot.create_repository(name=_REPOSITORY, repository={"type": "fs", "settings": settings})

    def _snapshot(self, client: Elasticsearch, snapshot: str) -> dict[str, Any]:
        return dict(client.snapshot.get(repository=_REPOSITORY, snapshot=snapshot)["snapshots"][0])


def _note(text: str) -> str:
    return f"note: {text}; it serves, and the next index, by `shiguan stores reindex`, will be as they say"
