"""Calls of language models for a stage, within the question's budget: a text, or why there is none."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeGuard, TypeVar
from weakref import WeakSet

from haystack import Document, logging
from haystack.components.generators.chat.types import ChatGenerator
from haystack.dataclasses import ChatMessage

from shiguan.errors import EndpointError
from shiguan.llm.json_replies import without_thoughts
from shiguan.llm.run import current_run

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


NO_LLM = "No LLM is configured"
"""The beginning of the warning of every stage that does without a model because none is configured."""


def budget_allows(calls: int = 1) -> bool:
    """Return whether the question's budget lets the current stage call a model this often."""
    run = current_run()
    return run is None or run.allows(calls)


def estimate_tokens(text: list[ChatMessage] | str) -> int:
    """Estimate the tokens of a prompt, rather too many: one for four characters of ASCII, eight for five others."""
    texts = [text] if isinstance(text, str) else [part for message in text for part in [*message.texts, "." * 24]]
    plain = sum(len(part.encode("ascii", "ignore")) for part in texts)
    return -(-8 * (sum(map(len, texts)) - plain) // 5) + -(-plain // 4)


@dataclass(frozen=True)
class LlmReply:
    """The result of one call: the text of the reply, or a clause that says why there is none."""

    text: str = ""
    failure: str = ""


@dataclass(frozen=True)
class Outcome:
    """
    How a question ended without a reply of the model that answers; `CitationExtractor` writes the answer from it.

    `kind` is the answer's status, or `unanswered` where passages were found and no model could be asked.
    """

    kind: Literal["unanswered", "not_found", "recalled", "unsearched", "refused"]
    reason: str = ""
    texts: tuple[str, ...] = ()
    documents: tuple[Document, ...] = ()
    meta: dict[str, Any] = field(default_factory=dict)


def is_available(chat_generator: ChatGenerator | None) -> TypeGuard[ChatGenerator]:
    """Return whether a generator can be called: it is not None, and `available()`, if it has that, is true."""
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

    So does one of another library in a loop for one call, whose connections its client would keep.
    """
    foreign = not type(part).__module__.startswith("shiguan.")
    in_thread = foreign and asyncio.get_running_loop() in _passing_loops and callable(getattr(part, "run", None))
    if callable(getattr(part, "run_async", None)) and not in_thread:
        result: dict[str, Any] = await part.run_async(**arguments)
        return result
    return await asyncio.to_thread(part.run, **arguments)


_passing_loops: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
"""Event loops that run a single call and are then closed."""


def run_to_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine for a caller who cannot await it; in another thread if this one already runs an event loop."""

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
    """Make the `run` of a component from its `run_async`, with the same sockets."""

    @wraps(run_async)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return run_to_end(run_async(*args, **kwargs))

    return run


async def call_generator(chat_generator: Any, messages: list[ChatMessage], **settings: Any) -> dict[str, Any]:
    """Call a generator without blocking the event loop, and count the call in the current run."""
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
    """Call a generator once, within the limits of the run and its budget; an error becomes the `failure`."""
    run = current_run()
    if run is not None and not run.allows(helper=helper):
        return LlmReply(failure="The question's budget leaves no call for it")
    warm_up_generator(chat_generator)
    limits = [run.limits.helper, run.seconds_left(helper=helper)] if run else []
    limit = min((seconds for seconds in limits if seconds is not None), default=None)
    # Not every chat generator takes `generation_kwargs` when it is run.
    settings = {"generation_kwargs": generation_kwargs} if generation_kwargs else {}
    try:
        async with asyncio.timeout(limit) as timer:
            outputs = await call_generator(chat_generator, messages, **settings)
        return _read(outputs)
    # Any generator may be used, so any error may come; the stage has a declared fallback.
    except Exception as error:
        late = TimeoutError(f"the LLM did not answer within {limit:g} s") if timer.expired() else None
        return _failed(late or error)


ask_llm = blocking(ask_llm_async)
"""`ask_llm_async` for a caller who cannot await it."""


def no_answer_error(reply: ChatMessage) -> EndpointError:
    """Make the error of a model that replied without an answer: the model failed, not the pipeline."""
    model, reason = reply.meta.get("model") or "unknown", reply.meta.get("finish_reason")
    what = "asked for tools instead of answering" if reply.tool_calls else "replied without an answer"
    ended = f" (it ended with `{reason}`)" if reason else ""
    return EndpointError(
        f"The stage `generator` failed: the model `{model}` {what}{ended}. Ask again, or in other words; if it "
        "happens again, raise `max_tokens` or use another model.",
        stage="generator",
        summary=f"the model {what}{ended}",
        cause=f"the model `{model}` {what}",
        refusal="content" if reason == "content_filter" else "",
    )


def _read(outputs: dict[str, Any]) -> LlmReply:
    replies: list[ChatMessage] = outputs["replies"]
    if not replies and outputs.get("warnings"):
        return LlmReply(failure=_clause(outputs["warnings"][0]))
    texts = (without_thoughts(reply.text or "").strip() for reply in replies)
    text = next(filter(None, texts), "")
    return LlmReply(text) if text else LlmReply(failure="the LLM's reply is empty")


def _failed(error: Exception) -> LlmReply:
    logger.debug("A call of the LLM failed: {kind}", kind=type(error).__name__)
    cause = error.cause if isinstance(error, EndpointError) else ""
    return LlmReply(failure=_clause(cause or str(error)) or type(error).__name__)


def _clause(text: str) -> str:
    return " ".join(text.split())[:400].rstrip(".")
