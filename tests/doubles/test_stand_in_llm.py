"""What tests and benchmarks measure with the stand-in LLM, and what starts it by hand."""

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
