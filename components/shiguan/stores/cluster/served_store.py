"""The connection of a store to its server, its setup and its state."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Protocol

from shiguan.errors import StoreError, StoreUnavailableError
from shiguan.stores.cluster.server import Server

_SET_UP_SECONDS = 60.0


class ServerPart(Protocol):
    """An index or a collection: made by `stores init`, described by `stores status`."""

    server: Server
    name: str

    def check(self, client: Any) -> None:
        """Refuse to go on without it, or with one that cannot be used."""

    def make(self, client: Any) -> list[str]:
        """Make what is missing, and report what was done; safe to run twice, and twice at once."""

    def state(self, client: Any) -> dict[str, Any]:
        """Return `version`, `health`, `documents`, `problems` (that need action) and `notes` (that can wait)."""


class ServedStore:
    """The connection to a server, opened and checked at the first use and at the first after a failure."""

    server: Server
    _part: Any
    _client: Any = None

    def _use(self, part: ServerPart) -> None:
        """Set the index or collection of the store; nothing is opened yet."""
        self._part, self.server, self._opening = part, part.server, threading.Lock()

    def _connect(self) -> Any:
        with self._opening, self.server.reporting():
            if self._client is None:
                client = self.server.open()
                try:
                    self._part.check(client)
                except BaseException:
                    client.close()
                    raise
                self._client = client
            return self._client

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """Provide the connection; errors in the block name the server and the next step."""
        with self.server.reporting():
            yield self._connect()

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        with self._opening:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def set_up(self) -> list[str]:
        """Make what is missing; safe to run twice, and twice at once."""
        with self.server.reporting(), closing(self.server.open(_SET_UP_SECONDS)) as client:
            return [f"{self.server.place}: {clause}" for clause in self._part.make(client)]

    def status(self) -> list[dict[str, Any]]:
        """Describe the index or collection, also if the server is away."""
        entry: dict[str, Any] = {"server": self.server.place, "name": self._part.name}
        try:
            with self.server.reporting(), closing(self.server.open(patient=False)) as client:
                return [entry | self._part.state(client)]
        except StoreError as error:
            health = "unreachable" if isinstance(error, StoreUnavailableError) else "unknown"
            unknown: dict[str, Any] = {"version": None, "health": health, "documents": None, "notes": []}
            return [entry | unknown | {"problems": [str(error)]}]


def missing(version: str, kind: str, name: str) -> dict[str, Any]:
    """Describe an index or a collection that is missing."""
    problems = [f"the {kind} {name} is missing; `shiguan stores init` makes it"]
    return {"version": version, "health": "missing", "documents": None, "problems": problems, "notes": []}
