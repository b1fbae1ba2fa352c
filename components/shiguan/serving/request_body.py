"""The body of a request: its largest size, and JSON that is refused."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from starlette.types import Message, Receive

from shiguan.serving.error_replies import ApiError
from shiguan.tenants import odd_value

_MOST_VALUES = 20_000
_DEEPEST = 64


class RequestBody:
    """
    An ASGI `receive` that counts what arrives, whatever `Content-Length` says, and notices when the caller is gone.

    Only the first message of an upload is read ahead of the application, so that it does not pile up here.
    """

    def __init__(self, receive: Receive, *, limit: int) -> None:
        self.limit = limit
        self._receive = receive
        self._first: Message | None = None
        self._size = 0
        self._complete = asyncio.Event()
        self._gone = asyncio.Event()

    async def start(self, *, whole: bool = False) -> bool:
        """Read the first message, or the whole body."""
        self._first = await self._next()
        parts = [self._first.get("body", b"")]
        while whole and not self._complete.is_set():
            if self._size > self.limit:
                raise too_large(self.limit)
            parts.append((await self._next()).get("body", b""))
        if whole and not self._gone.is_set():
            body = b"".join(parts)
            if len(body) <= self.limit:
                check_json(body)
            self._first = {"type": "http.request", "body": body, "more_body": False}
        return not self._gone.is_set()

    async def __call__(self) -> Message:
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


def too_large(limit: int) -> ApiError:
    return ApiError(
        "payload_too_large",
        message=f"The body has more than {limit:,} bytes.",
        next_step=f"Send at most {limit:,} bytes.",
    )


def check_json(body: bytes) -> None:
    """
    Refuse JSON that some library behind a route would fail on or be busy with: too many values or levels, invalid
    Unicode, numbers that are not finite or larger than 64 bits.

    What is not JSON at all is left to the route, which says so.
    """
    try:
        level: list[Any] = [json.loads(body)]
    except RecursionError:
        raise _refused(f"more than {_DEEPEST} levels", "Nest less deep.") from None
    except ValueError:
        return
    depth = count = 0
    while level:
        depth += 1
        below: list[Any] = []
        if depth > _DEEPEST:
            raise _refused(f"more than {_DEEPEST} levels", "Nest less deep.")
        for value in level:
            if isinstance(value, (dict, list)):
                count += len(value)
                if count > _MOST_VALUES:
                    raise _refused(f"at least {count:,} values, the limit is {_MOST_VALUES:,}", "Send fewer at once.")
                below += (*value, *value.values()) if isinstance(value, dict) else value
            elif odd := odd_value(value):
                raise _refused(odd, "Send Unicode text and finite numbers of at most 64 bits.")
        level = below


def _refused(what: str, next_step: str) -> ApiError:
    return ApiError("bad_request", message=f"The body has {what}.", next_step=next_step)
