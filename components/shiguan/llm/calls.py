"""Asks a chat generator on behalf of a stage that can do without: one call, a text or a reason why there is none."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from haystack import logging
from haystack.components.generators.chat.types import ChatGenerator
from haystack.dataclasses import ChatMessage

from shiguan.llm.run_watch import current_watch, waiting_for_llm

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LlmReply:
    """
    What came of one call.

    :param texts: The texts of the replies that have one; none if the call failed.
    :param failure: Why there is none, a clause without a final period; empty if there is one.
    """

    texts: tuple[str, ...] = ()
    failure: str = ""

    @property
    def text(self) -> str:
        """The first text; empty if there is none."""
        return self.texts[0] if self.texts else ""


def is_available(chat_generator: ChatGenerator | None) -> bool:
    """
    Tell whether a generator can be called.

    :param chat_generator: The generator; None for none.
    :returns: False for None and for a generator whose `available()` says so, such as `OptionalChatGenerator`.
    """
    if chat_generator is None:
        return False
    available = getattr(chat_generator, "available", None)
    return bool(available()) if callable(available) else True


def warm_up_generator(chat_generator: Any) -> None:
    """
    Warm up a nested component, where there is one that can be.

    :param chat_generator: The component; None for none.
    """
    warm_up = getattr(chat_generator, "warm_up", None)
    if callable(warm_up):
        warm_up()


def ask_llm(
    chat_generator: ChatGenerator,
    messages: list[ChatMessage],
    *,
    generation_kwargs: dict[str, Any] | None = None,
    raise_on_failure: bool = False,
) -> LlmReply:
    """
    Call a generator once.

    :param chat_generator: The generator, available.
    :param messages: The prompt.
    :param generation_kwargs: For this call, such as `{"n": 3}`; None for the generator's own.
    :param raise_on_failure: Let errors through instead of putting them into words.
    :returns: The reply, or why there is none.
    """
    warm_up_generator(chat_generator)
    try:
        return _read(chat_generator.run(messages=messages, **_extra(generation_kwargs))["replies"])
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
    Call a generator once without blocking the event loop; one without `run_async` runs in a thread.

    In a watched run the call has the run's `helper` limit: what takes longer is cancelled and counts as no reply.

    :param chat_generator: The generator, available.
    :param messages: The prompt.
    :param generation_kwargs: For this call; None for the generator's own.
    :param raise_on_failure: Let errors through instead of putting them into words.
    :returns: The reply, or why there is none.
    """
    warm_up_generator(chat_generator)
    extra = _extra(generation_kwargs)
    run_async = getattr(chat_generator, "run_async", None)
    watch = current_watch()
    limit = watch.limits.helper if watch else None
    try:
        async with asyncio.timeout(limit) as timer:
            with waiting_for_llm():
                if callable(run_async):
                    result = await run_async(messages=messages, **extra)
                else:
                    result = await asyncio.to_thread(chat_generator.run, messages=messages, **extra)
        return _read(result["replies"])
    except Exception as error:
        late = TimeoutError(f"the LLM did not answer within {limit:g} s") if timer.expired() else None
        return _failed(late or error, raise_on_failure)


def _extra(generation_kwargs: dict[str, Any] | None) -> dict[str, Any]:
    # Not every chat generator takes `generation_kwargs` when it is run.
    return {"generation_kwargs": generation_kwargs} if generation_kwargs else {}


def _read(replies: Sequence[ChatMessage]) -> LlmReply:
    texts = tuple(text for text in ((reply.text or "").strip() for reply in replies) if text)
    return LlmReply(texts=texts, failure="" if texts else "the LLM's reply is empty")


def _failed(error: Exception, raise_on_failure: bool) -> LlmReply:
    if raise_on_failure:
        raise error
    logger.debug("A call of the LLM failed: {kind}", kind=type(error).__name__)
    return LlmReply(failure=" ".join(str(error).split())[:400].rstrip(".") or type(error).__name__)
