"""The stand-in LLM, seen through the clients that the tests and demos use."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import openai
import pytest
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret
from tests.doubles.stand_in_llm import Rule, StandInLlm
from tests.doubles.stand_in_script import Fault, load_rules

ROOT = Path(__file__).resolve().parents[2]
QUESTION = [{"role": "system", "content": "You are a historian."}, {"role": "user", "content": "Who took Caizhou?"}]


@pytest.fixture
def client(stand_in_llm):
    with openai.OpenAI(base_url=stand_in_llm.url, api_key="any", max_retries=0, timeout=10) as client:
        yield client


def ask(client, **more):
    return client.chat.completions.create(**{"model": "m", "messages": QUESTION, **more})


def test_first_fitting_rule_answers(stand_in_llm, client):
    stand_in_llm.rules = [
        ("nothing like it", "no"),
        Rule("historian.*caizhou|historian.*Caizhou", "Li Su [1]"),
        ("", "late"),
    ]
    completion = ask(client)
    assert completion.choices[0].message.content == "Li Su [1]"
    assert completion.choices[0].finish_reason == "stop"
    assert completion.model == "m"
    # "Li", " Su", " [", "1", "]"; the prompt: 5 tokens, then a line break before "Who", " took", " Caizhou", "?"
    assert (completion.usage.completion_tokens, completion.usage.prompt_tokens) == (5, 9)
    assert completion.usage.total_tokens == 14
    assert stand_in_llm.prompts == ["You are a historian.\nWho took Caizhou?"]


def test_default_answers_where_no_rule_fits(stand_in_llm, client):
    assert ask(client).choices[0].message.content == "I do not know."
    assert stand_in_llm.requests[0].status == 200


def test_rules_can_be_functions_and_wear_out(stand_in_llm, client):
    stand_in_llm.rule(lambda call: "Caizhou" in call.prompt, lambda call: call.body["model"].upper(), times=1)
    assert [ask(client).choices[0].message.content for _ in range(2)] == ["M", "I do not know."]


def test_content_parts_are_part_of_the_prompt(stand_in_llm, client):
    stand_in_llm.rule("second part", "found")
    parts = [{"type": "text", "text": "first part"}, {"type": "text", "text": "second part"}]
    assert ask(client, messages=[{"role": "user", "content": parts}]).choices[0].message.content == "found"


def test_json_replies_are_sent_as_json(stand_in_llm, client):
    stand_in_llm.rule("", {"queries": ["淮西", "Huaixi"]})
    assert json.loads(ask(client).choices[0].message.content) == {"queries": ["淮西", "Huaixi"]}


def test_json_mode_gives_json_even_by_default_and_insists_on_the_word(stand_in_llm, client):
    mode = {"type": "json_object"}
    with pytest.raises(openai.BadRequestError, match="must contain the word 'json'"):
        ask(client, response_format=mode)
    asked = [{"role": "user", "content": "Reply in JSON."}]
    content = ask(client, messages=asked, response_format=mode).choices[0].message.content
    assert json.loads(content) == {"reply": "I do not know."}


def test_several_choices_and_a_token_limit(stand_in_llm, client):
    stand_in_llm.rule("", "one two three four")
    completion = ask(client, n=2, max_tokens=2)
    assert [(c.index, c.message.content, c.finish_reason) for c in completion.choices] == [
        (0, "one two", "length"),
        (1, "one two", "length"),
    ]


def test_stream_gives_every_token_and_the_usage_if_asked(stand_in_llm, client):
    stand_in_llm.rule("", "李愬 took it. [1]\n")
    chunks = list(ask(client, stream=True, stream_options={"include_usage": True}))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "李愬 took it. [1]\n"
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == len(chunks) - 3  # the role, the end and the usage carry no token
    assert all(c.usage is None for c in chunks[:-1])
    assert all(c.usage is None for c in ask(client, stream=True))


def test_models_are_listed(client):
    assert [model.id for model in client.models.list()] == ["stand-in"]
    assert client.models.retrieve("stand-in").owned_by == "stand-in"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other")


def test_bad_requests_are_refused(client):
    with pytest.raises(openai.BadRequestError, match="at least one message"):
        ask(client, messages=[])
    with pytest.raises(openai.BadRequestError, match="model parameter"):
        ask(client, model="")
    with pytest.raises(openai.NotFoundError):
        client.completions.create(model="m", prompt="x")


def test_a_key_can_be_required(stand_in_llm, client):
    stand_in_llm.api_key = "other"
    with pytest.raises(openai.AuthenticationError):
        ask(client)
    assert stand_in_llm.calls == 0
    stand_in_llm.api_key = "any"
    ask(client)
    assert "authorization" not in stand_in_llm.requests[0].headers


@pytest.mark.parametrize(("status", "error"), [(429, openai.RateLimitError), (500, openai.InternalServerError)])
def test_error_statuses_reach_the_client_and_are_retried(stand_in_llm, client, status, error):
    stand_in_llm.next(times=2, status=status, retry_after=0.001)
    with pytest.raises(error) as caught:
        ask(client)
    assert caught.value.response.headers["Retry-After"] == "0.001"
    assert ask(client.with_options(max_retries=2)).choices[0].message.content == "I do not know."
    assert [call.status for call in stand_in_llm.requests] == [status, status, 200]


def test_hang_ends_with_the_client(stand_in_llm, client):
    stand_in_llm.next(hang=True)
    with pytest.raises(openai.APITimeoutError):
        ask(client.with_options(timeout=0.05))
    assert stand_in_llm.wait_for(lambda llm: llm.disconnects == 1)
    assert stand_in_llm.in_flight == 0
    assert stand_in_llm.requests[0].status is None


def test_hang_ends_with_the_server():
    llm = StandInLlm().start()
    llm.next(hang=True)
    with openai.OpenAI(base_url=llm.url, api_key="any", max_retries=0) as client, ThreadPoolExecutor(1) as pool:
        pending = pool.submit(ask, client)
        assert llm.wait_for(lambda llm: llm.in_flight == 1)
        llm.stop()
        with pytest.raises(openai.APIConnectionError):
            pending.result(timeout=10)
    assert llm.in_flight == llm.disconnects == 0


def test_reset_breaks_the_connection(stand_in_llm, client):
    stand_in_llm.next(reset=True)
    with pytest.raises(openai.APIConnectionError):
        ask(client)
    assert stand_in_llm.requests[0].status is None


def test_malformed_body_is_no_json(stand_in_llm, client):
    stand_in_llm.next(times=2, malformed=True)
    with pytest.raises(json.JSONDecodeError):
        ask(client)
    with pytest.raises(json.JSONDecodeError):
        list(ask(client, stream=True))
    assert ask(client).choices[0].message.content == "I do not know."


def test_truncated_stream_ends_early_without_an_end_event(stand_in_llm, client):
    stand_in_llm.next(truncate_after=2)
    received = []
    with pytest.raises(openai.APIConnectionError):
        received.extend(chunk.choices[0].delta.content for chunk in ask(client, stream=True))
    assert received == ["", "I", " do"]


def test_truncated_body_is_an_error(stand_in_llm, client):
    stand_in_llm.next(truncate_after=2)
    with pytest.raises(openai.APIConnectionError):
        ask(client)


def test_a_fault_can_belong_to_a_rule(stand_in_llm, client):
    stand_in_llm.rule("Caizhou", fault=Fault(status=503), times=1)
    with pytest.raises(openai.InternalServerError):
        ask(client)
    assert ask(client).choices[0].message.content == "I do not know."


def test_a_client_that_leaves_in_mid_stream_is_noticed(stand_in_llm, client):
    stand_in_llm.rule("", "word " * 50)
    stand_in_llm.time_per_token = 5
    stream = ask(client, stream=True)
    assert next(iter(stream)).choices[0].delta.role == "assistant"
    stream.close()
    assert stand_in_llm.wait_for(lambda llm: llm.disconnects == 1)
    assert stand_in_llm.in_flight == 0


def test_in_flight_and_critical_path_tell_overlap_from_sequence(stand_in_llm, client):
    gate = threading.Event()
    stand_in_llm.rule("", lambda call: gate.wait(10) and "done")
    with ThreadPoolExecutor(3) as pool:
        pending = [pool.submit(ask, client) for _ in range(3)]
        assert stand_in_llm.wait_for(lambda llm: llm.in_flight == 3)
        gate.set()
        assert [p.result().choices[0].message.content for p in pending] == ["done"] * 3
    assert stand_in_llm.wait_for(lambda llm: llm.in_flight == 0)
    assert (stand_in_llm.calls, stand_in_llm.max_in_flight, stand_in_llm.critical_path) == (3, 3, 1)
    ask(client)
    ask(client)
    assert stand_in_llm.wait_for(lambda llm: llm.in_flight == 0)
    assert (stand_in_llm.calls, stand_in_llm.max_in_flight, stand_in_llm.critical_path) == (5, 3, 3)
    stand_in_llm.reset()
    assert (stand_in_llm.calls, stand_in_llm.max_in_flight, stand_in_llm.critical_path) == (0, 0, 0)


def test_times_to_tokens_are_kept(stand_in_llm, client):
    stand_in_llm.rule("", "a b c")
    stand_in_llm.time_to_first_token, stand_in_llm.time_per_token = 0.05, 0.01
    ask(client)
    list(ask(client, stream=True))
    assert stand_in_llm.wait_for(lambda llm: llm.in_flight == 0)
    assert [call.finished - call.started >= 0.07 for call in stand_in_llm.requests] == [True, True]


async def test_async_client_overlaps_calls(stand_in_llm):
    gate = threading.Event()
    stand_in_llm.rule("", lambda call: gate.wait(10) and "done")
    async with openai.AsyncOpenAI(base_url=stand_in_llm.url, api_key="any") as client:
        pending = [asyncio.create_task(ask(client)) for _ in range(4)]
        assert await asyncio.to_thread(stand_in_llm.wait_for, lambda llm: llm.in_flight == 4)
        gate.set()
        assert {c.choices[0].message.content for c in await asyncio.gather(*pending)} == {"done"}
    assert stand_in_llm.max_in_flight == 4


def generator(llm, **more):
    return OpenAIChatGenerator(api_key=Secret.from_token("any"), api_base_url=llm.url, model="m", **more)


def test_haystack_generator_answers(stand_in_llm):
    stand_in_llm.rule("Caizhou", "Li Su [1]")
    reply = generator(stand_in_llm).run([ChatMessage.from_user("Who took Caizhou?")])["replies"][0]
    assert reply.text == "Li Su [1]"
    assert reply.meta["model"] == "m"
    assert reply.meta["usage"]["completion_tokens"] == 5


def test_haystack_generator_streams(stand_in_llm):
    stand_in_llm.rule("Caizhou", "Li Su [1]")
    seen = []
    streaming = generator(stand_in_llm, streaming_callback=lambda chunk: seen.append(chunk.content))
    reply = streaming.run([ChatMessage.from_user("Who took Caizhou?")])["replies"][0]
    assert reply.text == "".join(seen) == "Li Su [1]"
    assert stand_in_llm.requests[0].body["stream"] is True


async def test_haystack_generator_runs_async_and_streams(stand_in_llm):
    stand_in_llm.rule("Caizhou", "Li Su [1]")
    seen = []

    async def note(chunk):
        seen.append(chunk.content)

    asked = [ChatMessage.from_user("Who took Caizhou?")]
    component = generator(stand_in_llm)
    plain = await component.run_async(asked)
    streamed = await component.run_async(asked, streaming_callback=note)
    assert plain["replies"][0].text == streamed["replies"][0].text == "".join(seen) == "Li Su [1]"
    await component.async_client.close()


def test_haystack_generator_retries(stand_in_llm):
    stand_in_llm.next(times=2, status=429, retry_after=0.001)
    reply = generator(stand_in_llm, max_retries=3).run([ChatMessage.from_user("x")])["replies"][0]
    assert reply.text == "I do not know."
    assert stand_in_llm.calls == 3


def test_rules_file_sets_rules_faults_and_knobs(tmp_path):
    path = tmp_path / "rules.yml"
    path.write_text(
        "default: none\ntime_per_token: 0\nrules:\n- {match: a+, reply: {x: 1}, times: 2}\n- {match: b, status: 503}\n"
    )
    settings = load_rules(path)
    assert settings == {
        "default": "none",
        "time_per_token": 0,
        "rules": [Rule("a+", {"x": 1}, times=2), Rule("b", fault=Fault(status=503))],
    }
    assert load_rules(ROOT / "tests" / "doubles" / "stand_in_rules.yml")["rules"]


@pytest.mark.skipif(os.name == "nt", reason="interrupts a process")
def test_it_can_be_started_by_hand():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "tests.doubles.stand_in_llm",
        "--port",
        str(port),
        "--rules",
        "tests/doubles/stand_in_rules.yml",
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == f"OPENAI_BASE_URL=http://127.0.0.1:{port}/v1 OPENAI_API_KEY=any\n"
            with openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="any") as client:
                assert ask(client).choices[0].message.content == "The sources do not say. [1]"
        finally:
            process.send_signal(signal.SIGINT)
        assert json.loads(process.stdout.readline())["statuses"] == {"200": 1}
    assert process.returncode == 0


def test_what_was_counted_is_taken_and_forgotten():
    with StandInLlm(default="Yes.") as llm:
        for asked in (2, 1):
            for _ in range(asked):
                httpx.post(
                    f"{llm.url}/chat/completions", json={"model": "m", "messages": [{"role": "user", "content": "?"}]}
                )
            assert httpx.get(f"{llm.url.removesuffix('/v1')}/stand-in/take").json()["calls"] == asked
        assert llm.requests == []
