"""Replies that are streams of server-sent events."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, NamedTuple

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from shiguan.serving.error_replies import ApiError, counted

_BEAT_SECONDS = 10.0
_DONE = b"data: [DONE]\n\n"
# JSON may hold them as they are, but many readers end a line at them, as `str.splitlines` does.
_BREAKS = {ord(mark): f"\\u{ord(mark):04x}" for mark in "\x85\u2028\u2029"}

STREAMED: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}}}
"""What a route documents that replies with JSON, or with a stream where its body asks for one."""


class ServerEvent(NamedTuple):
    """One event: its data, and its name and number where it has them; or a comment."""

    data: dict[str, Any]
    name: str | None = None
    id: int | None = None
    comment: str | None = None

    def encoded(self) -> bytes:
        if self.comment is not None:
            return f": {self.comment}\n\n".encode()
        lines = [] if self.id is None else [f"id: {self.id}"]
        lines += [] if self.name is None else [f"event: {self.name}"]
        lines.append(f"data: {json.dumps(self.data, ensure_ascii=False, separators=(',', ':'))}")
        return ("\n".join(lines) + "\n\n").translate(_BREAKS).encode()


_BEAT = ServerEvent({}, comment="still at work")


class EventStreamResponse(StreamingResponse):
    """A stream has one terminal event and then `[DONE]`, however it ends; its producer is closed with it, at once."""

    def __init__(self, events: AsyncGenerator[ServerEvent, None]) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__((), media_type="text/event-stream", headers=headers)
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send the stream; a caller who hangs up is noticed by what runs the request."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        come: asyncio.Queue[ServerEvent | None] = asyncio.Queue()
        reading = asyncio.create_task(self._read(come))
        terminal = False
        error: BaseException | None = None
        try:
            try:
                while (event := await _next(come)) is not None:
                    await send({"type": "http.response.body", "body": event.encoded(), "more_body": True})
                    terminal |= event.name in ("error", "generation_complete", "done")
                await reading  # raises what the producer raised
            except asyncio.CancelledError as cut_off:
                if cut_off.args not in (("timeout",), ("shutting_down",)):
                    raise  # nobody is there to read an end
                error = ApiError(cut_off.args[0])
            except Exception as failure:
                error = failure
            end = b"" if error is None or terminal else ServerEvent(counted(error).body(), "error").encoded()
            await send({"type": "http.response.body", "body": end + _DONE, "more_body": False})
        finally:
            reading.cancel()
            await asyncio.wait({reading})

    async def _read(self, come: asyncio.Queue[ServerEvent | None]) -> None:
        async with aclosing(self._events):
            try:
                async for event in self._events:
                    come.put_nowait(event)
                    # A long answer that comes in one go must not keep other requests waiting.
                    await asyncio.sleep(0)
            finally:
                come.put_nowait(None)


async def _next(come: asyncio.Queue[ServerEvent | None]) -> ServerEvent | None:
    """Return the next event, or a comment where nothing came for ten seconds, so that nothing on the way gives up."""
    try:
        async with asyncio.timeout(_BEAT_SECONDS):
            return await come.get()
    except TimeoutError:
        return _BEAT
