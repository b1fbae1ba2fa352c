"""The pipeline of a mode, and the run of one question: checked, timed, limited, and stopped with all it started."""

import asyncio
import time
from collections import Counter, UserDict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing, nullcontext
from copy import deepcopy
from itertools import repeat
from typing import Any, TypeVar, cast

from haystack import Document
from haystack.core.component import Component
from haystack.core.errors import PipelineRuntimeError
from haystack.dataclasses import GeneratedAnswer
from haystack.errors import FilterError
from haystack.tools import Tool, Toolset

from shiguan.errors import AnswerError, RefusedError, ShiguanError, TimeLimitError, error_behind
from shiguan.haystack_compat import AsyncPipeline, ObservedPipeline
from shiguan.llm.calls import run_to_end
from shiguan.llm.run import Run, current_run
from shiguan.tenants import asked_by
from shiguan.text.passages import SharedDocument, changed


class ModePipeline(ObservedPipeline):
    """
    Haystack's pipeline, with the inputs of the mode's file.

    The values of a flat call such as `run({"query": "…", "tenant_id": "…", "top_k": 2})` go where the file's `inputs`
    say. Haystack itself would pass each value to every component that has an input of that name, so that `top_k` would
    also shorten the lists of the retrievers, and would drop a name that no component has.

    Each component that runs is a stage of the current `Run`, if there is one.
    """

    async def run_component(
        self,
        name: str,
        inputs: Mapping[str, Any],
        run: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]],
    ) -> Mapping[str, Any]:
        """Run a component as a stage, with copies of its inputs that take less time: docs/decisions/0035."""
        question = current_run()
        with question.stage(name) if question else nullcontext() as stage:
            outputs = await run(_Inputs(inputs))
            if question and stage:
                question.count_outputs(inputs, outputs, stage.started)
        return _Outputs(outputs)

    def run(
        self, data: dict[str, Any], include_outputs_from: set[str] | None = None, concurrency_limit: int = 4
    ) -> dict[str, Any]:
        """
        Run as `run_async` does: Haystack 3 has a second way, which neither reads the file's `inputs` nor binds stores.

        :param data: Values by the names of the file's `inputs`, or by component and socket.
        :param include_outputs_from: Components whose outputs are part of the result even if others take them.
        :param concurrency_limit: How many components may run at once.
        :returns: The outputs of the components that no other takes, by component.
        :raises ValueError: If a name is not an input of the file.
        """
        found: dict[str, Any] = run_to_end(self.run_async(data, include_outputs_from, concurrency_limit))
        return found

    async def run_async_generator(
        self, data: dict[str, Any], include_outputs_from: set[str] | None = None, concurrency_limit: int = 4
    ) -> AsyncIterator[dict[str, Any]]:
        """Run like `run`, yielding the outputs of each component as they come, and at last those of the whole run."""
        nested = self.by_component(data)
        with asked_by(self._tenant_of(nested)):
            async for outputs in super().run_async_generator(nested, include_outputs_from, concurrency_limit):
                yield {component: dict(values) for component, values in outputs.items()}

    def _tenant_of(self, nested: dict[str, Any]) -> str:
        """Return the tenant of the question, or of the value that goes where the file's input `tenant_id` does."""
        if (question := current_run()) is not None and question.tenant_id:
            return question.tenant_id
        targets = (target.split(".") for target in (self.metadata.get("inputs") or {}).get("tenant_id", ()))
        values = (nested.get(component, {}).get(socket) for component, socket in targets)
        return next((value for value in values if isinstance(value, str)), "")

    def stages_with(self, *sockets: str) -> set[str]:
        """Return the components that have one of some outputs."""
        found = self.outputs(include_components_with_connected_outputs=True).items()
        return {name for name, own in found if not own.keys().isdisjoint(sockets)}

    def by_component(self, data: dict[str, Any]) -> dict[str, Any]:
        """Map values to the components and sockets that the file's `inputs` name for them."""
        inputs: dict[str, list[str]] = self.metadata.get("inputs") or {}
        if not inputs or all(name in self.graph and isinstance(value, dict) for name, value in data.items()):
            return data
        unknown = [name for name in data if name not in inputs]
        if unknown:
            raise ValueError(
                f"The pipeline has no input `{unknown[0]}`. Its inputs: {', '.join(inputs)}. Name one of these, or "
                "give a mapping of components to their own inputs."
            )
        nested: dict[str, dict[str, Any]] = {}
        for name, value in data.items():
            for target in inputs[name]:
                component, socket = target.split(".")
                nested.setdefault(component, {})[socket] = value
        return nested


class _Inputs(UserDict[str, Any]):
    """The inputs of a component, which Haystack copies before the component gets them."""

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return dict(zip(self, _copied_all(self.values()), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return the inputs as a tracer records them."""
        return dict(self)


class _Outputs(UserDict[str, Any]):
    """The outputs of a component, for the caller: the next components get copies of their own."""

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return dict(self)


def _copied(value: Any) -> Any:
    """Copy an input as Haystack would, which looks at each number of a vector whether it is a component."""
    kind = type(value)
    if kind in _UNCHANGING:
        return value
    if kind is list:
        return _copied_all(value)
    if kind is dict:
        return dict(zip(value, _copied_all(value.values()), strict=True))
    if kind is SharedDocument:
        return deepcopy(value)
    if kind is Document or kind is GeneratedAnswer:
        twin = object.__new__(kind)
        twin.__dict__.update(zip(vars(value), _copied_all(vars(value).values()), strict=True))
        return twin
    return _copied_otherwise(value)


def _copied_all(values: Collection[Any]) -> list[Any]:
    """Copy values without a call for each: a question copies hundreds of documents and a thousand values."""
    kinds = set(map(type, values))
    if kinds == {SharedDocument}:
        return changed(values, repeat({}))
    if kinds <= _UNCHANGING:
        return list(values)
    return [value if type(value) in _UNCHANGING else _copied(value) for value in values]


def _copied_otherwise(value: Any) -> Any:
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_copied, value))
    if isinstance(value, list | tuple | set):
        return type(value)(map(_copied, value))
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, Component | Tool | Toolset):
        return value
    try:
        return deepcopy(value)
    except Exception:  # a client, a lock: passed on as it is
        return value


_UNCHANGING = frozenset({str, int, float, bool, type(None)})

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
            f"The question `{clean[:40]}` has no words. Ask in a sentence, such as: What books do you have?"
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
    """Run a question, return the outputs of the stages `wanted`, and end all that still runs, calls of models too."""
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
        ours = error_behind(error, ShiguanError)
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
                if name in run.reading:
                    run.note_found(outputs)
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
