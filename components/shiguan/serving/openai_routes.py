"""The OpenAI API: programs written for it get answers with citations."""

import secrets
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field, ValidationError
from starlette.responses import JSONResponse, Response

from shiguan.engine.answer_stream import AnswerEvent
from shiguan.engine.mode_pipeline import checked_question
from shiguan.engine.options import AskOptions
from shiguan.errors import RefusedError
from shiguan.serving.authentication import Reader
from shiguan.serving.current_request import current_request
from shiguan.serving.engine import LONGEST_TURN, MOST_TURNS, AnswerRequest, HistoryMessage, current_engine, read_request
from shiguan.serving.error_replies import ApiError, counted, invalid_fields
from shiguan.serving.event_stream import STREAMED, EventStreamResponse, ServerEvent

MODEL_PREFIX = "shiguan-"
_SPEAKERS = ("user", "assistant")
# Fields that an answer from passages cannot honour, with the values that do no harm.
_REFUSED: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "tools": ([],),
    "functions": ([],),
    "tool_choice": ("none", "auto"),
    "function_call": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "audio": (),
    "modalities": (["text"],),
    "logit_bias": ({},),
    "prediction": (),
    "web_search_options": (),
}


class StreamOptions(BaseModel):
    """Options of a stream."""

    include_usage: bool = False


class ChatMessage(BaseModel):
    """One message of the conversation."""

    role: str
    content: str | list[dict[str, Any]] | None = None


class ChatRequest(AskOptions, extra="allow"):
    """A chat completion; fields that are not named here are for `unsupported` and `ignored`."""

    model: str
    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    max_completion_tokens: int | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    def unsupported(self) -> list[str]:
        given = {name: value for name, value in (self.model_extra or {}).items() if value is not None}
        return [name for name, harmless in _REFUSED.items() if name in given and given[name] not in harmless]

    def ignored(self) -> list[str]:
        """Describe what is ignored: many programs send fields whether they matter or not."""
        given = (self.model_extra or {}).items()
        names = [f"`{name[:40]}`" for name, value in given if value is not None and name not in _REFUSED]
        notes = [f"Ignored: {', '.join(names)}; the mode's own settings hold."] if names else []
        others = sorted({message.role for message in self.messages if message.role not in _SPEAKERS})
        if others:
            notes.append(f"Messages with the role {', '.join(others)} were ignored: only the operator instructs.")
        return notes

    def as_request(self) -> AnswerRequest:
        """Read question and turns; system and tool messages are ignored."""
        *before, last = self.messages
        question = _text(last.content).strip()
        if last.role != "user" or not question:
            raise _bad("The last message must be the user's question, as text.", "messages")
        try:
            checked_question(question)
        except RefusedError as error:
            raise _bad(str(error), "messages") from error
        turns = [
            HistoryMessage(role=message.role, content=_text(message.content)[:LONGEST_TURN])
            for message in before
            if message.role in _SPEAKERS
        ]
        # For programs that only show the text, the list of sources is in it.
        given: dict[str, Any] = {
            "references": True,
            "max_tokens": self.max_completion_tokens,
            "history": turns[-MOST_TURNS:] or None,
        }
        given |= self.given()
        return read_request({"query": question, "mode": self.model.removeprefix(MODEL_PREFIX), **given})


def model_object(mode: str) -> dict[str, Any]:
    return {"id": MODEL_PREFIX + mode, "object": "model", "created": 0, "owned_by": "shiguan"}


def extension(answer: dict[str, Any], warnings: Sequence[str]) -> dict[str, Any]:
    """Build the field `shiguan` of the reply and of the last chunk: what an answer has beyond a chat completion."""
    metadata = answer["metadata"]
    return {
        **{name: answer[name] for name in ("mode", "status", "citations", "documents")},
        **{name: metadata[name] for name in ("claims", "confidence", "timings_ms", "receipt")},
        "warnings": [*metadata["warnings"], *warnings],
        "conversation_id": answer.get("conversation_id"),
        "request_id": current_request().id,
    }


def finish_reason(answer: dict[str, Any]) -> str:
    """Return `length` for an answer that was cut at the model's limit, else `stop`."""
    return "length" if answer["metadata"].get("finish_reason") == "length" else "stop"


def usage_of(answer: dict[str, Any]) -> dict[str, Any]:
    used = answer["metadata"].get("usage") or {}
    prompt, completion = int(used.get("prompt_tokens") or 0), int(used.get("completion_tokens") or 0)
    total = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    cached = {"cached_tokens": used["cached_tokens"]} if "cached_tokens" in used else None
    return {**total, "prompt_tokens_details": cached} if cached else total


