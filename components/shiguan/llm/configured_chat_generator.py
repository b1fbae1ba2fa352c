"""The language model that the environment names, if it names one: the one generator of all stages."""

from dataclasses import replace
from threading import Lock
from typing import Any

from haystack import component, default_from_dict, default_to_dict
from haystack.components.generators.chat.types import ChatGenerator
from haystack.core.serialization import component_to_dict
from haystack.dataclasses import ChatMessage, StreamingCallbackT
from haystack.tools import ToolsType

from shiguan.errors import AnswerError
from shiguan.llm.calls import run_generator_async, warm_up_generator
from shiguan.llm.endpoint import OpenAIEndpoint, is_endpoint_configured
from shiguan.llm.run_watch import counting_replies

_PROMPT_MARKS = ("prompt", "prompt_hash", "prompt_layers", "prompt_rendered")


@component
class ConfiguredChatGenerator:
    """
    Calls an OpenAI-compatible endpoint where one is configured.

    At warm-up it reads `OPENAI_API_KEY` and `OPENAI_BASE_URL`; a base URL without a key is a local server and gets a
    dummy key. Where neither is set, `without_endpoint` answers in its place, and without that the model is absent: a
    component that can do without asks `available()` first, so that the same YAML runs with and without a model. Who
    answered stands in the reply's meta as `model`; `prompt` and `prompt_hash` say with which prompt.

    A call that fails in a way that may pass (no connection, timeout, 429, 5xx, a reply that is no valid JSON) is
    tried again after 1, 2 and 4 seconds, or when the endpoint says, but never once parts of the answer have been
    streamed. What still fails is an `EndpointError`; it never falls back silently. Whoever wants that puts it into
    Haystack's `FallbackChatGenerator`.

    Example in YAML:
    ```yaml
    generator:
      type: shiguan.llm.configured_chat_generator.ConfiguredChatGenerator
      init_parameters:
        generation_kwargs: {temperature: 0.2}
        without_endpoint:
          type: shiguan.answer.extractive_chat_generator.ExtractiveChatGenerator
          init_parameters: {mode: simple}
    ```
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        timeout: float = 30.0,
        max_retries: int = 3,
        generation_kwargs: dict[str, Any] | None = None,
        without_endpoint: ChatGenerator | None = None,
    ) -> None:
        """
        Set how to call the endpoint; nothing is looked up yet.

        :param model: The model; None for `$OPENAI_MODEL`, or `gpt-4.1-mini` where that is not set.
        :param timeout: Seconds to wait for the endpoint, per attempt.
        :param max_retries: Further attempts after the first.
        :param generation_kwargs: Passed on to the endpoint, such as `temperature`.
        :param without_endpoint: Answers where no endpoint is configured.
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
        self.without_endpoint = without_endpoint
        self._endpoint: OpenAIEndpoint | None = None
        self._lock = Lock()
        self._warm = False

    # Haystack writes a component out by itself, but not one that is nested in another.
    def to_dict(self) -> dict[str, Any]:
        """
        Write the settings out; the key is not among them.

        :returns: The dictionary.
        """
        nested = self.without_endpoint
        return default_to_dict(
            self,
            model=self.model,
            timeout=self.timeout,
            max_retries=self.max_retries,
            generation_kwargs=self.generation_kwargs,
            without_endpoint=None if nested is None else component_to_dict(nested, "without_endpoint"),
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "ConfiguredChatGenerator":
        """
        Make a generator from what `to_dict` wrote.

        :param data: The dictionary.
        :returns: The generator.
        """
        generator: ConfiguredChatGenerator = default_from_dict(cls, data)
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
                    generation_kwargs=self.generation_kwargs,
                    stage="language model" if self.without_endpoint is None else "generator",
                )
            else:
                warm_up_generator(self.without_endpoint)
            self._warm = True

    def available(self) -> bool:
        """
        Tell whether there is anyone to call.

        :returns: True if an endpoint was configured at warm-up, or something answers without one.
        """
        self.warm_up()
        return self._endpoint is not None or self.without_endpoint is not None

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
        self.warm_up()
        with counting_replies() as came_out:
            if self._endpoint is not None:
                replies = self._endpoint.reply(messages, streaming_callback, generation_kwargs, tools)
            else:
                extra = _given(streaming_callback=streaming_callback, generation_kwargs=generation_kwargs, tools=tools)
                replies = self._substitute().run(messages=messages, **extra)["replies"]
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
        self.warm_up()
        with counting_replies() as came_out:
            if self._endpoint is not None:
                replies = await self._endpoint.reply_async(messages, streaming_callback, generation_kwargs, tools)
            else:
                extra = _given(streaming_callback=streaming_callback, generation_kwargs=generation_kwargs, tools=tools)
                replies = await run_generator_async(self._substitute(), messages, extra)
            came_out.count(replies)
        return {"replies": _marked(replies, messages)}

    def _substitute(self) -> Any:
        if self.without_endpoint is None:
            raise AnswerError(
                "No LLM is configured, but one was called. Set OPENAI_API_KEY or OPENAI_BASE_URL, or ask `available()` "
                "before calling."
            )
        return self.without_endpoint


def _given(**settings: Any) -> dict[str, Any]:
    # Not every chat generator takes all of them.
    return {name: value for name, value in settings.items() if value is not None}


def _marked(replies: list[ChatMessage], messages: list[ChatMessage] | str) -> list[ChatMessage]:
    meta = messages[-1].meta if messages and not isinstance(messages, str) else {}
    marks = {name: meta[name] for name in _PROMPT_MARKS if name in meta}
    return [replace(reply, _meta={**reply.meta, **marks}) for reply in replies]
