"""Asks a chat generator on behalf of a stage that can do without: one call, a text or a reason why there is none."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeGuard, TypeVar

from haystack import logging
from haystack.components.generators.chat.types import ChatGenerator
from haystack.dataclasses import ChatMessage

from shiguan.errors import AnswerError, BudgetError
from shiguan.llm.budget_meter import budget_allows, current_meter
from shiguan.llm.json_replies import without_thoughts
from shiguan.llm.run_watch import counting_replies, current_watch, waiting_for_llm

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


@dataclass(frozen=True)
class LlmReply:
    """What came of one call: the texts of the replies that have one, or why there is none, a clause."""

    texts: tuple[str, ...] = ()
    failure: str = ""

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
    """Run a nested component without blocking the event loop; one without `run_async` runs in a thread."""
    if callable(getattr(part, "run_async", None)):
        result: dict[str, Any] = await part.run_async(**arguments)
        return result
    return await asyncio.to_thread(part.run, **arguments)


def run_to_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine for a caller who cannot await it: in a thread where an event loop is at work in this one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(copy_context().run, asyncio.run, work).result()


def blocking(run_async: Callable[Arguments, Coroutine[Any, Any, Result]]) -> Callable[Arguments, Result]:
    """Make the `run` of a component from its `run_async`: the same sockets, for callers who cannot await it."""

    @wraps(run_async)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return run_to_end(run_async(*args, **kwargs))

    return run


async def run_generator_async(chat_generator: Any, messages: Any, settings: dict[str, Any]) -> list[ChatMessage]:
    replies: list[ChatMessage] = (await run_nested_async(chat_generator, messages=messages, **settings))["replies"]
    return replies


def ask_llm(
    chat_generator: ChatGenerator,
    messages: list[ChatMessage],
    *,
    generation_kwargs: dict[str, Any] | None = None,
    raise_on_failure: bool = False,
) -> LlmReply:
    """Call an available generator once; errors are put into words unless they are to be raised."""
    if not budget_allows():
        return _BEYOND_BUDGET
    warm_up_generator(chat_generator)
    try:
        with counting_replies() as came_out:
            replies = chat_generator.run(messages=messages, **_extra(generation_kwargs))["replies"]
            came_out.count(replies)
        return _read(replies)
    # Any generator may stand here, so any error may come; the caller has declared what it does without a reply.
    except Exception as error:
        return _failed(error, raise_on_failure)


async def ask_llm_async(
    chat_generator: ChatGenerator,
    messages: list[ChatMessage],
    *,
    generation_kwargs: dict[str, Any] | None = None,
    raise_on_failure: bool = False,
) -> LlmReply:
    """
    Call a generator once without blocking the event loop.

    In a watched run the call has the run's `helper` limit, and no more than the question's budget leaves it: what takes
    longer is cancelled and counts as no reply.
    """
    if not budget_allows():
        return _BEYOND_BUDGET
    warm_up_generator(chat_generator)
    watch, meter = current_watch(), current_meter()
    limits = [watch.limits.helper if watch else None, meter.seconds_left() if meter else None]
    limit = min((seconds for seconds in limits if seconds is not None), default=None)
    try:
        async with asyncio.timeout(limit) as timer:
            with waiting_for_llm(), counting_replies() as came_out:
                replies = await run_generator_async(chat_generator, messages, _extra(generation_kwargs))
                came_out.count(replies)
        return _read(replies)
    except Exception as error:
        late = TimeoutError(f"the LLM did not answer within {limit:g} s") if timer.expired() else None
        return _failed(late or error, raise_on_failure)


def no_answer_error(reply: ChatMessage) -> AnswerError:
    """Put into words that a model replied with nothing that could be an answer."""
    model, reason = reply.meta.get("model") or "unknown", reply.meta.get("finish_reason")
    what = "asked for tools instead of answering" if reply.tool_calls else "replied without an answer"
    ended = f" (it ended with `{reason}`)" if reason else ""
    return AnswerError(
        f"The stage `generator` failed: the model `{model}` {what}{ended}. Ask again, or in other words; if it goes "
        "on, raise `max_tokens` or take another model.",
        stage="generator",
    )


def _extra(generation_kwargs: dict[str, Any] | None) -> dict[str, Any]:
    # Not every chat generator takes `generation_kwargs` when it is run.
    return {"generation_kwargs": generation_kwargs} if generation_kwargs else {}


def _read(replies: Sequence[ChatMessage]) -> LlmReply:
    texts = tuple(text for text in (without_thoughts(reply.text or "").strip() for reply in replies) if text)
    return LlmReply(texts=texts, failure="" if texts else "the LLM's reply is empty")


def _failed(error: Exception, raise_on_failure: bool) -> LlmReply:
    if raise_on_failure:
        raise error
    if isinstance(error, BudgetError):
        return _BEYOND_BUDGET
    logger.debug("A call of the LLM failed: {kind}", kind=type(error).__name__)
    return LlmReply(failure=" ".join(str(error).split())[:400].rstrip(".") or type(error).__name__)
