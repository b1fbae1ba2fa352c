import asyncio

import pytest
from haystack.core.serialization import component_from_dict, component_to_dict
from haystack.dataclasses import ChatMessage

from shiguan.answer.optional_chat_generator import OptionalChatGenerator
from shiguan.errors import AnswerError

PROMPT = [ChatMessage.from_user("Rewrite.")]
KEY = "sk-test-0123456789abcdef"


@pytest.fixture
def endpoint(stand_in_llm, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", stand_in_llm.url)
    stand_in_llm.default = "Done."
    return stand_in_llm


def test_without_key_and_address_it_says_that_it_is_not_available():
    assert OptionalChatGenerator().available() is False


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "OPENAI_BASE_URL"])
def test_key_or_address_makes_it_available(monkeypatch, name):
    monkeypatch.setenv(name, "http://127.0.0.1:9/v1")
    assert OptionalChatGenerator().available() is True


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "OPENAI_BASE_URL"])
def test_an_empty_setting_is_none(monkeypatch, name):
    monkeypatch.setenv(name, "")
    assert OptionalChatGenerator().available() is False


def test_calling_it_all_the_same_is_an_error_with_a_next_step():
    with pytest.raises(AnswerError, match=r"No LLM is configured.*OPENAI_API_KEY"):
        OptionalChatGenerator().run(messages=PROMPT)


async def test_calling_the_async_twin_all_the_same_is_the_same_error():
    with pytest.raises(AnswerError, match="No LLM is configured"):
        await OptionalChatGenerator().run_async(messages=PROMPT)


def test_it_answers_with_the_models_name_and_usage(endpoint):
    generator = OptionalChatGenerator("m", generation_kwargs={"temperature": 0.3})
    (reply,) = generator.run(messages=PROMPT, generation_kwargs={"seed": 1})["replies"]
    assert (reply.text, reply.meta["model"]) == ("Done.", "m")
    assert reply.meta["usage"]["total_tokens"] > 0
    assert (endpoint.requests[0].body["temperature"], endpoint.requests[0].body["seed"]) == (0.3, 1)


def test_a_failure_is_tried_again_once_and_then_an_error(endpoint):
    endpoint.next(times=2, status=500)
    with pytest.raises(
        AnswerError, match=r"The stage `language model` failed after 2 attempts: 127\.0\.0\.1:\d+ .*500"
    ):
        OptionalChatGenerator(retry_delay=0).run(messages=PROMPT)
    assert endpoint.calls == 2


def test_run_async_works_in_one_event_loop_after_the_other(endpoint):
    generator = OptionalChatGenerator()
    for _ in range(2):
        assert asyncio.run(generator.run_async(messages=PROMPT))["replies"][0].text == "Done."


def test_empty_prompt_gives_no_reply(endpoint):
    assert OptionalChatGenerator().run(messages=[]) == {"replies": []}
    assert endpoint.calls == 0


@pytest.mark.parametrize("arguments", [{"timeout": 0}, {"max_retries": -1}, {"retry_delay": -1}])
def test_numbers_out_of_range_are_refused(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        OptionalChatGenerator(**arguments)


def test_round_trip_keeps_the_settings_and_no_key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    generator = OptionalChatGenerator("m", timeout=5.0, max_retries=2, retry_delay=0.5, generation_kwargs={"seed": 1})
    generator.warm_up()
    data = component_to_dict(generator, "g")
    assert KEY not in str(data)
    again = component_from_dict(OptionalChatGenerator, data, "g")
    assert (again.model, again.timeout, again.max_retries, again.retry_delay) == ("m", 5.0, 2, 0.5)
    assert again.generation_kwargs == {"seed": 1}
