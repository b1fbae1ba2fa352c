"""Answers with an OpenAI-compatible endpoint where one is configured, and with quoted sentences where none is."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from haystack import component, logging
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage, StreamingCallbackT, StreamingChunk
from haystack.dataclasses.streaming_chunk import select_streaming_callback
from haystack.utils import Secret

from shiguan.answer.extractive_chat_generator import ExtractiveChatGenerator
from shiguan.errors import AnswerError
from shiguan.support.endpoint_errors import describe_failure, is_worth_retrying

logger = logging.getLogger(__name__)

# Takes a temperature, which the reasoning models refuse.
DEFAULT_MODEL = "gpt-4.1-mini"
# Local servers (Ollama, vLLM, llama.cpp) check no key, but the client insists on one.
_NO_KEY = "not-needed"
_PROMPT_MARKS = ("prompt", "prompt_hash")


@component
class OpenAIOrExtractiveChatGenerator:
    """
    The generator of the modes: a language model if there is one, else `ExtractiveChatGenerator`.

    At warm-up it reads `OPENAI_API_KEY` and `OPENAI_BASE_URL`. If either is set it calls that endpoint through
    Haystack's `OpenAIChatGenerator`; a base URL without a key is a local server and gets a dummy key. Otherwise it
    quotes the sources' own sentences. Who answered stands in the reply's meta as `model`; `prompt` and `prompt_hash`
    say with which prompt.

    A call that fails in a way that may pass (no connection, timeout, 429, 5xx, a reply that is no valid JSON) is
    tried again after 1, 2 and 4 seconds, but never once parts of the answer have been streamed. What still fails is
    an `AnswerError`; it never falls back to quoting silently.

    Example:
    ```python
    generator = OpenAIOrExtractiveChatGenerator()
    reply = generator.run(messages=prompt)["replies"][0]
    reply.meta["model"]  # "gpt-4.1-mini", or "extractive" without a key
    ```
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        mode: str = "simple",
        timeout: float = 30.0,
        max_retries: int = 3,
        retry_delay: float = 1.0,
        generation_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """
        Set how to call the endpoint; nothing is looked up yet.

        :param model: The model; None for `$OPENAI_MODEL`, or `gpt-4.1-mini` where that is not set.
        :param mode: Whose not-found sentence the extractive answerer says: `simple`, `advanced` or `precise`.
        :param timeout: Seconds to wait for the endpoint, per attempt.
        :param max_retries: Further attempts after the first.
        :param retry_delay: Seconds before the first retry; doubled for each further one.
        :param generation_kwargs: Passed on to the endpoint, such as `temperature`.
        :raises ValueError: If a number is out of its range.
        """
        if timeout <= 0:
            raise ValueError(f"`timeout` must be positive, got {timeout}.")
        if max_retries < 0:
            raise ValueError(f"`max_retries` must not be negative, got {max_retries}.")
        if retry_delay < 0:
            raise ValueError(f"`retry_delay` must not be negative, got {retry_delay}.")
        self.model = model
        self.mode = mode
        self.timeout = timeout
        self.max_retries = max_retries
        self.retry_delay = retry_delay
        self.generation_kwargs = generation_kwargs
        self._extractive = ExtractiveChatGenerator(mode=mode)
        self._client: OpenAIChatGenerator | None = None
        self._loop_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[OpenAIChatGenerator, Any]]
        self._loop_clients = WeakKeyDictionary()
        self._lock = Lock()
        self._warm = False

    def warm_up(self) -> None:
        """Look for an endpoint in the environment; a second call does nothing."""
        with self._lock:
            if self._warm:
                return
            if os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"):
                self._client = self._new_client()
            self._warm = True

    @component.output_types(replies=list[ChatMessage])
    def run(
        self,
        messages: list[ChatMessage],
        streaming_callback: StreamingCallbackT | None = None,
        generation_kwargs: dict[str, Any] | None = None,
    ) -> dict[str, list[ChatMessage]]:
        """
        Answer a prompt.

        :param messages: The prompt.
        :param streaming_callback: Called with each part of the answer as it comes.
        :param generation_kwargs: For this call, over those of the component.
        :returns: `replies`, as many as were asked for; none for an empty prompt.
        :raises AnswerError: If the endpoint fails for good.
        """
        self.warm_up()
        if self._client is None:
            replies = self._extractive.run(messages, streaming_callback, generation_kwargs)["replies"]
            return {"replies": _marked(replies, messages)}
        callback = select_streaming_callback(None, streaming_callback, requires_async=False)
        streamed: list[bool] = []

        def forward(chunk: StreamingChunk) -> None:
            streamed.append(True)
            if callback is not None:
                callback(chunk)

        for attempt in range(self.max_retries + 1):
            try:
                found = self._client.run(messages, forward if callback else None, generation_kwargs)["replies"]
                return {"replies": _marked(_finished(found), messages)}
            except Exception as error:
                delay = self._delay_or_raise(error, attempt, bool(streamed))
            time.sleep(delay)
        raise AssertionError("unreachable: the last attempt returns or raises")

    @component.output_types(replies=list[ChatMessage])
    async def run_async(
        self,
        messages: list[ChatMessage],
        streaming_callback: StreamingCallbackT | None = None,
        generation_kwargs: dict[str, Any] | None = None,
    ) -> dict[str, list[ChatMessage]]:
        """
        Answer a prompt without blocking the event loop.

        :param messages: The prompt.
        :param streaming_callback: Awaited with each part of the answer as it comes.
        :param generation_kwargs: For this call, over those of the component.
        :returns: `replies`, as many as were asked for; none for an empty prompt.
        :raises AnswerError: If the endpoint fails for good.
        """
        self.warm_up()
        if self._client is None:
            replies = (await self._extractive.run_async(messages, streaming_callback, generation_kwargs))["replies"]
            return {"replies": _marked(replies, messages)}
        callback = select_streaming_callback(None, streaming_callback, requires_async=True)
        client = await self._client_of_this_loop()
        streamed: list[bool] = []

        async def forward(chunk: StreamingChunk) -> None:
            streamed.append(True)
            if callback is not None:
                await callback(chunk)

        for attempt in range(self.max_retries + 1):
            try:
                result = await client.run_async(messages, forward if callback else None, generation_kwargs)
                return {"replies": _marked(_finished(result["replies"]), messages)}
            except Exception as error:
                delay = self._delay_or_raise(error, attempt, bool(streamed))
            await asyncio.sleep(delay)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _delay_or_raise(self, error: Exception, attempt: int, streamed: bool) -> float:
        if streamed or attempt >= self.max_retries or not is_worth_retrying(error):
            cause, next_step = describe_failure(error, self._model, streamed=streamed)
            tries = f" after {attempt + 1} attempts" if attempt else ""
            # The original error may quote the request with its key, so it is not chained.
            raise AnswerError(f"The stage `generator` failed{tries}: {cause}. {next_step}.") from None
        delay = self.retry_delay * float(2**attempt)
        logger.warning(
            "The endpoint failed ({kind}); trying again in {delay} s", kind=type(error).__name__, delay=delay
        )
        return delay

    @property
    def _model(self) -> str:
        return self.model or os.environ.get("OPENAI_MODEL") or DEFAULT_MODEL

    def _new_client(self) -> OpenAIChatGenerator:
        return OpenAIChatGenerator(
            api_key=Secret.from_token(os.environ.get("OPENAI_API_KEY") or _NO_KEY),
            model=self._model,
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
            for other in [known for known in self._loop_clients if known.is_closed()]:
                del self._loop_clients[other]
            known = self._loop_clients.get(loop)
            if known is not None:
                return known[0]
            client = self._new_client()
            closing = _close_with_loop(client)
            self._loop_clients[loop] = (client, closing)
        await anext(closing)
        return client


async def _close_with_loop(client: OpenAIChatGenerator) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await client.async_client.close()


def _finished(replies: list[ChatMessage]) -> list[ChatMessage]:
    if any(reply.meta.get("finish_reason") is None for reply in replies):
        raise ConnectionError("the answer broke off before its end")
    return replies


def _marked(replies: list[ChatMessage], messages: list[ChatMessage]) -> list[ChatMessage]:
    marks = {name: messages[-1].meta[name] for name in _PROMPT_MARKS if messages and name in messages[-1].meta}
    return [replace(reply, _meta={**reply.meta, **marks}) for reply in replies]
