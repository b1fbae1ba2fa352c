"""Recorded replies stand in for a model: the same prompt gets its reply, another one is told of."""

import shutil

import pytest
from bench.quality.recording import CHANGED, FORMAT, OTHER_PASSAGES, RecordedModel, prompt_hashes
from tests.doubles.small_library import TENANT
from tests.doubles.stand_in_llm import StandInLlm

from shiguan.evaluation.json_lines import read_json_lines, write_json_lines
from shiguan.evaluation.measurement import Plan
from shiguan.evaluation.questions import read_golden_set

ROWS = [
    {"id": "tax", "question": "Who proposed the two-tax reform?", "answers": ["Yang Yan"],
     "gold": [{"quote": "Yang Yan proposed the two-tax reform in 780."}]},
    {"id": "salt", "question": "When was the salt monopoly set up?", "answers": ["758"],
     "gold": [{"quote": "The salt monopoly was set up by Diwu Qi in 758."}]},
]  # fmt: skip
RIGHT = {"tax": "Yang Yan proposed the two-tax reform in 780. [1]", "salt": "It was set up by Diwu Qi in 758. [1]"}


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    path = tmp_path_factory.mktemp("golden") / "golden.jsonl"
    write_json_lines(path, ROWS)
    return path


RULES = [("two-tax reform\\?", RIGHT["tax"]), ("salt monopoly set up\\?", RIGHT["salt"])]


def configure(llm, environment):
    environment.setenv("OPENAI_BASE_URL", llm.url)
    environment.setenv("OPENAI_MODEL", "small-one")
    llm.rules = list(RULES)


@pytest.fixture
def llm(stand_in_llm, monkeypatch):
    configure(stand_in_llm, monkeypatch)
    return stand_in_llm


@pytest.fixture(scope="module")
def plan_of(library, golden):
    def plan_of(mode="simple", **asked):
        asked = {"top_k": 1, **asked}
        questions = read_golden_set(golden)
        return Plan("answers", questions, mode=mode, tenant_id=TENANT, data_dir=library, asked=asked)

    return plan_of


@pytest.fixture(scope="module")
def recorded(plan_of, tmp_path_factory):
    """A recording of both questions, and what the model was asked for it."""
    path = tmp_path_factory.mktemp("recorded") / "recording.jsonl"
    with StandInLlm() as llm, pytest.MonkeyPatch.context() as environment:
        configure(llm, environment)
        with RecordedModel(path, asks=True, longest=60) as model:
            model.record([plan_of()])
        return path, llm.requests


@pytest.fixture
def recording(recorded, llm, tmp_path):
    """A copy of it, beside a model that answers alike."""
    return shutil.copy(recorded[0], tmp_path / "recording.jsonl")


def test_a_replayed_run_is_the_recorded_one_without_a_model(recorded, recording, llm, plan_of):
    about, *replies = (row for _, row in read_json_lines(recording))
    assert (about["format"], about["questions"], about["modes"]) == (FORMAT, ["tax", "salt"], ["simple"])
    assert about["model"] == "small-one"
    assert [(row["question"], row["message"]["content"]) for row in replies] == [
        ("tax", RIGHT["tax"]),
        ("salt", RIGHT["salt"]),
    ]
    assert [call.body["max_tokens"] for call in recorded[1]] == [60, 60]  # once each: the second pass asks nobody
    with RecordedModel(recording) as model:
        results = model.measure(plan_of())
    assert model.missing == {}
    assert llm.calls == 0
    assert {question.id: question.details["answer"] for question in results.questions} == RIGHT
    assert [question.metrics["correct"] for question in results.questions] == [1.0, 1.0]


@pytest.mark.parametrize(("asked", "why"), [({"language": "zh"}, CHANGED), ({"top_k": 2}, OTHER_PASSAGES)])
def test_a_prompt_that_was_not_recorded_is_told_with_its_question(recording, plan_of, asked, why):
    with RecordedModel(recording) as model:
        model.measure(plan_of(**asked))
    assert model.missing == {"tax": why, "salt": why}


def test_a_tool_call_is_recorded_and_replayed(llm, plan_of, tmp_path):
    call = {"tool_calls": [{"name": "search_library", "arguments": {"query": "salt monopoly"}}]}
    left = [call, RIGHT["tax"], call, RIGHT["salt"]]
    llm.rules = []
    llm.rule(".*", lambda _: left.pop(0))
    path = tmp_path / "agent.jsonl"
    with RecordedModel(path, asks=True) as model:
        model.record([plan_of("agent")])
    assert (llm.calls, left) == (4, [])
    with RecordedModel(path) as model:
        results = model.measure(plan_of("agent"))
    assert model.missing == {}
    assert [question.metrics["llm_calls"] for question in results.questions] == [2, 2]


def test_the_hash_of_a_prompt_hangs_on_what_is_asked_alone():
    asked = {"model": "a", "messages": [{"role": "user", "content": 'x <source number="1">\nold\n</source>\n y'}]}
    other = {"model": "a", "messages": [{"role": "user", "content": 'x <source number="1">\nnew\n</source>\n y'}]}
    same = {**asked, "model": "b", "stream": True, "stream_options": {}, "max_tokens": 5}
    assert prompt_hashes(asked) == prompt_hashes(same)
    assert prompt_hashes(asked)[0] != prompt_hashes(other)[0]
    assert prompt_hashes(asked)[1] == prompt_hashes(other)[1]
    assert prompt_hashes({**asked, "temperature": 1})[1] != prompt_hashes(asked)[1]
