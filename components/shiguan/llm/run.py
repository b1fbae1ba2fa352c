"""The run of one question: its stages and their times, its limits and budget, and its calls of models."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from functools import partial
from threading import RLock
from typing import Any, TypeVar

from haystack import logging
from haystack.dataclasses import ChatMessage

from shiguan.errors import BudgetError
from shiguan.haystack_compat import with_meta
from shiguan.llm.model_settings import Budget

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
clock = time.monotonic
# Checks compute for up to two seconds; in a pool of their own they do not block other work.
_POOL = ThreadPoolExecutor(max_workers=2, thread_name_prefix="claims")

_GRACE = 1.0
"""Seconds that a stopped run waits for its tasks to end."""
HELPERS_SHARE = 0.6
"""The share of a question's seconds that helpers may spend; the rest is for the answer."""
_COUNTED = "counted"
"""The key in the meta of a reply that was already counted."""


@dataclass(frozen=True)
class TimeLimits:
    """Time limits of one run, in seconds; None for no limit."""

    request: float | None = None
    llm: float | None = None
    helper: float | None = None


_stage: ContextVar["Stage | None"] = ContextVar("shiguan_stage", default=None)


@dataclass(eq=False)
class Stage:
    """A stage: its name, when it began, whether it has ended, and the stage that it is a part of, if any."""

    run: "Run"
    name: str
    started: float = field(default_factory=time.perf_counter)
    ended: bool = False
    outer: "Stage | None" = field(default_factory=_stage.get)


