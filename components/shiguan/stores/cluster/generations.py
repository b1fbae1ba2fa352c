"""The indexes behind one name: which one answers, how the next is made from it, how to save them and to go back."""

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Any

from shiguan.errors import RefusedError, StoreError
from shiguan.stores.cluster.server import Server


class Generations(ABC):
    """
    The numbered indexes (`name-000001`) of which one stands behind an alias, `name`, that everything else asks.

    So an index is replaced while it serves: the next one is filled from it, and the alias moves in one step, forth and
    back. Nothing is deleted here but by `restore` into a number of its own. What asks for a client is called inside of
    the one that the public method opened.
    """

    kind: str
    """What the server calls an index, with its article."""
    slow_seconds: int
    """How long a request may take that waits for the server's work."""
    keeps_notes = False
    """Whether a backup here can say what the others' parts of it are called."""

    def __init__(self, server: Server, name: str) -> None:
        self.server = server
        self.name = name

    @abstractmethod
    def made(self, client: Any) -> list[str]:
        """Make the first index and what it needs where nothing is there; safe to run twice, and twice at once."""

    @abstractmethod
    def state(self, client: Any) -> dict[str, Any]:
        """Tell how the index behind the name does; `copy_needed` where it does not fit the deployment's files."""

    @abstractmethod
    def names(self, client: Any) -> tuple[list[str], str | None]:
        """List the indexes in order, and the one behind the name."""

    @abstractmethod
    def count(self, client: Any, index: str) -> int:
        """Count what an index holds."""

    @abstractmethod
    def fill(self, client: Any, source: str, target: str) -> None:
        """Make the target by the deployment's files, and put into it what it lacks of the source."""

    @abstractmethod
    def point(self, client: Any, source: str | None, target: str) -> None:
        """Move the alias, in one step."""

    @abstractmethod
    def snapshot(self, client: Any, backup: str, saved: dict[str, Any], notes: dict[str, Any]) -> dict[str, Any]:
        """Save an index; gives what `load` and `verify` need to know beside its name and count."""

    @abstractmethod
    def load(self, client: Any, backup: str, saved: dict[str, Any], target: str) -> None:
        """Bring a saved index back under a number of its own."""

    @abstractmethod
    def verify(self, backup: str, saved: dict[str, Any]) -> list[str]:
        """Say what is wrong with a saved index."""

    def check_ready(self, client: Any, target: str) -> None:  # noqa: B027  most can serve at once
        """Refuse an index that cannot serve yet."""

    @contextmanager
    def connected(self, *, slow: bool = True) -> Iterator[Any]:
        """Give a client for as long as the block lasts."""
        timeout = max(self.server.timeout, self.slow_seconds) if slow else self.server.timeout
        with self.server.reporting(), closing(self.server.open(timeout)) as client:
            yield client

    def set_up(self) -> list[str]:
        with self.connected() as client:
            return [f"{self.server.place}: {clause}" for clause in self.made(client)]

    def status(self) -> dict[str, Any]:
        with self.connected(slow=False) as client:
            return self.state(client)

    def listed(self) -> tuple[list[str], str | None]:
        with self.connected() as client:
            return self.names(client)

    def copy(self) -> str:
        """Fill the next index from the one that answers; one that was begun is gone on with."""
        with self.connected() as client:
            names, current = self.names(client)
            if current is None:
                raise self._nothing_there("copy")
            begun = [name for name in names if name > current]
            target = begun[-1] if begun else self._next_name(names)
            self.fill(client, current, target)
            copied, there = self.count(client, target), self.count(client, current)
            return f"{self.server.place}: {target} holds {copied:,} of {there:,} entries of {current}"

    def switch(self, *, back: bool = False) -> str:
        """Let the name mean the newest index, or the one before."""
        with self.connected() as client:
            names, current = self.names(client)
            wanted = [name for name in names if current and (name < current if back else name > current)]
            if not wanted or current is None:
                raise RefusedError(
                    f"There is no {'older' if back else 'newer'} index than {current or 'none'} behind `{self.name}` "
                    f"of {self.server.place}. `shiguan stores reindex` makes a newer one."
                )
            target = wanted[-1]
            if not back:
                self.check_ready(client, target)
                there, copied = self.count(client, current), self.count(client, target)
                if there != copied:
                    raise StoreError(
                        f"{target} holds {copied:,} entries and {current} {there:,}: something was written or deleted "
                        "meanwhile. Stop ingesting, run `shiguan stores reindex` again, then switch; where entries "
                        f"were deleted, delete {target} first."
                    )
            self.point(client, current, target)
        return f"{self.server.place}: {self.name} is {target} now, {current} is kept"

    def save(self, backup: str, notes: dict[str, Any]) -> dict[str, Any]:
        """Save the index behind the name; gives what brings it back."""
        with self.connected() as client:
            _, current = self.names(client)
            if current is None:
                raise self._nothing_there("save")
            saved = {"index": current, "count": self.count(client, current)}
            return saved | self.snapshot(client, backup, saved, notes)

    def restore(self, backup: str, saved: dict[str, Any]) -> str:
        """Bring a saved index back and let the name mean it; what is there now is kept."""
        with self.connected() as client:
            names, current = self.names(client)
            target = self._next_name(names)
            self.load(client, backup, saved, target)
            count = self.count(client, target)
            if count != saved["count"]:
                raise StoreError(
                    f"{target} of {self.server.place} holds {count:,} entries after the restore, the backup {backup} "
                    f"says {saved['count']:,}. `{self.name}` was left as it is; see the server's log and delete "
                    f"{target}."
                )
            self.point(client, current, target)
        kept = f", {current} is kept" if current else ""
        return f"{self.server.place}: {self.name} is {target} now, {count:,} entries{kept}"

    def missing(self, version: str, *problems: str) -> dict[str, Any]:
        """Tell that no index stands behind the name."""
        missing = f"the {self.kind.split()[1]} {self.name} is missing; `shiguan stores init` makes it"
        problems = (*problems, missing)
        return {"version": version, "health": "missing", "documents": None, "problems": [*problems], "notes": []}

    def misplaced(self) -> StoreError:
        """Make the error for an index that has the alias's name."""
        return StoreError(
            f"{self.server.place} has {self.kind} named `{self.name}`, where an alias of that name belongs. Delete it, "
            "run `shiguan stores init` and ingest again, or give the files another name."
        )

    def numbered(self, names: Any) -> list[str]:
        """Choose the indexes of this name."""
        return sorted(name for name in names if re.fullmatch(re.escape(self.name) + r"-\d{6}", name))

    def _nothing_there(self, verb: str) -> StoreError:
        return StoreError(f"{self.server.place} has no `{self.name}` to {verb}. Make it with `shiguan stores init`.")

    def _next_name(self, names: list[str]) -> str:
        last = max((int(name.rsplit("-", 1)[1]) for name in names), default=0)
        return f"{self.name}-{last + 1:06}"


