"""Connections over real sockets: heads that are too large, that do not come, and those who hold the line."""

import asyncio
import contextlib

import pytest
import uvicorn
from uvicorn.server import ServerState

from shiguan.serving import gate as connections
from shiguan.serving.settings import ServingSettings

HEAD = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
END = b"\r\n\r\n"


@pytest.fixture
async def server():
    """Make a small server: `/hang` waits to be released, everything else is answered before its body is read."""
    release = asyncio.Event()

    async def app(scope, receive, send):
        if scope["path"] == "/hang":
            await release.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async with contextlib.AsyncExitStack() as stack:

        async def make(limit=None):
            config = uvicorn.Config(app, lifespan="off", log_config=None, limit_concurrency=limit)
            connections.limit_connections(config, ServingSettings())
            config.load()
            state = ServerState()
            loop = asyncio.get_running_loop()
            listening = await loop.create_server(
                lambda: connections.Connection(config, state, {}), host="127.0.0.1", port=0
            )
            stack.callback(listening.close)
            port = listening.sockets[0].getsockname()[1]

            async def connect(data=b""):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                stack.callback(writer.close)
                writer.write(data)
                return reader, writer

            return connect, state

        yield make
        release.set()


async def rest(reader):
    """Read until the server closes the line."""
    with contextlib.suppress(ConnectionError):
        return await asyncio.wait_for(reader.read(), 10)
    return b""


async def answered(connect, path=b"/"):
    reader, _ = await connect(HEAD.replace(b"/ ", path + b" ", 1) + b"Content-Length: 0" + END)
    return await asyncio.wait_for(reader.readuntil(b"ok"), 10)


@pytest.mark.parametrize(
    "data",
    [
        HEAD + b"X-Flood: " + b"a" * 200_000,
        HEAD + b"X-Flood: " + b"a" * 100_000 + END,
        HEAD + b"".join(b"X%d: a\r\n" % n for n in range(20_000)),
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: a" + END,
        b"a" * 1_000_000,
    ],
)
async def test_a_head_that_is_too_large_is_refused_and_not_kept(server, data):
    connect, state = await server()
    reader, _ = await connect(data)
    reply = await rest(reader)
    assert reply == b"" or reply.split()[1] in (b"400", b"431")
    while state.connections:  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert b"200 OK" in await answered(connect)


async def test_a_head_that_does_not_end_is_given_up(server, monkeypatch):
    monkeypatch.setattr(connections, "_HEAD_SECONDS", 0.05)
    connect, state = await server()
    for beginning in (b"", b"G", HEAD, HEAD + b"X-Slow: a"):
        reader, _ = await connect(beginning)
        assert await rest(reader) == b""
    while state.connections:  # noqa: ASYNC110
        await asyncio.sleep(0)


async def test_a_body_that_goes_on_after_its_reply_is_given_up(server, monkeypatch):
    connect, _ = await server()
    monkeypatch.setattr(connections, "_HEAD_SECONDS", 0.05)
    reader, writer = await connect(HEAD + b"Content-Length: 1000" + END)
    assert b"200 OK" in await asyncio.wait_for(reader.readuntil(b"ok"), 10)
    with contextlib.suppress(ConnectionError):
        while not reader.at_eof():
            writer.write(b"a")
            await writer.drain()
            await asyncio.wait([asyncio.create_task(reader.read(1))], timeout=0.001)


async def test_a_request_at_work_has_its_own_time(server):
    connect, state = await server()
    await connect(HEAD.replace(b"/ ", b"/hang ", 1) + b"Content-Length: 0" + END)
    while not state.tasks:  # noqa: ASYNC110
        await asyncio.sleep(0)
    [connection] = state.connections
    assert connection._timer is None


async def test_who_only_holds_the_line_makes_room_for_a_request(server):
    connect, state = await server(limit=11)
    held = []
    for _ in range(60):
        held.append(await connect(HEAD + b"X-Slow: a"))
        await asyncio.sleep(0)
    for _ in range(5):
        assert b"200 OK" in await answered(connect)
    assert len(state.connections) <= 11
    assert await rest(held[0][0]) == b""


async def test_a_connection_that_is_kept_answers_again(server):
    connect, _ = await server()
    reader, writer = await connect()
    for _ in range(3):
        writer.write(HEAD + b"Content-Length: 0" + END)
        assert b"200 OK" in await asyncio.wait_for(reader.readuntil(b"ok"), 10)


async def test_a_large_body_after_its_reply_is_no_head(server):
    connect, _ = await server()
    reader, writer = await connect(HEAD + b"Content-Length: 300000" + END)
    assert b"200 OK" in await asyncio.wait_for(reader.readuntil(b"ok"), 10)
    writer.write(b"a" * 300_000 + HEAD + b"Content-Length: 0" + END)
    assert (await asyncio.wait_for(reader.readuntil(b"ok"), 10)).startswith(b"HTTP/1.1 200 OK")
