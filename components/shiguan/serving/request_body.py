"""The body of a request on its way to the application: bounded, and watched for a caller who hangs up."""

import asyncio
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope

from shiguan.serving.error_replies import ApiError


class RequestBody:
    """
    An ASGI `receive` that counts bytes and notices when the caller is gone.

    A body may come without `Content-Length`; what counts is what arrives. Nothing is read ahead of the application but
    the first message, so that a body never piles up here. When the body is complete, the server has nothing more to
    tell than that the caller is gone: `watch` waits for that.
    """

    def __init__(self, receive: Receive, *, limit: int) -> None:
        """Take over a body."""
        self.limit = limit
        self._receive = receive
        self._first: Message | None = None
        self._size = 0
        self._complete = asyncio.Event()
        self._gone = asyncio.Event()

    async def start(self) -> bool:
        """Read the first message, which for most requests is all of the body."""
        self._first = await self._next()
        return not self._gone.is_set()

    async def __call__(self) -> Message:
        """Give the application the next message."""
        if self._first is not None:
            message, self._first = self._first, None
        elif self._complete.is_set():
            await self._gone.wait()
            return {"type": "http.disconnect"}
        else:
            message = await self._next()
        if self._size > self.limit:
            raise too_large(self.limit)
        return message

    async def watch(self, gone: Callable[[], None]) -> None:
        """Wait until the caller hangs up."""
        await self._complete.wait()
        while not self._gone.is_set():
            await self._next()
        gone()

    async def _next(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._gone.set()
            self._complete.set()
        else:
            self._size += len(message.get("body", b""))
            if not message.get("more_body", False):
                self._complete.set()
        return message


def check_length(scope: Scope, limit: int) -> None:
    """Refuse a body that says itself that it is too large, before any of it is read."""
    length = Headers(scope=scope).get("content-length")
    if length is None:
        return
    if not (length.isascii() and length.isdigit()):
        raise ApiError("bad_request", message="`Content-Length` is no number.")
    if int(length) > limit:
        raise too_large(limit)


def too_large(limit: int) -> ApiError:
    """Say that a body is too large."""
    return ApiError(
        "payload_too_large",
        message=f"The body has more than {limit:,} bytes.",
        next_step=f"Send at most {limit:,} bytes.",
    )
