"""Calls an OpenAI-compatible endpoint through Haystack's generator, with retries, limits and clear errors."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from inspect import isawaitable
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from haystack import logging
from haystack.dataclasses import ChatMessage, StreamingCallbackT, StreamingChunk
from haystack.tools import ToolsType
from haystack.utils import Secret

from shiguan.errors import AnswerError, BudgetError, ConfigurationError, TimeLimitError
from shiguan.llm.calls import budget_allows, estimate_tokens
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
    One model with its settings, which retries as `ConfiguredChatGenerator` describes and records each call in the run.

    Replies are streamed even without a listener, so that `timeout` counts from the last token.
    """

    def __init__(
        self, named: NamedModel, timeout: float, max_retries: int, generation_kwargs: dict[str, Any] | None
    ) -> None:
        self.named = named
        self.model, self._key, self._address = named.model_name, named.key, named.address
        self.timeout = named.timeout or _patience(timeout)
        self.max_retries = max_retries
        self.generation_kwargs = _with_limit(generation_kwargs, named.max_tokens)
        self.loop_clients: dict[asyncio.AbstractEventLoop, tuple[OpenAIChatGenerator, Any]] = {}
        self._lock = Lock()

    async def reply(self, request: "Request", *, most_retries: int | None = None, **about: Any) -> list[ChatMessage]:
        """Answer a prompt, or raise an `EndpointError` or `TimeLimitError`; `about` is recorded with the call."""
        run, call, began = current_run(), _Call(), time.perf_counter()
        retries = self.max_retries if most_retries is None else min(most_retries, self.max_retries)
        try:
            replies = await self._attempts(call, request, retries)
        except BaseException as error:
            if run is not None and call.attempts:
                reason = getattr(error, "reason", "") or ("refused" if isinstance(error, AnswerError) else "stopped")
                about |= {"name": self.named.name, "attempts": call.attempts, "model": self.model, "failed": reason}
                run.note_call(began, about, {}, 0.0)
            raise
        if run is None:
            return replies
        wrote = sum(estimate_tokens(reply.text or "") for reply in replies)
        estimate = {"prompt_tokens": estimate_tokens(request.messages), "completion_tokens": wrote}
        about |= {"name": self.named.name, "attempts": call.attempts}
        return run.count(replies, began, self.named.cost, estimate, **about)

    async def _attempts(self, call: "_Call", request: "Request", retries: int) -> list[ChatMessage]:
        client, run = await self._client_of_this_loop(), current_run()
        messages, streaming_callback, generation_kwargs, tools = request
        settings = self._settings(generation_kwargs)
        # Not every server streams every kind of reply; a stream reports what it used only where it is asked to.
        unstreamed = {"n", "response_format", "stream"} & {*self.generation_kwargs, *settings}
        streams = streaming_callback is not None or not (tools or unstreamed)
        if streams:
            settings = {"stream_options": {"include_usage": True}, **settings}
        limit = run.limits.llm if run else None

        async def forward(chunk: StreamingChunk) -> None:
            if streaming_callback is not None:
                text = _whole_characters(chunk.content)
                call.started = call.started or bool(text or chunk.tool_calls or chunk.reasoning)
                try:
                    outcome = streaming_callback(chunk if text == chunk.content else replace(chunk, content=text))
                    if isawaitable(outcome):
                        await outcome
                except Exception as error:
                    call.receiver_failure = error
                    raise
            if limit is not None:
                timer.reschedule(asyncio.get_running_loop().time() + limit)

        try:
            async with asyncio.timeout(limit) as timer:
                while True:
                    try:
                        if run is not None:
                            run.begin_request()
                        call.attempts += 1
                        result = await client.run_async(messages, forward if streams else None, settings, tools=tools)
                        return _checked(result["replies"])
                    except Exception as error:
                        failure = error
                    await asyncio.sleep(self._wait_after(failure, call, retries))
        except TimeoutError:
            if not timer.expired():
                raise
            stage = stage_name() or "generator"
            raise TimeLimitError(
                f"The stage `{stage}` failed: the model `{self.model}` sent nothing for {limit:g} s, which is the "
                "limit. Ask again later, or raise the limit.",
                stage=stage,
                reason="" if call.started else "timeout",
            ) from None

    def _wait_after(self, error: Exception, call: "_Call", retries: int) -> float:
        """Return the seconds until the next attempt, or raise the failure if there is none."""
        from shiguan.llm.failures import asked_to_wait, endpoint_error, is_worth_retrying  # noqa: PLC0415  # slow

        if call.receiver_failure is not None or isinstance(error, BudgetError):
            raise call.receiver_failure or error
        if call.started or call.attempts > retries or not is_worth_retrying(error) or not budget_allows():
            stage = stage_name() or "generator"
            # The original error may quote the request with its key, so it is not chained.
            raise endpoint_error(
                error, self.named, stage=stage, attempts=call.attempts, streamed=call.started
            ) from None
        wait = max(FIRST_WAIT * float(2 ** (call.attempts - 1)), asked_to_wait(error))
        kind = type(error).__name__
        logger.warning("The endpoint failed ({kind}); trying again in {delay} s", kind=kind, delay=wait)
        return wait

    def _settings(self, generation_kwargs: dict[str, Any] | None) -> dict[str, Any]:
        given = dict(generation_kwargs or {})
        if "max_tokens" in given and "max_completion_tokens" in self.generation_kwargs:
            given["max_completion_tokens"] = given.pop("max_tokens")  # a model takes one of the two names
        return given

    def holds(self, prompt_tokens: int, generation_kwargs: dict[str, Any] | None) -> bool:
        """Return whether prompt and longest reply fit into the model's window."""
        settings = {**self.generation_kwargs, **(generation_kwargs or {})}
        longest = int(settings.get("max_completion_tokens") or settings.get("max_tokens") or MAX_TOKENS)
        return self.named.window is None or prompt_tokens + longest <= self.named.window

    def _new_client(self) -> "OpenAIChatGenerator":
        # Imported here: the client takes half a second and 40 MB.
        from shiguan.bounded_http import bounded  # noqa: PLC0415
        from shiguan.llm.streaming_chat_generator import StreamingChatGenerator  # noqa: PLC0415

        return StreamingChatGenerator(
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
            if loop in self.loop_clients:
                return self.loop_clients[loop][0]
            client = self._new_client()
            closing = _close_with_loop(client)
            self.loop_clients[loop] = (client, closing)
        await anext(closing)
        return client


class Request(NamedTuple):
    """What a call sends, and who listens to its reply."""

    messages: list[ChatMessage]
    streaming_callback: StreamingCallbackT | None
    generation_kwargs: dict[str, Any] | None
    tools: ToolsType | None


@dataclass
class _Call:
    """One call: its attempts, whether a part of the answer was passed on, and how the receiver of these failed."""

    attempts: int = 0
    started: bool = False
    receiver_failure: Exception | None = None


async def _close_with_loop(client: "OpenAIChatGenerator") -> AsyncIterator[None]:
    try:
        yield
    finally:
        if client.async_client is not None:
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


def _checked(replies: list[ChatMessage]) -> list[ChatMessage]:
    """Refuse replies that broke off, and make their texts fit to be stored."""
    from shiguan.llm.streaming_chat_generator import text_of_parts  # noqa: PLC0415  # the client that made them

    if any(reply.meta.get("finish_reason") is None for reply in replies):
        raise ConnectionError("the answer broke off before its end")

    return [
        reply
        if reply.text is None or (text := _whole_characters(text_of_parts(reply.text))) == reply.text
        else ChatMessage.from_assistant(text, reply.meta, reply.name, reply.tool_calls, reasoning=reply.reasoning)
        for reply in replies
    ]


def _whole_characters(text: str) -> str:
    """Replace halves of characters, which cannot be encoded."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
