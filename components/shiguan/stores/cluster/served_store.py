"""What a store of a server has beside its passages: one connection, how it is set up, and how it is."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Protocol

from shiguan.errors import StoreError, StoreUnavailableError
from shiguan.stores.cluster.server import Server

_SET_UP_SECONDS = 60.0


class ServerPart(Protocol):
    """An index or a collection: made by `stores init`, described by `stores status`."""

    name: str

    def make(self, client: Any) -> list[str]:
        """Make what is not there, and say what was done; safe to run twice, and twice at once."""

    def state(self, client: Any) -> dict[str, Any]:
        """Give `version`, `health`, `documents`, `problems` (that need somebody) and `notes` (that can wait)."""


class ServedStore:
    """The connection to a server, opened and checked at the first use and at the first after a failure."""

    server: Server
    _client: Any = None
    _opening: threading.Lock

    def _part(self) -> ServerPart:
        raise NotImplementedError

    def _check(self, client: Any) -> None:
        """Refuse a server that does not have what the store is in."""

    def _connect(self) -> Any:
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
        with self.server.reporting(), closing(self.server.open(_SET_UP_SECONDS)) as client:
            return [f"{self.server.place}: {clause}" for clause in self._part().make(client)]

    def status(self) -> list[dict[str, Any]]:
        """Describe what the store is in; a server that is away is described too."""
        part = self._part()
        entry: dict[str, Any] = {"server": self.server.place, "name": part.name}
        try:
            with self.server.reporting(), closing(self.server.open(patient=False)) as client:
                return [entry | part.state(client)]
        except StoreError as error:
            health = "unreachable" if isinstance(error, StoreUnavailableError) else "unknown"
            unknown: dict[str, Any] = {"version": None, "health": health, "documents": None, "notes": []}
            return [entry | unknown | {"problems": [str(error)]}]


def missing(version: str, kind: str, name: str) -> dict[str, Any]:
    """Describe an index or a collection that is not there."""
    problems = [f"the {kind} {name} is missing; `shiguan stores init` makes it"]
    return {"version": version, "health": "missing", "documents": None, "problems": problems, "notes": []}
