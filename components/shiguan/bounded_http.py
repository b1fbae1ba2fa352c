"""Settings for a client of `httpx` that reads no more of a reply than is allowed, and is not sent elsewhere."""

from collections.abc import AsyncIterator
from typing import Any

import httpx


class UnwantedReplyError(Exception):
    """A server sent more than is read of a reply, or sends the client elsewhere; the message is a clause about it."""


class _Bounded(httpx.AsyncByteStream):
    """The body of a reply that ends with an error where it grows beyond a number of bytes."""

    def __init__(self, stream: httpx.AsyncByteStream, most: int) -> None:
        self._stream = stream
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for part in self._stream:
            read += len(part)
            if read > self._most:
                raise UnwantedReplyError(f"sent more than {self._most:,} bytes")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


def bounded(most_bytes: int) -> dict[str, Any]:
    """
    Give the arguments of an `httpx.AsyncClient` that bound its replies.

    A compressed reply is an `UnwantedReplyError` as well: a small one could become a large one, and none is asked for.
    So is a redirect to another scheme, host or port.
    """

    async def bound(response: httpx.Response) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise UnwantedReplyError("sent a compressed reply, which was not asked for")
        if response.has_redirect_location:
            url = response.request.url
            if _origin(url.join(response.headers["location"])) != _origin(url):
                raise UnwantedReplyError("redirected to another scheme, host or port")
        if isinstance(response.stream, httpx.AsyncByteStream):
            response.stream = _Bounded(response.stream, most_bytes)

    return {"event_hooks": {"response": [bound]}, "headers": {"Accept-Encoding": "identity"}}


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
