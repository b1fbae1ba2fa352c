"""Watches one run of a pipeline: its stages and their times, its limits, how to stop it, and the calls it made."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from haystack.tracing.tracer import NullSpan, Span, Tracer, enable_tracing, tracer

Held = TypeVar("Held")

_GRACE = 1.0
"""Seconds that a stopped run waits for its tasks to end."""


@dataclass(frozen=True)
class TimeLimits:
    """How long the parts of one run may take, in seconds; None for as long as it takes."""

    request: float | None = None
    llm: float | None = None
    helper: float | None = None
    retrieval: float | None = None


@dataclass(eq=False)
class _Stage:
    """A stage at work: since when, how long it waited for a model, and since when it does so now."""

    name: str
    started: float
    waited: float = 0.0
    waiting: int = 0
    waiting_since: float = 0.0
    timer: asyncio.TimerHandle | None = None

    def worked(self, now: float) -> float:
        waited = self.waited + (now - self.waiting_since if self.waiting else 0.0)
        return now - self.started - waited


@dataclass(eq=False)
class RunWatch:
    """
    What is known of one run while it goes on.

    `times` has the milliseconds of each stage and `visits` how often it ran; `StageTimer` reports the beginning and the
    end of every stage. A stage that is about to begin after `stop` was called does not: whoever asked has gone, and
    what can be saved is the work that has not begun.
    """

    limits: TimeLimits = field(default_factory=TimeLimits)
    limited: Collection[str] = ()
    on_begin: Callable[[str], None] | None = None
    on_overrun: Callable[[], None] | None = None
    on_progress: Callable[[str, dict[str, Any]], None] | None = None
    times: dict[str, float] = field(default_factory=dict, init=False)
    visits: Counter[str] = field(default_factory=Counter, init=False)
    overran: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self._running: list[_Stage] = []
        self._tasks: set[asyncio.Task[object]] = set()
        self._stopped = False

    @property
    def running(self) -> list[str]:
        """The stages at work, in the order in which they began."""
        return [stage.name for stage in self._running]

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Note that a stage is at work; `CancelledError` if the run was stopped before it began."""
        if self._stopped:
            raise asyncio.CancelledError(f"The run was stopped before `{name}` began.")
        stage = _Stage(name, time.perf_counter())
        self._running.append(stage)
        if self.on_begin is not None:
            self.on_begin(name)
        try:
            task = asyncio.current_task()
        except RuntimeError:  # outside an event loop there is nothing to cancel, and nothing that tells the time
            task = None
        if task is not None:
            self._tasks.add(task)
            if name in self.limited and self.limits.retrieval is not None:
                self._look_at(stage, self.limits.retrieval)
        try:
            with holding(_stage, stage):
                yield
        finally:
            self._running.remove(stage)
            self.visits[name] += 1
            if stage.timer is not None:
                stage.timer.cancel()
            self.times[name] = self.times.get(name, 0.0) + (time.perf_counter() - stage.started) * 1000

    def _look_at(self, stage: _Stage, limit: float) -> None:
        """Look again at a stage when it may have worked for as long as it may."""
        left = limit - stage.worked(time.perf_counter())
        if left > 0:
            stage.timer = asyncio.get_running_loop().call_later(max(left, 0.01), self._look_at, stage, limit)
        elif not self.overran:
            self.overran = stage.name
            if self.on_overrun is not None:
                self.on_overrun()

    async def stop(self) -> None:
        """Cancel what is at work and let nothing else begin; what runs in a thread comes to its end unheard."""
        self._stopped = True
        mine = asyncio.current_task()
        tasks = {task for task in self._tasks if task is not mine}
        at_work = {task for task in tasks if not task.done()}
        for task in at_work:
            task.cancel("The run was stopped.")
        if at_work:
            await asyncio.wait(at_work, timeout=_GRACE)
        for task in tasks:
            if task.done() and not task.cancelled():
                task.exception()  # looked at, so that asyncio does not report it as lost


_stage: ContextVar[_Stage | None] = ContextVar("shiguan_stage", default=None)
_watch: ContextVar[RunWatch | None] = ContextVar("shiguan_run_watch", default=None)


current_watch = _watch.get
"""Gives the watch of the run that this code is part of; None outside a watched run."""


@contextmanager
def holding(variable: ContextVar[Held | None], value: Held) -> Iterator[Held]:
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)


@contextmanager
def waiting_for_llm() -> Iterator[None]:
    """Note that the stage at work waits for a model, so that it is not blamed for the time."""
    stage = _stage.get()
    if stage is None:
        yield
        return
    if not stage.waiting:
        stage.waiting_since = time.perf_counter()
    stage.waiting += 1
    try:
        yield
    finally:
        stage.waiting -= 1
        if not stage.waiting:
            stage.waited += time.perf_counter() - stage.waiting_since


def report_progress(outputs: dict[str, Any]) -> None:
    """Tell whoever follows the run what the stage at work has done so far."""
    watch, stage = _watch.get(), _stage.get()
    if watch is not None and stage is not None and watch.on_progress is not None:
        watch.on_progress(stage.name, outputs)


def current_stage() -> str:
    stage = _stage.get()
    return stage.name if stage else ""


