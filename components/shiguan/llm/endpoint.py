"""Calls an OpenAI-compatible endpoint through Haystack's generator, with retries, limits and clear errors."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from math import isfinite
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from haystack import logging
from haystack.dataclasses import AsyncStreamingCallbackT, ChatMessage, StreamingCallbackT, StreamingChunk, TextContent
from haystack.dataclasses.streaming_chunk import select_streaming_callback
from haystack.tools import ToolsType
from haystack.utils import Secret
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from shiguan.errors import AnswerError, BudgetError, ConfigurationError, EndpointError, TimeLimitError
from shiguan.llm.calls import estimate_tokens
from shiguan.llm.failures import asked_to_wait, describe_failure, is_worth_retrying, reason_of, refusal_of
from shiguan.llm.model_settings import NamedModel
from shiguan.llm.run import current_run, stage_name

if TYPE_CHECKING:
    from haystack.components.generators.chat import OpenAIChatGenerator

logger = logging.getLogger(__name__)

MAX_TOKENS = 2048
"""The default limit of a reply, in tokens."""
MOST_BYTES = 32 * 1024 * 1024
"""The longest reply that is read; streamed token by token, 128,000 tokens have about as many bytes."""
_CONNECTIONS = {"max_connections": 1000, "max_keepalive_connections": 100}

FIRST_WAIT = 1.0
"""Seconds before the first retry; doubled for each further one."""


class OpenAIEndpoint:
    """
    One model with its settings; its key is read from the environment when this is made.

    It retries as `ConfiguredChatGenerator` describes. Replies are streamed even without a listener, so that `timeout`
    counts from the last token and not from the beginning. The attempts together have the `llm` limit of the run until
    the first token comes. Each call is recorded in the run, also one that failed.
    """

    def __init__(
        self,
        named: NamedModel,
        *,
        timeout: float,
        max_retries: int,
        generation_kwargs: dict[str, Any] | None,
        stage: str,
    ) -> None:
        self.named = named
        self.model, self._key, self._address = named.model_name, named.key, named.address
        self.timeout = named.timeout or _patience(timeout)
        self.max_retries = max_retries
        self.generation_kwargs = _with_limit(generation_kwargs, named.max_tokens)
        self.stage = stage
        self.loop_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[OpenAIChatGenerator, Any]]
        self.loop_clients = WeakKeyDictionary()
        self._lock = Lock()

    async def reply(
        self,
        messages: list[ChatMessage],
        streaming_callback: StreamingCallbackT | None,
        generation_kwargs: dict[str, Any] | None,
        tools: ToolsType | None,
        *,
        most_retries: int | None = None,
        **about: Any,
    ) -> list[ChatMessage]:
        """Answer a prompt, or raise an `EndpointError` or `TimeLimitError`; `about` is recorded with the call."""
        run, call, began = current_run(), ModelCall(), time.perf_counter()
        callback = select_streaming_callback(None, streaming_callback, requires_async=True)
        retries = self.max_retries if most_retries is None else min(most_retries, self.max_retries)
        try:
            replies = await self._attempts(messages, callback, generation_kwargs, tools, call=call, retries=retries)
        except BaseException as error:
            if run is not None and call.attempts:
                reason = getattr(error, "reason", "") or ("refused" if isinstance(error, AnswerError) else "stopped")
                about |= {"name": self.named.name, "attempts": call.attempts, "model": self.model, "failed": reason}
                run.note_call(began, about, {}, 0.0)
            raise
        if run is None:
            return replies
        wrote = sum(estimate_tokens(reply.text or "") for reply in replies)
        estimate = {"prompt_tokens": estimate_tokens(messages), "completion_tokens": wrote}
        about |= {"name": self.named.name, "attempts": call.attempts}
        return run.count(replies, began, self.named.cost, estimate, **about)

    async def _attempts(
        self,
        messages: list[ChatMessage],
        callback: AsyncStreamingCallbackT | None,
        generation_kwargs: dict[str, Any] | None,
        tools: ToolsType | None,
        *,
        call: "ModelCall",
        retries: int,
    ) -> list[ChatMessage]:
        client = await self._client_of_this_loop()
        streams, settings = self._streaming(callback, generation_kwargs, tools)
        run = current_run()
        limit = run.limits.llm if run else None

        async def forward(chunk: StreamingChunk) -> None:
            if callback is not None:
                await call.pass_on(chunk, callback)
            if limit is not None:
                timer.reschedule(asyncio.get_running_loop().time() + limit)

        async def attempt() -> list[ChatMessage]:
            if run is not None:
                run.begin_request()
            call.attempts += 1
            result = await client.run_async(messages, forward if streams else None, settings, tools=tools)
            return _mended_replies(result["replies"])

        def may_retry(error: BaseException) -> bool:
            return is_worth_retrying(error) and not call.started and (run is None or run.allows())

        retrying = AsyncRetrying(
            sleep=asyncio.sleep,
            retry=retry_if_exception(may_retry),
            stop=stop_after_attempt(retries + 1),
            wait=_seconds_to_wait,
            before_sleep=_log_retry,
            reraise=True,
        )
        try:
            async with asyncio.timeout(limit) as timer:
                try:
                    return await retrying(attempt)
                except Exception as error:
                    raise self._failure(error, call) from None
        except TimeoutError:
            if not timer.expired():
                raise
            stage = stage_name() or self.stage
            raise TimeLimitError(
                f"The stage `{stage}` failed: the model `{self.model}` sent nothing for {limit:g} s, which is the "
                "limit. Ask again later, or raise the limit.",
                stage=stage,
                reason="" if call.started else "timeout",
            ) from None

    def _streaming(
        self,
        callback: AsyncStreamingCallbackT | None,
        generation_kwargs: dict[str, Any] | None,
        tools: ToolsType | None,
    ) -> tuple[bool, dict[str, Any] | None]:
        """Decide whether to stream the reply, and with which settings: not every server streams every kind."""
        given = dict(generation_kwargs or {})
        if "max_tokens" in given and "max_completion_tokens" in self.generation_kwargs:
            given["max_completion_tokens"] = given.pop("max_tokens")  # a model takes one of the two names
        asked = {**self.generation_kwargs, **given}
        if callback is None and (tools or {"n", "response_format", "stream"} & asked.keys()):
            return False, given
        # A stream reports what it used only where it is asked to.
        return True, {"stream_options": {"include_usage": True}, **given}

    def holds(self, prompt_tokens: int, generation_kwargs: dict[str, Any] | None) -> bool:
        """Return whether prompt and longest reply fit into the model's window."""
        settings = {**self.generation_kwargs, **(generation_kwargs or {})}
        longest = int(settings.get("max_completion_tokens") or settings.get("max_tokens") or MAX_TOKENS)
        return self.named.window is None or prompt_tokens + longest <= self.named.window

    def _failure(self, error: Exception, call: "ModelCall") -> Exception:
        if call.receiver_failure is not None:
            return call.receiver_failure
        if isinstance(error, BudgetError):
            return error
        cause, next_step = describe_failure(error, self.named, streamed=call.started)
        # The user is not shown the address of the model's server, nor its reply.
        shown, _ = describe_failure(error, self.named, streamed=call.started, place="the language model")
        stage = stage_name() or self.stage
        tries = f" after {call.attempts} attempts" if call.attempts > 1 else ""
        # The original error may quote the request with its key, so it is not chained.
        return EndpointError(
            f"The stage `{stage}` failed{tries}: {cause}. {next_step}.",
            stage=stage,
            reason="" if call.started else reason_of(error),
            cause=shown.partition(" (")[0],
            next_step=next_step,
            refusal=refusal_of(error),
            summary=f"{cause.partition(' (')[0]}. {next_step}.",  # the part in brackets may quote the question
        )

    def _new_client(self) -> "OpenAIChatGenerator":
        # Imported here: the client takes half a second and 40 MB.
        from haystack.components.generators.chat import OpenAIChatGenerator  # noqa: PLC0415

        from shiguan.bounded_http import bounded  # noqa: PLC0415

        return OpenAIChatGenerator(
            api_key=Secret.from_token(self._key),
            model=self.model,
            api_base_url=self._address,
            generation_kwargs=self.generation_kwargs,
            timeout=self.timeout,
            http_client_kwargs={**bounded(MOST_BYTES), "follow_redirects": True, "limits": _CONNECTIONS},
            # The client's own retries wait half a second and are invisible; ours are logged.
            max_retries=0,
        )

    async def _client_of_this_loop(self) -> "OpenAIChatGenerator":
        # An async client's connections belong to the event loop that opened them, and every `AsyncPipeline.run` makes
        # a new loop. So each loop gets a client, which is closed when the loop shuts down its async generators.
        loop = asyncio.get_running_loop()
        with self._lock:
            for other in [known for known in self.loop_clients if known.is_closed()]:
                del self.loop_clients[other]
            known = self.loop_clients.get(loop)
            if known is not None:
                return known[0]
            client = self._new_client()
            closing = _close_with_loop(client)
            self.loop_clients[loop] = (client, closing)
        await anext(closing)
        return client


