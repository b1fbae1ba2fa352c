"""Conversations at the server: kept under the key's tenant, and told to nobody else."""

from functools import partial

import pytest
from tests.doubles.served_app import Served
from tests.doubles.small_library import TENANT, small_library

from shiguan.serving.engine import Engine, use_engine
from shiguan.serving.openai_routes import router as openai_router
from shiguan.serving.rag_routes import router as rag_router
from shiguan.serving.review_routes import router as conversation_router
from shiguan.serving.settings import ServingSettings

PLACE = "/api/v1/conversations"
OURS = {"who": TENANT, "role": "write"}
QUESTION, FOLLOW_UP = "Who proposed the two-tax reform?", "And when was it collected?"


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    return ServingSettings(data_dir=small_library(tmp_path_factory.mktemp("library")))


@pytest.fixture
def server(settings):
    """Calls the server, unless told otherwise with a key of the tenant that may write."""
    served = Served(settings, conversation_router, rag_router, openai_router)
    engine = Engine(settings, modes=["simple"])
    use_engine(engine)
    yield partial(served, **OURS)
    use_engine(None)
    engine.close()


async def ask(server, query, name):
    call = await server("/api/v1/rag/query", {"query": query, "conversation_id": name})
    assert call.status == 200, call.body
    return call.json


async def test_a_conversation_is_listed_renamed_exported_and_deleted(server):
    await ask(server, QUESTION, "one")
    assert (await server(f"{PLACE}/one", {"title": "Taxes"}, method="PATCH")).json == {"id": "one", "title": "Taxes"}
    listed = (await server(PLACE)).json["conversations"]
    assert ("one", "Taxes", 1) in [(one["id"], one["title"], one["turns"]) for one in listed]
    hostile = {"title": "Salt\u202e and\x1b[31m iron\x9b2J"}
    assert (await server(f"{PLACE}/one", hostile, method="PATCH")).json == {"id": "one", "title": "Salt and iron"}
    await server(f"{PLACE}/one", {"title": "Taxes"}, method="PATCH")
    assert (await server(f"{PLACE}/one/export")).body.startswith(f"# Taxes\n\n## 1. {QUESTION}\n".encode())
    assert (await server(f"{PLACE}/one", method="DELETE")).json == {"id": "one", "deleted": True}
    assert [(await server(f"{PLACE}/one", method=method)).status for method in ("GET", "DELETE")] == [404, 404]


@pytest.mark.parametrize(
    ("method", "path", "unknown"),
    [
        ("GET", PLACE, "limit=-1"),
        ("GET", f"{PLACE}/one/export", "form=docx"),
        ("POST", "/api/v1/rag/query-stream", "event=basic"),
        ("GET", "/v1/models?api-version=1", ""),
    ],
)
async def test_a_parameter_that_a_route_does_not_take_is_refused_by_its_name(server, method, path, unknown):
    call = await server(f"{path}?{unknown}", {"query": QUESTION} if method == "POST" else None)
    assert call.status == (422 if unknown else 200)
    if unknown:
        assert [one["field"] for one in call.error["fields"]] == [unknown.partition("=")[0]]


@pytest.mark.parametrize(("method", "end"), [("GET", ""), ("GET", "/export"), ("PATCH", ""), ("DELETE", "")])
async def test_what_is_anothers_what_is_none_and_what_can_be_none_look_the_same(server, method, end):
    await ask(server, QUESTION, "ours")
    told = set()
    for name in ("ours", "never-used", "-no-id", "a" * 200):
        body = {"title": "Mine"} if method == "PATCH" else None
        call = await server(f"{PLACE}/{name}{end}", body, method=method, who="b")
        told.add((call.status, call.error["message"]))
    assert told == {(404, "There is no such conversation.")}
    assert (await server(PLACE, who="b")).json == {"conversations": []}
    assert (await server(f"{PLACE}/ours")).status == 200


@pytest.mark.parametrize(("method", "body"), [("PATCH", {"title": "Mine"}), ("DELETE", None)])
async def test_a_key_that_reads_changes_nothing(server, method, body):
    await ask(server, QUESTION, "kept")
    assert (await server(f"{PLACE}/kept", body, method=method, role="read")).status == 403


@pytest.mark.parametrize("name", ["chat", "für", "对话"])
async def test_the_openai_route_takes_the_id_in_the_body_or_a_header(server, name):
    for text, more, headers in (
        (QUESTION, {"conversation_id": name}, {}),
        (FOLLOW_UP, {}, {"x-conversation-id": name}),
        (QUESTION, {}, {"x-conversation-id": ""}),
    ):
        body = {"model": "shiguan-simple", "messages": [{"role": "user", "content": text}], **more}
        call = await server("/v1/chat/completions", body, **headers)
        assert call.status == 200, call.body
        assert call.json["shiguan"]["conversation_id"] == (headers.get("x-conversation-id", name) or None)
    told = (await server(f"{PLACE}/{name}", role="read")).json
    assert [(turn["number"], turn["source"], turn["question"]) for turn in told["turns"]] == [
        (1, "database", QUESTION),
        (2, "both", FOLLOW_UP),
    ]
