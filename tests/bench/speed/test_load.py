import json
from pathlib import Path

import pytest
import yaml
from bench.speed.load import main
from bench.speed.load_clients import Target, ask_many
from bench.speed.plain_hayhooks import plain_definition
from tests.doubles.stand_in_llm import Fault, StandInLlm

from shiguan.haystack_compat import AsyncPipeline

BODY = {"model": "any", "messages": [{"role": "user", "content": "Say: {question}"}]}


@pytest.fixture
def llm():
    with StandInLlm([("one", "first"), ("two", "second")], default="third") as server:
        yield server


def _target(llm, path=("choices", 0, "message", "content")):
    return Target(f"{llm.url}/chat/completions", BODY, answer_path=path)


async def test_what_goes_wrong_is_counted_by_kind_and_has_no_latency(llm):
    llm.rule("broken", fault=Fault(status=500))
    llm.rule("cut", fault=Fault(reset=True))
    outcome = await ask_many(_target(llm), ["one", "broken", "cut"], clients=1)
    assert len(outcome.latencies) == 1
    assert outcome.errors == {"500": 1, "RemoteProtocolError": 1}
    nothing = await ask_many(_target(llm, ("result",)), ["one"], clients=1)
    assert nothing.errors == {"no result in the reply": 1}


async def test_a_stream_counts_only_with_its_terminal_event(llm):
    target = Target(f"{llm.url}/chat/completions", {**BODY, "stream": True}, streaming=True)
    # A stream of the OpenAI protocol has no named events, so none of ours has come to its end here.
    outcome = await ask_many(target, ["one"], clients=1)
    assert outcome.errors == {"stream ended with None": 1}


def test_added_time_is_what_the_llm_did_not_take(tmp_path, capsys):
    run = {
        "system": "simple", "streaming": True, "clients": 10, "load": "paced", "llm_ms": 490, "per_second": 9.5,
        "p50_ms": 540.0, "p95_ms": 610.4, "first_token_p50_ms": 350.0, "first_token_p95_ms": 380.2, "cpu_ms": 40.1,
        "cores_busy": 0.38, "memory_mib": 700, "errors": {"503": 2},
    }  # fmt: skip
    machine = {"cpu": "AMD EPYC", "cores": 2, "memory_gib": 24, "python": "3.11"}
    report = {"runs": [run], "machine": machine, "children": 5000, "date": "2026-01-01"}
    (tmp_path / "load.json").write_text(json.dumps(report))
    main(["--table", str(tmp_path / "load.json")])
    row = capsys.readouterr().out.splitlines()[2]
    assert row == "| simple (stream) | 10 | paced | 9.5 | 50 | 120 | 380 | 40.1 | 0.38 | 700 | 2 x 503 |"


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        ([600, 800, 810, 824, 820], "pass: at most 3.0% more than after the first 4,000"),
        ([600, 800, 810, 825, 820], "MISS: at most 3.1% more than after the first 4,000"),
        ([600, 800], "too few questions to judge"),
    ],
)
def test_memory_is_judged_by_what_comes_after_the_first_4000_questions(tmp_path, capsys, memory, said):
    asked = [2000, 4000, 6000, 8000, 10_000][: len(memory)]
    soak = {
        "mode": "precise", "asked": asked, "memory_mib": memory, "errors": 0, "cpu_ms": 70.0, "llm_calls": 1.5,
        "cores_busy": 0.95, "clients_cpu_ms": 2.0, "llm_cpu_ms": 3.5,
    }  # fmt: skip
    machine = {"cpu": "AMD EPYC", "cores": 2, "memory_gib": 24, "python": "3.11"}
    report = {"soak": [soak], "machine": machine, "children": 5000, "date": "2026-01-01"}
    (tmp_path / "load.json").write_text(json.dumps(report))
    main(["--table", str(tmp_path / "load.json")])
    line = capsys.readouterr().out.splitlines()[0]
    assert "70.0 ms CPU each (0.95 cores busy; clients 2.0 ms, the stand-in 3.5 ms), 0 errors" in line
    assert line.endswith(said)


def test_the_plain_deployment_is_our_file_on_haystacks_own_store(tmp_path):
    definition = plain_definition(tmp_path)
    text = yaml.safe_dump(definition)
    assert "qdrant" not in text
    assert {edge["receiver"] for edge in definition["connections"]} >= {"embedding_retriever.query_embedding"}
    AsyncPipeline.from_dict({key: definition[key] for key in ("components", "connections")})
    assert set(definition["inputs"]) == {"query", "tenant_id"}
    assert set(definition["outputs"]) == {"answers"}
    assert not Path(tmp_path / "children").exists()
