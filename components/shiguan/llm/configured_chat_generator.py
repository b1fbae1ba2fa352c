"""The language model that the environment names, if it names one: the one generator of all stages."""

from dataclasses import replace
from threading import Lock
from typing import Any

from haystack import component, default_to_dict
from haystack.dataclasses import ChatMessage, StreamingCallbackT
from haystack.tools import ToolsType

from shiguan.errors import AnswerError
from shiguan.llm.endpoint import OpenAIEndpoint, is_endpoint_configured
from shiguan.llm.run_watch import counting_replies

_PROMPT_MARKS = ("prompt", "prompt_hash", "prompt_layers", "prompt_rendered")


@component
class ConfiguredChatGenerator:
    """
    Calls an OpenAI-compatible endpoint where one is configured.

    At warm-up it reads `OPENAI_API_KEY` and `OPENAI_BASE_URL`; a base URL without a key is a local server and gets a
    dummy key. Where neither is set the model is absent: a component that can do without asks `available()` first, and
    `AnswerabilityGate` quotes the sources, so that the same YAML runs with and without a model. Who answered stands in
    the reply's meta as `model`; `prompt` and `prompt_hash` say with which prompt.

    A call that fails in a way that may pass (no connection, 429, 5xx, a reply that is no valid JSON) is tried again
    after 1, 2 and 4 seconds, or when the endpoint says, but never once parts of the answer have been streamed, and not
    when it timed out: a slow server would still be busy with the first. What still fails is an `EndpointError`; it
    never falls back silently. Whoever wants that puts it into Haystack's `FallbackChatGenerator`.

    Example in YAML:
    ```yaml
    generator:
      type: shiguan.llm.configured_chat_generator.ConfiguredChatGenerator
      init_parameters:
        generation_kwargs: {temperature: 0.2}
    ```
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        timeout: float = 30.0,
        max_retries: int = 3,
        generation_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """
        Set how to call the endpoint; nothing is looked up yet.

        :param model: The model; None for `$OPENAI_MODEL`, or `gpt-4.1-mini` where that is not set.
        :param timeout: Seconds to wait for the next token, per attempt; `$OPENAI_TIMEOUT` goes before it.
        :param max_retries: Further attempts after the first.
        :param generation_kwargs: Passed on to the endpoint, such as `temperature`. `max_tokens` is 2,048 where neither
            it nor `max_completion_tokens` is given; null leaves it out.
        :raises ValueError: If a number is out of its range.
        """
        if timeout <= 0:
            raise ValueError(f"`timeout` must be positive, got {timeout}.")
        if max_retries < 0:
            raise ValueError(f"`max_retries` must not be negative, got {max_retries}.")
        self.model = model
        self.timeout = timeout
        self.max_retries = max_retries
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
        names = ("model", "timeout", "max_retries", "generation_kwargs")
        return default_to_dict(self, **{name: getattr(self, name) for name in names})

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
                    generation_kwargs=self.generation_kwargs,
                    stage="generator",
                )
            self._warm = True

    def available(self) -> bool:
        """
        Tell whether there is anyone to call.

        :returns: True if an endpoint was configured at warm-up.
        """
        self.warm_up()
        return self._endpoint is not None

    @component.output_types(replies=list[ChatMessage])
    def run(
        self,
        messages: list[ChatMessage] | str,
        streaming_callback: StreamingCallbackT | None = None,
        generation_kwargs: dict[str, Any] | None = None,
        *,
        tools: ToolsType | None = None,
    ) -> dict[str, list[ChatMessage]]:
        """
        Answer a prompt.

        :param messages: The prompt.
        :param streaming_callback: Called with each part of the answer as it comes.
        :param generation_kwargs: For this call, over those of the component.
        :param tools: The tools that the model may ask for.
        :returns: `replies`, as many as were asked for; none for an empty prompt.
        :raises AnswerError: If the endpoint fails for good, or there is none.
        """
        with counting_replies() as came_out:
            replies = self._configured().reply(messages, streaming_callback, generation_kwargs, tools)
            came_out.count(replies)
        return {"replies": _marked(replies, messages)}

    @component.output_types(replies=list[ChatMessage])
    async def run_async(
        self,
        messages: list[ChatMessage] | str,
        streaming_callback: StreamingCallbackT | None = None,
        generation_kwargs: dict[str, Any] | None = None,
        *,
        tools: ToolsType | None = None,
    ) -> dict[str, list[ChatMessage]]:
        """
        Answer a prompt without blocking the event loop.

        :param messages: The prompt.
        :param streaming_callback: Awaited with each part of the answer as it comes.
        :param generation_kwargs: For this call, over those of the component.
        :param tools: The tools that the model may ask for.
        :returns: `replies`, as many as were asked for; none for an empty prompt.
        :raises AnswerError: If the endpoint fails for good, or there is none.
        """
        with counting_replies() as came_out:
            replies = await self._configured().reply_async(messages, streaming_callback, generation_kwargs, tools)
            came_out.count(replies)
        return {"replies": _marked(replies, messages)}

    def _configured(self) -> OpenAIEndpoint:
        self.warm_up()
        if self._endpoint is None:
            raise AnswerError(
                "No LLM is configured, but one was called. Set OPENAI_API_KEY or OPENAI_BASE_URL, or ask `available()` "
                "before calling; the modes' `AnswerabilityGate` quotes instead."
            )
        return self._endpoint


def _marked(replies: list[ChatMessage], messages: list[ChatMessage] | str) -> list[ChatMessage]:
    meta = messages[-1].meta if messages and not isinstance(messages, str) else {}
    marks = {name: meta[name] for name in _PROMPT_MARKS if name in meta}
    return [replace(reply, _meta={**reply.meta, **marks}) for reply in replies]
