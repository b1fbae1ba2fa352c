import asyncio
import re

import pytest
from haystack.components.generators.chat.fallback import FallbackChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import Tool

from shiguan.errors import AnswerError, ConfigurationError
from shiguan.llm.configured_chat_generator import ConfiguredChatGenerator
from shiguan.llm.endpoint import _whole_characters
from shiguan.llm.model_settings import DEFAULT_MODEL

pytestmark = pytest.mark.usefixtures("waits")

PROMPT = [
    ChatMessage.from_system("Cite."),
    ChatMessage.from_user("Who took Caizhou?", meta={"prompt": "simple", "prompt_hash": "0123456789ab"}),
]
KEY = "sk-test-0123456789abcdef"


@pytest.fixture
def endpoint(endpoint):
    endpoint.default = "Li Su took it [1]."
    return endpoint


async def unanswered(component, warning, **more):
    """Ask both twins, which give no reply and say why."""
    for told in (component.run(messages=PROMPT, **more), await component.run_async(messages=PROMPT, **more)):
        assert told["replies"] == []
        (said,) = told["warnings"]
        assert re.search(warning, said)


@pytest.mark.parametrize("role", ["answer", "helper", "judge"])
async def test_without_key_and_address_there_are_no_replies_and_no_warning(role, monkeypatch):
    """That nothing is configured is no fault: the sources are quoted."""
    component = ConfiguredChatGenerator(role=role)
    assert component.run(PROMPT) == await component.run_async(PROMPT) == {"replies": [], "warnings": []}
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        for value in ("", "http://127.0.0.1:9/v1"):
            monkeypatch.setenv(name, value)
            assert ConfiguredChatGenerator(role=role).available() is bool(value)
        monkeypatch.delenv(name)


def test_local_server_needs_no_key_and_is_looked_up_once(endpoint, monkeypatch):
    component = ConfiguredChatGenerator()
    component.warm_up()
    monkeypatch.delenv("OPENAI_BASE_URL")
    component.warm_up()
    (reply,) = component.run(messages=PROMPT)["replies"]
    assert reply.text == "Li Su took it [1]."
    assert reply.meta["model"] == DEFAULT_MODEL
    assert reply.meta["usage"]["total_tokens"] > 0
    assert (reply.meta["prompt"], reply.meta["prompt_hash"]) == ("simple", "0123456789ab")
    assert endpoint.requests[0].body["messages"][0] == {"role": "system", "content": "Cite."}
    assert (component.run(messages=[]), endpoint.calls) == ({"replies": [], "warnings": []}, 1)


def test_model_comes_from_the_parameter_then_the_environment(endpoint, monkeypatch):
    monkeypatch.setenv("OPENAI_MODEL", "from-environment")
    assert ConfiguredChatGenerator().run(messages=PROMPT)["replies"][0].meta["model"] == "from-environment"
    assert ConfiguredChatGenerator(model="given").run(messages=PROMPT)["replies"][0].meta["model"] == "given"


def test_generation_kwargs_of_the_call_win(endpoint):
    component = ConfiguredChatGenerator(generation_kwargs={"temperature": 0.2, "seed": 7})
    component.run(messages=PROMPT, generation_kwargs={"temperature": 0})
    assert (endpoint.requests[0].body["temperature"], endpoint.requests[0].body["seed"]) == (0, 7)


@pytest.mark.parametrize(
    "fault",
    [{"status": 500}, {"status": 503}, {"status": 429}, {"reset": True}, {"malformed": True}, {"truncate_after": 2}],
)
async def test_where_no_model_answers_there_are_no_replies_and_a_warning_with_a_next_step(endpoint, waits, fault):
    endpoint.next(times=8, **fault)
    await unanswered(ConfiguredChatGenerator(), r"^No model answered: the language model .*\. [A-Z].*\.$")
    assert (endpoint.calls, waits) == (8, [1.0, 2.0, 4.0] * 2)
    endpoint.next(times=3, **fault)
    assert (ConfiguredChatGenerator().run(PROMPT)["replies"][0].text, endpoint.calls) == ("Li Su took it [1].", 12)


@pytest.mark.parametrize("role", ["helper", "judge"])
def test_those_who_can_do_without_a_reply_get_an_error_naming_the_stage(endpoint, role):
    endpoint.next(times=4, status=500)
    said = r"The stage `generator` failed after 2 attempts: 127\.0\.0\.1:\d+ .*\. [A-Z].*\.$"
    with pytest.raises(AnswerError, match=said):
        ConfiguredChatGenerator(role=role).run(messages=PROMPT)
    assert endpoint.calls == 2


@pytest.mark.parametrize(
    ("status", "step"), [(401, "OPENAI_API_KEY"), (403, "OPENAI_API_KEY"), (402, "the balance of the account")]
)
async def test_a_refused_key_or_account_is_not_tried_again_and_leaves_no_reply(endpoint, status, step):
    endpoint.next(times=9, status=status)
    await unanswered(ConfiguredChatGenerator(), rf"answered {status} .*Check {step}")
    assert endpoint.calls == 2