class ModelCall:
    """One call of one model: its attempts, and the parts of its answer as they come."""

    def __init__(self) -> None:
        self.attempts = 0
        self.started = False
        self.receiver_failure: Exception | None = None
        self._half = ""

    async def pass_on(self, chunk: StreamingChunk, receive: AsyncStreamingCallbackT) -> None:
        """Pass on a part of the answer; halves of a character that come in two parts are joined, others replaced."""
        self.started = True
        text = self._half + chunk.content
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        text = text.removesuffix(self._half) if self._half else text
        try:
            await receive(
                chunk if text == chunk.content and text.isascii() else replace(chunk, content=_mended_text(text))
            )
        except Exception as error:
            self.receiver_failure = error
            raise


async def _close_with_loop(client: "OpenAIChatGenerator") -> AsyncIterator[None]:
    try:
        yield
    finally:
        await client.async_client.close()


def _patience(timeout: float) -> float:
    """Return the seconds allowed between two tokens: `OPENAI_TIMEOUT`, else those of the file."""
    given = os.environ.get("OPENAI_TIMEOUT", "").strip()
    try:
        seconds = float(given) if given else timeout
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ConfigurationError(f"OPENAI_TIMEOUT is `{given}`. Expected seconds, such as 120; set it so, or unset it.")
    return seconds


