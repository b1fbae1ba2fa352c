"""Answers with an OpenAI-compatible endpoint where one is configured, and with quoted sentences where none is."""

from dataclasses import replace
from threading import Lock
from typing import Any

from haystack import component
from haystack.dataclasses import ChatMessage, StreamingCallbackT

from shiguan.answer.extractive_chat_generator import ExtractiveChatGenerator
from shiguan.llm.endpoint import (
    DEFAULT_MODEL,
    OpenAIEndpoint,
    check_endpoint_settings,
    is_endpoint_configured,
)

__all__ = ["DEFAULT_MODEL", "OpenAIOrExtractiveChatGenerator"]

_PROMPT_MARKS = ("prompt", "prompt_hash", "prompt_layers")


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
    an `EndpointError`; it never falls back to quoting silently.

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
        check_endpoint_settings(timeout=timeout, max_retries=max_retries, retry_delay=retry_delay)
        self.model = model
        self.mode = mode
        self.timeout = timeout
        self.max_retries = max_retries
        self.retry_delay = retry_delay
        self.generation_kwargs = generation_kwargs
        self._extractive = ExtractiveChatGenerator(mode=mode)
        self._endpoint: OpenAIEndpoint | None = None
        self._lock = Lock()
        self._warm = False

    def warm_up(self) -> None:
        """Look for an endpoint in the environment; a second call does nothing."""
        with self._lock:
            if self._warm:
                return
            if is_endpoint_configured():
                self._endpoint = OpenAIEndpoint(
                    self.model,
                    timeout=self.timeout,
                    max_retries=self.max_retries,
                    retry_delay=self.retry_delay,
                    generation_kwargs=self.generation_kwargs,
                    stage="generator",
                )
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
        :raises EndpointError: If the endpoint fails for good.
        """
        self.warm_up()
        if self._endpoint is None:
            replies = self._extractive.run(messages, streaming_callback, generation_kwargs)["replies"]
        else:
            replies = self._endpoint.run(messages, streaming_callback, generation_kwargs)
        return {"replies": _marked(replies, messages)}

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
        :raises EndpointError: If the endpoint fails for good.
        """
        self.warm_up()
        if self._endpoint is None:
            replies = (await self._extractive.run_async(messages, streaming_callback, generation_kwargs))["replies"]
        else:
            replies = await self._endpoint.run_async(messages, streaming_callback, generation_kwargs)
        return {"replies": _marked(replies, messages)}


def _marked(replies: list[ChatMessage], messages: list[ChatMessage]) -> list[ChatMessage]:
    marks = {name: messages[-1].meta[name] for name in _PROMPT_MARKS if messages and name in messages[-1].meta}
    return [replace(reply, _meta={**reply.meta, **marks}) for reply in replies]
