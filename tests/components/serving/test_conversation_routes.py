"""Conversations at the server: kept under the key's tenant, and told to nobody else."""

import json

import pytest
from tests.doubles.asgi_caller import AsgiCall
from tests.doubles.served_app import served_app
from tests.doubles.small_library import TENANT, small_library

from shiguan.serving.engine import Engine, use_engine
from shiguan.serving.keys import KeyFile
from shiguan.serving.openai_routes import router as openai_router
from shiguan.serving.rag_routes import router as rag_router
from shiguan.serving.review_routes import router as conversation_router
from shiguan.serving.settings import ServingSettings

PLACE = "/api/v1/conversations"
QUESTION, FOLLOW_UP = "Who proposed the two-tax reform?", "And when was it collected?"


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    return ServingSettings(data_dir=small_library(tmp_path_factory.mktemp("library")))


@pytest.fixture
def server(settings):
    """Calls the server with the key of a tenant and role; gives the status and the body."""
    app = served_app(settings, conversation_router, rag_router, openai_router)
    file = KeyFile(settings.keys_path)
    keys = {who: file.add(*who, "")[0] for who in ((TENANT, "write"), (TENANT, "read"), ("b", "write"))}
    engine = Engine(settings, modes=["simple"])
    use_engine(engine)

    async def call(method, path, body=None, *, who=(TENANT, "write"), **headers):
        given = {"authorization": f"Bearer {keys[who]}", "content-type": "application/json"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        data = b"" if body is None else json.dumps(body).encode()
        done = await AsgiCall(app, path, method=method, body=data, headers=given).done(30)
        return done.status, done.body.decode()

    yield call
    use_engine(None)
    engine.close()


async def ask(server, query, name, **more):
    status, body = await server("POST", "/api/v1/rag/query", {"query": query, "conversation_id": name}, **more)
    assert status == 200, body
    return json.loads(body)


async def test_two_requests_with_one_id(server):
    await ask(server, QUESTION, "two")
    answer = await ask(server, FOLLOW_UP, "two")
    assert (answer["conversation_id"], answer["documents"][0]["source"]) == ("two", "tax.txt")
    status, body = await server("GET", f"{PLACE}/two", who=(TENANT, "read"))
    told = json.loads(body)
    assert (status, told["title"]) == (200, QUESTION)
    assert [(turn["number"], turn["source"], turn["question"]) for turn in told["turns"]] == [
        (1, "database", QUESTION),
        (2, "both", FOLLOW_UP),
    ]
    assert "birth" not in told


async def test_a_conversation_is_listed_renamed_exported_and_deleted(server):
    await ask(server, QUESTION, "one")
    assert await server("PATCH", f"{PLACE}/one", {"title": "Taxes"}) == (200, '{"id":"one","title":"Taxes"}')
    _, body = await server("GET", PLACE)
    assert ("one", "Taxes", 1) in [(o["id"], o["title"], o["turns"]) for o in json.loads(body)["conversations"]]
    _, body = await server("GET", f"{PLACE}/one/export")
    assert body.startswith(f"# Taxes\n\n## 1. {QUESTION}\n")
    assert await server("DELETE", f"{PLACE}/one") == (200, '{"id":"one","deleted":true}')
    assert (await server("GET", f"{PLACE}/one"))[0] == 404
    assert (await server("DELETE", f"{PLACE}/one"))[0] == 404


@pytest.mark.parametrize(("method", "end"), [("GET", ""), ("GET", "/export"), ("PATCH", ""), ("DELETE", "")])
async def test_what_is_anothers_what_is_none_and_what_can_be_none_look_the_same(server, method, end):
    await ask(server, QUESTION, "ours")
    bodies = set()
    for name in ("ours", "never-used", "-no-id", "a" * 200):
        body = {"title": "Mine"} if method == "PATCH" else None
        status, told = await server(method, f"{PLACE}/{name}{end}", body, who=("b", "write"))
        error = json.loads(told)["error"]
        bodies.add((status, error["message"]))
    assert bodies == {(404, "There is no such conversation.")}
    assert json.loads((await server("GET", PLACE, who=("b", "write")))[1]) == {"conversations": []}
    assert (await server("GET", f"{PLACE}/ours"))[0] == 200


@pytest.mark.parametrize(("method", "body"), [("PATCH", {"title": "Mine"}), ("DELETE", None)])
async def test_a_key_that_reads_changes_nothing(server, method, body):
    await ask(server, QUESTION, "kept")
    assert (await server(method, f"{PLACE}/kept", body, who=(TENANT, "read")))[0] == 403


async def test_the_openai_route_takes_the_id_in_the_body_or_a_header(server):
    for text, more, headers in (
        (QUESTION, {"conversation_id": "chat"}, {}),
        (FOLLOW_UP, {}, {"x_conversation_id": "chat"}),
    ):
        body = {"model": "shiguan-simple", "messages": [{"role": "user", "content": text}], **more}
        status, told = await server("POST", "/v1/chat/completions", body, **headers)
        assert (status, json.loads(told)["shiguan"]["conversation_id"]) == (200, "chat")
    _, told = await server("GET", f"{PLACE}/chat")
    assert [turn["question"] for turn in json.loads(told)["turns"]] == [QUESTION, FOLLOW_UP]
