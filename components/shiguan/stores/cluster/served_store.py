"""The connection of a store to its server, and its setup."""

import threading
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from shiguan.errors import StoreError
from shiguan.stores.cluster.server import Server

_SET_UP_SECONDS = 60.0


class ServedStore:
    """One index or collection of a server; it is opened and checked at the first use, and after a failure."""

    server: Server
    index: str
    _client: Any = None

    def _on(self, server: str) -> None:
        """Name the server; nothing is opened yet."""
        self.server, self._opening = Server(server), threading.Lock()

    @abstractmethod
    def _check(self, client: Any) -> None:
        """Refuse to go on without the index, or with one that cannot be used."""

    @abstractmethod
    def _make(self, client: Any) -> list[str]:
        """Make what is missing, and report what was done; safe to run twice, and twice at once."""

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
            return [f"{self.server.place}: {clause}" for clause in self._make(client)]

    def _missing(self, kind: str) -> StoreError:
        return StoreError(
            f"{self.server.place} has no {kind} `{self.index}`. Make it with `shiguan stores init`, then run "
            "the same again."
        )
