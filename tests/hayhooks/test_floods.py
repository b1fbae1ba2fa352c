"""Floods over real sockets: heads, addresses and filters without end. The server goes on answering and forgets them."""

import contextlib
import json
import socket

import psutil
import pytest
from tests.doubles.key_file import key_file
from tests.doubles.server_process import ServerProcess

pytestmark = pytest.mark.slow
KEY = {"Authorization": "Bearer reader"}
HEAD = b"POST /api/v1/rag/query HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture
def server(tmp_path):
    with ServerProcess(tmp_path, SHIGUAN_KEYS_FILE=key_file(tmp_path, "reader", "acme")) as server:
        yield server


def send(server, stack, data):
    host, port = server.url.removeprefix("http://").split(":")
    line = stack.enter_context(socket.create_connection((host, int(port)), timeout=20))
    with contextlib.suppress(OSError):  # it may hang up in the middle
        line.sendall(data)
    return line


def header_flood(server, stack):
    for _ in range(96):
        send(server, stack, HEAD + b"X-Flood: " + b"a" * 1_000_000)
        yield


def many_headers(server, stack):
    data = HEAD + b"".join(b"X%d: a\r\n" % n for n in range(20_000)) + b"\r\n"
    for _ in range(30):
        send(server, stack, data)
        yield


def partial_heads(server, stack):
    for _ in range(700):
        send(server, stack, HEAD + b"X-Slow: " + b"a" * 10_000)
        yield


def long_addresses(server, stack):
    for _ in range(60):
        send(server, stack, b"GET /" + b"a" * 60_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n")
        yield


def large_filters(server, stack):
    filters = {"field": "meta.title", "operator": "in", "value": [f"t{n}" for n in range(180_000)]}
    body = json.dumps({"query": "Who?", "filters": filters}).encode()
    head = f"Authorization: Bearer reader\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    for _ in range(20):
        line = send(server, stack, HEAD + head.encode() + body)
        assert line.recv(100).split()[1] == b"400"
        yield


def test_the_server_answers_throughout_and_its_memory_comes_back(server):
    process = psutil.Process(server.process.pid)
    ask = {"json": {"query": "Who?"}, "headers": KEY}
    for _ in range(5):
        assert server.post("/api/v1/rag/query", **ask).status_code == 200
    before = process.memory_info().rss
    for flood in (header_flood, many_headers, partial_heads, long_addresses, large_filters):
        with contextlib.ExitStack() as stack:
            for number, _ in enumerate(flood(server, stack)):
                if number % 10 == 0:
                    assert server.get("/health").status_code == 200, flood
            assert server.post("/api/v1/rag/query", **ask).status_code == 200, flood
    for _ in range(5):
        assert server.get("/health").status_code == 200
    assert process.memory_info().rss <= before * 1.1
