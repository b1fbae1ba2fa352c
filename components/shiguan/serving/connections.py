"""Connections: a request's head is small and comes soon, and who only holds the line makes room for the others."""

import asyncio
import json

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from shiguan.serving.error_replies import MOST_HEAD_BYTES, ApiError
from shiguan.serving.settings import ServingSettings

_HEAD_SECONDS = 10.0
_SPARE = 64


class Connection(H11Protocol):
    """
    One HTTP/1.1 connection of uvicorn's.

    From its beginning, and from the end of each reply, the whole head of the next request has ten seconds; the rest of
    a body that nobody reads, too. Where there are as many connections as there may be, a new one takes the place of
    the one that has waited longest without a request.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency - 1:
            others = [other for other in self.connections if isinstance(other, Connection)]
            idle = {other._timer.when(): other for other in others if other._timer is not None}
            if idle:
                idle[min(idle)].give_up()
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        # h11 measures only a head that is not complete yet, and reads may be larger than its limit.
        heads = self.conn.their_state is h11.IDLE
        if heads and len(data) > MOST_HEAD_BYTES and data.find(b"\r\n\r\n", 0, MOST_HEAD_BYTES) < 0:
            body = json.dumps(ApiError("head_too_large").body()).encode()
            head = "HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Type: application/json"
            self.transport.write(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            self.transport.close()
            return
        super().data_received(data)
        if self._timer is not None and self._at_work():
            self._timer.cancel()
            self._timer = None

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._at_work():
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def give_up(self) -> None:
        self.connections.discard(self)
        self.transport.abort()

    def _at_work(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(_HEAD_SECONDS, self.give_up)


def limit_connections(config: uvicorn.Config, settings: ServingSettings) -> None:
    """Let a server of uvicorn's take connections as above."""
    config.http, config.ws = Connection, "none"
    config.h11_max_incomplete_event_size = MOST_HEAD_BYTES
    if config.limit_concurrency is None:
        config.limit_concurrency = max(settings.max_connections, settings.max_in_flight + _SPARE)
