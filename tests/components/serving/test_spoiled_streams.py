"""Three thousand streams, each spoiled in its own way or left by its listener: each ends once, and leaves nothing behind."""

import asyncio
import random

import pytest
from tests.doubles.fake_modes import FAILURES, HANG, PLANS, STAGES, TOKENS, Plan, fake_runner

from shiguan.serving import engine as engine_module
from shiguan.serving.engine import AnswerRequest, Engine
from shiguan.serving.event_stream import ServerEvent
from shiguan.serving.rag_routes import _server_events
from shiguan.serving.settings import ServingSettings


def plan_of(seed: int) -> Plan:
    chance = random.Random(seed)
    return Plan(
        stage=chance.choice([*STAGES, "nowhere"]),
        failure=chance.choice([*FAILURES, HANG]),
        tokens=chance.randrange(len(TOKENS) + 1),
        leaves_after=chance.randrange(1, 20) if chance.random() < 0.3 else None,
        silent=chance.random() < 0.1,
    )


@pytest.fixture
def engine(monkeypatch, tmp_path):
    runners = {"simple": fake_runner(graded=False), "precise": fake_runner(graded=True)}
    monkeypatch.setattr(engine_module, "Runner", lambda _, mode, **__: runners[mode])
    settings = ServingSettings(data_dir=tmp_path, request_timeout=1.0)
    return Engine(settings, modes=list(runners))


async def listen(engine: Engine, seed: int) -> list[ServerEvent]:
    """Listen as a server's reply does, or go away in the middle."""
    plan = PLANS[f"q{seed}"]
    events = engine.stream(AnswerRequest(query=f"q{seed}", mode="precise" if seed % 3 == 0 else "simple"), "a")
    parts, heard = _server_events(events), []
    async for part in parts:
        heard.append(part)
        if len(heard) == plan.leaves_after:
            break
    await parts.aclose()
    return heard


@pytest.mark.slow
@pytest.mark.parametrize("block", range(3))
async def test_every_stream_ends_in_exactly_one_terminal_event(engine, block):
    seeds = range(block * 1000, (block + 1) * 1000)
    PLANS.clear()
    PLANS.update({f"q{seed}": plan_of(seed) for seed in seeds})
    endings = {"generation_complete": 0, "error": 0, "left": 0}
    waiting = iter(seeds)

    async def worker():
        for seed in waiting:
            heard = await listen(engine, seed)
            told = [event.name for event in heard]
            ends = [name for name in told if name in ("generation_complete", "error")]
            if len(heard) == PLANS[f"q{seed}"].leaves_after:
                assert len(ends) <= 1, seed
                endings["left"] += 1
                continue
            assert len(ends) == 1, (seed, told)
            assert told[-1] == ends[0], (seed, told)
            assert [event.id for event in heard] == list(range(1, len(heard) + 1)), seed
            assert ("answer" in heard[-1].data) != ("error" in heard[-1].data), seed
            endings[ends[0]] += 1

    await asyncio.gather(*(worker() for _ in range(20)))
    assert sum(endings.values()) == 1000
    assert all(count > 50 for count in endings.values()), endings
    # Nothing goes on that nobody waits for; a cancelled task needs one more turn of the loop.
    for _ in range(3):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
