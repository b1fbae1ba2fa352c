"""Modes made of fake stages, each of which does what the plan of its question says: for faults that no server plays."""

import asyncio
from dataclasses import dataclass
from typing import Any

from haystack import Document, component
from haystack.dataclasses import ChatMessage, StreamingChunk

from shiguan.answer.citation_extractor import CitationExtractor
from shiguan.engine.mode import Mode
from shiguan.engine.mode_pipeline import ModePipeline
from shiguan.engine.runner import Runner
from shiguan.errors import AnswerError, RefusedError, StoreLockedError
from shiguan.llm.calls import blocking

TEXT = "An Lushan rose at Fanyang in 755 [1]. He took Luoyang in the twelfth month [1]. "
TOKENS = [TEXT[start : start + 7] for start in range(0, len(TEXT), 7)]
STAGES = ["fetcher", "context", "generator", "hallucination_grader", "citations"]
FAILURES = [
    lambda: ValueError("a bug"), lambda: KeyError("another"), lambda: AnswerError("The stage `x` failed.", stage="x"),
    lambda: RefusedError("No."), lambda: StoreLockedError("Locked."), TimeoutError,
    lambda: OSError(28, "No space left on device"), RecursionError, lambda: asyncio.CancelledError("from within"),
]  # fmt: skip
HANG = "hang"


@dataclass(frozen=True)
class Plan:
    """How a question is spoiled: at which stage, how, after how many tokens; after how many events nobody listens."""

    stage: str = "nowhere"
    failure: Any = None
    tokens: int = 0
    leaves_after: int | None = None
    silent: bool = False


PLANS: dict[str, Plan] = {}
"""The plan of each question; a question without one is answered."""
AT_WORK: list[str] = []
"""The questions whose generator has begun."""
CANCELLED: list[str] = []
"""The questions whose generator was cancelled."""


def strike(stage: str, query: str) -> None:
    plan = PLANS.get(query, Plan())
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

    run = blocking(run_async)


@component
class Generator:
    @component.output_types(replies=list[ChatMessage])
    async def run_async(self, messages: list[ChatMessage], streaming_callback: Any = None):
        query = messages[0].text
        plan = PLANS.get(query, Plan())
        AT_WORK.append(query)
        for count, token in enumerate(TOKENS):
            if plan.stage == "generator" and count == plan.tokens:
                if plan.failure is HANG:
                    await _for_ever(query)
                raise plan.failure()
            if streaming_callback is not None:
                await streaming_callback(StreamingChunk(content=token))
            if count % 5 == 0:
                await asyncio.sleep(0)
        return {"replies": [ChatMessage.from_assistant("".join(TOKENS), meta={"query": query})]}

    run = blocking(run_async)


@component
class Grader:
    @component.output_types(replies=list[ChatMessage])
    async def run_async(self, replies: list[ChatMessage], documents: list[Document]):
        query = replies[0].meta["query"]
        strike("hallucination_grader", query)
        # A stage that stays silent: the pipeline ends without an answer and without an exception.
        return {} if PLANS.get(query, Plan()).silent else {"replies": replies}

    run = blocking(run_async)


@component
class Citations(CitationExtractor):
    def _answer(self, reply, *others):
        strike("citations", reply.meta["query"])
        return CitationExtractor._answer(self, reply, *others)


async def _for_ever(query: str) -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        CANCELLED.append(query)
        raise


def fake_runner(*, graded: bool) -> Runner:
    """A mode whose drafts are streamed, or one where a grader stands between."""
    declared = {"inputs": {"query": ["fetcher.query"]}, "outputs": {"answers": "citations.answers"}}
    pipeline = ModePipeline(metadata={"deployment": "embedded", "mode": "simple", **declared, "budget": {}})
    stages = {"fetcher": Fetcher(), "context": Context(), "generator": Generator(), "citations": Citations()}
    for name, stage in (stages | ({"hallucination_grader": Grader()} if graded else {})).items():
        pipeline.add_component(name, stage)
    writer = "hallucination_grader" if graded else "generator"
    if graded:
        pipeline.connect("generator.replies", "hallucination_grader.replies")
        pipeline.connect("context.documents", "hallucination_grader.documents")
    for end in ("fetcher.documents context.documents", "fetcher.query context.query", "context.messages generator.messages",
                f"{writer}.replies citations.replies", "context.documents citations.documents"):  # fmt: skip
        pipeline.connect(*end.split())
    runner = Runner.__new__(Runner)
    runner.deployment, runner.mode, runner.pipeline = "embedded", "simple", pipeline
    runner._stamp, runner._keep_receipt = {"deployment": "embedded", "mode_sha256": ""}, None
    runner._mode, runner._data_dir = Mode(pipeline), None
    runner.conversations, runner._own_conversations, runner._store = None, False, None
    runner._keep_prompts = False
    return runner
