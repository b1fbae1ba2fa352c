"""Runs one question through a pipeline: checked, timed, limited, and stopped with all that it started."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import aclosing
from typing import Any, TypeVar, cast

from haystack.core.errors import PipelineRuntimeError
from haystack.errors import FilterError

from shiguan.errors import AnswerError, RefusedError, ShiguanError, TimeLimitError, error_behind
from shiguan.haystack_compat import AsyncPipeline
from shiguan.llm.run import Run

Result = TypeVar("Result")

MAX_QUESTION = 2000
"""The longest question that is answered, in characters."""


def checked_question(query: str) -> str:
    # Lone surrogates come from bytes that are not UTF-8, control characters from pasting; neither can be searched for.
    clean = "".join(
        " " if (ord(c) < 32 and c not in "\n\t") or 0xD800 <= ord(c) <= 0xDFFF or c == "\x7f" else c for c in query
    ).strip()
    if not clean:
        raise RefusedError("The question is empty. Type a question of 1 to 2,000 characters.")
    if not any(map(str.isalnum, clean)):
        raise RefusedError(
            f"The question `{clean[:40]}` has no words. Ask in a sentence, such as: What are these books about?"
        )
    if len(clean) > MAX_QUESTION:
        raise RefusedError(
            f"The question has {len(clean):,} characters, the limit is {MAX_QUESTION:,}. Shorten it, or ingest the "
            "long text as a document and ask about it."
        )
    return clean


async def bounded(work: Sequence[Callable[[], Awaitable[Result]]], at_once: int) -> list[Result]:
    """Run awaitables concurrently, at most `at_once` at a time, and return their results in order."""
    free = asyncio.Semaphore(at_once)

    async def do(part: Callable[[], Awaitable[Result]]) -> Result:
        async with free:
            return await part()

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(do(part)) for part in work]
    return [task.result() for task in tasks]


Results = dict[str, dict[str, Any]]
"""The outputs of a run: by component, then by socket."""


def value_at(results: Results, target: str) -> Any:
    component, _, socket = target.partition(".")
    return results.get(component, {}).get(socket)


def warnings_of(results: Results) -> list[str]:
    return list(dict.fromkeys(warning for outputs in results.values() for warning in outputs.get("warnings", [])))


async def run_pipeline(
    pipeline: AsyncPipeline,
    data: dict[str, dict[str, Any]],
    run: Run,
    *,
    wanted: Collection[str],
    on_outputs: Callable[[str, dict[str, Any]], Any] | None = None,
) -> Results:
    """
    Run a question through a pipeline and return the outputs of the stages that are `wanted`.

    However it ends (with an answer, an error, a limit, or the caller's task cancelled), no further stage begins and
    what was running, including calls of language models, is cancelled. The results of stages that compute in a thread
    are dropped.
    """
    started = time.perf_counter()
    at_work: list[str] = []
    timer = asyncio.timeout(run.limits.request)
    # Noted just before the limit: Haystack 3 ends what was running before it passes the cancellation on.
    noting = asyncio.get_running_loop().call_later(run.limits.request or 0, lambda: at_work.extend(run.running))
    try:
        with run.entered():
            try:
                async with timer:
                    final = await _outputs(pipeline, data, run, set(wanted), on_outputs)
            finally:
                noting.cancel()
                await run.stop()
    except PipelineRuntimeError as error:
        ours = error_behind(error)
        if ours is None:
            raise _in_words(error) from error
        if isinstance(ours, AnswerError) and not ours.stage:
            ours.stage = error.component_name or ""
        # It is itself the cause of Haystack's error, so naming that as its cause would be circular.
        raise ours from ours.__cause__
    except TimeoutError as error:
        if not timer.expired() or isinstance(error, ShiguanError):
            raise
        raise _too_long(run, at_work) from None
    run.times["total"] = (time.perf_counter() - started) * 1000
    return {stage: final[stage] for stage in pipeline.graph.nodes if stage in final}


async def _outputs(
    pipeline: AsyncPipeline,
    data: dict[str, dict[str, Any]],
    run: Run,
    wanted: set[str],
    on_outputs: Callable[[str, dict[str, Any]], Any] | None,
) -> Results:
    final: Results = {}
    reported: Counter[str] = Counter()
    steps = cast("AsyncGenerator[Results, None]", pipeline.run_async_generator(data, include_outputs_from=wanted))
    async with aclosing(steps):
        async for final in steps:
            if len(final) != 1:
                continue
            ((name, outputs),) = final.items()
            # If a stage comes more often than it ran, this is the summary of the whole run.
            if reported[name] < run.visits[name]:
                reported[name] += 1
                run.note_found(name, outputs)
                if on_outputs is not None:
                    on_outputs(name, outputs)
    return final


def _too_long(run: Run, at_work: list[str]) -> TimeLimitError:
    during = f" while `{at_work[-1]}` was at work" if at_work else ""
    return TimeLimitError(
        f"The question took longer than {run.limits.request:g} s{during}. Ask again, or ask for less.",
        stage=at_work[-1] if at_work else "",
    )


def _in_words(error: PipelineRuntimeError) -> ShiguanError:
    reason = error.__cause__ or error
    if isinstance(reason, FilterError):
        return RefusedError(f"The filters cannot be used: {' '.join(str(reason).split())} Correct them.")
    stage = error.component_name or "unknown"
    return AnswerError(
        f"The stage `{stage}` failed: {type(reason).__name__}: {reason}. Nothing was answered; try again, and run with "
        "SHIGUAN_LOG_LEVEL=DEBUG to see more.",
        stage=stage,
    )
