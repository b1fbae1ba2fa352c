"""Ten thousand streams, each spoiled in its own way or left by its listener: each ends once, and leaves nothing behind."""

import asyncio
import json
import random
from dataclasses import dataclass
from typing import Any

import pytest
from haystack import AsyncPipeline, Document, component
from haystack.dataclasses import ChatMessage, StreamingChunk

from shiguan.answer.citation_extractor import CitationExtractor
from shiguan.errors import AnswerError, RefusedError, StoreLockedError
from shiguan.pipeline_map import map_of
from shiguan.runner import Runner
from shiguan.serving import engine as engine_module
from shiguan.serving.answer_request import AnswerRequest
from shiguan.serving.engine import Engine
from shiguan.serving.rag_routes import _written
from shiguan.serving.settings import ServingSettings

TEXT = "An Lushan rose at Fanyang in 755 [1]. He took Luoyang in the twelfth month [1]. "
TOKENS = [TEXT[start : start + 7] for start in range(0, len(TEXT), 7)]
STAGES = ["fetcher", "context", "generator", "grader", "citations"]
FAILURES = [
    lambda: ValueError("a bug"),
    lambda: KeyError("another"),
    lambda: AnswerError("The stage `x` failed.", stage="x"),
    lambda: RefusedError("No."),
    lambda: StoreLockedError("Locked."),
    lambda: TimeoutError(),
    lambda: OSError(28, "No space left on device"),
    lambda: RecursionError(),
    lambda: asyncio.CancelledError("from within"),
]
HANG = "hang"


@dataclass(frozen=True)
class Plan:
    """How a stream is spoiled: at which stage, how, after how many tokens; and after how many events nobody listens."""

    stage: str
    failure: Any
    tokens: int
    leaves_after: int | None
    silent: bool


PLANS: dict[str, Plan] = {}


def plan_of(seed: int) -> Plan:
    chance = random.Random(seed)
    return Plan(
        stage=chance.choice([*STAGES, "nowhere"]),
        failure=chance.choice([*FAILURES, HANG]),
        tokens=chance.randrange(len(TOKENS) + 1),
        leaves_after=chance.randrange(1, 20) if chance.random() < 0.3 else None,
        silent=chance.random() < 0.1,
    )


def strike(stage: str, query: str) -> None:
    plan = PLANS[query]
    if plan.stage == stage and plan.failure is not HANG:
        raise plan.failure()


@component
class Fetcher:
    @component.output_types(documents=list[Document], query=str)
    def run(self, query: str):
        strike("fetcher", query)
        return {"documents": [Document(content=TEXT.replace(" [1]", ""), meta={"number": 1})], "query": query}


@component
class Context:
    @component.output_types(documents=list[Document], messages=list[ChatMessage])
    async def run_async(self, documents: list[Document], query: str):
        strike("context", query)
        return {"documents": documents, "messages": [ChatMessage.from_user(query)]}

    @component.output_types(documents=list[Document], messages=list[ChatMessage])
    def run(self, documents: list[Document], query: str):
        raise AssertionError("the asynchronous twin runs")


@component
class Generator:
    @component.output_types(replies=list[ChatMessage])
    async def run_async(self, messages: list[ChatMessage], streaming_callback: Any = None):
        query = messages[0].text
        plan = PLANS[query]
        for count, token in enumerate(TOKENS):
            if plan.stage == "generator" and count == plan.tokens:
                if plan.failure is HANG:
                    await asyncio.Event().wait()
                raise plan.failure()
            if streaming_callback is not None:
                await streaming_callback(StreamingChunk(content=token))
            if count % 5 == 0:
                await asyncio.sleep(0)
        return {"replies": [ChatMessage.from_assistant("".join(TOKENS), meta={"query": query})]}

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], streaming_callback: Any = None):
        raise AssertionError("the asynchronous twin runs")


@component
class Grader:
    @component.output_types(replies=list[ChatMessage])
    async def run_async(self, replies: list[ChatMessage], documents: list[Document]):
        query = replies[0].meta["query"]
        strike("grader", query)
        # A stage that stays silent: the pipeline ends without an answer and without an exception.
        return {} if PLANS[query].silent else {"replies": replies}

    @component.output_types(replies=list[ChatMessage])
    def run(self, replies: list[ChatMessage], documents: list[Document]):
        raise AssertionError("the asynchronous twin runs")


