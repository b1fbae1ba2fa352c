"""Calls an OpenAI-compatible endpoint through Haystack's generator: in any event loop, with counted retries."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from haystack import logging
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage, StreamingCallbackT, StreamingChunk
from haystack.dataclasses.streaming_chunk import select_streaming_callback
from haystack.utils import Secret

from shiguan.errors import EndpointError, TimeLimitError
from shiguan.llm.endpoint_errors import describe_failure, is_worth_retrying
from shiguan.llm.run_watch import current_watch
from shiguan.llm.tally import note_llm_call

logger = logging.getLogger(__name__)

# Takes a temperature, which the reasoning models refuse.
DEFAULT_MODEL = "gpt-4.1-mini"
# Local servers (Ollama, vLLM, llama.cpp) check no key, but the client insists on one.
_NO_KEY = "not-needed"


def is_endpoint_configured() -> bool:
    """
    Tell whether the environment names an endpoint.

    :returns: True if `OPENAI_API_KEY` or `OPENAI_BASE_URL` is set and not empty.
    """
    return bool(os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"))


def check_endpoint_settings(*, timeout: float, max_retries: int, retry_delay: float) -> None:
    """
    Check the numbers that every generator over an endpoint takes.

    :param timeout: Seconds per attempt.
    :param max_retries: Further attempts after the first.
    :param retry_delay: Seconds before the first retry.
    :raises ValueError: If a number is out of its range.
    """
    if timeout <= 0:
        raise ValueError(f"`timeout` must be positive, got {timeout}.")
    if max_retries < 0:
        raise ValueError(f"`max_retries` must not be negative, got {max_retries}.")
    if retry_delay < 0:
        raise ValueError(f"`retry_delay` must not be negative, got {retry_delay}.")


class OpenAIEndpoint:
    """
    One endpoint with its settings, read from the environment when it is made.

    A call that fails in a way that may pass (no connection, timeout, 429, 5xx, a reply that is no valid JSON) is tried
    again after 1, 2, 4... times `retry_delay` seconds, but never once parts of the answer have been streamed. In a
    watched run the attempts together have the run's `llm` limit until the model gives a sign of life.
    """

    def __init__(
        self,
        model: str | None,
        *,
        timeout: float,
        max_retries: int,
        retry_delay: float,
        generation_kwargs: dict[str, Any] | None,
        stage: str,
    ) -> None:
        """
        Make the client; nothing is sent yet.

        :param model: The model; None for `$OPENAI_MODEL`, or `DEFAULT_MODEL` where that is not set.
        :param timeout: Seconds to wait, per attempt.
        :param max_retries: Further attempts after the first.
        :param retry_delay: Seconds before the first retry; doubled for each further one.
        :param generation_kwargs: Passed on to the endpoint, such as `temperature`.
        :param stage: Who calls, for the errors.
        """
        self.model = model or os.environ.get("OPENAI_MODEL") or DEFAULT_MODEL
        self.timeout = timeout
        self.max_retries = max_retries
        self.retry_delay = retry_delay
        self.generation_kwargs = generation_kwargs
        self.stage = stage
        self.loop_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[OpenAIChatGenerator, Any]]
        self.loop_clients = WeakKeyDictionary()
        self._lock = Lock()
        self._client = self._new_client()

    def run(
        self,
        messages: list[ChatMessage],
        streaming_callback: StreamingCallbackT | None,
        generation_kwargs: dict[str, Any] | None,
    ) -> list[ChatMessage]:
        """
        Answer a prompt.

        :param messages: The prompt.
        :param streaming_callback: Called with each part of the answer as it comes.
        :param generation_kwargs: For this call, over the endpoint's own.
        :returns: The replies; none for an empty prompt.
        :raises EndpointError: If the endpoint fails for good.
        """
        callback = select_streaming_callback(None, streaming_callback, requires_async=False)
        settings = _with_usage(generation_kwargs) if callback else generation_kwargs
        stream = _Stream()

        def forward(chunk: StreamingChunk) -> None:
            with stream:
                if callback is not None:
                    callback(chunk)

        for attempt in range(self.max_retries + 1):
            try:
                found = self._client.run(messages, forward if callback else None, settings)["replies"]
                return _counted(_finished(found))
            except Exception as error:
                delay = self._delay_or_raise(error, attempt, stream)
            time.sleep(delay)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def run_async(
        self,
        messages: list[ChatMessage],
        streaming_callback: StreamingCallbackT | None,
        generation_kwargs: dict[str, Any] | None,
    ) -> list[ChatMessage]:
        """
        Answer a prompt without blocking the event loop.

        :param messages: The prompt.
        :param streaming_callback: Awaited with each part of the answer as it comes.
        :param generation_kwargs: For this call, over the endpoint's own.
        :returns: The replies; none for an empty prompt.
        :raises EndpointError: If the endpoint fails for good.
        :raises TimeLimitError: If the model gives no sign of life within the run's limit.
        """
        callback = select_streaming_callback(None, streaming_callback, requires_async=True)
        client = await self._client_of_this_loop()
        settings = _with_usage(generation_kwargs) if callback else generation_kwargs
        stream = _Stream()
        watch = current_watch()
        limit = watch.limits.llm if watch else None

        async def forward(chunk: StreamingChunk) -> None:
            with stream:
                if callback is not None:
                    await callback(chunk)
            if limit is not None:
                timer.reschedule(asyncio.get_running_loop().time() + limit)

        try:
            async with asyncio.timeout(limit) as timer:
                for attempt in range(self.max_retries + 1):
                    try:
                        result = await client.run_async(messages, forward if callback else None, settings)
                        return _counted(_finished(result["replies"]))
                    except Exception as error:
                        delay = self._delay_or_raise(error, attempt, stream)
                    await asyncio.sleep(delay)
        except TimeoutError:
            if not timer.expired():
                raise
            raise TimeLimitError(
                f"The stage `{self.stage}` failed: the model `{self.model}` gave no sign of life for {limit:g} s, "
                "which is the limit. Ask again later, or raise the limit.",
                stage=self.stage,
            ) from None
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _delay_or_raise(self, error: Exception, attempt: int, stream: "_Stream") -> float:
        if stream.failure is not None:
            # The receiver of the stream failed, not the endpoint.
            raise stream.failure
        if stream.started or attempt >= self.max_retries or not is_worth_retrying(error):
            cause, next_step = describe_failure(error, self.model, streamed=stream.started)
            tries = f" after {attempt + 1} attempts" if attempt else ""
            # The original error may quote the request with its key, so it is not chained.
            raise EndpointError(
                f"The stage `{self.stage}` failed{tries}: {cause}. {next_step}.", stage=self.stage
            ) from None
        delay = self.retry_delay * float(2**attempt)
        logger.warning(
            "The endpoint failed ({kind}); trying again in {delay} s", kind=type(error).__name__, delay=delay
        )
        return delay

    def _new_client(self) -> OpenAIChatGenerator:
        return OpenAIChatGenerator(
            api_key=Secret.from_token(os.environ.get("OPENAI_API_KEY") or _NO_KEY),
            model=self.model,
            api_base_url=os.environ.get("OPENAI_BASE_URL") or None,
            generation_kwargs=self.generation_kwargs,
            timeout=self.timeout,
            # The client's own retries wait half a second and are invisible; ours are counted and logged.
            max_retries=0,
        )

    async def _client_of_this_loop(self) -> OpenAIChatGenerator:
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


class _Stream:
    """What has become of the parts of an answer that were passed on."""

    def __init__(self) -> None:
        self.started = False
        self.failure: Exception | None = None

    def __enter__(self) -> None:
        self.started = True

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception):
            self.failure = error


async def _close_with_loop(client: OpenAIChatGenerator) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await client.async_client.close()


def _with_usage(generation_kwargs: dict[str, Any] | None) -> dict[str, Any]:
    # A stream tells what it used only where it is asked to.
    return {"stream_options": {"include_usage": True}, **(generation_kwargs or {})}


def _counted(replies: list[ChatMessage]) -> list[ChatMessage]:
    if replies:
        note_llm_call(replies[0].meta.get("usage"))
    return replies


def _finished(replies: list[ChatMessage]) -> list[ChatMessage]:
    if any(reply.meta.get("finish_reason") is None for reply in replies):
        raise ConnectionError("the answer broke off before its end")
    return replies
