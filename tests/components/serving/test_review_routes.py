"""Receipts, feedback and conversations at the server: whose they are, how long they stay, and what becomes of them."""

import json
import os
import shutil
import sqlite3
import time
from contextlib import closing
from functools import partial

import pytest
from pydantic import ValidationError
from tests.doubles.receipts import receipt
from tests.doubles.served_app import Served
from tests.doubles.small_library import TENANT, small_library
from tests.doubles.started import Started

from shiguan.engine.library import Library
from shiguan.engine.runner import Runner
from shiguan.errors import StoreFullError
from shiguan.serving.engine import Engine, ReceiptFolder, in_use
from shiguan.serving.openai_routes import router as openai_router
from shiguan.serving.rag_routes import router as rag_router
from shiguan.serving.review_routes import Title, router
from shiguan.serving.settings import ServingSettings
from shiguan.stores.embedded.shards import close_all_shards

DAY = 24 * 60 * 60


@pytest.fixture
def folder(tmp_path):
    return ReceiptFolder(ServingSettings(data_dir=tmp_path))


def files(tmp_path):
    return sorted(path for path in (tmp_path / "receipts").rglob("*") if path.is_file())


def test_a_receipt_is_found_by_its_own_tenant_alone(folder, tmp_path):
    mine, theirs = receipt("a"), receipt("b")
    for one in (mine, theirs):
        folder.keep(one)
    assert folder.find("a", mine.id) == mine
    assert folder.find("a", theirs.id) is None
    assert folder.find("c", mine.id) is None
    assert [oct(path.stat().st_mode & 0o777) for path in files(tmp_path)] == ["0o600"] * 2


@pytest.mark.parametrize(
    "receipt_id", ["", ".", "..", "../../keys", "a" * 64, "A" * 64, "/etc/passwd", "\x00", "x" * 9999]
)
def test_an_id_is_never_a_path(folder, tmp_path, receipt_id):
    folder.keep(receipt())
    (tmp_path / "keys.json").write_text("{}")
    assert folder.find("a", receipt_id) is None


@pytest.mark.parametrize("tenant_id", ["../..", "/", "a/b", "史官", "x" * 5000, ""])
def test_a_tenant_is_never_a_path(folder, tmp_path, tenant_id):
    one = receipt(tenant_id)
    folder.keep(one)
    assert folder.find(tenant_id, one.id) == one
    (file,) = files(tmp_path)
    assert file.parent.parent == tmp_path / "receipts"


def test_a_receipt_whose_days_are_over_is_not_given_and_goes_with_the_next_one(folder, tmp_path, monkeypatch):
    old, new = receipt(question="old"), receipt(question="new")
    folder.keep(old)
    (file,) = files(tmp_path)
    os.utime(file, (time.time() - 29 * DAY,) * 2)
    assert folder.find("a", old.id) == old
    os.utime(file, (time.time() - 30 * DAY,) * 2)
    assert folder.find("a", old.id) is None
    (file.parent / ".half.part").write_text("{")
    os.utime(file.parent / ".half.part", (time.time() - 31 * DAY,) * 2)
    folder.keep(new)
    assert len(files(tmp_path)) == 3  # not looked for more than once an hour
    ReceiptFolder(ServingSettings(data_dir=tmp_path)).keep(new)
    assert [path.stem for path in files(tmp_path)] == [new.id]


def test_looking_for_old_receipts_takes_no_more_memory_where_there_are_more(folder, tmp_path):
    folder.keep(receipt())
    (file,) = files(tmp_path)
    code = (  # in a process of its own: what another thread of this one allocates would be counted, too
        "import tracemalloc\n"
        "from tests.components.serving.test_review_routes import ReceiptFolder, ServingSettings, receipt\n"
        f"folder = ReceiptFolder(ServingSettings(data_dir={str(tmp_path)!r}))\n"
        "folder.keep(receipt())\n"
        "for count in (200, 4000):\n"
        "    for number in range(count):\n"
        f"        open(f'{file.parent}/{{number:064}}.json', 'w').close()\n"
        "    tracemalloc.start()\n"
        "    folder.keep(receipt())\n"
        "    print(tracemalloc.get_traced_memory()[1])\n"
        "    tracemalloc.stop()\n"
    )
    with Started("-c", code) as keeping:
        peaks = int(keeping.line()), int(keeping.line())
    assert peaks[1] < peaks[0] + 100_000  # a list of 3,800 more paths takes a megabyte


