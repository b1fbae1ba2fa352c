"""The routes that answer questions: at once, as a stream of server-sent events, and several together."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse

from shiguan.engine.answer_stream import EVENTS, AnswerEvent
from shiguan.engine.why import ExpectedPassages, TracedMode, attribute
from shiguan.serving.authentication import Reader, check_tenant
from shiguan.serving.current_request import current_request
from shiguan.serving.engine import AnswerRequest, BatchRequest, Question, current_engine
from shiguan.serving.error_replies import check_query, counted
from shiguan.serving.event_stream import EventStreamResponse, ServerEvent

router = APIRouter(tags=["rag"], dependencies=[Depends(check_query)])


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
async def query_stream(
    body: AnswerRequest, asker: Reader, events: Literal["full", "basic"] = "full"
) -> EventStreamResponse:
    """
    Answer a question as server-sent events, numbered from 1.

    Exactly one of them is terminal, `generation_complete` or `error`; `[DONE]` follows it. With `events=basic` there
    are only `context`, `chunk`, `citations` and, at the end, `done` or `error`.
    """
    check_tenant(asker, body.tenant_id)
    engine = current_engine()
    engine.runner(body.mode)  # an unknown mode is 422 and no stream
    written = _server_events if events == "full" else _basic_events
    return EventStreamResponse(written(engine.stream(body, asker.tenant_id)))


@router.post("/api/v1/rag/batch", summary="Answer several questions", response_class=JSONResponse)
async def batch(body: BatchRequest, asker: Reader) -> JSONResponse:
    """
    Answer up to 50 questions, some of them side by side.

    They are `queries`, texts with the other fields in common, or `requests`, each with its own. `results` has their
    order; each entry has its `index` and either the `answer` or its own `error`.
    """
    for tenant_id in (body.tenant_id, *(one.get("tenant_id") for one in body.questions)):
        check_tenant(asker, tenant_id)
    results = await current_engine().batch(body.questions, asker.tenant_id)
    return JSONResponse({"results": results, "request_id": current_request().id})


class Expectation(BaseModel, extra="forbid"):
    """A passage that should have been used for a question."""

    query: Question
    expected: Annotated[str, Field(min_length=1, max_length=2_000, pattern=r"\S", description="Its words, or its id.")]
    mode: Annotated[str, Field(max_length=40)] = "simple"


@router.post("/api/v1/why", summary="Say where an expected passage was lost")
async def why(body: Expectation, asker: Reader) -> dict[str, Any]:
    """Ask the question again and name the stage that lost the passage, with its rank at each."""
    engine, tenant_id = current_engine(), asker.tenant_id
    mode = TracedMode(engine.runner(body.mode))
    find = partial(ExpectedPassages(engine.library.stores, tenant_id).find, body.expected)
    expected = await engine.long_work.run(tenant_id, "why", find)
    trace = await mode.ask_async(body.query, tenant_id=tenant_id, limits=engine.limits())
    found = await engine.long_work.run(tenant_id, "why", partial(attribute, trace, expected))
    return {**found.to_json(), "passages": expected.places()[:10]}


async def _server_events(events: AsyncGenerator[AnswerEvent, None]) -> AsyncGenerator[ServerEvent, None]:
    async with aclosing(events):
        async for event in events:
            data = event.data if event.error is None else counted(event.error).body()
            match event.name:  # a reader of the lines alone, without the events' names, looks for `content` and `count`
                case "query_rewritten":
                    data = {**data, "content": data["query"]}
                case "documents_retrieved":
                    data = {**data, "count": len(data["documents"])}
                case "token":
                    data = {**data, "content": data["text"]}
                case "generation_complete":
                    data = {**data, "request_id": current_request().id}
            yield ServerEvent({"type": event.name, **data}, event.name, event.id)


async def _basic_events(events: AsyncGenerator[AnswerEvent, None]) -> AsyncGenerator[ServerEvent, None]:
    """Yield events of the passages, the text, its citations and the end, and no others."""
    count = 0
    async with aclosing(events):
        async for event in events:
            for data in _basic(event):
                count += 1
                yield ServerEvent(data, data["type"], count)


def _basic(event: AnswerEvent) -> Iterator[dict[str, Any]]:
    data = event.data
    if event.error is not None:
        yield {"type": "error", **counted(event.error).body()}
    elif event.name == "documents_retrieved":
        yield {"type": "context", "chunks_count": len(data["documents"])}
    elif event.name == "token":
        yield {"type": "chunk", "content": data["text"]}
    elif event.name == "generation_complete":
        yield {"type": "citations", "citations": data["citations"]}
        kept = ("status", "formatted_citations", "metadata")
        yield {"type": "done", **{name: data[name] for name in kept}, "request_id": current_request().id}
