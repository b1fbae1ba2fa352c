"""Calls of language models on behalf of a stage: what a question's budget allows, and a text or why there is none."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from functools import partial, wraps
from threading import RLock
from typing import Any, ParamSpec, TypeGuard, TypeVar

from haystack import logging
from haystack.components.generators.chat.types import ChatGenerator
from haystack.dataclasses import ChatMessage

from shiguan.errors import BudgetError, EndpointError
from shiguan.llm.json_replies import without_thoughts
from shiguan.llm.model_settings import Budget
from shiguan.llm.reply_cache import KeptReply
from shiguan.llm.run_watch import LlmTally, counting_replies, current_stage, current_watch, holding, waiting_for_llm

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

clock = time.monotonic

# What the helpers of a question may spend of its seconds; the rest is for the answer.
_HELPERS_SHARE = 0.6


class BudgetMeter:
    """
    Holds a question to its limits of calls and seconds.

    What helps on the way to an answer (a rewording, a hypothetical passage) may not take the last call, nor begin when
    more than .6 of the time has passed: the answer comes first.
    """

    def __init__(self, limits: Budget, tally: LlmTally) -> None:
        self.limits = limits
        self.tally = tally
        self.refused: list[str] = []
        self._started = clock()
        self._lock = RLock()

    def allows_helper(self, calls: int = 1, *, behind_answer: bool = False) -> bool:
        """Tell whether the stage at work may call a model so often; a no is remembered."""
        share, kept = (1.0, 0) if behind_answer else (_HELPERS_SHARE, 1)
        left = self.seconds_left(share)
        enough = self.limits.calls is None or self.tally.requests + calls + kept <= self.limits.calls
        allowed = enough and (left is None or left > 0)
        if not allowed:
            self.refused.append(current_stage())
        return allowed

    def begin(self) -> None:
        """Count a request that is about to be sent, or raise a `BudgetError`."""
        with self._lock:
            left = self.seconds_left()
            spent = self.limits.calls is not None and self.tally.requests >= self.limits.calls
            if spent or (left is not None and left <= 0):
                self.refused.append(current_stage())
                raise BudgetError("The question's budget leaves no call for this. Allow it more, or ask without one.")
            self.tally.requests += 1

    def seconds_left(self, share: float = 1.0) -> float | None:
        """Say how much of a share of the time is left; None without a limit."""
        limit = self.limits.seconds
        return None if limit is None else max(0.0, limit * share - (clock() - self._started))

    def record(self) -> dict[str, Any]:
        """Give the limits, what was spent, and the stages that were refused a call."""
        spent = {"calls": self.tally.requests, "seconds": round(clock() - self._started, 6)}
        return {"limits": self.limits.limits, "spent": spent, "refused": list(dict.fromkeys(self.refused))}

    def warnings(self) -> list[str]:
        if not self.refused:
            return []
        limits = ", ".join(f"{unit} {limit:g}" for unit, limit in self.limits.limits.items())
        stages = ", ".join(f"`{stage}`" for stage in dict.fromkeys(self.refused))
        return [f"The question's budget ({limits}) was short: {stages} did without a model."]


_meter: ContextVar[BudgetMeter | None] = ContextVar("shiguan_budget", default=None)


current_meter = _meter.get
"""Gives the meter of the question that this code works for; None where it has no budget."""


def metered(plan: Budget, asked: Budget, tally: LlmTally) -> AbstractContextManager[BudgetMeter | None]:
    """Hold everything inside the block to the stricter of two budgets; to none where neither sets a limit."""
    limits = plan.within(asked)
    return holding(_meter, BudgetMeter(limits, tally) if limits.limits else None)


def budget_allows(calls: int = 1) -> bool:
    """Tell whether the stage at work may go on to call a model so often, as far as the question's budget goes."""
    meter = current_meter()
    return meter is None or meter.allows_helper(calls, behind_answer=True)


