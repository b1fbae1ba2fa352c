"""A language model for the helping stages that may be absent: whoever holds it asks first."""

from threading import Lock
from typing import Any

from haystack import component, default_from_dict, default_to_dict
from haystack.dataclasses import ChatMessage, StreamingCallbackT

from shiguan.errors import AnswerError
from shiguan.llm.endpoint import OpenAIEndpoint, check_endpoint_settings, is_endpoint_configured


@component
class OptionalChatGenerator:
    """
    The model for rewriting, imagining and judging, where there is one.

    Stands nested in a component as its `chat_generator`. At warm-up it reads `OPENAI_API_KEY` and `OPENAI_BASE_URL`;
    `available()` tells whether either is set. A component asks that first and otherwise does without, so that the same
    YAML runs with and without a model. Calls go the way of `OpenAIOrExtractiveChatGenerator`, with its retries and its
    errors; only the defaults are more impatient, because every caller has something to fall back on and a person waits.

    Example in YAML:
    ```yaml
    rewriter:
      type: shiguan.query.query_rewriter.QueryRewriter
      init_parameters:
        chat_generator:
          type: shiguan.answer.optional_chat_generator.OptionalChatGenerator
          init_parameters: {generation_kwargs: {temperature: 0.3}}
    ```
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        timeout: float = 20.0,
        max_retries: int = 1,
        retry_delay: float = 1.0,
        generation_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """
        Set how to call the endpoint; nothing is looked up yet.

        :param model: The model; None for `$OPENAI_MODEL`, or `gpt-4.1-mini` where that is not set.
        :param timeout: Seconds to wait for the endpoint, per attempt.
        :param max_retries: Further attempts after the first.
        :param retry_delay: Seconds before the first retry; doubled for each further one.
        :param generation_kwargs: Passed on to the endpoint, such as `temperature`.
        :raises ValueError: If a number is out of its range.
        """
        check_endpoint_settings(timeout=timeout, max_retries=max_retries, retry_delay=retry_delay)
        self.model = model
        self.timeout = timeout
        self.max_retries = max_retries
        self.retry_delay = retry_delay
        self.generation_kwargs = generation_kwargs
        self._endpoint: OpenAIEndpoint | None = None
        self._lock = Lock()
        self._warm = False

    # Haystack writes a component out by itself, but not one that is nested in another.
    def to_dict(self) -> dict[str, Any]:
        """
        Write the settings out; the key is not among them.

        :returns: The dictionary.
        """
        return default_to_dict(
            self,
            model=self.model,
            timeout=self.timeout,
            max_retries=self.max_retries,
            retry_delay=self.retry_delay,
            generation_kwargs=self.generation_kwargs,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "OptionalChatGenerator":
        """
        Make a generator from what `to_dict` wrote.

        :param data: The dictionary.
        :returns: The generator.
        """
        generator: OptionalChatGenerator = default_from_dict(cls, data)
        return generator

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
                    stage="language model",
                )
            self._warm = True

    def available(self) -> bool:
        """
        Tell whether there is an endpoint to call.

        :returns: True if one was configured at warm-up.
        """
        self.warm_up()
        return self._endpoint is not None

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
        :raises AnswerError: If the endpoint fails for good, or there is none.
        """
        return {"replies": self._available_endpoint().run(messages, streaming_callback, generation_kwargs)}

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
        :raises AnswerError: If the endpoint fails for good, or there is none.
        """
        return {"replies": await self._available_endpoint().run_async(messages, streaming_callback, generation_kwargs)}

    def _available_endpoint(self) -> OpenAIEndpoint:
        self.warm_up()
        if self._endpoint is None:
            raise AnswerError(
                "No LLM is configured, but one was called. Set OPENAI_API_KEY or OPENAI_BASE_URL, or ask `available()` "
                "before calling."
            )
        return self._endpoint
