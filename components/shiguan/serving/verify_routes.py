"""/api/v1/verify: check any text against the caller's library, at once or as a stream of its parts."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from shiguan.engine.verification import MOST_CHARACTERS, read_document
from shiguan.errors import RefusedError
from shiguan.llm.run import raise_if_cancelled
from shiguan.serving.authentication import Reader
from shiguan.serving.document_routes import uploaded
from shiguan.serving.engine import current_engine
from shiguan.serving.error_replies import check_query
from shiguan.serving.event_stream import STREAMED, EventStreamResponse, ServerEvent
from shiguan.text.works import plain_line

router = APIRouter(prefix="/api/v1/verify", tags=["library"], dependencies=[Depends(check_query)])


class VerifyRequest(BaseModel, extra="forbid"):
    """A text, or quotations with ids, to check against the library."""

    text: Annotated[str | None, Field(max_length=MOST_CHARACTERS, description="The text.")] = None
    quotes: Annotated[
        list[dict[str, Any]] | None, Field(max_length=10_000, description='Each `{"id", "text", "source"?}`.')
    ] = None
    stream: Annotated[bool, Field(description="Send each part as an event as soon as it is checked.")] = False


@router.post("", summary="Check a text against the library", response_class=JSONResponse, responses=STREAMED)
async def verify(body: VerifyRequest, reader: Reader) -> Response:
    """
    Find the place of every quotation, and the passage that supports every other sentence.

    With `stream`, an event `item` for each part, with its `number` and `count`; then `generation_complete` or `error`.
    """
    given: str | list[dict[str, Any]] | None = body.text if body.quotes is None else body.quotes
    if given is None or (body.text is not None and body.quotes is not None):
        raise RefusedError("Expected either `text` or `quotes`. Give one of them.")
    check = partial(current_engine().verify, given, reader.tenant_id)
    if body.stream:
        return EventStreamResponse(_server_events(check))
    return Response(await check(form=_encoded), media_type="application/json")


@router.post("/text", summary="Read the text of a file that is to be checked")
async def text(request: Request, reader: Reader) -> dict[str, str]:
    """Return the text of a DOCX or of another file that can be ingested; nothing of it is kept."""
    async with uploaded(request) as (file, _):
        data, name = await file.read(), plain_line(file.filename or "") or "the file"
    engine = current_engine()
    read = partial(read_document, data, engine.deployment, name)
    return {"text": await engine.long_work.run(reader.tenant_id, "verify", read)}


def _encoded(found: dict[str, Any]) -> bytes:
    """Write the result as JSON part by part: the whole in one go would hold up everything else."""
    parts = []
    for item in found.pop("items"):
        raise_if_cancelled()
        parts.append(_json(item))
    return b'{"items":[' + b",".join(parts) + b"]," + _json(found)[1:]


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


async def _server_events(check: Callable[..., Awaitable[dict[str, Any]]]) -> AsyncGenerator[ServerEvent, None]:
    items: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def put(item: dict[str, Any], number: int, count: int) -> None:
        loop.call_soon_threadsafe(items.put_nowait, {**item, "number": number, "count": count})

    checking = asyncio.ensure_future(check(on_item=put))
    checking.add_done_callback(lambda _: items.put_nowait(None))
    try:
        while (item := await items.get()) is not None:
            yield ServerEvent({"type": "item", **item}, "item")
        found = await checking
        yield ServerEvent({"type": "generation_complete", **found, "items": len(found["items"])}, "generation_complete")
    finally:
        checking.cancel()
