"""The tools of MCP in one process, with the official client: whose library, which words, which errors."""

import pytest
from haystack import Document

from shiguan.cli import main
from shiguan.errors import StoreError

pytest.importorskip("mcp")
from mcp import Client

from shiguan.serving.mcp_tools import tool_server

PARENT = Document(id="p1", content="Li Su took Caizhou.", meta={"source": "a.txt", "position": 0}, score=0.5)


class Shelf:
    """A library that notes for whom it was read, or fails."""

    def __init__(self, failure=None):
        self.failure = failure
        self.asked = []

    def sources(self, *, tenant_id):
        self.asked.append(tenant_id)
        if self.failure:
            raise self.failure
        return [{"source": "a.txt"}]

    def passage(self, id, *, tenant_id, neighbours):  # noqa: A002
        self.asked.append((id, tenant_id, neighbours))
        return {"passage": {"id": id}, "before": [], "after": []} if id == "p1" else None


class Modes:
    """An engine that repeats what it is asked."""

    def __init__(self, modes, library):
        self.modes, self.library = modes, library

    async def ask(self, request, tenant_id):
        given = f"{request.query} {request.mode} {request.conversation_id} {tenant_id}"
        metadata = {"confidence": 0.5, "warnings": [], "receipt": "r", "timings_ms": {}}
        return {"answer": given, "status": "answered", "citations": [], "documents": [], "metadata": metadata}

    async def search(self, query, tenant_id, *, top_k):
        return [PARENT][:top_k], [f"for {tenant_id}"]

    async def verify(self, text, tenant_id):
        return {"items": [{"text": text, "verdict": "found"}], "counts": {}, "warnings": [f"for {tenant_id}"]}


def tools(shelf=None, modes=("advanced", "simple")):
    return tool_server(Modes(modes, shelf or Shelf()), tenant=lambda: "t")


async def call(server, name, **arguments):
    async with Client(server) as client:
        return await client.call_tool(name, arguments)


async def test_every_tool_reads_the_tenant_of_the_call_and_takes_none_from_its_arguments():
    shelf = Shelf()
    server = tools(shelf)
    assert (await call(server, "list_sources")).structured_content == {"sources": [{"source": "a.txt"}]}
    await call(server, "list_sources", tenant_id="other")
    await call(server, "read_passage", id="p1", tenant_id="other")
    assert shelf.asked == ["t", "t", ("p1", "t", 1)]
    longest = "c" * 128
    answer = (await call(server, "ask", query="Who?", tenant_id="other", conversation_id=longest)).structured_content
    kept = {"status": "answered", "citations": [], "confidence": 0.5, "warnings": [], "receipt": "r"}
    assert answer == {"answer": f"Who? simple {longest} t", **kept}
    found = (await call(server, "search", query="Who?")).structured_content
    assert (found["passages"][0]["text"], found["passages"][0]["score"]) == ("Li Su took Caizhou.", 0.5)
    assert found["warnings"] == ["for t"]
    checked = (await call(server, "verify", text="“Li Su”", tenant_id="other")).structured_content
    assert (checked["items"][0]["text"], checked["warnings"]) == ("“Li Su”", ["for t"])


async def test_an_error_of_ours_is_told_and_any_other_only_by_its_kind():
    told = await call(tools(Shelf(StoreError("The store is away. Start it."))), "list_sources")
    assert (told.is_error, "The store is away. Start it." in told.content[0].text) == (True, True)
    hidden = await call(tools(Shelf(KeyError("secret words"))), "list_sources")
    text = hidden.content[0].text
    assert (hidden.is_error, "KeyError" in text, "secret words" in text) == (True, True, False)


@pytest.mark.parametrize(("name", "arguments", "wrong"), [
    ("search", {"query": "q", "top_k": 0}, "top_k"),
    ("read_passage", {"id": "p1", "neighbours": 11}, "neighbours"),
    ("read_passage", {"id": ""}, "id"),
    ("read_passage", {"id": "p2"}, "There is no passage `p2`"),
    ("ask", {"query": "a" * 2001}, "query"), ("ask", {}, "query"),
    ("ask", {"query": "q", "conversation_id": "?"}, "Fields are missing or wrong: `conversation_id`"),
    ("ask", {"query": "q", "conversation_id": "c" * 129}, "Expected 1 to 128 letters"),
    ("verify", {"text": ""}, "text"), ("verify", {"text": "a" * 100_001}, "text"),
])  # fmt: skip
async def test_wrong_arguments_are_named(name, arguments, wrong):
    result = await call(tools(), name, **arguments)
    assert result.is_error
    assert wrong in result.content[0].text


async def test_without_the_mode_simple_the_first_one_answers():
    answer = (await call(tools(modes=("own",)), "ask", query="Who?")).structured_content
    assert answer["answer"] == "Who? own None t"


def test_what_cannot_start_says_why_on_standard_error(capsys):
    assert main(["mcp", "--deployment", "nowhere"]) == 2
    told = capsys.readouterr()
    assert (told.out, "There is no deployment `nowhere`" in told.err) == ("", True)
