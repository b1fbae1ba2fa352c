"""Models by role, failover and budgets in whole modes, over real HTTP."""

import asyncio
import random
from types import SimpleNamespace

import pytest
from tests.doubles.own_modes import mode_with, named
from tests.doubles.stand_in_llm import Fault

from shiguan.llm import run as run_module
from shiguan.llm.run import Run

QUESTION = "Who proposed the two-tax reform?"
HARD = "Compare the salt monopoly with the two-tax reform, and say why both were set up and what they paid by 780."
ROLES = {"answer": ["normal"], "answer_strong": ["strong", "normal"], "helper": ["cheap"], "judge": ["judge"]}


@pytest.fixture
def now(monkeypatch):
    """Clocks that stand still until a test moves them, and retries that do not wait."""
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(run_module, "clock", lambda: now.seconds)
    monkeypatch.setattr("shiguan.llm.endpoint.FIRST_WAIT", 0.0)
    return now


@pytest.fixture
def llm(stand_in_llm, now):
    stand_in_llm.default = "Yang Yan proposed the two-tax reform in 780. [1]"
    return stand_in_llm


@pytest.fixture
def runner_of(llm, tmp_path, opened, monkeypatch):
    monkeypatch.setenv("SHIGUAN_PIPELINES_DIR", str(tmp_path))

    def load(mode, **sections):
        models = named(llm, "normal", "strong", "cheap", "judge", price_in=1.0, price_out=3.0)
        return opened(mode_with(tmp_path, mode, models={"models": models, "roles": ROLES}, **sections))

    return load


def by_stage(answer):
    return {call["stage"]: call["name"] for call in answer["metadata"]["calls"]}


def adds_up(answer, llm):
    """What the answer says of its calls is what the stand-in saw."""
    metadata, calls = answer["metadata"], answer["metadata"]["calls"]
    # What was no longer waited for may not have been sent yet, or have been answered all the same.
    cut = [call for call in calls if call.get("failed") in ("stopped", "timeout")]
    attempts = sum(call["attempts"] for call in calls)
    assert llm.calls <= attempts <= llm.calls + len(cut)
    if metadata["budget"]:
        assert metadata["budget"]["spent"]["calls"] == attempts
    made = [call for call in calls if "failed" not in call]
    assert len(made) == metadata["llm_calls"]
    answered = [call for call in llm.requests if call.usage is not None and call.status == 200]
    for kind in ("prompt_tokens", "completion_tokens"):
        seen, known = sum(call.usage[kind] for call in answered), sum(call["tokens"][kind] for call in made)
        assert known == metadata["usage"].get(kind, 0)
        assert seen == known or (cut and seen > known)
    assert cut or sorted(call["model"] for call in made) == sorted(call.body["model"] for call in answered)
    assert all(call["ms"] >= 0 and call["role"] and call["cost"] is not None for call in calls)


def test_helpers_take_the_cheap_one_answers_the_normal_one(llm, runner_of):
    answer = runner_of("advanced").ask("Why was the two-tax reform of 780 proposed by Yang Yan?", tenant_id="a")
    assert (answer["metadata"]["model"], answer["metadata"]["budget"]) == ("normal", None)
    found = by_stage(answer)
    assert found.pop("generator") == "normal"
    assert set(found.values()) == {"cheap"}
    adds_up(answer, llm)


def test_a_hard_question_takes_the_strong_one_and_one_that_is_down_costs_one_more_try_and_a_warning(llm, runner_of):
    runner = runner_of("advanced")
    answer = runner.ask(HARD, tenant_id="a", explain=True)
    assert answer["metadata"]["explain"]["analysis"]["complexity"] >= 7
    assert by_stage(answer)["generator"] == "strong"
    assert [call["role"] for call in answer["metadata"]["calls"] if call["stage"] == "generator"] == ["answer_strong"]
    adds_up(answer, llm)
    llm.reset()
    llm.rule(lambda call: call.body["model"] == "strong", fault=Fault(status=500))
    answer = runner.ask(HARD, tenant_id="a")
    adds_up(answer, llm)
    asked = [call.body["model"] for call in llm.requests if call.body["model"] != "cheap"]
    assert asked == ["strong", "strong", "normal"]
    assert answer["metadata"]["switches"] == [{"from": "strong", "to": "normal", "reason": "server_error"}]
    assert "The model `normal` stood in for `strong` (server_error)." in answer["metadata"]["warnings"]


def test_a_second_attempt_takes_the_strong_one_and_the_grader_its_own(llm, runner_of):
    llm.default = "Yang Yan proposed the two-tax reform in 780. [1] Guo Ziyi proposed it in 931. [1]"
    answer = runner_of("precise").ask(QUESTION, tenant_id="a")
    writers = [call["name"] for call in answer["metadata"]["calls"] if call["stage"] == "generator"]
    assert writers[:2] == ["normal", "strong"]
    assert {call["name"] for call in answer["metadata"]["calls"] if call["stage"] == "grader"} <= {"judge"}
    adds_up(answer, llm)


