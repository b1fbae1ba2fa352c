"""The routes of the OpenAI API: programs written for it get answers with citations."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.responses import JSONResponse, Response

from shiguan.engine.answer_events import GENERATION_COMPLETE, TOKEN, AnswerEvent
from shiguan.serving import metrics
from shiguan.serving.answer_request import AnswerRequest
from shiguan.serving.engine import current_engine
from shiguan.serving.error_replies import ApiError, as_api_error, log_failure
from shiguan.serving.invalid_fields import invalid_fields
from shiguan.serving.openai_shapes import MODEL_PREFIX, ChatRequest, Completion, extension, footnotes, model_object
from shiguan.serving.rag_routes import Asker, deadline_of, request_id_of
from shiguan.serving.sse import DONE, EventStreamResponse, sse

router = APIRouter(prefix="/v1", tags=["openai"])

_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


@router.get("/models", summary="List the modes as models")
async def models(_: Asker) -> JSONResponse:
    """List one model for each mode, such as `shiguan-simple`."""
    return JSONResponse({"object": "list", "data": [model_object(mode) for mode in current_engine().modes]})


@router.get("/models/{model}", summary="Describe a mode as a model")
async def model(model: str, request: Request, _: Asker) -> JSONResponse:
    """Describe one model."""
    if model not in _models():
        return _refusal(_unknown_model(model), request)
    return JSONResponse(model_object(model.removeprefix(MODEL_PREFIX)))


@router.post("/chat/completions", summary="Answer the last message of a conversation")
async def chat_completions(request: Request, asker: Asker) -> Response:
    """
    Answer the last message; the ones before it are the conversation.

    Citations stand in the text as `[1]`, in a list of sources at its end, and with their exact spans in the field
    `shiguan` of the reply or of the last chunk. Errors have the form of the OpenAI API and the fields of this server's.
    """
    try:
        body = await _body(request)
        question = _question(body)
        engine, deadline = current_engine(), deadline_of(request)
        completion = Completion(body.model)
        if body.stream:
            events = engine.stream(question, asker.tenant_id, deadline=deadline)
            return EventStreamResponse(_chunks(events, body, completion, request_id_of(request)))
        answer = await engine.ask(question, asker.tenant_id, deadline=deadline)
    except Exception as error:
        return _refusal(error, request)
    return JSONResponse(completion.whole(answer, body.ignored(), request_id_of(request)))


async def _body(request: Request) -> ChatRequest:
    try:
        body = ChatRequest.model_validate(await request.json())
    except ValidationError as error:
        wrong = invalid_fields(error)
        raise ApiError("bad_request", message=wrong.message, fields=wrong.fields) from error
    except (ValueError, RecursionError) as error:
        raise ApiError("bad_request", message="The body is not valid JSON.") from error
    if body.model not in _models():
        raise _unknown_model(body.model)
    unsupported = body.unsupported()
    if unsupported:
        raise ApiError(
            "bad_request",
            message=f"`{unsupported}` is not supported: one answer, in words, from the documents.",
            next_step="Leave it out.",
            fields=[{"field": unsupported, "problem": "not supported"}],
        )
    return body


def _question(body: ChatRequest) -> AnswerRequest:
    try:
        return body.as_request()
    except ValidationError as error:
        wrong = invalid_fields(error)
        raise ApiError("bad_request", message=wrong.message, fields=wrong.fields) from error


def _models() -> list[str]:
    return [MODEL_PREFIX + mode for mode in current_engine().modes]


def _unknown_model(name: str) -> ApiError:
    return ApiError(
        "not_found",
        message=f"The model `{name[:60]}` does not exist. Models: {', '.join(_models())}.",
        next_step="Name one of these.",
        fields=[{"field": "model", "problem": "unknown"}],
    )


async def _chunks(
    events: AsyncGenerator[AnswerEvent, None], body: ChatRequest, completion: Completion, request_id: str | None
) -> AsyncGenerator[bytes, None]:
    yield sse(completion.chunk({"role": "assistant", "content": ""}))
    async with aclosing(events):
        async for event in events:
            if event.name == TOKEN:
                yield sse(completion.chunk({"content": event.data["text"]}))
            elif event.name == GENERATION_COMPLETE:
                notes = footnotes(event.data)
                if notes:
                    yield sse(completion.chunk({"content": notes}))
                more = extension(event.data, body.ignored(), request_id)
                yield sse(completion.chunk({}, finish="stop", shiguan=more))
                if body.stream_options is not None and body.stream_options.include_usage:
                    yield sse(completion.usage_chunk(event.data))
            elif event.error is not None:
                yield sse(_told(event.error, request_id)[0], event="error")
    yield DONE


def _refusal(error: Exception, request: Request) -> JSONResponse:
    body, told = _told(error, request_id_of(request))
    return JSONResponse(body, status_code=told.status_code, headers=dict(told.headers or {}))


def _told(error: Exception, request_id: str | None) -> tuple[dict[str, Any], ApiError]:
    """Give an error the fields of both worlds: a client of either finds what it looks for."""
    told = as_api_error(error)
    metrics.record_failure(told.kind)
    if told.kind == "internal":
        log_failure(error, request_id)
    body = told.body(request_id)
    param = told.fields[0]["field"].partition(".")[0] if told.fields else None
    default = "invalid_request_error" if told.status_code < 500 else "server_error"
    code = "model_not_found" if told.kind == "not_found" else told.kind
    body["error"].update(type=_TYPES.get(told.status_code, default), param=param, code=code)
    return body, told
