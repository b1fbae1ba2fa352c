"""Haystack's chat generator, with a reading of streams that understands other servers too, and is faster."""

import json
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

from haystack import component
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage, StreamingCallbackT
from haystack.tools import ToolsType
from openai import APIError, AsyncStream
from openai.resources.chat import AsyncCompletions

from shiguan.haystack_compat import open_async_client

# Names of other servers for the end of a reply and for one that was cut off.
_REASONS = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "model_length"), "length"),
}
_opened: ContextVar[list["_Events"]] = ContextVar("shiguan_streams")
"""The streams of the current call, which are closed at its end."""


class StreamingChatGenerator(OpenAIChatGenerator):
    """
    Sends a prompt as it is, and reads the events of the reply as JSON objects, which takes a third of the time.

    Streams of other servers (whole replies, thoughts, refusals, other words for the end) are read as OpenAI's are.
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

    async def create(self, **given: Any) -> Any:
        prompt = {"messages": given["messages"], **(given.get("extra_body") or {})}
        reply = await super().create(**{**given, "messages": [], "extra_body": prompt})
        if type(reply) is not AsyncStream:  # whole, or a tracer has wrapped it and wants to see what is read
            return reply
        stream = AsyncStream[object](cast_to=object, response=reply.response, client=self._client)
        kind = reply.response.headers.get("content-type", "").partition(";")[0].strip().lower()
        events = _Events(stream, _whole(stream.response) if kind == "application/json" else stream)
        _opened.get().append(events)
        return events


def text_of_parts(content: Any) -> Any:
    """Return the text of a message whose content is a list of parts, without those of other kinds, such as thoughts."""
    if not isinstance(content, list):
        return content
    texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
    return "".join(text for text in texts if isinstance(text, str))


async def _whole(response: Any) -> AsyncIterator[object]:
    """Read the one object that a server without streams answers a streamed call with."""
    body = json.loads(await response.aread())
    if error := body.get("error") if isinstance(body, dict) else None:
        words = error.get("message") if isinstance(error, dict) else error
        raise APIError(str(words), request=response.request, body=error)
    yield body


class _Events:
    """A stream as Haystack reads it."""

    def __init__(self, stream: AsyncStream[object], events: AsyncIterator[object]) -> None:
        self._events, self.close = events, stream.close

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for event in self._events:
            if isinstance(event, dict):
                choices = event.get("choices") or []
                # Of several replies, which nobody asks a stream for, the first is read.
                event["choices"] = (
                    [_chosen(one) for one in choices if _is_first(one)] if isinstance(choices, list) else choices
                )
            yield _readable(event)


def _is_first(choice: Any) -> bool:
    return not isinstance(choice, dict) or choice.get("index") in (0, "0", None)


def _chosen(choice: Any) -> Any:
    """Write a part of a reply, or a whole one, as OpenAI's API does, whose text is that of `delta` alone."""
    if isinstance(choice, dict):
        delta = choice["delta"] = choice.get("delta") or choice.get("message") or {}
        if isinstance(delta, dict):
            delta["content"] = text_of_parts(delta.get("content") or delta.get("refusal"))
        reason = choice.get("finish_reason")
        choice["finish_reason"] = _REASONS.get(reason.lower(), reason) if isinstance(reason, str) else reason
    return choice


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