def estimate_tokens(text: list[ChatMessage] | str) -> int:
    """
    Estimate how many tokens a prompt has, rather too many: one for four characters of ASCII, eight for five others.

    Of contexts of eight passages of public sets 95 % have at most 1.59 tokens of cl100k_base for a Chinese character
    (o200k_base 1.11) and .92 for four characters of English (docs/models.md).
    """
    texts = [text] if isinstance(text, str) else [part for message in text for part in [*message.texts, "." * 24]]
    plain = sum(letter < "\x80" for part in texts for letter in part)
    return -(-8 * (sum(map(len, texts)) - plain) // 5) + -(-plain // 4)


@dataclass(frozen=True)
class LlmReply:
    """
    What came of one call: the texts of the replies that have one, or why there is none, a clause.

    A stage that could read the reply calls `keep`, so that the same prompt need not be sent again; what it could not
    read is never kept.
    """

    texts: tuple[str, ...] = ()
    failure: str = ""
    keep: Callable[[], None] = field(default=lambda: None, repr=False, compare=False)

    @property
    def text(self) -> str:
        return self.texts[0] if self.texts else ""


_BEYOND_BUDGET = LlmReply(failure="The question's budget leaves no call for it")


def is_available(chat_generator: ChatGenerator | None) -> TypeGuard[ChatGenerator]:
    """Tell whether a generator can be called: not None, and not one whose `available()` denies it."""
    if chat_generator is None:
        return False
    available = getattr(chat_generator, "available", None)
    return bool(available()) if callable(available) else True


def warm_up_generator(chat_generator: Any) -> None:
    warm_up = getattr(chat_generator, "warm_up", None)
    if callable(warm_up):
        warm_up()


async def run_nested_async(part: Any, **arguments: Any) -> dict[str, Any]:
    """
    Run a nested component without blocking the event loop; one without `run_async` runs in a thread.

    So does one of another library for a caller who cannot await it: its client would hold on to an event loop that is
    closed before the next call.
    """
    ours = type(part).__module__.startswith("shiguan.")
    in_thread = _blocked.get() and not ours and callable(getattr(part, "run", None))
    if callable(getattr(part, "run_async", None)) and not in_thread:
        result: dict[str, Any] = await part.run_async(**arguments)
        return result
    return await asyncio.to_thread(part.run, **arguments)


_blocked: ContextVar[bool] = ContextVar("shiguan_blocked", default=False)


def run_to_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine for a caller who cannot await it: in a thread where an event loop is at work in this one."""
    context = copy_context()
    context.run(_blocked.set, True)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return context.run(asyncio.run, work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(context.run, asyncio.run, work).result()


def blocking(run_async: Callable[Arguments, Coroutine[Any, Any, Result]]) -> Callable[Arguments, Result]:
    """Make the `run` of a component from its `run_async`: the same sockets, for callers who cannot await it."""

    @wraps(run_async)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return run_to_end(run_async(*args, **kwargs))

    return run


async def ask_llm_async(
    chat_generator: ChatGenerator,
    messages: list[ChatMessage],
    *,
    generation_kwargs: dict[str, Any] | None = None,
    behind_answer: bool = False,
) -> LlmReply:
    """
    Call a generator once without blocking the event loop; errors are put into words.

    In a watched run the call has the run's `helper` limit, and no more than the question's budget leaves it: what takes
    longer is cancelled and counts as no reply. What was kept of the same prompt to the same helper is not asked again.
    """
    place = KeptReply(chat_generator, messages, generation_kwargs)
    if known := await asyncio.to_thread(place.texts) if place.exists else None:
        return LlmReply(known)
    watch, meter = current_watch(), current_meter()
    if meter is not None and not meter.allows_helper(behind_answer=behind_answer):
        return _BEYOND_BUDGET
    warm_up_generator(chat_generator)
    share = 1.0 if behind_answer else _HELPERS_SHARE
    limits = [watch.limits.helper if watch else None, meter.seconds_left(share) if meter else None]
    limit = min((seconds for seconds in limits if seconds is not None), default=None)
    try:
        async with asyncio.timeout(limit) as timer:
            with waiting_for_llm(), counting_replies() as came_out:
                outputs = await run_nested_async(chat_generator, messages=messages, **_settings(generation_kwargs))
                came_out.count(outputs["replies"])
        return _read(outputs, place)
    # Any generator may stand here, so any error may come; the caller has declared what it does without a reply.
    except Exception as error:
        late = TimeoutError(f"the LLM did not answer within {limit:g} s") if timer.expired() else None
        return _failed(late or error)


ask_llm = blocking(ask_llm_async)
"""Does as `ask_llm_async`, for a caller who cannot await it."""


def no_answer_error(reply: ChatMessage) -> EndpointError:
    """Put into words that a model replied with nothing that could be an answer: the model failed, not the pipeline."""
    model, reason = reply.meta.get("model") or "unknown", reply.meta.get("finish_reason")
    what = "asked for tools instead of answering" if reply.tool_calls else "replied without an answer"
    ended = f" (it ended with `{reason}`)" if reason else ""
    return EndpointError(
        f"The stage `generator` failed: the model `{model}` {what}{ended}. Ask again, or in other words; if it goes "
        "on, raise `max_tokens` or take another model.",
        stage="generator",
        summary=f"the model {what}{ended}",
        cause=f"the model `{model}` {what}",
        refusal="content" if reason == "content_filter" else "",
    )


def _settings(generation_kwargs: dict[str, Any] | None) -> dict[str, Any]:
    # Not every chat generator takes `generation_kwargs` when it is run.
    return {"generation_kwargs": generation_kwargs} if generation_kwargs else {}


def _read(outputs: dict[str, Any], place: KeptReply) -> LlmReply:
    replies: list[ChatMessage] = outputs["replies"]
    if not replies and outputs.get("warnings"):
        return LlmReply(failure=_clause(outputs["warnings"][0]))
    texts = tuple(text for text in (without_thoughts(reply.text or "").strip() for reply in replies) if text)
    if not texts:
        return LlmReply(failure="the LLM's reply is empty")
    return LlmReply(texts, keep=partial(place.keep, replies))


def _failed(error: Exception) -> LlmReply:
    if isinstance(error, BudgetError):
        return _BEYOND_BUDGET
    logger.debug("A call of the LLM failed: {kind}", kind=type(error).__name__)
    return LlmReply(failure=_clause(getattr(error, "cause", "") or str(error)) or type(error).__name__)


def _clause(text: str) -> str:
    return " ".join(text.split())[:400].rstrip(".")
