import errno
import json
import logging
import os
import pickle
import shutil
import stat
import threading

import pytest
from haystack.dataclasses import ChatMessage
from tests.doubles.fake_generators import FailingGenerator
from tests.doubles.work import calls_with_threads

from shiguan.llm import reply_cache
from shiguan.llm.calls import ask_llm, ask_llm_async
from shiguan.llm.configured_chat_generator import ConfiguredChatGenerator
from shiguan.llm.model_settings import CachePlan
from shiguan.llm.reply_cache import TenantCache
from shiguan.llm.run import Run

PROMPT = "Reword: who took Caizhou?"


@pytest.fixture
def llm(stand_in_llm, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", stand_in_llm.url)
    stand_in_llm.default = "Which general took Caizhou?"
    return stand_in_llm


class Question:
    """One question of a tenant: its cache, and what its calls cost."""

    def __init__(self, folder, tenant="a", plan=None):
        self.cache = TenantCache(folder, tenant, plan or CachePlan())

    def ask(self, prompt=PROMPT, *, role="helper", temperature=None, usable=True, **more):
        """Ask as a stage does, which keeps the reply if it could read it."""
        kwargs = None if temperature is None else {"temperature": temperature}
        generator = ConfiguredChatGenerator(role=role, max_retries=0, **more)
        with Run(cache=self.cache).entered() as self.run:
            reply = ask_llm(generator, [ChatMessage.from_user(prompt)], generation_kwargs=kwargs)
            if usable and not reply.failure:
                reply.keep()
        return list(reply.texts)


def test_the_second_question_is_answered_without_a_call(llm, tmp_path):
    first, second = Question(tmp_path), Question(tmp_path)
    assert first.ask() == second.ask() == ["Which general took Caizhou?"]
    assert (llm.calls, first.run.answered, first.run.requests) == (1, 1, 1)
    assert (second.run.answered, second.run.requests, second.run.usage) == (0, 0, {})
    (made,) = second.run.calls
    told = {name: made[name] for name in ("role", "name", "model", "attempts", "cached", "tokens", "cost")}
    assert told == {
        "role": "helper", "name": "default", "model": "gpt-4.1-mini", "attempts": 0, "cached": True, "tokens": {},
        "cost": 0.0,
    }  # fmt: skip
    assert (first.cache.hits, second.cache.hits) == ({}, {"calls": 1})


async def test_a_call_that_is_awaited_is_kept_alike_and_read_beside_the_event_loop(llm, tmp_path, monkeypatch):
    seen = calls_with_threads(monkeypatch, TenantCache, "get", "keep")
    for _ in range(2):
        cache = TenantCache(tmp_path, "a")
        with Run(cache=cache).entered():
            reply = await ask_llm_async(ConfiguredChatGenerator(role="helper"), [ChatMessage.from_user(PROMPT)])
            reply.keep()
    assert llm.calls == 1
    assert cache.hits == {"calls": 1}
    assert [name for name, _ in seen] == ["get", "keep", "get"]
    assert threading.get_ident() not in {thread for name, thread in seen if name == "get"}


def test_a_reply_that_the_stage_could_not_read_is_asked_for_again(llm, tmp_path):
    Question(tmp_path).ask(usable=False)
    Question(tmp_path).ask()
    Question(tmp_path).ask()
    assert llm.calls == 2


def test_reading_makes_no_folder(tmp_path):
    cache = TenantCache(tmp_path, "a")
    assert cache.get("absent") is None
    cache.clear()
    assert list(tmp_path.iterdir()) == []
    assert cache.warnings == []


def test_what_is_asked_otherwise_is_asked_again(llm, tmp_path, monkeypatch):
    Question(tmp_path).ask()
    Question(tmp_path, tenant="b").ask()
    Question(tmp_path).ask("Reword: who held Caizhou?")
    Question(tmp_path).ask(temperature=0.7)
    Question(tmp_path).ask(model="another")
    Question(tmp_path, plan=CachePlan(calls=0)).ask()
    assert llm.calls == 6
    monkeypatch.setattr(reply_cache.time, "time", lambda: 10**10)  # years later
    Question(tmp_path).ask()
    assert llm.calls == 7


def test_only_helpers_of_a_known_tenant_are_kept(llm, tmp_path):
    for _ in range(2):
        Question(tmp_path).ask(role="answer")
        Question(tmp_path).ask(role="judge")
    assert llm.calls == 4
    generator = ConfiguredChatGenerator(role="helper")
    for _ in range(2):
        ask_llm(generator, [ChatMessage.from_user(PROMPT)]).keep()  # nobody knows whose question it is
    assert llm.calls == 6
    for _ in range(2):
        with Run(cache=TenantCache(tmp_path, "a")).entered():  # a generator that does not say what it is
            ask_llm(FailingGenerator(), [ChatMessage.from_user(PROMPT)]).keep()
    assert not (tmp_path / "cache").exists()


def test_calls_that_failed_or_were_cut_off_are_not_kept(llm, tmp_path):
    llm.next(status=500)
    assert Question(tmp_path).ask() == []
    for _ in range(2):  # the second token is one too many
        (cut,) = Question(tmp_path).ask(generation_kwargs={"max_tokens": 1})
        assert "Caizhou" not in cut
    assert llm.calls == 3


def test_a_model_that_stood_in_is_not_kept_for_the_one_it_stood_in_for(llm, tmp_path):
    section = {
        "models": [{"name": "first", "model": "big"}, {"name": "second", "model": "small"}],
        "roles": {"answer": ["first", "second"]},
    }
    llm.next(status=500)
    Question(tmp_path).ask(models=section)
    Question(tmp_path).ask(models=section)
    assert [call.body["model"] for call in llm.requests] == ["big", "small", "big"]


def test_files_are_the_owners_alone_and_hold_json(llm, tmp_path):
    Question(tmp_path).ask()
    files = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    contents = [json.loads(path.read_bytes())["value"] for path in files]
    assert contents == [{"texts": ["Which general took Caizhou?"], "model": "gpt-4.1-mini"}]
    folder = next((tmp_path / "cache").iterdir())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a file of the cache was run",))


DAMAGE = {
    "pickle": pickle.dumps(Bomb()),
    "half": b'{"until": 9e9, "value": {"texts": ["Which',
    "another shape": b'{"until": 9e9, "value": {"texts": "Which"}}',
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("content", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_entry_is_written_anew(llm, tmp_path, content, caplog):
    Question(tmp_path).ask()
    for path in (tmp_path / "cache").rglob("*"):
        if path.is_file():
            path.write_bytes(content)
    damaged, mended = Question(tmp_path), Question(tmp_path)
    with caplog.at_level(logging.WARNING):
        assert damaged.ask() == mended.ask() == ["Which general took Caizhou?"]
    assert llm.calls == 2
    assert mended.cache.hits == {"calls": 1}
    assert "Traceback" not in caplog.text


def refusing(number):
    def refuse(*args, **kwargs):
        raise OSError(number, "Read-only file system" if number == errno.EROFS else "No space left on device")

    return refuse


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC])
def test_a_folder_that_takes_nothing_is_told_once_and_the_question_answered(llm, tmp_path, monkeypatch, number, caplog):
    monkeypatch.setattr(reply_cache, "write_whole", refusing(number))
    questions = [Question(tmp_path) for _ in range(3)]
    with caplog.at_level(logging.WARNING):
        assert [question.ask() for question in questions] == [["Which general took Caizhou?"]] * 3
    assert [len(question.cache.warnings) for question in questions] == [1, 0, 0]
    what = "Read-only file system" if number == errno.EROFS else "No space left on device"
    assert f"{tmp_path / 'cache'} could not be used ({what})" in questions[0].cache.warnings[0]
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1


def test_a_disk_that_is_almost_full_and_a_file_in_the_way_cost_no_answer(llm, tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("no folder")
    in_the_way = Question(tmp_path)
    assert in_the_way.ask() == ["Which general took Caizhou?"]
    assert len(in_the_way.cache.warnings) == 1
    monkeypatch.setattr(shutil, "disk_usage", lambda path: type("Usage", (), {"free": 3_000_000}))
    full = Question(tmp_path / "other")
    assert full.ask() == ["Which general took Caizhou?"]
    assert "3.0 MB free" in full.cache.warnings[0]


def test_what_a_tenant_deletes_is_forgotten_for_that_tenant_alone(llm, tmp_path):
    for tenant in ("a", "b"):
        Question(tmp_path, tenant).ask()
    TenantCache(tmp_path, "a").clear()
    for tenant in ("a", "b"):
        Question(tmp_path, tenant).ask()
    assert llm.calls == 3


def test_the_oldest_entries_make_room(tmp_path, monkeypatch):
    monkeypatch.setattr(reply_cache, "_MOST_ENTRIES", 3)
    cache = TenantCache(tmp_path, "a")
    for number in range(5):
        cache.keep(str(number), number)
        os.utime(cache._folder / str(number), (number, number))
    assert [cache.get(str(number)) for number in range(5)] == [None, None, 2, 3, 4]


def test_a_plan_takes_whole_seconds_alone():
    assert CachePlan().calls == 86_400
    for wrong in ({"calls": -1}, {"calls": 1.5}, {"calls": True}, {"answers": 1}, {"vectors": 1}):
        with pytest.raises(ValueError, match="validation error"):
            CachePlan.model_validate(wrong)