class Completion:
    """The parts of one chat completion, which share an id."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.id = f"chatcmpl-{secrets.token_hex(12)}"
        self.created = int(time.time())

    def whole(self, answer: dict[str, Any], warnings: Sequence[str]) -> dict[str, Any]:
        message = {"role": "assistant", "content": answer["answer"], "refusal": None}
        return {
            **self._head("chat.completion"),
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason(answer), "logprobs": None}],
            "usage": usage_of(answer),
            "shiguan": extension(answer, warnings),
        }

    def chunk(self, delta: dict[str, Any], *, finish: str | None = None, **more: Any) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return {**self._head("chat.completion.chunk"), "choices": [choice], **more}

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


def _bad(message: str, field: str) -> ApiError:
    return ApiError("bad_request", message=message, fields=[{"field": field, "problem": message}])


def _text(content: str | list[dict[str, Any]] | None) -> str:
    if isinstance(content, list):
        if any(part.get("type") != "text" or not isinstance(part.get("text"), str) for part in content):
            raise _bad("Messages may have text parts only.", "messages")
        return " ".join(part["text"] for part in content)
    return content or ""


router = APIRouter(prefix="/v1", tags=["openai"])


@router.get("/models", summary="List the modes as models")
async def models(_: Reader) -> JSONResponse:
    """List one model for each mode, such as `shiguan-simple`."""
    return JSONResponse({"object": "list", "data": [model_object(mode) for mode in current_engine().modes]})


@router.get("/models/{model}", summary="Describe a mode as a model")
async def model(model: str, _: Reader) -> JSONResponse:
    """Describe one model."""
    if model not in _models():
        raise _unknown_model(model)
    return JSONResponse(model_object(model.removeprefix(MODEL_PREFIX)))


@router.post("/chat/completions", summary="Answer the last message of a conversation", responses=STREAMED)
async def chat_completions(request: Request, asker: Reader) -> Response:
    """
    Answer the last message; the ones before it are the conversation.

    Citations are in the text as `[1]`, in a list of sources at its end, and with their exact spans in the field
    `shiguan` of the reply or of the last chunk. With `conversation_id`, in the body or as `X-Conversation-Id`, and one
    message alone the conversation is the server's.
    """
    try:
        content = await request.json()
    except (ValueError, RecursionError) as error:
        raise ApiError("bad_request", message="The body is not valid JSON.") from error
    body = read_chat(content)
    if body.model not in _models():
        raise _unknown_model(body.model)
    header = request.headers.get("x-conversation-id", "").encode("latin-1").decode("utf-8", "replace")
    body.conversation_id = body.conversation_id or header or None
    question = body.as_request()
    completion = Completion(body.model)
    if body.stream:
        chunks = completion_chunks(current_engine().stream(question, asker.tenant_id), body, completion)
        return EventStreamResponse(_server_events(chunks))
    answer = await current_engine().ask(question, asker.tenant_id)
    return JSONResponse(completion.whole(answer, body.ignored()))


def read_chat(content: Any) -> ChatRequest:
    """Read a request, and refuse what cannot be honoured."""
    try:
        body = ChatRequest.model_validate(content)
    except ValidationError as error:
        raise invalid_fields(error) from error
    unsupported = body.unsupported()
    if unsupported:
        raise ApiError(
            "bad_request",
            message=f"`{unsupported[0]}` is not supported: one answer, in words, from the documents.",
            next_step="Leave it out.",
            fields=[{"field": unsupported[0], "problem": "not supported"}],
        )
    return body


def _models() -> list[str]:
    return [MODEL_PREFIX + mode for mode in current_engine().modes]


def _unknown_model(name: str) -> ApiError:
    return ApiError(
        "not_found",
        message=f"The model `{name[:60]}` does not exist. Models: {', '.join(_models())}.",
        next_step="Name one of these.",
        fields=[{"field": "model", "problem": "unknown"}],
    )


async def completion_chunks(
    events: AsyncGenerator[AnswerEvent, None], body: ChatRequest, completion: Completion
) -> AsyncGenerator[dict[str, Any], None]:
    """Write an answer's events as chunks, the last with the field `shiguan`; a failure is raised at the end."""
    yield completion.chunk({"role": "assistant", "content": ""})
    async with aclosing(events):
        async for event in events:
            if event.name == "token":
                yield completion.chunk({"content": event.data["text"]})
            elif event.name == "generation_complete":
                yield completion.chunk(
                    {}, finish=finish_reason(event.data), shiguan=extension(event.data, body.ignored())
                )
                if body.stream_options is not None and body.stream_options.include_usage:
                    yield {**completion.chunk({}), "choices": [], "usage": usage_of(event.data)}
            elif event.error is not None:
                raise counted(event.error)


async def _server_events(chunks: AsyncGenerator[dict[str, Any], None]) -> AsyncGenerator[ServerEvent, None]:
    async with aclosing(chunks):
        async for chunk in chunks:
            yield ServerEvent(chunk)
