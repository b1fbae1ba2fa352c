import asyncio
import threading
from contextvars import copy_context

import pytest
from haystack import component
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.components.generators.chat.fallback import FallbackChatGenerator
from haystack.components.query import QueryExpander
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret

from shiguan.engine.mode_pipeline import ModePipeline
from shiguan.llm.calls import ask_llm, ask_llm_async
from shiguan.llm.configured_chat_generator import ConfiguredChatGenerator
from shiguan.llm.run import Run, current_run

PROMPT = [ChatMessage.from_user("Who took Caizhou?")]
USAGE = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12, "details": {"cached_tokens": 5}}


def reply(usage=None):
    return [ChatMessage.from_assistant("Li Su.", meta={"usage": usage})]


def count(replies):
    return current_run().count(replies, began=0.0)


@pytest.fixture
def endpoint(endpoint):
    endpoint.default = "Li Su took it [1]."
    return endpoint


@pytest.fixture
async def foreign(endpoint):
    """Haystack's own generator, whose connections nobody else closes."""
    generator = OpenAIChatGenerator(api_key=Secret.from_token("any"), api_base_url=endpoint.url, model="m")
    generator.warm_up()
    yield generator
    await generator.async_client.close()


ALIVE = []
"""What has been asked: a generator that is collected while its event loop runs cannot close its connections."""


async def calls_of(generator, **inputs):
    ALIVE.append(generator)
    pipeline = ModePipeline()
    pipeline.add_component("generator", generator)
    with Run().entered() as run:
        await pipeline.run_async({"generator": inputs or {"messages": PROMPT}})
    assert {call["stage"] for call in run.calls} <= {"generator"}
    return run


def test_calls_and_tokens_are_added_up():
    with Run().entered() as run:
        count(reply(USAGE))
        count(reply({"prompt_tokens": 1}))
        count(reply(None))
        count(["a text of a generator that has no messages"])
    assert (run.answered, run.usage) == (4, {"prompt_tokens": 11, "completion_tokens": 2, "total_tokens": 12})


def test_a_call_is_counted_once_however_many_hands_it_passes_and_none_that_used_nothing():
    with Run().entered() as run:
        count([])
        count(reply({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}))
        assert (run.answered, run.calls) == (0, [])
        count(count(count(reply(USAGE))))
        thread = threading.Thread(target=copy_context().run, args=(count, reply(USAGE)))  # that shares the context
        thread.start()
        thread.join()
    assert run.answered == 2


async def test_overlapping_runs_do_not_mix():
    async def run(calls):
        with Run().entered() as one:
            for _ in range(calls):
                await asyncio.sleep(0)
                count(reply())
            return one.answered

    assert await asyncio.gather(run(1), run(3)) == [1, 3]


async def test_haystacks_own_generator_in_a_pipeline_is_counted(endpoint, foreign):
    run = await calls_of(foreign)
    assert (run.answered, endpoint.calls) == (1, 1)
    assert run.usage["total_tokens"] > 0


async def test_ours_and_ours_in_haystacks_fallback_are_counted_once(endpoint):
    both = FallbackChatGenerator([ConfiguredChatGenerator(), ConfiguredChatGenerator("another")])
    assert (await calls_of(ConfiguredChatGenerator())).answered == (await calls_of(both)).answered == 1


async def test_ours_inside_a_component_of_haystacks_is_counted(endpoint):
    endpoint.default = '{"queries": ["Li Su", "Caizhou"]}'
    assert (await calls_of(QueryExpander(chat_generator=ConfiguredChatGenerator()), query="Caizhou?")).answered == 1


async def test_an_agent_in_a_pipeline_is_counted_with_any_generator(endpoint, foreign):
    assert (await calls_of(Agent(chat_generator=foreign))).answered == 1
    assert (await calls_of(Agent(chat_generator=ConfiguredChatGenerator()))).answered == 1


async def test_haystacks_generator_asked_by_a_stage_is_counted(endpoint, foreign):
    @component
    class Stage:
        @component.output_types(text=str, replies=list[ChatMessage])
        def run(self, replies: list[ChatMessage]):
            return {"text": ask_llm(foreign, PROMPT).text, "replies": replies}

    pipeline = ModePipeline()
    pipeline.add_component("stage", Stage())
    with Run().entered() as run:
        await pipeline.run_async({"stage": {"replies": reply(USAGE)}})
        await ask_llm_async(foreign, PROMPT)
        await ask_llm_async(ConfiguredChatGenerator(), PROMPT)
    assert run.answered == endpoint.calls == 3


async def test_replies_that_a_stage_passes_on_are_no_call():
    @component
    class Grader:
        @component.output_types(replies=list[ChatMessage])
        def run(self, replies: list[ChatMessage]):
            return {"replies": replies}

    assert (await calls_of(Grader(), replies=reply(USAGE))).answered == 0


async def test_every_component_is_a_stage_of_the_run_that_it_is_part_of():
    @component
    class Echo:
        @component.output_types(text=str)
        def run(self, text: str):
            return {"text": text}

    pipeline = ModePipeline()
    pipeline.add_component("first", Echo())
    pipeline.add_component("second", Echo())
    pipeline.connect("first.text", "second.text")
    with Run().entered() as run:
        await pipeline.run_async({"first": {"text": "x"}})
    await pipeline.run_async({"first": {"text": "x"}})
    assert dict(run.visits) == {"first": 1, "second": 1}
    assert set(run.times) == {"first", "second"}
