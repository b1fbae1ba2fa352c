import gc
import sqlite3
import stat
from functools import partial
from types import SimpleNamespace

import pytest
from haystack import component
from haystack.dataclasses import ChatMessage, ToolCall
from tests.doubles.fake_generators import FailingGenerator, UnavailableGenerator

from shiguan.llm import reply_cache
from shiguan.llm.calls import ask_llm, call_generator, is_available
from shiguan.llm.reply_cache import ReplyCache
from shiguan.llm.run import Run, TimeLimits

PROMPT = [ChatMessage.from_user("Reword: who rose in 755?")]


@component
class Counting:
    """Numbers its replies."""

    def __init__(self, name="a"):
        self.name, self.asked, self.meta = name, 0, {"model": "m", "usage": {"total_tokens": 7}}

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], generation_kwargs: dict | None = None):
        self.asked += 1
        return {"replies": [ChatMessage.from_assistant(f"reply {self.asked}", meta=self.meta)]}


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=1000.0)
    clock.time = lambda: clock.now
    monkeypatch.setattr(reply_cache, "time", clock)
    return clock


@pytest.fixture(params=["memory", "file"])
def cached(request, tmp_path):
    return partial(ReplyCache, path=str(tmp_path / "cache") if request.param == "file" else None)


def texts(cache, *prompts):
    return [cache.run([ChatMessage.from_user(prompt)])["replies"][0].text for prompt in prompts]


def test_the_same_prompt_gets_the_same_reply_without_a_call(cached):
    cache = cached(Counting())
    first, again = cache.run(PROMPT), cache.run(PROMPT)
    assert [one["replies"][0].text for one in (first, again)] == ["reply 1", "reply 1"]
    assert cache.chat_generator.asked == 1
    assert "cached" not in first["replies"][0].meta
    assert again["replies"][0].meta == {"model": "m", "usage": {"total_tokens": 0}, "cached": True}
    assert texts(cache, "other") == ["reply 2"]


def test_settings_and_generators_tell_prompts_apart(cached):
    cache = cached(Counting())
    assert cache.run(PROMPT)["replies"][0].text == "reply 1"
    assert cache.run(PROMPT, generation_kwargs={"temperature": 1})["replies"][0].text == "reply 2"
    assert cached(Counting("b")).run(PROMPT)["replies"][0].text == "reply 1"


def test_messages_that_differ_only_outside_their_text_are_told_apart(cached):
    cache = cached(Counting())
    call = ToolCall("search", {"query": "755"}, id="1")
    begun = [*PROMPT, ChatMessage.from_assistant(tool_calls=[call])]
    for found, number in (("An Lushan", 1), ("Guo Ziyi", 2), ("An Lushan", 1)):
        prompt = [*begun, ChatMessage.from_tool(found, origin=call)]
        assert cache.run(prompt)["replies"][0].text == f"reply {number}"
    assert cache.run([ChatMessage.from_user(PROMPT[0].text, name="Li")])["replies"][0].text == "reply 3"
    assert cache.run([ChatMessage.from_user(PROMPT[0].text)])["replies"][0].text == "reply 4"
    assert cache.run([ChatMessage.from_user(PROMPT[0].text, meta={"made": 1})])["replies"][0].text == "reply 4"


def test_an_old_reply_is_not_used(cached, clock):
    cache = cached(Counting(), max_age=60)
    assert texts(cache, "x") == ["reply 1"]
    clock.now += 59
    assert texts(cache, "x") == ["reply 1"]
    clock.now += 2
    assert texts(cache, "x") == ["reply 2"]


def test_of_too_many_the_oldest_goes(cached, clock):
    cache = cached(Counting(), size=2)
    for prompt in ("x", "y", "z"):
        clock.now += 1
        texts(cache, prompt)
    assert texts(cache, "y", "z", "x") == ["reply 2", "reply 3", "reply 4"]


def test_a_file_is_shared_survives_and_is_its_owners(tmp_path):
    texts(ReplyCache(Counting(), path=str(tmp_path)), "x")
    other = ReplyCache(Counting(), path=str(tmp_path))
    assert texts(other, "x") == ["reply 1"]
    assert other.chat_generator.asked == 0
    assert stat.S_IMODE((tmp_path / "replies.sqlite").stat().st_mode) == 0o600


async def test_a_reply_serves_only_the_tenant_that_asked_and_is_not_counted_as_a_call():
    cache, answered = ReplyCache(Counting()), []
    for tenant in ("a", "a", "b"):
        run = Run(TimeLimits(), tenant_id=tenant)
        with run.stage("query_rewriter"):
            await call_generator(cache, PROMPT)
        answered.append(run.answered)
    assert answered == [1, 0, 1]
    assert cache.chat_generator.asked == 2


@pytest.mark.parametrize("meta", [{"finish_reason": "length"}, {"finish_reason": "content_filter"}])
def test_a_reply_that_was_cut_is_not_kept(meta):
    cache = ReplyCache(Counting())
    cache.chat_generator.meta = meta
    assert texts(cache, "x", "x") == ["reply 1", "reply 2"]


def test_a_failure_is_not_kept_and_a_broken_file_costs_only_the_cache(tmp_path):
    assert ask_llm(ReplyCache(FailingGenerator()), PROMPT).failure == "the generator is broken"
    assert not is_available(ReplyCache(UnavailableGenerator()))
    (tmp_path / "replies.sqlite").write_text("no database" * 100, encoding="utf-8")
    assert texts(ReplyCache(Counting(), path=str(tmp_path)), "x", "x") == ["reply 1", "reply 2"]


@pytest.mark.parametrize("broken", [True, False])
def test_its_database_is_closed_with_it(monkeypatch, tmp_path, broken):
    opened = []

    class Seen(sqlite3.Connection):
        def __init__(self, *given, **more):
            super().__init__(*given, **more)
            opened.append(self)

    monkeypatch.setattr(sqlite3, "connect", Seen)
    (tmp_path / "replies.sqlite").write_bytes(b"this is no database " * 100)
    cache = ReplyCache(Counting(), path=str(tmp_path) if broken else None)
    texts(cache, "a")
    del cache
    gc.collect()
    for database in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            database.execute("SELECT 1")
    assert opened
