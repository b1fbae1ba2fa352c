"""The official MCP client against the real thing: `shiguan mcp` over stdio, and /mcp of a server process."""

import os
import sys
from contextlib import asynccontextmanager

import httpx
import pytest
from tests.doubles.server_process import ROOT, ServerProcess
from tests.doubles.small_library import TEXTS

pytest.importorskip("mcp")
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from shiguan.serving.keys import KeyFile

pytestmark = pytest.mark.slow

TOOLS = {"ask", "search", "verify", "read_passage", "list_sources"}
QUESTION = "Who proposed the two-tax reform?"


def data(result):
    assert not result.is_error, result.content
    return result.structured_content


def words(result):
    assert result.is_error
    return result.content[0].text


async def test_a_program_asks_searches_reads_and_lists_over_stdio(library):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "components"), "OMP_NUM_THREADS": "1"}
    arguments = ["-m", "shiguan.cli", "mcp", "--data-dir", str(library), "--tenant", "a"]
    command = StdioServerParameters(command=sys.executable, args=arguments, env=environment)
    async with Client(command) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
        answer = data(await client.call_tool("ask", {"query": QUESTION}))
        assert (answer["status"], answer["citations"][0]["source"]) == ("quoted", "tax.txt")
        found = data(await client.call_tool("search", {"query": QUESTION, "top_k": 2}))["passages"]
        assert (len(found), found[0]["source"], found[0]["text"]) == (2, "tax.txt", TEXTS["tax.txt"])
        read = data(await client.call_tool("read_passage", {"id": answer["citations"][0]["parent_id"]}))
        assert (read["passage"]["text"], read["before"], read["after"]) == (TEXTS["tax.txt"], [], [])
        checked = data(await client.call_tool("verify", {"text": "“Yang Yan proposed the two-tax reform in 781”"}))
        assert checked["items"][0]["difference"] == [{"quoted": "781", "stands": "780"}]
        sources = data(await client.call_tool("list_sources", {}))["sources"]
        assert [source["source"] for source in sources] == sorted(TEXTS)


@pytest.fixture(scope="module")
def served(library):
    file = KeyFile(library / "keys.json")
    roles = {"a": "read", "b": "read", "": "metrics"}
    keys = {tenant: file.add(tenant, role)[0] for tenant, role in roles.items()}
    with ServerProcess(library, SHIGUAN_KEYS_FILE=str(file.path)) as server:
        yield server, keys


@asynccontextmanager
async def over_http(served, tenant):
    server, keys = served
    headers = {"Authorization": f"Bearer {keys[tenant]}"}
    # A proxy of the machine is not for the loopback.
    async with (
        httpx.AsyncClient(headers=headers, trust_env=False, timeout=60) as caller,
        Client(streamable_http_client(f"{server.url}/mcp", http_client=caller)) as client,
    ):
        yield client


async def test_the_key_says_whose_library_a_call_over_http_sees(served):
    async with over_http(served, "a") as mine, over_http(served, "b") as theirs:
        assert {tool.name for tool in (await mine.list_tools()).tools} == TOOLS
        answer = data(await mine.call_tool("ask", {"query": QUESTION}))
        other = data(await theirs.call_tool("ask", {"query": QUESTION}))
        assert answer["citations"][0]["source"] == "tax.txt"
        assert {citation["source"] for citation in other["citations"]} == {"secret.txt"}
        passage = {"id": answer["citations"][0]["parent_id"]}
        assert data(await mine.call_tool("read_passage", passage))["passage"]["text"] == TEXTS["tax.txt"]
        assert "no passage" in words(await theirs.call_tool("read_passage", passage))
        found = data(await theirs.call_tool("search", {"query": QUESTION, "top_k": 50}))["passages"]
        assert {one["source"] for one in found} == {"secret.txt"}
        checked = data(await theirs.call_tool("verify", {"text": "“Yang Yan proposed the two-tax reform in 780”"}))
        assert checked["items"][0]["verdict"] != "found"
        sources = data(await theirs.call_tool("list_sources", {}))["sources"]
        assert [source["source"] for source in sources] == ["secret.txt"]
        assert "no mode `dance`" in words(await mine.call_tool("ask", {"query": QUESTION, "mode": "dance"}))


def headers(key):
    accepted = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    return {"Authorization": f"Bearer {key}", **accepted}


def test_a_call_without_a_key_that_may_read_is_refused(served):
    server, keys = served
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for key, status in (("sg_wrong", 401), (keys[""], 403)):  # a key that reads metrics alone
        reply = server.post("/mcp", json=body, headers=headers(key))
        assert (reply.status_code, "error" in reply.json()) == (status, True)


def test_what_is_no_message_of_the_protocol_is_refused_without_a_stack(served):
    server, keys = served
    for content in (b"", b"[]", b"{", b'{"jsonrpc": "2.0"}', b"\xff\xfe", b"[" * 5000):
        reply = server.post("/mcp", content=content, headers=headers(keys["a"]))
        assert 400 <= reply.status_code < 500, content[:20]
        assert "Traceback" not in reply.text
    assert server.get("/mcp", headers=headers(keys["a"])).status_code == 405
    assert server.get("/ready").status_code == 200
