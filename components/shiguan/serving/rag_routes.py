"""The routes that answer questions: at once, as a stream of server-sent events, and several together."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from operator import itemgetter
from typing import Any

from anyio import CancelScope
from fastapi import APIRouter
from starlette.responses import JSONResponse, StreamingResponse
from starlette.types import Send

from shiguan.engine.answer_stream import EVENTS, AnswerEvent
from shiguan.serving.authentication import Reader, check_tenant
from shiguan.serving.engine import AnswerRequest, BatchRequest, current_engine
from shiguan.serving.error_replies import counted
from shiguan.serving.telemetry import current_request

_BEAT = b": still at work\n\n"
_BEAT_SECONDS = 10.0
DONE = b"data: [DONE]\n\n"
"""What every stream ends with, so that a reader knows a complete one from one that broke off."""


def sse(data: Mapping[str, Any], *, event: str | None = None, id: int | None = None) -> bytes:  # noqa: A002
    lines = [] if id is None else [f"id: {id}"]
    lines += [] if event is None else [f"event: {event}"]
    lines.append(f"data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}")
    return ("\n".join(lines) + "\n\n").encode()


class EventStreamResponse(StreamingResponse):
    """A stream of events whose producer is closed with it and at once, since a language model may be writing for it."""

    def __init__(self, parts: AsyncGenerator[bytes, None]) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        self._parts = _beating(parts)
        super().__init__(self._parts, media_type="text/event-stream", headers=headers)

    async def stream_response(self, send: Send) -> None:
        async with aclosing(self._parts):
            await super().stream_response(send)


router = APIRouter(tags=["rag"])


@router.post("/api/v1/rag/generate", summary="Another name of /api/v1/rag/query", response_class=JSONResponse)
@router.post("/api/v1/rag/query", summary="Answer a question", response_class=JSONResponse)
async def query(body: AnswerRequest, asker: Reader) -> JSONResponse:
    """
    Answer a question from the caller's documents.

    The reply is the object that `shiguan ask --json` prints, with `request_id`.
    """
    check_tenant(asker, body.tenant_id)
    answer = await current_engine().ask(body, asker.tenant_id)
    return JSONResponse({**answer, "request_id": current_request().id})


_STREAM: dict[str, Any] = {
    "status_code": 200,
    "response_class": EventStreamResponse,
    "responses": {
        200: {
            "content": {"text/event-stream": {}},
            "description": "\n".join(f"- `{name}`: {about}" for name, about in EVENTS.items()),
        }
    },
}


@router.post("/api/v1/rag/generate/stream", summary="Another name of /api/v1/rag/query-stream", **_STREAM)
@router.post("/api/v1/rag/query-stream", summary="Answer a question and tell how the answer comes about", **_STREAM)
async def query_stream(body: AnswerRequest, asker: Reader) -> EventStreamResponse:
    """
    Answer a question as server-sent events, numbered from 1.

    Exactly one of them is terminal, `generation_complete` or `error`; `[DONE]` follows it.
    """
    check_tenant(asker, body.tenant_id)
    engine = current_engine()
    engine.runner(body.mode)  # an unknown mode is 422 and no stream
    events = engine.stream(body, asker.tenant_id)
    return EventStreamResponse(_written(events))


@router.post("/api/v1/rag/batch", summary="Answer several questions", response_class=JSONResponse)
async def batch(body: BatchRequest, asker: Reader) -> JSONResponse:
    """
    Answer up to 50 questions, some of them side by side.

    `results` has the order of `requests`; each entry has its `index` and either the `answer` or its own `error`.
    """
    for tenant_id in (body.tenant_id, *(one.get("tenant_id") for one in body.requests)):
        check_tenant(asker, tenant_id)
    results = await current_engine().batch(body.requests, asker.tenant_id)
    return JSONResponse({"results": results, "request_id": current_request().id})


async def _beating(parts: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Pass a stream on, with a comment wherever nothing came for ten seconds, so that nothing on its way gives up."""
    come: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def read() -> None:
        async with aclosing(parts):
            try:
                async for part in parts:
                    come.put_nowait(part)
            finally:
                come.put_nowait(None)

    reading = asyncio.create_task(read())
    try:
        while True:
            try:
                async with asyncio.timeout(_BEAT_SECONDS):
                    part = await come.get()
            except TimeoutError:
                yield _BEAT
                continue
            if part is None:
                await reading
                return
            yield part
    finally:
        reading.cancel()
        # A reader who hangs up cancels whatever is awaited here, again and again.
        with CancelScope(shield=True):
            await asyncio.wait({reading})


async def _written(events: AsyncGenerator[AnswerEvent, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(events):
        async for event in events:
            yield sse(_told(event), event=event.name, id=event.id)
            # A long answer that comes in one go must not keep the others waiting.
            await asyncio.sleep(0)
    yield DONE


def _told(event: AnswerEvent) -> dict[str, Any]:
    told = {"type": event.name, **(event.data if event.error is None else counted(event.error).body())}
    if event.name in _ALSO:
        name, read = _ALSO[event.name]
        told[name] = read(event.data)
    return {**told, "request_id": current_request().id} if event.name == "generation_complete" else told


# What a reader of the lines alone, without the events' names, looks for.
_ALSO: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "query_rewritten": ("content", itemgetter("query")),
    "documents_retrieved": ("count", lambda data: len(data["documents"])),
    "token": ("content", itemgetter("text")),
}
