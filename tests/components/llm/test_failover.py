"""Several models at one stand-in over real HTTP: who is asked, after whom, and what is written down."""

import httpx
import openai
import pytest
from haystack.dataclasses import ChatMessage
from tests.doubles.own_modes import named
from tests.doubles.stand_in_llm import Fault

from shiguan.errors import EndpointError
from shiguan.llm import failures
from shiguan.llm.configured_chat_generator import ConfiguredChatGenerator
from shiguan.llm.failures import asked_to_wait, failure_of, is_worth_retrying
from shiguan.llm.run import Run

pytestmark = pytest.mark.usefixtures("waits")

PROMPT = [ChatMessage.from_user("Who took Caizhou?")]


@pytest.fixture
def llm(stand_in_llm):
    stand_in_llm.default = "Li Su [1]."
    return stand_in_llm


def generator(llm, *, roles=None, **more):
    models = {"models": named(llm, "strong", "cheap"), "roles": roles or {"answer": ["strong", "cheap"]}}
    return ConfiguredChatGenerator(models=models, **more)


def fails(llm, name, **fault):
    rule = llm.rule(lambda call: call.body["model"] == name, "Li Su took it [1].", fault=Fault(**fault))
    return lambda: llm.rules.remove(rule)


def asked(llm):
    return [call.body["model"] for call in llm.requests]


def ask(component, **more):
    (reply,) = component.run(messages=PROMPT, **more)["replies"]
    return reply.meta["model"]


async def test_a_model_that_is_down_is_tried_twice_and_then_the_next_one_answers(llm, waits):
    fails(llm, "strong", status=500)
    component = generator(llm)
    with Run().entered() as run:
        assert ask(component) == "cheap"
    assert (await component.run_async(messages=PROMPT))["replies"][0].meta["model"] == "cheap"
    assert asked(llm) == ["strong", "strong", "cheap"] * 2
    assert waits == [1.0, 1.0]
    assert run.switches == [{"from": "strong", "to": "cheap", "reason": "server_error"}]
    assert run.warnings() == ["The model `cheap` stood in for `strong` (server_error)."]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"status": 429}, "rate_limit"), ({"status": 429, "retry_after": 3600}, "rate_limit"),
        ({"status": 502}, "server_error"), ({"reset": True}, "unreachable"), ({"hang": True}, "timeout"),
        ({"malformed": True}, "unreadable"), ({"truncate_after": 1}, "unreachable"),
        ({"status": 401}, "refused_key"), ({"status": 403}, "refused_key"), ({"status": 402}, "no_credit"),
    ],
)  # fmt: skip
def test_every_failure_of_a_models_own_goes_to_the_next(llm, fault, reason, monkeypatch):
    fails(llm, "strong", **fault)
    monkeypatch.setenv("OPENAI_TIMEOUT", "0.3")
    monkeypatch.setattr("shiguan.llm.endpoint.FIRST_WAIT", 0.0)
    with Run().entered() as run:
        assert ask(generator(llm)) == "cheap"
    assert [switch["reason"] for switch in run.switches] == [reason]


def test_an_error_told_within_a_stream_that_began_well_is_one_of_the_server():
    error = openai.APIError("Overloaded", httpx.Request("POST", "http://llm.test"), body={"code": 529})
    assert (failure_of(error), is_worth_retrying(error)) == ("server_error", True)


@pytest.mark.parametrize(
    ("status", "step"), [(400, "generation_kwargs"), (404, "its `model` in `strong`"), (413, ""), (422, "")]
)
def test_what_is_refused_on_its_merits_is_not_tried_again_and_goes_to_nobody_else(llm, status, step):
    fails(llm, "strong", status=status)
    component = generator(llm)
    for _ in range(4):
        with pytest.raises(EndpointError, match=f"answered {status} for model `strong`.*{step}"):
            ask(component)
    assert asked(llm) == ["strong"] * 4


def test_a_stream_that_broke_off_goes_to_nobody_else(llm):
    fails(llm, "strong", truncate_after=2)
    pieces = []
    with pytest.raises(EndpointError, match="broke off in the middle"):
        ask(generator(llm), streaming_callback=lambda chunk: pieces.append(chunk.content))
    assert (asked(llm), bool("".join(pieces))) == (["strong"], True)


def test_a_stream_that_did_not_begin_does(llm):
    fails(llm, "strong", status=500)
    pieces = []
    assert ask(generator(llm), streaming_callback=lambda chunk: pieces.append(chunk.content)) == "cheap"
    assert "".join(pieces) == "Li Su [1]."


def test_a_receiver_that_fails_is_not_the_models_fault(llm):
    def receiver(_chunk):
        raise RuntimeError("gone")

    component = generator(llm)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="gone"):
            ask(component, streaming_callback=receiver)
    assert ask(component) == "strong"


