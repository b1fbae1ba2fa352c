"""Calls of language models on behalf of a stage: what a question's budget allows, and a text or why there is none."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, ParamSpec, TypeGuard, TypeVar
from weakref import WeakSet

from haystack import logging
from haystack.components.generators.chat.types import ChatGenerator
from haystack.dataclasses import ChatMessage

from shiguan.errors import BudgetError, EndpointError
from shiguan.llm.json_replies import without_thoughts
from shiguan.llm.reply_cache import KeptReply
from shiguan.llm.run import current_run, waiting_for_llm

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


NO_LLM = "No LLM is configured"
"""Begins the warning of every stage that does without a model because there is none."""


def budget_allows(calls: int = 1) -> bool:
    """Tell whether the stage at work may go on to call a model so often, as far as the question's budget goes."""
    run = current_run()
    return run is None or run.allows(calls)


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
    foreign = not type(part).__module__.startswith("shiguan.")
    in_thread = foreign and asyncio.get_running_loop() in _passing_loops and callable(getattr(part, "run", None))
    if callable(getattr(part, "run_async", None)) and not in_thread:
        result: dict[str, Any] = await part.run_async(**arguments)
        return result
    return await asyncio.to_thread(part.run, **arguments)


_passing_loops: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
"""Event loops that run one call and are then closed."""


def run_to_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine for a caller who cannot await it: in a thread where an event loop is at work in this one."""

    async def passing() -> Result:
        _passing_loops.add(asyncio.get_running_loop())
        return await work

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(passing())
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(copy_context().run, asyncio.run, passing()).result()


def blocking(run_async: Callable[Arguments, Coroutine[Any, Any, Result]]) -> Callable[Arguments, Result]:
    """Make the `run` of a component from its `run_async`: the same sockets, for callers who cannot await it."""

    @wraps(run_async)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return run_to_end(run_async(*args, **kwargs))

    return run


async def call_generator(chat_generator: Any, messages: list[ChatMessage], **settings: Any) -> dict[str, Any]:
    """Run a generator without blocking the event loop, and count the call in the run that it is part of."""
    run, began = current_run(), time.perf_counter()
    outputs = await run_nested_async(chat_generator, messages=messages, **settings)
    return outputs if run is None else {**outputs, "replies": run.count(outputs["replies"], began)}


async def ask_llm_async(
    chat_generator: ChatGenerator,
    messages: list[ChatMessage],
    *,
    generation_kwargs: dict[str, Any] | None = None,
    helper: bool = True,
) -> LlmReply:
    """
    Call a generator once without blocking the event loop; errors are put into words.

    The call has the `helper` limit of the run that it is part of, and no more than the question's budget leaves a
    helper, or the judge of an answer: what takes longer is cancelled and counts as no reply. The reply to the same
    prompt that was kept for the same helper is taken instead of a new one.
    """
    place, run = KeptReply(chat_generator, messages, generation_kwargs), current_run()
    if place.key and (known := await asyncio.to_thread(place.texts)):
        return LlmReply(known)
    if run is not None and not run.allows(helper=helper):
        return _BEYOND_BUDGET
    warm_up_generator(chat_generator)
    limits = [run.limits.helper, run.seconds_left(helper=helper)] if run else []
    limit = min((seconds for seconds in limits if seconds is not None), default=None)
    try:
        async with asyncio.timeout(limit) as timer:
            with waiting_for_llm():
                outputs = await call_generator(chat_generator, messages, **_settings(generation_kwargs))
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
    cause = error.cause if isinstance(error, EndpointError) else ""
    return LlmReply(failure=_clause(cause or str(error)) or type(error).__name__)


def _clause(text: str) -> str:
    return " ".join(text.split())[:400].rstrip(".")
