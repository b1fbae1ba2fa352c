"""The answering routes behind the real gate, with modes that do what a test wants: time, hang-ups, limits."""

import asyncio
import json
from contextlib import ExitStack

import pytest
from tests.components.serving.conftest import count, until
from tests.doubles.asgi_caller import AsgiCall
from tests.doubles.fake_modes import AT_WORK, CANCELLED, HANG, PLANS, Plan, fake_runner
from tests.doubles.served_app import served_app

from shiguan.serving import engine as engine_module
from shiguan.serving import telemetry
from shiguan.serving.engine import Engine, in_use
from shiguan.serving.openai_routes import router as openai_router
from shiguan.serving.rag_routes import router as rag_router
from shiguan.serving.settings import ServingSettings

HANGING = Plan(stage="generator", failure=HANG, tokens=2)
CHAT = {"model": "shiguan-simple", "messages": [{"role": "user", "content": "Who?"}]}
BODIES = {
    "/api/v1/rag/query": {"query": "Who?"}, "/api/v1/rag/query-stream": {"query": "Who?"},
    "/api/v1/rag/batch": {"requests": [{"query": "Who?"}]}, "/v1/chat/completions": CHAT,
}  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_happened():
    for record in (PLANS, AT_WORK, CANCELLED):
        record.clear()


@pytest.fixture
def served(tmp_path, monkeypatch):
    """An application with the real gate and routes; `served(request_timeout=1)`."""
    runners = {"simple": fake_runner(graded=False), "precise": fake_runner(graded=True)}
    monkeypatch.setattr(engine_module, "Runner", lambda _, mode, **__: runners[mode])

    used = ExitStack()

    def make(**given):
        settings = ServingSettings(data_dir=tmp_path, **given)
        app = served_app(settings, rag_router, openai_router)
        used.enter_context(in_use(Engine(settings, modes=list(runners))))

        def call(path, body=None):
            data = json.dumps(BODIES[path] if body is None else body).encode()
            return AsgiCall(app, path, body=data, headers={"Content-Type": "application/json"})

        return call

    with used:
        yield make


@pytest.mark.parametrize(("path", "body"), [*BODIES.items(), ("/v1/chat/completions", {**CHAT, "stream": True})])
async def test_a_caller_who_hangs_up_ends_the_work(served, path, body):
    PLANS["Who?"] = HANGING
    call = served()(path, body)
    await until(lambda: AT_WORK)
    call.hang_up()
    await call.done()
    assert CANCELLED == ["Who?"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize("path", ["/api/v1/rag/query", "/v1/chat/completions"])
async def test_a_question_that_takes_too_long_is_504_and_says_where(served, path):
    PLANS["Who?"] = HANGING
    call = await served(request_timeout=0.6)(path).done()
    assert call.status == 504
    assert (call.error["stage"], call.error.get("code", call.error["type"])) == ("generator", "timeout")
    assert CANCELLED == ["Who?"]


async def test_one_slow_question_of_a_batch_fails_alone(served):
    await served()("/api/v1/rag/query").done()  # what judges is loaded with the first answer
    PLANS["slow"] = HANGING
    bodies = {"requests": [{"query": "slow"}, {"query": "Who?"}, {"query": "Who?", "mode": "precise"}]}
    call = await served(request_timeout=1)("/api/v1/rag/batch", bodies).done()
    results = call.json["results"]
    assert call.status == 200
    assert [result["index"] for result in results] == [0, 1, 2]
    assert results[0]["error"]["type"] == "timeout"
    assert all(result["answer"]["status"] == "answered" for result in results[1:])


async def test_a_batch_asks_so_many_at_a_time_and_keeps_the_order(served, monkeypatch):
    monkeypatch.setattr(engine_module, "_BATCH_AT_ONCE", 3)
    names = [f"q{number}" for number in range(9)]
    PLANS.update(dict.fromkeys(names, HANGING))
    call = served()("/api/v1/rag/batch", {"requests": [{"query": name} for name in names]})
    await until(lambda: len(AT_WORK) == 3)
    for _ in range(50):
        await asyncio.sleep(0)
    assert sorted(AT_WORK) == ["q0", "q1", "q2"]
    call.hang_up()
    await call.done()
    assert sorted(CANCELLED) == ["q0", "q1", "q2"]
    assert sorted(AT_WORK) == ["q0", "q1", "q2"]


async def test_answers_are_counted_once_streamed_or_not(served):
    def counted():
        answers = count("shiguan_answers_total", mode="simple", status="answered")
        return answers, count("shiguan_first_token_seconds_count", mode="simple")

    (answers, tokens), make = counted(), served()
    for path in ("/api/v1/rag/query", "/api/v1/rag/query-stream"):
        assert (await make(path).done()).status == 200
    assert counted() == (answers + 2, tokens + 1)


def test_an_answer_that_was_withheld_is_counted_as_refused_and_costs_are_counted_by_mode():
    for grounding in ("refused", "not_found", None):
        switches = [{"from": "strong", "to": "cheap", "reason": "rate_limit"}] * (grounding is None)
        metadata = {"grounding": grounding, "calls": [{"cost": 0.25}, {"cost": None}], "switches": switches}
        telemetry.record_answer({"mode": "mine", "status": "not_found", "metadata": metadata})
    answers = [count("shiguan_answers_total", mode="mine", status=status) for status in ("refused", "not_found")]
    assert answers == [1, 2]
    assert count("shiguan_llm_cost_total", mode="mine") == 0.75
    assert count("shiguan_model_switches_total", model="strong", reason="rate_limit") == 1
