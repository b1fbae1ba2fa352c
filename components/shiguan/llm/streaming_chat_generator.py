"""Haystack's chat generator, with a faster way to read streamed replies."""

from collections.abc import AsyncIterator
from typing import Any, cast

from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.dataclasses.streaming_chunk import AsyncStreamingCallbackT
from openai import AsyncStream


class StreamingChatGenerator(OpenAIChatGenerator):
    """
    Gives the client a prompt as it is to be sent, and Haystack the events of the reply as the JSON objects they are.

    The client would look for fields to rename in each message, and build nested Pydantic objects from each token, which
    takes three times as long. Connections, errors and the reading of events remain the client's.
    """

    def _prepare_api_call(self, **given: Any) -> dict[str, Any]:
        arguments = super()._prepare_api_call(**given)
        if arguments["openai_endpoint"] == "create":
            arguments["extra_body"] = {"messages": arguments["messages"], **(arguments.get("extra_body") or {})}
            arguments["messages"] = []
        return arguments

    async def _handle_async_stream_response(
        self, chat_completion: Any, callback: AsyncStreamingCallbackT
    ) -> list[ChatMessage]:
        if type(chat_completion) is not AsyncStream:  # a tracer has wrapped it, and wants to see what is read
            return await super()._handle_async_stream_response(chat_completion, callback)
        stream = AsyncStream[object](cast_to=object, response=chat_completion.response, client=self.async_client)
        try:
            async with stream:
                return await super()._handle_async_stream_response(cast("AsyncStream[Any]", _Events(stream)), callback)
        except TypeError as error:  # elsewhere it is a mistake in the call
            raise ValueError("the stream is not one of a chat completion") from error


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
