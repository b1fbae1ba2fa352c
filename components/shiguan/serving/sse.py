"""Server-sent events: how they are written, and a reply that ends its producer when it ends."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Send

DONE = b"data: [DONE]\n\n"
"""What every stream ends with, so that a reader knows a complete one from one that broke off."""


def sse(data: Mapping[str, Any], *, event: str | None = None, id: int | None = None) -> bytes:  # noqa: A002
    """Write one event."""
    lines = [] if id is None else [f"id: {id}"]
    if event is not None:
        lines.append(f"event: {event}")
    lines.append(f"data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}")
    return ("\n".join(lines) + "\n\n").encode()


class EventStreamResponse(StreamingResponse):
    """
    A stream of events.

    When the reply ends before its producer does (the reader hung up, the server cuts it off), the producer is closed at
    once and not whenever the interpreter comes to it, since a language model may be writing for it.
    """

    def __init__(self, parts: AsyncGenerator[bytes, None]) -> None:
        """Send events."""
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(parts, media_type="text/event-stream", headers=headers)
        self._parts = parts

    async def stream_response(self, send: Send) -> None:
        """Send the events."""
        async with aclosing(self._parts):
            await super().stream_response(send)