def back_up(parts: Sequence[Generations]) -> tuple[str, list[str]]:
    """
    Save all parts, by one name, on the servers' own disks; gives the name and what was done.

    Vectors first: a passage that comes between has its words and waits for its vector, which `ingest --resume` makes.
    What the vectors' server calls its part is noted in every part of the other, so that one name brings all back.
    """
    name = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    notes: dict[str, Any] = {}
    done = []
    for part in sorted(parts, key=lambda part: part.keeps_notes):
        saved = part.save(name, notes)
        if not part.keeps_notes:
            notes[_note(part)] = saved
        done.append(f"{part.server.place}: {saved['index']} saved, {saved['count']:,} entries")
    return name, done


def restore(parts: Sequence[Any], name: str) -> list[str]:
    """Bring all parts back under numbers of their own, and let the names mean them; what is there now is kept."""
    problems = verify(parts, name)
    if problems:
        raise RefusedError(f"The backup {name} is not whole: {'; '.join(problems)}. Nothing was brought back.")
    return [part.restore(name, saved) for part, saved in _saved(parts, name)]


def verify(parts: Sequence[Any], name: str) -> list[str]:
    """Say what of a backup is missing or damaged."""
    return [problem for part, saved in _saved(parts, name) for problem in part.verify(name, saved)]


def list_backups(parts: Sequence[Any]) -> list[str]:
    """List the backups that hold every part, the newest last."""
    held = [set(part.backups()) for part in parts if part.keeps_notes]
    return sorted(set.intersection(*held)) if held else []


def _saved(parts: Sequence[Any], name: str) -> list[tuple[Generations, dict[str, Any]]]:
    found = [(part, part.saved(name)) for part in parts if part.keeps_notes]
    notes = {key: note for _, saved in found for key, note in saved.items()}
    # Words and parents before vectors: what is found by its vector must be readable.
    return [
        *((part, saved[part.name]) for part, saved in found),
        *((part, notes[_note(part)]) for part in parts if not part.keeps_notes),
    ]


def _note(part: Generations) -> str:
    return f"qdrant {part.name}"


class Served:
    """What a store of a server says about itself, and its one connection; see `Generations`."""

    server: Server
    _client: Any = None
    _opening: threading.Lock

    def generations(self) -> list[Generations]:
        """Give what makes, copies and saves what the store is in."""
        raise NotImplementedError

    def _check(self, client: Any) -> None:
        """Refuse a server that does not have what the store is in."""

    def _connect(self) -> Any:
        """Give the connection, opened and checked at the first use and at the first after a failure."""
        with self._opening, self.server.reporting():
            if self._client is None:
                client = self.server.open()
                try:
                    self._check(client)
                except BaseException:
                    client.close()
                    raise
                self._client = client
            return self._client

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """Give the connection; what goes wrong in the block names the server and the next step."""
        with self.server.reporting():
            yield self._connect()

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        with self._opening:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def set_up(self) -> list[str]:
        """Make what is not there yet; safe to run twice, and twice at once."""
        return [clause for part in self.generations() for clause in part.set_up()]

    def status(self) -> list[dict[str, Any]]:
        """Tell how each part does."""
        return [_status(part) for part in self.generations()]


def _status(part: Generations) -> dict[str, Any]:
    entry = {"server": part.server.place, "name": part.name}
    try:
        return {**entry, **part.status()}
    except StoreError as error:
        unknown: dict[str, Any] = {"version": None, "health": "unreachable", "documents": None, "notes": []}
        return {**entry, **unknown, "problems": [str(error)]}
