"""A reply on its way out: what was sent of it, and how to end it when the work behind it was cut off."""

import json

from starlette.datastructures import Headers
from starlette.types import Message, Scope, Send

from shiguan.serving.error_replies import ApiError, error_response

# Whole lines: in the JSON of an event every line break is written `\\n`, so no text can look like one of these.
_TERMINAL = (b"\nevent: error\n", b"\nevent: generation_complete\n")
_DONE = b"\ndata: [DONE]\n"


class ResponseWatch:
    """
    An ASGI `send` that remembers how far the reply is.

    A stream of server-sent events owes its reader exactly one terminal event and then `[DONE]`. Where its producer is
    cut off, by a timeout, a shutdown or an error, `end` sends what is missing of these.
    """

    def __init__(self, send: Send) -> None:
        """Take over a reply."""
        self.started = False
        self.complete = False
        self.status = 0
        self._send = send
        self._events = False
        self._told = False
        self._done = False
        self._tail = b"\n"
        self._closed = False

    async def __call__(self, message: Message) -> None:
        """Send the next part, unless the reply was ended."""
        if self._closed:
            return
        if message["type"] == "http.response.start":
            self.started = True
            self.status = message["status"]
            kind = Headers(raw=message.get("headers", [])).get("content-type", "")
            self._events = kind.startswith("text/event-stream")
        elif message["type"] == "http.response.body":
            if self._events:
                self._look_at(message.get("body", b""))
            self.complete = not message.get("more_body", False)
        await self._send(message)

    async def end(self, error: ApiError, request_id: str | None, scope: Scope) -> None:
        """End the reply with an error; from then on nothing more of the application gets through."""
        if self._closed or self.complete:
            return
        self._closed = True
        if not self.started:
            self.started, self.status = True, error.status_code
            await error_response(error, request_id)(scope, _nothing, self._send)
        elif self._events:
            body = b"" if self._tail == b"\n" or self._tail.endswith(b"\n\n") else b"\n\n"
            if not self._told and not self._done:
                told = json.dumps(error.body(request_id), ensure_ascii=False)
                body += f"event: error\ndata: {told}\n\n".encode()
            if not self._done:
                body += b"data: [DONE]\n\n"
            await self._send({"type": "http.response.body", "body": body, "more_body": False})
        self.complete = True

    def close(self) -> None:
        """Send nothing more: the reader is gone."""
        self._closed = True

    def _look_at(self, part: bytes) -> None:
        # A mark may lie across two parts; its first half is then at the end of the tail.
        seen = self._tail + part
        self._told = self._told or any(mark in seen for mark in _TERMINAL)
        self._done = self._done or _DONE in seen
        self._tail = seen[-40:]


async def _nothing() -> Message:
    return {"type": "http.disconnect"}
