"""Replies that are too long, compressed or sent on elsewhere end with an error as they come."""

import gzip
from contextlib import contextmanager, suppress

import httpx
import pytest
from tests.doubles.local_server import LocalHandler, LocalServer

from shiguan.bounded_http import UnwantedReplyError, bounded


@contextmanager
def server(*parts, more=False):
    """Send these bytes to whoever connects; `more` sends the last ones for ever."""
    sent = [0]

    class Handler(LocalHandler):
        def do_GET(self):
            self.close_connection = True
            with suppress(OSError):
                for part in parts:
                    self.connection.sendall(part)
                while more:
                    self.connection.sendall(parts[-1])
                    sent[0] += len(parts[-1])

    with LocalServer(Handler) as serving:
        yield serving.url, sent


async def get(url, most=1_000):
    async with httpx.AsyncClient(**bounded(most), follow_redirects=True, timeout=20) as client:
        return await client.get(url)


def reply(body=b"", *headers, status=b"200 OK"):
    lines = [b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), b"Connection: close", *headers]
    return b"\r\n".join([*lines, b"", body])


async def test_a_reply_of_the_length_that_is_read_is_read():
    with server(reply(b"x" * 1_000)) as (url, _):
        assert (await get(url)).content == b"x" * 1_000


async def test_a_reply_without_an_end_is_left_as_it_comes():
    with (
        server(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", b"x" * 100_000, more=True) as (url, sent),
        pytest.raises(UnwantedReplyError, match="sent more than 1,000,000 bytes"),
    ):
        await get(url, 1_000_000)
    assert sent[0] < 50_000_000  # buffers of the system and no more


async def test_a_compressed_reply_is_not_unpacked():
    with (
        server(reply(gzip.compress(b"x" * 100, mtime=0), b"Content-Encoding: gzip")) as (url, _),
        pytest.raises(UnwantedReplyError, match="compressed"),
    ):
        await get(url)


@pytest.mark.parametrize("place", ["http://127.0.0.1:1/", "//127.0.0.1:1/", "https://127.0.0.1/", "http://localhost/"])
async def test_a_redirect_to_another_scheme_host_or_port_is_not_followed(place):
    with (
        server(reply(b"", b"Location: " + place.encode(), status=b"302 Found")) as (url, _),
        pytest.raises(UnwantedReplyError, match="redirected"),
    ):
        await get(url)
