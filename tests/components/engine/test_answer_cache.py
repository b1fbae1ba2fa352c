"""Whole answers that are given again, with a model over real HTTP."""

import json
import threading
from pathlib import Path

import pytest
from tests.doubles.small_library import ingest_small_library
from tests.doubles.work import calls_with_threads

from shiguan.engine.library import Library
from shiguan.engine.receipts import Receipt
from shiguan.engine.runner import Runner
from shiguan.llm import reply_cache
from shiguan.llm.reply_cache import TenantCache
from shiguan.resources import resource_folder

QUESTION = "Who proposed the two-tax reform?"
GOOD = "Yang Yan proposed the two-tax reform in 780. [1]"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return ingest_small_library(tmp_path_factory.mktemp("library"))


@pytest.fixture
def llm(stand_in_llm, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", stand_in_llm.url)
    stand_in_llm.default = GOOD
    return stand_in_llm


@pytest.fixture
def file(tmp_path):
    """A mode that gives answers again for ten minutes."""
    path = tmp_path / "own.yml"
    shipped = (resource_folder("pipelines") / "embedded" / "simple.yml").read_text(encoding="utf-8")
    path.write_text(f"{shipped}\ncache: {{answers: 600}}\n", encoding="utf-8")
    return path


@pytest.fixture
def runner(llm, library, file):
    with Runner("embedded", file, data_dir=library) as made:
        yield made


def told(answer):
    return {name: value for name, value in answer.items() if name != "metadata"}


def test_the_same_question_is_answered_again_without_a_call(runner, llm):
    kept: list[Receipt] = []
    runner._keep_receipt = kept.append
    first, again = (runner.ask(QUESTION, tenant_id="a") for _ in range(2))
    assert llm.calls == 1
    assert told(again) == told(first)
    names = ("receipt", "llm_calls", "calls", "usage", "cache")
    assert {name: again["metadata"][name] for name in names} == {
        "receipt": first["metadata"]["receipt"], "llm_calls": 0, "calls": [], "usage": {}, "cache": {"answers": 1},
    }  # fmt: skip
    assert first["metadata"]["llm_calls"] == 1
    assert [receipt.id for receipt in kept] == [first["metadata"]["receipt"]] * 2
    json.dumps(again)


async def test_answers_are_read_and_written_beside_the_event_loop(runner, monkeypatch):
    seen = calls_with_threads(monkeypatch, TenantCache, "get", "keep")
    for _ in range(2):
        answer = await runner.ask_async("Who read of the two-tax reform?", tenant_id="a")
    assert answer["metadata"]["cache"] == {"answers": 1}
    assert [name for name, _ in seen] == ["get", "keep", "get"]
    assert threading.get_ident() not in {thread for _, thread in seen}


async def test_a_stream_tells_an_answer_that_was_kept(runner, llm):
    await runner.ask_async(QUESTION, tenant_id="a")
    events = [event async for event in runner.stream(QUESTION, tenant_id="a")]
    assert "".join(event.data["text"] for event in events if event.name == "token") == events[-1].data["answer"]
    assert [event.is_terminal for event in events].count(True) == 1
    assert llm.calls == 1


def test_another_tenant_question_option_or_file_is_answered_anew(runner, llm, library, file):
    runner.ask(QUESTION, tenant_id="a")
    assert runner.ask(QUESTION, tenant_id="b")["metadata"]["cache"].get("answers") is None
    runner.ask("Who collected the two-tax reform?", tenant_id="a")
    runner.ask(QUESTION, tenant_id="a", temperature=0.9)
    assert runner.ask(QUESTION, tenant_id="a", explain=True)["metadata"]["explain"]
    runner.ask(QUESTION, tenant_id="a", budget={"calls": 2})
    assert llm.calls == 6
    file.write_text(file.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    with Runner("embedded", file, data_dir=library) as changed:
        changed.ask(QUESTION, tenant_id="a")
    assert llm.calls == 7


def test_another_model_is_asked(runner, llm, monkeypatch):
    runner.ask(QUESTION, tenant_id="a")
    monkeypatch.setenv("OPENAI_MODEL", "another")
    assert runner.ask(QUESTION, tenant_id="a")["metadata"]["cache"].get("answers") is None


def test_a_changed_library_is_asked_anew(runner, llm, library, tmp_path):
    runner.ask(QUESTION, tenant_id="a")
    book = tmp_path / "more.txt"
    book.write_text("Liu Yan kept the salt monopoly until 780.", encoding="utf-8")
    list(Library(data_dir=library).ingest([book], tenant_id="a"))
    assert runner.ask(QUESTION, tenant_id="a")["metadata"]["llm_calls"] == 1
    assert Library(data_dir=library).delete("more.txt", tenant_id="a") == 1
    assert runner.ask(QUESTION, tenant_id="a")["metadata"]["llm_calls"] == 1  # what was deleted is forgotten whole
    assert llm.calls == 3


def test_an_answer_ages(runner, llm, monkeypatch):
    runner.ask(QUESTION, tenant_id="a")
    monkeypatch.setattr(reply_cache.time, "time", lambda: 10**10)
    runner.ask(QUESTION, tenant_id="a")
    assert llm.calls == 2


def test_an_answer_that_was_cut_off_or_changed_on_disk_is_not_given_again(runner, llm, library):
    for _ in range(2):
        runner.ask(QUESTION, tenant_id="a", max_tokens=4)
    assert llm.calls == 2
    runner.ask(QUESTION, tenant_id="a")
    changed = 0
    for path in (Path(library) / "cache").rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        if b"Yang Yan" in content:
            path.write_bytes(content.replace(b"Yang Yan", b"Li Linfu"))
            changed += 1
    assert changed
    assert "Li Linfu" not in runner.ask(QUESTION, tenant_id="a")["answer"]
    assert llm.calls == 4


def test_shipped_modes_keep_no_answers(llm, library):
    with Runner("embedded", "simple", data_dir=library) as shipped:
        for _ in range(2):
            shipped.ask(QUESTION, tenant_id="a")
    assert llm.calls == 2