@pytest.mark.parametrize(("mode", "calls", "made", "refused", "status"), [
    ("simple", 0, 0, ["generator"], "quoted"), ("simple", 1, 1, [], "answered"),
    ("advanced", 0, 0, ["query_rewriter", "hyde_embedder", "generator"], "quoted"),
    ("advanced", 1, 1, ["query_rewriter", "hyde_embedder"], "answered"),
    ("advanced", 2, 2, ["hyde_embedder"], "answered"),
    ("advanced", 3, 3, [], "answered"),
    ("precise", 0, 0, ["query_rewriter", "generator"], "quoted"),
    ("precise", 1, 1, ["query_rewriter", "hallucination_grader"], "answered"),
    ("precise", 2, 2, ["hallucination_grader"], "answered"),
    ("precise", 3, 3, ["hallucination_grader"], "answered"),
])  # fmt: skip
def test_fewer_calls_leave_out_the_helpers_and_then_the_answer(llm, runner_of, mode, calls, made, refused, status):
    llm.rule(r"(?s)queries", {"query": HARD, "queries": ["Who set up the salt monopoly in 758?"]})
    llm.default = "Yang Yan proposed the two-tax reform in 780. [1] Guo Ziyi paid for it in 931. [1]"
    question = "Why was the two-tax reform of 780 proposed by Yang Yan?" if mode == "advanced" else QUESTION
    answer = runner_of(mode).ask(question, tenant_id="a", budget={"calls": calls})
    metadata = answer["metadata"]
    assert (metadata["budget"]["refused"], answer["status"]) == (refused, status)
    assert llm.calls == metadata["budget"]["spent"]["calls"] == made
    assert any("did without a model" in warning for warning in metadata["warnings"]) is bool(refused)


def test_the_files_own_limits_hold_for_every_question(llm, runner_of):
    answer = runner_of("simple", budget={"calls": 0}).ask(QUESTION, tenant_id="a", budget={"calls": 5})
    assert (answer["status"], answer["metadata"]["budget"]["limits"]) == ("quoted", {"calls": 0})


def test_a_search_says_too_what_did_without_a_model(llm, runner_of):
    _, warnings = runner_of("advanced").search(HARD, tenant_id="a", budget={"calls": 0})
    assert any("`query_rewriter`, " in one and "did without a model" in one for one in warnings)


FAULTS = [
    {"status": 500}, {"status": 429}, {"status": 400}, {"reset": True}, {"malformed": True}, {"truncate_after": 3},
]  # fmt: skip


def random_budget(chance):
    limits = {"calls": chance.randint(0, 6), "seconds": round(chance.uniform(0, 12), 2)}
    return {unit: limits[unit] for unit in chance.sample(sorted(limits), chance.randint(1, 2))}


@pytest.mark.parametrize("times", [20, pytest.param(300, marks=pytest.mark.slow)], ids=["a few", "many"])
async def test_no_call_begins_beyond_the_budget_whatever_fails(llm, runner_of, now, times, monkeypatch):
    """Every request takes some seconds of a clock that only requests move."""
    runners = [await asyncio.to_thread(runner_of, mode) for mode in ("simple", "advanced", "precise")]
    for runner in runners:
        await asyncio.to_thread(runner.warm_up)
    history = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": "Yang Yan did, in 780."}]
    begun = []

    def reply(call):
        if "what the person is after" not in call.prompt:  # runs beside the others: its time is limited by itself
            now.seconds += chance.uniform(0, 4)
        if "JSON" in call.prompt or "json" in call.prompt:
            return {"query": "Who proposed the two-tax reform of 780?", "queries": ["two-tax reform", "Yang Yan"],
                    "goal": "Who proposed the two-tax reform?"}  # fmt: skip
        return "Yang Yan proposed the two-tax reform in 780. [1]" + chance.choice(["", " Guo Ziyi paid in 931. [1]"])

    begin = Run.begin_request

    def noted(run):
        begin(run)
        begun.append(now.seconds)

    monkeypatch.setattr(Run, "begin_request", noted)
    refused = set()
    for number in range(times):
        chance = random.Random(number)
        llm.reset()
        begun.clear()
        llm.rules = [(lambda call: True, reply)]
        for _ in range(chance.choice([0, 0, 0, 1, 2, 5])):
            llm.next(**(chance.choice(FAULTS) if chance.random() < 0.8 else {}))
        budget = random_budget(chance)
        runner, started = chance.choice(runners), now.seconds
        question = chance.choice([QUESTION, HARD, "Why was the two-tax reform proposed, and by whom?", "When was it?"])
        told = history if chance.random() < 0.5 or question == "When was it?" else None
        events = [event async for event in runner.stream(question, tenant_id="a", budget=budget, history=told)]
        assert [event.name for event in events if event.is_terminal] == [events[-1].name], number
        assert llm.calls <= budget.get("calls", 99), number
        assert all(moment - started < budget.get("seconds", 1e9) for moment in begun), number
        if events[-1].name == "generation_complete":
            adds_up(events[-1].data, llm)
            record = events[-1].data["metadata"]["budget"]
            assert record["limits"] == budget
            refused |= {*record["refused"]}
    # Answers went without, and so did helpers.
    assert {"generator", "query_rewriter"} <= refused
