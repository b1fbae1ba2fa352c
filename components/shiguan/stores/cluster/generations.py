"""The indexes behind one name: which one answers, how the next is made from it, and how to go back."""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from shiguan.errors import RefusedError, StoreError
from shiguan.stores.cluster.server import Server


@dataclass(frozen=True)
class Copied:
    """What a copy of an index holds beside its original."""

    name: str
    source: str
    target: str
    source_count: int
    target_count: int


class Generations(ABC):
    """
    The numbered indexes (`name-000001`) of which one stands behind an alias, `name`, that everything else asks.

    So an index is replaced while it serves: the next one is filled from it, and the alias moves in one step, forth and
    back. Nothing is deleted here but by `restore` into a number of its own.
    """

    def __init__(self, server: Server, name: str) -> None:
        self.server = server
        self.name = name

    @abstractmethod
    def set_up(self) -> list[str]:
        """Make the first index and what it needs where nothing is there; safe to run twice, and twice at once."""

    @abstractmethod
    def status(self) -> dict[str, Any]:
        """Tell how the index behind the name does; `copy_needed` where it does not fit the deployment's files."""

    @abstractmethod
    def listed(self) -> tuple[list[str], str | None]:
        """List the indexes in order, and the one behind the name."""

    @abstractmethod
    def fill(self, source: str, target: str) -> tuple[int, int]:
        """Make the target by the deployment's files, put into it what it lacks of the source, and count both."""

    @abstractmethod
    def point(self, source: str | None, target: str) -> None:
        """Move the alias, in one step."""

    @abstractmethod
    def counts(self, source: str, target: str) -> tuple[int, int]:
        """Count both, and refuse where the target cannot serve yet."""

    @abstractmethod
    def save(self, backup: str, notes: dict[str, Any]) -> dict[str, Any]:
        """Save the index behind the name; gives what `load` and `verify` need to know."""

    @abstractmethod
    def load(self, backup: str, saved: dict[str, Any], target: str) -> int:
        """Bring a saved index back under a number of its own, and count it."""

    @abstractmethod
    def verify(self, backup: str, saved: dict[str, Any]) -> list[str]:
        """Say what is wrong with a saved index."""

    def copy(self) -> Copied:
        """Fill the next index from the one that answers; one that was begun is gone on with."""
        names, current = self.listed()
        if current is None:
            raise self.nothing_there("copy")
        begun = [name for name in names if name > current]
        target = begun[-1] if begun else self.next_name(names)
        return Copied(self.name, current, target, *self.fill(current, target))

    def switch(self, *, back: bool = False) -> str:
        """Let the name mean the newest index, or the one before."""
        names, current = self.listed()
        wanted = [name for name in names if current and (name < current if back else name > current)]
        if not wanted or current is None:
            raise RefusedError(
                f"There is no {'older' if back else 'newer'} index than {current or 'none'} behind `{self.name}` of "
                f"{self.server.place}. `shiguan stores reindex` makes a newer one."
            )
        target = wanted[-1]
        if not back:
            there, copied = self.counts(current, target)
            if there != copied:
                raise StoreError(
                    f"{target} holds {copied:,} entries and {current} {there:,}: something was written or deleted "
                    "meanwhile. Stop ingesting, run `shiguan stores reindex` again, then switch; where entries were "
                    f"deleted, delete {target} first."
                )
        self.point(current, target)
        return f"{self.server.place}: {self.name} is {target} now, {current} is kept"

    def restore(self, backup: str, saved: dict[str, Any]) -> str:
        """Bring a saved index back and let the name mean it; what is there now is kept."""
        names, current = self.listed()
        target = self.next_name(names)
        count = self.load(backup, saved, target)
        if count != saved["count"]:
            raise StoreError(
                f"{target} of {self.server.place} holds {count:,} entries after the restore, the backup {backup} says "
                f"{saved['count']:,}. `{self.name}` was left as it is; see the server's log and delete {target}."
            )
        self.point(current, target)
        return f"{self.server.place}: {self.name} is {target} now, {count:,} entries" + (
            f", {current} is kept" if current else ""
        )

    def nothing_there(self, verb: str) -> StoreError:
        """Make the error for a name behind which no index stands."""
        return StoreError(f"{self.server.place} has no `{self.name}` to {verb}. Make it with `shiguan stores init`.")

    def next_name(self, names: list[str]) -> str:
        """Name the index after these."""
        last = max((int(name.rsplit("-", 1)[1]) for name in names), default=0)
        return f"{self.name}-{last + 1:06}"

    def numbered(self, names: Any) -> list[str]:
        """Choose the indexes of this name."""
        return sorted(name for name in names if re.fullmatch(re.escape(self.name) + r"-\d{6}", name))


class Served:
    """What a store of a server says about itself; see `Generations`."""

    def generations(self) -> list[Generations]:
        """Give what makes, copies and saves what the store is in."""
        raise NotImplementedError

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