def test_no_receipt_takes_the_last_room_on_the_disk(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: type("Usage", (), {"free": 3_000_000}))
    with pytest.raises(StoreFullError):
        folder.keep(receipt())
    assert files(tmp_path) == []


def test_a_spoiled_file_is_not_given(folder, tmp_path):
    one = receipt()
    folder.keep(one)
    (file,) = files(tmp_path)
    file.write_text(file.read_text().replace("Who?", "Why?"))
    assert folder.find("a", one.id) is None


def test_a_process_that_is_killed_while_it_writes_leaves_whole_receipts_only(tmp_path):
    code = (
        "import sys, itertools\n"
        "from tests.components.serving.test_review_routes import ReceiptFolder, ServingSettings, receipt\n"
        f"folder = ReceiptFolder(ServingSettings(data_dir={str(tmp_path)!r}))\n"
        "for count in itertools.count():\n"
        "    folder.keep(receipt(question='?' * 5000 + str(count)))\n"
        "    print(count, flush=True)\n"
    )
    with Started("-c", code) as keeping:
        said = [keeping.process.stdout.readline() for _ in range(20)]
        keeping.kill()
        said += keeping.process.stdout.readlines()
    whole = [path for path in files(tmp_path) if not path.name.startswith(".")]
    assert len(whole) >= len([line for line in said if line.endswith("\n")]) >= 20
    folder = ReceiptFolder(ServingSettings(data_dir=tmp_path))
    assert all(folder.find("a", path.stem) is not None for path in whole)


# ---- the route --------------------------------------------------------------------------------------------------------


@pytest.fixture
def served(tmp_path):
    """The settings of a library of the tenants `a` and `b`, and the route behind the real gate."""
    settings = ServingSettings(data_dir=small_library(tmp_path))
    with in_use(Engine(settings, modes=[])):
        yield settings, Served(settings, router)
    close_all_shards()


async def test_the_server_gives_a_receipt_to_its_tenant_and_says_when_it_is_stale(served):
    settings, server = served
    with Runner(data_dir=settings.data_dir, keep_receipt=ReceiptFolder(settings).keep) as runner:
        answer = await runner.ask_async("Who set up the salt monopoly?", tenant_id=TENANT)
    receipt_id = answer["metadata"]["receipt"]

    async def get(end="", *, name=receipt_id, who=TENANT, **more):
        return await server(f"/api/v1/receipts/{name}{end}", who=who, **more)

    body = (await get()).json
    assert (body["stale"], body["receipt"]["id"]) == (False, receipt_id)
    assert body["receipt"]["answer"]["answer"] == answer["answer"]
    assert {one["state"] for one in (await get("/places")).json["places"]} == {"stands"}
    [item, *_] = (await get("/export?form=csl")).json
    assert item["title"] == "salt"
    assert f"Shiguan receipt: {receipt_id}" in item["note"]
    assert (await get("/export?form=word")).status == 422
    refused = await get("/export?form=annotations")
    assert (refused.status, "cites no place in an EPUB" in refused.error["message"]) == (400, True)
    Library(data_dir=settings.data_dir).delete("salt.txt", tenant_id=TENANT)
    assert (await get()).json["stale"] is True
    assert "gone" in {one["state"] for one in (await get("/places")).json["places"]}
    assert [(await get(end, who="b")).status for end in ("/export", "/places")] == [404, 404]
    theirs, nothing = await get(who="b"), await get(name="0" * 64, who="b")
    assert nothing.status == 404
    assert {**theirs.error, "request_id": ""} == {**nothing.error, "request_id": ""}
    assert (await get(who=None)).status == 401
    assert (await get(who="", role="metrics")).status == 403
    assert (await get(name="..%2f..%2fkeys")).status == 404


async def test_a_setting_turns_keeping_off(served):
    settings, _ = served
    engine = Engine(settings.model_copy(update={"receipt_days": 0}), modes=["simple"])
    await engine.runner("simple").ask_async("Who set up the salt monopoly?", tenant_id=TENANT)
    engine.close()
    assert files(settings.data_dir) == []