@dataclass(eq=False)
class Run:
    """
    The state of one question while it is answered: its stages and their times, its calls and their tokens, its budget.

    `found` has the ids of passages that the stages `reading` the library found; `unanswered` is why nobody replied.
    """

    limits: TimeLimits = field(default_factory=TimeLimits)
    budget: Budget = field(default_factory=Budget)
    tenant_id: str = ""
    reading: Collection[str] = ()
    on_begin: Callable[[str], None] | None = None
    times: dict[str, float] = field(default_factory=dict, init=False)
    visits: Counter[str] = field(default_factory=Counter, init=False)
    calls: list[dict[str, Any]] = field(default_factory=list, init=False)
    requests: int = field(default=0, init=False)
    switches: list[dict[str, str]] = field(default_factory=list, init=False)
    refused: dict[str, None] = field(default_factory=dict, init=False)
    found: set[str] = field(default_factory=set, init=False)
    warned: dict[str, None] = field(default_factory=dict, init=False)
    unanswered: str = field(default="", init=False)
    checks: dict[Any, Any] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._running: list[Stage] = []
        self._tasks: set[asyncio.Task[object]] = set()
        self._stopped = False
        self._began = clock()
        self._lock = RLock()

    # -- stages --------------------------------------------------------------------------------------------------------

    @property
    def running(self) -> list[str]:
        """The running stages, in the order in which they began."""
        return [stage.name for stage in self._running]

    @contextmanager
    def entered(self) -> Iterator["Run"]:
        """Make this the current run inside the block, in all tasks and threads that share its context."""
        token = _stage.set(Stage(self, ""))
        try:
            yield self
        finally:
            _stage.reset(token)

    @contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        """Mark a stage as running; `CancelledError` if the run was stopped before."""
        if self._stopped or stage_has_ended():
            raise asyncio.CancelledError(f"The run was stopped before `{name}` began.")
        stage = Stage(self, name)
        self._running.append(stage)
        if self.on_begin is not None:
            self.on_begin(name)
        try:
            task = asyncio.current_task()
        except RuntimeError:  # outside an event loop nothing can be cancelled
            task = None
        if task in self._tasks:
            task = None  # the stage around this one keeps it
        elif task is not None:
            self._tasks.add(task)
        token = _stage.set(stage)
        try:
            yield stage
            if task is not None:
                # Its context leads back to this run; left in a circle, all that the question read would wait for a full
                # garbage collection. A task that failed is kept: `stop` looks at its error.
                self._tasks.discard(task)
        finally:
            _stage.reset(token)
            stage.ended = True
            self._running.remove(stage)
            self.visits[name] += 1
            self.times[name] = self.times.get(name, 0.0) + (time.perf_counter() - stage.started) * 1000

    def note_found(self, outputs: Mapping[str, Any]) -> None:
        """Record which passages a search found; those from the conversation have no source and do not count."""
        documents = outputs.get("documents") or ()
        self.found |= {one.meta.get("parent_id", one.id) for one in documents if "source_id" in one.meta}

    async def stop(self) -> None:
        """Cancel all running stages and let no other begin; results of threads are dropped."""
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
                task.exception()  # retrieved, so that asyncio does not report it as lost

    def resume(self) -> None:
        """Let stages begin again after `stop`."""
        self._stopped = False

    # -- budget --------------------------------------------------------------------------------------------------------

    def allows(self, calls: int = 1, *, helper: bool = False) -> bool:
        """Return whether the stage may call a model this often; a `helper` leaves the last call and .4 of the time."""
        left = self.seconds_left(helper=helper)
        enough = self.budget.calls is None or self.requests + calls + helper <= self.budget.calls
        allowed = enough and (left is None or left > 0)
        if not allowed:
            self.refused[stage_name()] = None
        return allowed

    def begin_request(self) -> None:
        """Count a request before it is sent, or raise a `BudgetError`."""
        with self._lock:
            if not self.allows():
                raise BudgetError("The question's budget leaves no call for this. Allow it more, or ask without one.")
            self.requests += 1

    def seconds_left(self, *, helper: bool = False) -> float | None:
        """Return the seconds left, for helpers or for all; None without a limit."""
        limit = self.budget.seconds
        share = HELPERS_SHARE if helper else 1.0
        return None if limit is None else max(0.0, limit * share - (clock() - self._began))

    def budget_record(self) -> dict[str, Any] | None:
        """Return the limits, what was spent, and the stages that were refused a call; None without limits."""
        if not self.budget.limits:
            return None
        spent = {"calls": self.requests, "seconds": round(clock() - self._began, 6)}
        return {"limits": self.budget.limits, "spent": spent, "refused": list(self.refused)}

    def warnings(self) -> list[str]:
        """Name what was warned of, the models that stood in for others, and the stages that the budget left out."""
        stood_in = (f"The model `{it['to']}` stood in for `{it['from']}` ({it['reason']})." for it in self.switches)
        found = list(dict.fromkeys([*self.warned, *stood_in]))
        if self.refused:
            limits = ", ".join(f"{unit} {limit:g}" for unit, limit in self.budget.limits.items())
            stages = ", ".join(f"`{stage}`" for stage in self.refused)
            found.append(f"The question's budget ({limits}) was short: {stages} did without a model.")
        return found

    @property
    def answered(self) -> int:
        """How many calls got a reply."""
        return sum("failed" not in call for call in self.calls)

    @property
    def usage(self) -> dict[str, int]:
        """The tokens of all calls by kind."""
        total: Counter[str] = Counter()
        for call in self.calls:
            total.update(call["tokens"])
        return dict(total)

    @property
    def cost(self) -> float | None:
        """What the calls cost, 0 without any; None if a price is not known."""
        costs = [call["cost"] for call in self.calls]
        return None if None in costs else sum(costs)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def note_call(self, began: float, call: dict[str, Any], tokens: dict[str, int], cost: float | None) -> None:
        """Record a call, also a failed one; `began` is a time of `time.perf_counter`."""
        ms = round((time.perf_counter() - began) * 1000, 2)
        self.calls.append({"stage": stage_name(), **call, "tokens": tokens, "cost": cost, "ms": ms})

    def count(
        self,
        replies: Sequence[ChatMessage],
        began: float,
        price: Callable[[dict[str, int]], float | None] | None = None,
        estimate: dict[str, int] | None = None,
        **call: Any,
    ) -> list[ChatMessage]:
        """Count the call behind replies and mark them, unless it was counted or used no tokens."""
        meta = getattr(replies[0], "meta", None) if replies else None
        first: dict[str, Any] = meta if isinstance(meta, dict) else {}
        usage = first.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        if not replies or first.get(_COUNTED) or usage.get("total_tokens") == 0:
            return list(replies)
        tokens = {name: many for name, many in usage.items() if name.endswith("_tokens") and isinstance(many, int)}
        details = usage.get("prompt_tokens_details")
        if isinstance(details, dict) and isinstance(details.get("cached_tokens"), int):
            tokens["cached_tokens"] = details["cached_tokens"]
        if not tokens and estimate:
            tokens, call = estimate, {**call, "estimated": True}
        self.requests += "attempts" not in call  # our own endpoint counts them as they are sent
        about = {"role": "", "model": first.get("model"), "prompt": first.get("prompt"), **call}
        self.note_call(began, about, tokens, price(tokens) if price else None)
        return [with_meta(reply, **{_COUNTED: True}) if isinstance(reply, ChatMessage) else reply for reply in replies]

    def count_outputs(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any], began: float) -> None:
        """Count the calls of a component by its outputs, unless they were counted before."""
        if not {"messages", "prompt"} & inputs.keys():
            return
        self.count(outputs.get("replies") or (), began)
        for message in outputs.get("messages") or ():  # of an agent: each message of the model is a call
            if isinstance(message, ChatMessage) and message.is_from("assistant") and message.meta.get("usage"):
                self.count([message], began)


def current_run() -> Run | None:
    """Return the run that this code is part of, if any."""
    stage = _stage.get()
    return stage.run if stage else None


def warn(sentence: str) -> None:
    """Add a warning to the run that this code is part of; outside of one, to the log."""
    run = current_run()
    if run is None:
        logger.warning("{sentence}", sentence=sentence)
    else:
        run.warned[sentence] = None


def stage_name() -> str:
    """Return the name of the current stage; empty outside of one."""
    stage = _stage.get()
    return stage.name if stage else ""


def stage_has_ended() -> bool:
    """Return whether a stage that this code works for has ended or was cancelled meanwhile, as threads may ask."""
    stage = _stage.get()
    while stage is not None and not stage.ended:
        stage = stage.outer
    return stage is not None


class CheckStoppedError(Exception):
    """Ends a check whose question was cancelled."""


async def check_in_thread(check: Callable[[], Result]) -> Result:
    """Run a check outside the event loop; if its stage is cancelled, the check stops at its next claim."""
    return await asyncio.get_running_loop().run_in_executor(_POOL, partial(copy_context().run, check))


def raise_if_cancelled() -> None:
    """Raise `CheckStoppedError` if the question of the running check was cancelled."""
    if stage_has_ended():
        raise CheckStoppedError