def test_when_all_fail_the_last_ones_failure_is_reported_and_that_one_has_all_its_retries(llm):
    fails(llm, "strong", status=500)
    fails(llm, "cheap", status=503)
    outputs = generator(llm).run(messages=PROMPT)
    assert outputs["replies"] == []
    assert "answered 503 for model `cheap`" in outputs["warnings"][0]
    assert asked(llm) == ["strong"] * 2 + ["cheap"] * 4


def test_a_prompt_goes_to_a_model_whose_window_holds_it(llm):
    small, large = named(llm, "small", window=1000), named(llm, "large", window=9000)
    models = {"models": [*small, *large], "roles": {"answer": ["small"]}}
    component = ConfiguredChatGenerator(models=models, generation_kwargs={"max_tokens": 500})
    assert ask(component) == "small"
    with Run().entered() as run:
        (reply,) = component.run(messages=[ChatMessage.from_user("史" * 600)])["replies"]
    assert reply.meta["model"] == "large"
    assert run.switches == [{"from": "small", "to": "large", "reason": "window"}]
    (reply,) = component.run(messages=[ChatMessage.from_user("史" * 9000)])["replies"]
    assert reply.meta["model"] == "small"  # nobody holds it: the endpoint has the word


def test_calls_are_written_down_with_what_they_cost_and_add_up(llm):
    llm.rule(lambda call: call.body["model"] == "strong", fault=Fault(status=500), times=2)
    models = {
        "models": named(llm, "strong", "cheap", price_in=1.0, price_out=4.0, max_tokens=50),
        "roles": {"answer": ["strong", "cheap"]},
    }
    component = ConfiguredChatGenerator(models=models)
    with Run().entered() as run:
        assert ask(component) == "cheap"
    failed, made = run.calls
    assert (failed["name"], failed["failed"], failed["attempts"], failed["tokens"], failed["cost"]) == (
        "strong", "server_error", 2, {}, 0.0,
    )  # fmt: skip
    assert (made["role"], made["name"], made["model"], made["attempts"]) == ("answer", "cheap", "cheap", 1)
    used = made["tokens"]
    assert made["cost"] == pytest.approx((used["prompt_tokens"] + 4 * used["completion_tokens"]) / 1e6)
    assert (run.answered, run.requests, llm.calls) == (1, 3, 3)
    assert all(call.body["max_tokens"] == 50 for call in llm.requests)


def test_the_key_of_a_named_model_is_its_own_and_stands_in_no_error(llm, monkeypatch):
    monkeypatch.setenv("CHEAP_API_KEY", "of-cheap-0123456789")
    llm.api_key = "of-cheap-0123456789"
    models = {"models": named(llm, "cheap", key_variable="CHEAP_API_KEY"), "roles": {"answer": ["cheap"]}}
    assert ask(ConfiguredChatGenerator(models=models)) == "cheap"
    llm.api_key = "another"
    (warning,) = ConfiguredChatGenerator(models=models).run(messages="Who?")["warnings"]
    assert "Check CHEAP_API_KEY" in warning
    assert "of-cheap" not in warning


@pytest.mark.parametrize("streams", [False, True])
def test_what_an_endpoint_does_not_count_is_estimated(llm, streams):
    llm.reports_usage = False
    more = {"streaming_callback": lambda _: None} if streams else {}
    with Run().entered() as run:
        ask(generator(llm), **more)
    (call,) = run.calls
    # 17 characters of ASCII and 24 for the message, four to a token; ten of the reply.
    assert (call["tokens"], call["estimated"]) == ({"prompt_tokens": 11, "completion_tokens": 3}, True)


def failure(status=429, **headers):
    request = httpx.Request("POST", "http://127.0.0.1/v1/chat/completions")
    return openai.APIStatusError("no", response=httpx.Response(status, headers=headers, request=request), body=None)


@pytest.mark.parametrize(("value", "seconds"), [
    ("3", 3.0), ("0.5", 0.5), ("0", 0.0), ("Thu, 01 Jan 1970 00:02:10 GMT", 30.0),
    ("Thu, 01 Jan 1970 00:00:10 GMT", 0.0), ("soon", 0.0), ("-4", 0.0), ("", 0.0),
])  # fmt: skip
def test_retry_after_is_seconds_or_a_date(monkeypatch, value, seconds):
    monkeypatch.setattr(failures.time, "time", lambda: 100.0)
    assert asked_to_wait(failure(**{"Retry-After": value})) == seconds


@pytest.mark.parametrize(("error", "worth"), [
    (failure(408), True), (failure(429, **{"Retry-After": "60"}), True),
    (failure(429, **{"Retry-After": "61"}), False), (ConnectionError("reset"), True), (ValueError("no JSON"), True),
    (TypeError("a wrong argument"), False),
])  # fmt: skip
def test_only_what_may_pass_is_worth_another_attempt(error, worth):
    assert is_worth_retrying(error) is worth