async def test_a_server_that_did_not_answer_in_time_is_not_asked_again(endpoint, monkeypatch):
    monkeypatch.setenv("OPENAI_TIMEOUT", "0.2")
    endpoint.next(times=2, hang=True)
    await unanswered(ConfiguredChatGenerator(), r"did not answer in time.*OPENAI_TIMEOUT")
    assert endpoint.calls == 2


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_slow_reply_is_judged_by_the_time_since_its_last_token(endpoint, streaming, monkeypatch):
    monkeypatch.setenv("OPENAI_TIMEOUT", "0.4")
    endpoint.time_per_token, endpoint.default = 0.1, "one two three four five six seven eight"

    async def collect(chunk):
        pass

    component = ConfiguredChatGenerator()
    (reply,) = component.run(PROMPT, (lambda chunk: None) if streaming else None)["replies"]
    (again,) = (await component.run_async(PROMPT, collect if streaming else None))["replies"]
    assert reply.text == again.text == endpoint.default
    assert reply.meta["usage"]["completion_tokens"] == 8
    assert endpoint.calls == 2


def test_an_odd_time_in_the_environment_is_refused(endpoint, monkeypatch):
    for odd in ("soon", "0", "-1", "nan", "inf"):
        monkeypatch.setenv("OPENAI_TIMEOUT", odd)
        with pytest.raises(ConfigurationError, match=f"OPENAI_TIMEOUT is `{odd}`. Expected seconds"):
            ConfiguredChatGenerator().warm_up()


async def test_where_nobody_listens_the_warning_names_the_setting(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setattr("shiguan.llm.endpoint.FIRST_WAIT", 0.0)
    await unanswered(ConfiguredChatGenerator(), r"the language model could not be reached.*OPENAI_BASE_URL")


def test_keys_and_passwords_never_stand_in_an_error(endpoint, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url.replace("http://", "http://user:secret@"))
    endpoint.api_key = "another"
    with pytest.raises(AnswerError) as caught:
        ConfiguredChatGenerator(role="judge").run(messages=PROMPT)
    assert KEY not in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_an_endpoint_that_says_when_to_come_back_is_heard(endpoint, waits):
    endpoint.next(times=2, status=429, retry_after=3)
    ConfiguredChatGenerator().run(messages=PROMPT)
    assert waits == [3.0, 3.0]


def test_run_async_works_in_one_event_loop_after_the_other(endpoint):
    component = ConfiguredChatGenerator()
    for _ in range(3):
        (reply,) = asyncio.run(component.run_async(messages=PROMPT))["replies"]
        assert reply.text == "Li Su took it [1]."
    assert len(component._endpoints["default"].loop_clients) <= 1


async def test_tools_reach_the_endpoint(endpoint):
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tool = Tool(name="weather", description="The weather of a city.", parameters=parameters, function=str)
    ConfiguredChatGenerator().run(messages=PROMPT, tools=[tool])
    await ConfiguredChatGenerator().run_async(messages=PROMPT, tools=[tool])
    for request in endpoint.requests:
        assert [tool["function"]["name"] for tool in request.body["tools"]] == ["weather"]


async def test_it_stands_in_haystacks_fallback_generator(endpoint):
    endpoint.next(times=1, status=400)
    fallback = FallbackChatGenerator([ConfiguredChatGenerator("first"), ConfiguredChatGenerator("second")])
    assert fallback.run(messages=PROMPT)["replies"][0].meta["model"] == "second"
    endpoint.next(times=1, status=400)
    assert (await fallback.run_async(messages=PROMPT))["replies"][0].meta["model"] == "second"
    assert fallback.run(messages=PROMPT)["replies"][0].meta["model"] == "first"
    again = FallbackChatGenerator.from_dict(fallback.to_dict())
    assert [nested.model for nested in again.chat_generators] == ["first", "second"]


@pytest.mark.parametrize(("given", "sent"), [
    (None, {"max_tokens": 2048}), ({"max_tokens": 64}, {"max_tokens": 64}),
    ({"max_completion_tokens": 64}, {"max_completion_tokens": 64}),
    ({"max_tokens": None}, {}),
])  # fmt: skip
def test_a_reply_is_limited_unless_the_file_says_otherwise(endpoint, given, sent):
    ConfiguredChatGenerator(generation_kwargs=given).run(messages=PROMPT)
    body = endpoint.requests[0].body
    assert {name: body[name] for name in ("max_tokens", "max_completion_tokens") if name in body} == sent


def test_the_limit_of_one_call_keeps_the_name_that_the_file_uses(endpoint):
    limited = ConfiguredChatGenerator(generation_kwargs={"max_completion_tokens": 64})
    limited.run(messages=PROMPT, generation_kwargs={"max_tokens": 9})
    body = endpoint.requests[0].body
    assert {name: body[name] for name in body if name.startswith("max_")} == {"max_completion_tokens": 9}


@pytest.mark.parametrize("settings", [{}, {"response_format": {"type": "text"}}], ids=["streamed", "whole"])
async def test_a_reply_without_an_end_is_left_and_not_asked_for_again(endpoint, monkeypatch, settings):
    monkeypatch.setattr("shiguan.llm.endpoint.MOST_BYTES", 20_000)
    endpoint.default = "Li Su took it [1]. " * 200_000
    endpoint.tokens_per_event = 1_000
    endless = ConfiguredChatGenerator(generation_kwargs={"max_tokens": None, **settings})
    await unanswered(endless, "sent more than 20,000 bytes.*Check OPENAI_BASE_URL and what answers there")
    assert endpoint.calls == 2  # one for each twin
    endpoint.default = "Li Su took it [1]."
    (reply,) = ConfiguredChatGenerator(generation_kwargs=settings).run(PROMPT)["replies"]
    assert reply.text == "Li Su took it [1]."


def test_half_characters_are_replaced():
    assert _whole_characters("Horse \ud83d\udc0e and half \ud83d.") == "Horse 🐎 and half �."