async def test_a_setting_keeps_prompts_in_receipts(served, endpoint):
    endpoint.default = "The salt monopoly was set up by Diwu Qi in 758. [1]"
    settings, _ = served
    engine = Engine(settings.model_copy(update={"receipt_prompts": "on"}), modes=["simple"])
    answer = await engine.runner("simple").ask_async("Who set up the salt monopoly?", tenant_id=TENANT)
    engine.close()
    receipt = ReceiptFolder(settings).find(TENANT, answer["metadata"]["receipt"])
    assert [message["role"] for message in receipt.prompt["prompt_rendered"]["messages"]] == ["system", "user"]


# ---- feedback -----------------------------------------------------------------------------------------------------------

MINE, THEIRS = receipt("a", "Who rose?", quotes=["An Lushan rose."]), receipt("b")


@pytest.fixture
def judged(tmp_path):
    """The route behind the real gate, with a receipt of each of two tenants."""
    settings = ServingSettings(data_dir=tmp_path)
    for one in (MINE, THEIRS):
        ReceiptFolder(settings).keep(one)
    with in_use(Engine(settings, modes=[])):
        yield partial(Served(settings, router), "/api/v1/feedback")


@pytest.fixture
def file(tmp_path):
    return tmp_path / "feedback.sqlite"


async def test_a_read_key_judges_its_own_tenants_answers(judged, file):
    call = await judged({"receipt": MINE.id, "kind": "wrong_citation", "note": "another\nyear"}, who="a")
    told = {name: call.json[name] for name in ("kind", "note", "query")}
    assert (call.status, told) == (201, {"kind": "wrong_citation", "note": "another year", "query": "Who rose?"})
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("SELECT tenant, receipt FROM feedback").fetchall() == [("a", MINE.id)]


async def test_an_unknown_receipt_one_of_another_tenants_and_one_that_can_be_none_are_the_same_404(judged, file):
    names = (THEIRS.id, "0" * 64, "../../keys", "")
    replies = [await judged({"receipt": name, "kind": "right"}, who="a") for name in names]
    assert [reply.status for reply in replies] == [404] * 4
    assert len({json.dumps({**reply.error, "request_id": ""}) for reply in replies}) == 1
    assert not file.exists()


@pytest.mark.parametrize("wrong", [
    {"kind": "good"}, {"kind": None}, {"note": "x" * 2_001}, {"note": 7}, {"receipt": "0" * 65}, {"receipt": None},
    {"tenant_id": "b"}, {"kind": ["right"]},
])  # fmt: skip
async def test_fields_that_are_wrong_are_refused_by_name(judged, file, wrong):
    call = await judged({"receipt": MINE.id, "kind": "right", **wrong}, who="a")
    assert (call.status, call.error["fields"][0]["field"]) == (422, *wrong)
    assert not file.exists()


# ---- conversations ------------------------------------------------------------------------------------------------------

PLACE = "/api/v1/conversations"
OURS = {"who": TENANT, "role": "write"}
QUESTION, FOLLOW_UP = "Who proposed the two-tax reform?", "And when was it collected?"


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    return ServingSettings(data_dir=small_library(tmp_path_factory.mktemp("library")))


@pytest.fixture
def server(settings):
    """Calls the server, unless told otherwise with a key of the tenant that may write."""
    served = Served(settings, router, rag_router, openai_router)
    with closing(Engine(settings, modes=["simple"])) as engine, in_use(engine):
        yield partial(served, **OURS)


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


@pytest.mark.parametrize(("method", "path", "unknown"), [
    ("GET", PLACE, "limit=-1"), ("GET", f"{PLACE}/one/export", "form=docx"),
    ("POST", "/api/v1/rag/query-stream", "event=basic"),
    ("GET", "/v1/models?api-version=1", ""),
])  # fmt: skip
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
    found = [(turn["number"], turn["source"], turn["question"]) for turn in told["turns"]]
    assert found == [(1, "database", QUESTION), (2, "both", FOLLOW_UP)]


def test_a_title_that_nobody_sees_is_refused():
    for title in ("\u200b", " \u2060 ", "\u202e", "\u200d\u200c", "\n", ""):
        with pytest.raises(ValidationError):
            Title(title=title)
