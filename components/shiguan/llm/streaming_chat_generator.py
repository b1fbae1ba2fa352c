"""Haystack's chat generator, with a faster way to read streamed replies."""

from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

from haystack import component
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage, StreamingCallbackT
from haystack.tools import ToolsType
from openai import AsyncOpenAI, AsyncStream
from openai.resources.chat import AsyncCompletions

from shiguan.haystack_compat import open_async_client

_opened: ContextVar[list["_Events"]] = ContextVar("shiguan_streams")
"""The streams of the current call, which are closed at its end."""


class StreamingChatGenerator(OpenAIChatGenerator):
    """
    Gives the client a prompt as it is to be sent, and Haystack the events of the reply as the JSON objects they are.

    The client would look for fields to rename in each message, and build nested Pydantic objects from each token, which
    takes three times as long. Connections, errors and the reading of events remain the client's.
    """

    @component.output_types(replies=list[ChatMessage])
    async def run_async(
        self,
        messages: list[ChatMessage] | str,
        streaming_callback: StreamingCallbackT | None = None,
        generation_kwargs: dict[str, Any] | None = None,
        *,
        tools: ToolsType | None = None,
        tools_strict: bool | None = None,
    ) -> dict[str, list[ChatMessage]]:
        """Answer a prompt as Haystack's generator does."""
        client = await open_async_client(self)
        if not isinstance(client.chat.completions, _Completions):
            client.chat.completions = _Completions(client)
        streams: list[_Events] = []
        token = _opened.set(streams)
        try:
            return await super().run_async(
                messages, streaming_callback, generation_kwargs, tools=tools, tools_strict=tools_strict
            )
        except TypeError as error:
            if not streams:  # a mistake in the call
                raise
            raise ValueError("the stream is not one of a chat completion") from error
        finally:
            _opened.reset(token)
            for stream in streams:
                await stream.close()


class _Completions(AsyncCompletions):
    """The client's way to complete a chat, without its objects."""

    def __init__(self, client: AsyncOpenAI) -> None:
        super().__init__(client)
        self._of = client

    async def create(self, **given: Any) -> Any:
        prompt = {"messages": given["messages"], **(given.get("extra_body") or {})}
        reply = await super().create(**{**given, "messages": [], "extra_body": prompt})
        if type(reply) is not AsyncStream:  # whole, or a tracer has wrapped it and wants to see what is read
            return reply
        events = _Events(AsyncStream[object](cast_to=object, response=reply.response, client=self._of))
        _opened.get().append(events)
        return events


def text_of_parts(content: Any) -> Any:
    """Return the text of a message whose content is a list of parts, without those of other kinds, such as thoughts."""
    if not isinstance(content, list):
        return content
    texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
    return "".join(text for text in texts if isinstance(text, str))


class _Events:
    """A stream as Haystack reads it."""

    def __init__(self, stream: AsyncStream[object]) -> None:
        self._stream, self.close = stream, stream.close

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for event in self._stream:
            for choice in (event.get("choices") or ()) if isinstance(event, dict) else ():
                delta = choice.get("delta") if isinstance(choice, dict) else None
                if isinstance(delta, dict) and isinstance(delta.get("content"), list):
                    delta["content"] = text_of_parts(delta["content"])
            yield _readable(event)


class _Fields:
    """A JSON object with its fields as attributes; one that is missing is None, as in the objects of the client."""

    def __init__(self, fields: dict[str, Any]) -> None:
        for name, value in fields.items():
            if isinstance(value, (dict, list)):
                fields[name] = _readable(value)
        self.__dict__ = fields

    def __getattr__(self, name: str) -> None:
        if name == "model_dump" or name.startswith("__"):  # what Haystack and copies ask for to see what this is
            raise AttributeError(name)


def _readable(value: Any) -> Any:
    if isinstance(value, list):
        return [_readable(item) for item in value]
    return _Fields(value) if isinstance(value, dict) else value
