"""Watches one run of a pipeline: which stages are at work and for how long, what limits hold, and how to stop it."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

_GRACE = 1.0
"""Seconds that a stopped run waits for its tasks to end."""


@dataclass(frozen=True)
class TimeLimits:
    """How long the parts of one run may take, in seconds; None for as long as it takes."""

    request: float | None = None
    llm: float | None = None
    helper: float | None = None
    retrieval: float | None = None


@dataclass
class _Stage:
    """A stage at work: since when, how long it waited for a model, and since when it does so now."""

    name: str
    started: float
    waited: float = 0.0
    waiting: int = 0
    waiting_since: float = 0.0

    def worked(self, now: float) -> float:
        waited = self.waited + (now - self.waiting_since if self.waiting else 0.0)
        return now - self.started - waited


class RunWatch:
    """
    What is known of one run while it goes on.

    `times` has the milliseconds of each stage and `visits` how often it ran; `StageTimer` reports the beginning and the
    end of every stage. A stage that is about to begin after `stop` was called does not: whoever asked has gone, and
    what can be saved is the work that has not begun.
    """

    def __init__(
        self,
        *,
        limits: TimeLimits | None = None,
        limited: Collection[str] = (),
        on_begin: Callable[[str], None] | None = None,
        on_overrun: Callable[[], None] | None = None,
    ) -> None:
        self.limits = limits or TimeLimits()
        self.times: dict[str, float] = {}
        self.visits: Counter[str] = Counter()
        self.overran = ""
        self._limited = frozenset(limited)
        self._on_begin = on_begin
        self._on_overrun = on_overrun
        self._running: dict[int, _Stage] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[object]] = set()
        self._driver = _this_task()
        self._stopped = False

    @property
    def running(self) -> list[str]:
        """The stages at work, in the order in which they began."""
        return [stage.name for stage in self._running.values()]

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Note that a stage is at work; `CancelledError` if the run was stopped before it began."""
        if self._stopped:
            raise asyncio.CancelledError(f"The run was stopped before `{name}` began.")
        task = _this_task()
        if task is not None and task is not self._driver:
            self._tasks.add(task)
        stage = _Stage(name, time.perf_counter())
        key = id(stage)
        self._running[key] = stage
        token = _stage.set(stage)
        if self._on_begin is not None:
            self._on_begin(name)
        if task is not None and name in self._limited and self.limits.retrieval is not None:
            self._set_timer(key, self.limits.retrieval)
        try:
            yield
        finally:
            _stage.reset(token)
            del self._running[key]
            self.visits[name] += 1
            timer = self._timers.pop(key, None)
            if timer is not None:
                timer.cancel()
            self.times[name] = self.times.get(name, 0.0) + (time.perf_counter() - stage.started) * 1000

    def _set_timer(self, key: int, seconds: float) -> None:
        self._timers[key] = asyncio.get_running_loop().call_later(seconds, self._look_at, key)

    def _look_at(self, key: int) -> None:
        stage, limit = self._running[key], self.limits.retrieval or 0.0
        left = limit - stage.worked(time.perf_counter())
        if left > 0:
            self._set_timer(key, max(left, 0.01))
        elif not self.overran:
            self.overran = stage.name
            if self._on_overrun is not None:
                self._on_overrun()

    async def stop(self) -> None:
        """
        Cancel what is still at work and let nothing else begin; after a run that ended well there is nothing to do.

        What runs in a thread cannot be cancelled: it comes to its end, and nobody waits for it.
        """
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


def current_watch() -> RunWatch | None:
    """Give the watch of the run that this code is part of; None outside a watched run."""
    return _watch.get()


@contextmanager
def watched(watch: RunWatch) -> Iterator[RunWatch]:
    """Put everything inside the block, and the tasks and threads that it starts, under a watch."""
    token = _watch.set(watch)
    try:
        yield watch
    finally:
        _watch.reset(token)


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


def _this_task() -> asyncio.Task[object] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