@component
class Citations(CitationExtractor):
    def _answer(self, reply, numbered, query, language, warnings):
        strike("citations", reply.meta["query"])
        return CitationExtractor._answer(self, reply, numbered, query, language, warnings)


def fake_runner(*, graded: bool) -> Runner:
    pipeline = AsyncPipeline()
    pipeline.add_component("fetcher", Fetcher())
    pipeline.add_component("context", Context())
    pipeline.add_component("generator", Generator())
    pipeline.add_component("citations", Citations(raise_on_failure=True))
    pipeline.connect("fetcher.documents", "context.documents")
    pipeline.connect("fetcher.query", "context.query")
    pipeline.connect("context.messages", "generator.messages")
    if graded:
        pipeline.add_component("grader", Grader())
        pipeline.connect("generator.replies", "grader.replies")
        pipeline.connect("context.documents", "grader.documents")
        pipeline.connect("grader.replies", "citations.replies")
    else:
        pipeline.connect("generator.replies", "citations.replies")
    pipeline.connect("context.documents", "citations.documents")
    runner = Runner.__new__(Runner)
    runner.mode, runner.retrieval_only, runner.pipeline = "simple", False, pipeline
    runner._inputs = {"query": ["fetcher.query"]}
    runner._outputs = {"answers": "citations.answers"}
    runner._explained = {}
    runner._map = map_of(pipeline, "citations.answers")
    return runner


@pytest.fixture
def engine(monkeypatch, tmp_path):
    runners = {"simple": fake_runner(graded=False), "precise": fake_runner(graded=True)}
    monkeypatch.setattr(engine_module, "Runner", lambda _, mode, **__: runners[mode])
    settings = ServingSettings(data_dir=tmp_path, request_timeout=1.0)
    return Engine(settings, modes=list(runners))


async def listen(engine: Engine, seed: int) -> list[bytes]:
    """Listen as a server's reply does, or go away in the middle."""
    plan = PLANS[f"q{seed}"]
    events = engine.stream(AnswerRequest(query=f"q{seed}", mode="precise" if seed % 3 == 0 else "simple"), "a")
    parts, heard = _written(events, "id"), []
    async for part in parts:
        heard.append(part)
        if len(heard) == plan.leaves_after:
            break
    await parts.aclose()
    return heard


def names(parts: list[bytes]) -> list[str]:
    return [line[7:] for part in parts for line in part.decode().split("\n") if line.startswith("event: ")]


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
async def test_every_stream_ends_in_exactly_one_terminal_event(engine, block):
    seeds = range(block * 1000, (block + 1) * 1000)
    PLANS.clear()
    PLANS.update({f"q{seed}": plan_of(seed) for seed in seeds})
    endings = {"generation_complete": 0, "error": 0, "left": 0}
    waiting = iter(seeds)

    async def worker():
        for seed in waiting:
            heard = await listen(engine, seed)
            told = names(heard)
            ends = [name for name in told if name in ("generation_complete", "error")]
            if heard[-1] != b"data: [DONE]\n\n":
                assert len(heard) == PLANS[f"q{seed}"].leaves_after, seed
                assert len(ends) <= 1, seed
                endings["left"] += 1
                continue
            assert len(ends) == 1, (seed, told)
            assert told[-1] == ends[0], (seed, told)
            ids = [int(part.split(b"\n")[0][4:]) for part in heard[:-1]]
            assert ids == list(range(1, len(heard))), seed
            last = json.loads(heard[-2].decode().split("data: ")[1])
            assert ("answer" in last) != ("error" in last), seed
            endings[ends[0]] += 1

    await asyncio.gather(*(worker() for _ in range(20)))
    assert sum(endings.values()) == 1000
    assert all(count > 50 for count in endings.values()), endings
    # Nothing goes on that nobody waits for; a cancelled task needs one more turn of the loop.
    for _ in range(3):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