@dataclass
class LlmTally:
    """
    How many calls were answered, their tokens by kind (`prompt_tokens`, `total_tokens`...), and each of them.

    `made` has the calls that failed as well, with `failed`; `requests` counts the attempts of all of them; `switches`
    has every time that another model stood in, and why.
    """

    calls: int = 0
    usage: dict[str, int] = field(default_factory=dict)
    made: list[dict[str, Any]] = field(default_factory=list, compare=False)
    requests: int = field(default=0, compare=False)
    switches: list[dict[str, str]] = field(default_factory=list, compare=False)

    @property
    def tokens(self) -> int:
        total = self.usage.get("prompt_tokens", 0) + self.usage.get("completion_tokens", 0)
        return max(total, self.usage.get("total_tokens", 0))

    @property
    def cost(self) -> float:
        """What the calls cost whose price is known."""
        return sum(call["cost"] or 0.0 for call in self.made)

    def warnings(self) -> list[str]:
        """Say which models stood in for which."""
        said = (f"The model `{one['to']}` stood in for `{one['from']}` ({one['reason']})." for one in self.switches)
        return list(dict.fromkeys(said))


class ReplyCounter:
    """A place where replies come out; what was counted inside of it is not counted again."""

    def __init__(self, outer: "ReplyCounter | None") -> None:
        self._outer = outer
        self._counted = False
        self._began = time.perf_counter()

    def count(
        self,
        replies: Sequence[Any],
        price: Callable[[dict[str, int]], float | None] | None = None,
        estimate: dict[str, int] | None = None,
        **call: Any,
    ) -> None:
        """
        Count one call that gave these replies; none, or replies that used no tokens at all, are no call.

        `price` computes its cost from its tokens, `estimate` stands in where nobody counted them, and `call` has what
        else is known of it.
        """
        meta = getattr(replies[0], "meta", None) if replies else None
        told: dict[str, Any] = meta if isinstance(meta, dict) else {}
        usage = told.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        if self._counted or not replies or usage.get("total_tokens") == 0:
            return
        place: ReplyCounter | None = self
        while place is not None:
            place._counted = True
            place = place._outer
        tokens = {name: many for name, many in usage.items() if name.endswith("_tokens") and isinstance(many, int)}
        details = usage.get("prompt_tokens_details")
        if isinstance(details, dict) and isinstance(details.get("cached_tokens"), int):
            tokens["cached_tokens"] = details["cached_tokens"]
        if not tokens and estimate:
            tokens, call = estimate, {**call, "estimated": True}
        tally = _tally.get()
        if tally is not None:
            tally.calls += 1
            tally.requests += "attempts" not in call  # those of our own door are counted as they are sent
            for name, many in tokens.items():
                tally.usage[name] = tally.usage.get(name, 0) + many
            cost = price(tokens) if price else None
            self.note({"role": "", "model": told.get("model"), "prompt": told.get("prompt"), **call}, tokens, cost)

    def note(self, call: dict[str, Any], tokens: dict[str, int], cost: float | None) -> None:
        """Write a call down, whatever came of it."""
        tally = _tally.get()
        if tally is not None:
            ms = round((time.perf_counter() - self._began) * 1000, 2)
            tally.made.append({"stage": current_stage(), **call, "tokens": tokens, "cost": cost, "ms": ms})


_tally: ContextVar[LlmTally | None] = ContextVar("shiguan_llm_tally", default=None)
current_tally = _tally.get
"""Gives the tally of the run that this code is part of; None where nobody counts."""
_place: ContextVar[ReplyCounter | None] = ContextVar("shiguan_replies_come_out", default=None)


def tallied_llm_calls() -> AbstractContextManager[LlmTally]:
    """Count the calls that are made inside the block, in whatever thread or task it starts; runs do not mix."""
    return holding(_tally, LlmTally())


def counting_replies() -> AbstractContextManager[ReplyCounter]:
    """Mark a place where replies come out."""
    return holding(_place, ReplyCounter(_place.get()))


_PROMPTS = frozenset({"messages", "prompt"})


class _OutputSpan(Span):
    """The inner tracer's span; shows the replies of a generator to the counter."""

    def __init__(self, inner: Span, came_out: ReplyCounter) -> None:
        self._inner = inner
        self._came_out = came_out

    def set_tag(self, key: str, value: Any) -> None:
        self._inner.set_tag(key, value)

    def set_content_tag(self, key: str, value: Any) -> None:
        if key == "haystack.component.output":
            self._came_out.count(value.get("replies") or ())
        self._inner.set_content_tag(key, value)

    def raw_span(self) -> Any:
        return self._inner.raw_span()

    def get_correlation_data_for_logs(self) -> dict[str, Any]:
        return self._inner.get_correlation_data_for_logs()


class StageTimer(Tracer):
    """Tells the watch of each run when a component begins and ends; every span goes on to the tracer that was there."""

    def __init__(self, inner: Tracer) -> None:
        self.inner = inner

    @contextmanager
    def trace(
        self, operation_name: str, tags: dict[str, Any] | None = None, parent_span: Span | None = None
    ) -> Iterator[Span]:
        watch = current_watch()
        name = (tags or {}).get("haystack.component.name") if operation_name == "haystack.component.run" else None
        if watch is None or not name:
            with self.inner.trace(operation_name, tags=tags, parent_span=parent_span) as span:
                yield span
            return
        with (
            watch.stage(name),
            counting_replies() as came_out,
            self.inner.trace(operation_name, tags=tags, parent_span=parent_span) as span,
        ):
            # What takes replies and passes them on has no prompt.
            writes = _PROMPTS & set((tags or {}).get("haystack.component.input_spec", ()))
            yield _OutputSpan(span, came_out) if writes else span

    def current_span(self) -> Span | None:
        return self.inner.current_span() or NullSpan()


def watched_stages(watch: RunWatch) -> AbstractContextManager[RunWatch]:
    """Let a watch see every component that runs inside the block, in whatever task or thread it starts."""
    if not isinstance(tracer.actual_tracer, StageTimer):
        enable_tracing(StageTimer(tracer.actual_tracer))
    return holding(_watch, watch)
