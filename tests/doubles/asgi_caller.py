"""Calls an ASGI application as a server does, and can hang up on it."""

import asyncio
import json
from typing import Any


class AsgiCall:
    """
    One request.

    :param app: The application.
    :param path: Its path, with a query behind `?`.
    :param body: Its body; a list comes in that many parts.
    :param complete: Whether the body ends.
    """

    def __init__(
        self,
        app: Any,
        path: str,
        *,
        method: str = "POST",
        body: bytes | list[bytes] = b"",
        headers: dict[str, str] | None = None,
        client: str | None = "127.0.0.1",
        server: str = "127.0.0.1",
        host: str = "127.0.0.1:80",
        complete: bool = True,
    ) -> None:
        self.sent: list[dict[str, Any]] = []
        self._parts = [body] if isinstance(body, bytes) else list(body)
        self._complete = complete
        self._hung_up = asyncio.Event()
        path, _, query = path.partition("?")
        scope = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1",
            "method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode(), "root_path": "",
            "scheme": "http", "client": (client, 1) if client else None, "server": (server, 80),
            "headers": [(b"host", host.encode())] * bool(host)
            + [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()],
        }  # fmt: skip
        self.task = asyncio.create_task(app(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if self._parts:
            part = self._parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(self._parts) or not self._complete}
        await self._hung_up.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    def hang_up(self) -> None:
        self._hung_up.set()

    async def done(self, seconds: float = 5) -> "AsgiCall":
        await asyncio.wait_for(asyncio.shield(self.task), seconds)
        return self

    @property
    def status(self) -> int | None:
        return next((m["status"] for m in self.sent if m["type"] == "http.response.start"), None)

    @property
    def headers(self) -> dict[str, str]:
        start = next(m for m in self.sent if m["type"] == "http.response.start")
        return {name.decode().lower(): value.decode() for name, value in start["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(m.get("body", b"") for m in self.sent if m["type"] == "http.response.body")

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = self.json["error"]
        return error
