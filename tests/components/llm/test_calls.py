import asyncio
import inspect
import re
from contextvars import ContextVar

import pytest
from haystack import Pipeline, component
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret
from tests.doubles.fake_generators import FailingGenerator, UnavailableGenerator

from shiguan.llm.calls import LlmReply, ask_llm, ask_llm_async, blocking, is_available
from shiguan.llm.configured_chat_generator import ConfiguredChatGenerator
from shiguan.llm.model_settings import Budget
from shiguan.llm.run import Run, TimeLimits

PROMPT = [ChatMessage.from_user("Rewrite.")]


@pytest.fixture
def generator(endpoint, monkeypatch):
    endpoint.default = " Done. "
    monkeypatch.setattr("shiguan.llm.endpoint.FIRST_WAIT", 0.0)
    return ConfiguredChatGenerator()


def test_a_generator_is_available_unless_it_says_otherwise(generator):
    assert is_available(generator)
    assert is_available(FailingGenerator())
    assert not is_available(UnavailableGenerator())
    assert not is_available(None)


async def test_both_twins_give_the_trimmed_text(generator, stand_in_llm):
    assert ask_llm(generator, PROMPT, generation_kwargs={"temperature": 0.9}) == LlmReply("Done.")
    assert (await ask_llm_async(generator, PROMPT)).text == "Done."
    assert [call.body.get("temperature") for call in stand_in_llm.requests] == [0.9, None]


async def test_an_empty_reply_is_a_failure(generator, stand_in_llm):
    stand_in_llm.default = " "
    assert ask_llm(generator, PROMPT) == LlmReply(failure="the LLM's reply is empty")
    assert (await ask_llm_async(generator, PROMPT)).text == ""


async def test_an_error_becomes_a_clause():
    assert (await ask_llm_async(FailingGenerator(), PROMPT)).failure == "the generator is broken"


def test_why_there_are_no_replies_is_the_failure(stand_in_llm, generator):
    """A generator of the role `answer` warns where a helper raises."""
    stand_in_llm.next(times=4, status=503)
    failure = ask_llm(generator, PROMPT).failure
    assert failure.startswith("No model answered: ")
    assert not failure.endswith(".")
    stand_in_llm.next(times=2, status=503)
    assert "answered 503" in ask_llm(ConfiguredChatGenerator(role="helper"), PROMPT).failure


def test_haystacks_own_generator_is_asked_again_and_again_by_who_cannot_await(stand_in_llm):
    """Each call has an event loop of its own, and a client that was opened in one does not work in the next."""
    stand_in_llm.default = "Done."
    theirs = OpenAIChatGenerator(api_key=Secret.from_token("any"), api_base_url=stand_in_llm.url, model="m")
    assert [ask_llm(theirs, PROMPT) for _ in range(3)] == [LlmReply("Done.")] * 3
    assert stand_in_llm.calls == 3


async def test_what_a_model_thought_aloud_is_no_part_of_its_reply(generator, stand_in_llm):
    stand_in_llm.default = "<think>What do I know?</think>\nThe court feared its general."
    assert ask_llm(generator, PROMPT).text == "The court feared its general."
    stand_in_llm.default = "<think>It never ends"
    assert (await ask_llm_async(generator, PROMPT)).failure == "the LLM's reply is empty"


ASKED_BY = ContextVar("asked_by", default="nobody")


@component
class Greeter:
    @component.output_types(text=str)
    async def run_async(self, name: str, *, loud: bool = False):
        """Greet."""
        text = f"{ASKED_BY.get()} greets {name}"
        return {"text": text.upper() if loud else text}

    run = blocking(run_async)


def test_the_run_made_of_a_run_async_has_its_sockets_and_its_words():
    assert inspect.signature(Greeter.run) == inspect.signature(Greeter.run_async)
    assert Greeter.run.__doc__ == "Greet."
    assert not inspect.iscoroutinefunction(Greeter.run)
    pipeline = Pipeline()
    pipeline.add_component("greeter", Greeter())
    assert pipeline.run({"greeter": {"name": "Ban", "loud": True}}) == {"greeter": {"text": "NOBODY GREETS BAN"}}


async def test_the_run_made_of_a_run_async_also_runs_where_an_event_loop_is_at_work():
    ASKED_BY.set("Shi")
    assert Greeter().run("Ban") == {"text": "Shi greets Ban"}


@component
class Hanging:
    @component.output_types(replies=list[ChatMessage])
    async def run_async(self, messages: list[ChatMessage]):
        """Never answer."""
        await asyncio.Event().wait()

    run = blocking(run_async)


@pytest.mark.parametrize("limits", [(0.05, 60.0), (60.0, 0.05 / 0.6)], ids=["of a helper", "of the question"])
async def test_the_shorter_of_two_limits_holds(limits):
    helper, seconds = limits
    with Run(TimeLimits(helper=helper), budget=Budget(seconds=seconds)).entered():
        failure = (await ask_llm_async(Hanging(), PROMPT)).failure
    assert re.fullmatch(r"the LLM did not answer within 0\.0\d* s", failure)
