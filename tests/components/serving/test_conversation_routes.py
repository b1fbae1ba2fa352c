"""Conversations at the server: kept under the key's tenant, and told to nobody else."""

import json
import random
import re
from contextlib import suppress
from urllib.parse import quote

import pytest
from tests.doubles.asgi_caller import AsgiCall
from tests.doubles.served_app import served_app
from tests.doubles.small_library import TENANT, small_library

from shiguan.conversations import Turn
from shiguan.engine.loading import load_pipeline
from shiguan.errors import RefusedError
from shiguan.serving.engine import Engine, current_engine, use_engine
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


WORDS = {TENANT: "amber", "b": "birch"}
# What only one of the two tenants has said or has in its library.
OWN = {TENANT: r"amber\d|Yang Yan|Diwu Qi|潼关", "b": r"birch\d|Li Mi"}
SHARED, INVALID = ("both-1", "both-2", "用户"), ("..", "a b", "x" * 129, "-x")
ASKED = (
    "What have we talked about so far?",
    "And where does it lie?",
    "What of the amber, and what of the birch?",
    "Who proposed the two-tax reform?",
    "What did the other tenant say before?",
)


def found_of(tenant, told):
    return len(re.findall(OWN[tenant], told))


@pytest.mark.slow
async def test_random_requests_of_two_tenants_see_nothing_of_each_other(server, settings):  # noqa: C901
    """Four thousand calls of every door of the engine, with ids of one's own, of the other's, of both and of nobody's."""
    chance = random.Random(1416)
    store = current_engine().conversations.store
    reader = load_pipeline("embedded", "simple", data_dir=settings.folder).get_component("conversation")
    filters = {one: {"operator": "AND", "conditions": [meta("tenant_id", one)]} for one in WORDS}
    passages = {one: [doc.id for doc in reader.document_store.filter_documents(filters[one])] for one in WORDS}
    ids = {one: [*SHARED, *(f"{word}-{at}" for at in range(4))] for one, word in WORDS.items()}
    seen = {"own": 0, "leaked": 0, "passages": 0, "fragments": 0}

    def say(tenant, name):
        mark = f"{WORDS[tenant]}{chance.randrange(10_000)}"
        turn = Turn(f"What of the {mark}?", f"The {mark} lies in a vault.", chance.choice(["database", "both"]))
        store.append(tenant, name, turn)

    def told(tenant, text):
        seen["own"] += found_of(tenant, text)
        seen["leaked"] += found_of("b" if tenant == TENANT else TENANT, text)

    for tenant, names in ids.items():
        for name in names * 4:
            say(tenant, name)
        for name in names:
            reader.summary_tree.add_missing(store, tenant, name)
    everybodys = [*ids[TENANT], *ids["b"], *INVALID, "nobodys"]
    for _ in range(4_000):
        tenant, name = chance.choice(list(WORDS)), chance.choice(everybodys)
        other, who, place = ("b" if tenant == TENANT else TENANT), (tenant, "write"), f"{PLACE}/{quote(name, safe='')}"
        match chance.choices(range(8), weights=[4, 6, 2, 1, 4, 12, 6, 2])[0]:
            case 0:
                told(tenant, (await server("GET", PLACE, who=who))[1])
            case 1:
                form = chance.choice(["", "/export"])
                told(tenant, (await server("GET", f"{place}{form}", who=who))[1])
            case 2:
                title = f"{WORDS[tenant]}{chance.randrange(10_000)}"
                told(tenant, (await server("PATCH", place, {"title": title}, who=who))[1])
            case 3:
                told(tenant, (await server("DELETE", place, who=who))[1])
            case 4:
                say(tenant, chance.choice(ids[tenant]))
            case 5:
                conditions = [*filters[tenant]["conditions"], *chance.choice([[], filters[other]["conditions"]])]
                own = chance.choice([filters[tenant], {"operator": "AND", "conditions": conditions}])
                with suppress(RefusedError):
                    read = reader.run(chance.choice(ASKED), own, conversation_id=name)
                    ended = read.get("outcome")
                    recalled = [*(ended.texts if ended else ()), read.get("memory", "")]
                    seen["fragments"] += any(recalled)
                    told(tenant, repr([recalled, read.get("summary"), read.get("history"), read.get("messages")]))
            case 6:
                passage, own = chance.choice(passages[chance.choice([tenant, other])]), f"{WORDS[tenant]}-read"
                thread = {"sent": True, "language": "en", "read": [{"number": 1, "id": passage}]}
                store.append(tenant, own, Turn("Who?", "He.", meta={"status": "answered", "thread": thread}))
                read = reader.run(QUESTION, filters[tenant], conversation_id=own)
                store.delete(tenant, own)
                shown = [one for one in read["shown"] if one.content]
                assert bool(shown) == (passage in passages[tenant])
                seen["passages"] += len(shown)
                told(tenant, repr([shown, [message.text for message in read["messages"]]]))
            case _ if chance.random() < 0.5:
                body = {"query": chance.choice(ASKED), "conversation_id": name}
                status, answer = await server("POST", "/api/v1/rag/query", body, who=who)
                assert status == (422 if name in INVALID else 200), answer
                told(tenant, answer)
            case _:
                read = reader.run(QUESTION, filters[tenant], conversation_id=chance.choice(everybodys[:-5]))
                told(tenant, repr([read["history"], read["messages"], read["summary"]]))
    assert seen["leaked"] == 0
    assert seen["own"] > 5_000
    assert min(seen["passages"], seen["fragments"]) > 200


def meta(field, value):
    return {"field": f"meta.{field}", "operator": "==", "value": value}