def _with_limit(generation_kwargs: dict[str, Any] | None, most: int | None) -> dict[str, Any]:
    # Without a limit some models write until their context is full; null leaves it out for models that refuse it.
    given = generation_kwargs or {}
    limited = given if "max_completion_tokens" in given else {"max_tokens": most or MAX_TOKENS, **given}
    return {name: value for name, value in limited.items() if name != "max_tokens" or value is not None}


def _mended_replies(replies: list[ChatMessage]) -> list[ChatMessage]:
    """Make replies fit to be stored and sent on: complete, in whole characters, with finite numbers."""
    if any(reply.meta.get("finish_reason") is None for reply in replies):
        raise ConnectionError("the answer broke off before its end")

    def mended(part: Any) -> Any:
        return TextContent(_mended_text(part.text)) if isinstance(part, TextContent) else part

    return [replace(one, _content=[*map(mended, one._content)], _meta=_mended_meta(one.meta)) for one in replies]


def _mended_text(text: str) -> str:
    """Replace halves of characters, which cannot be encoded."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _mended_meta(meta: Any) -> Any:
    if isinstance(meta, dict):
        pairs = ((name, _mended_meta(value)) for name, value in meta.items())
        return {name: value for name, value in pairs if not (isinstance(value, float) and not isfinite(value))}
    return _mended_text(meta) if isinstance(meta, str) else meta


def _seconds_to_wait(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    return max(FIRST_WAIT * float(2 ** (state.attempt_number - 1)), asked_to_wait(error))


def _log_retry(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    logger.warning(
        "The endpoint failed ({kind}); trying again in {delay} s",
        kind=type(error).__name__,
        delay=state.next_action.sleep if state.next_action else 0,
    )
