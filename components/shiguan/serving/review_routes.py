"""/api/v1/conversations, receipts, feedback and reports."""

import asyncio
import html
import re
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from lxml.html import HTMLParser, document_fromstring
from pydantic import BaseModel, Field
from starlette.responses import Response

from shiguan.conversations import (
    LONGEST_TITLE,
    Conversation,
    ConversationStore,
    Turn,
    export_json,
    export_markdown,
    head_of,
)
from shiguan.engine.exports import FORMS, Form, export_answer, read_sources
from shiguan.engine.feedback import LONGEST_NOTE, FeedbackFile, Kind
from shiguan.engine.places import locate
from shiguan.engine.receipts import Receipt, Replay
from shiguan.errors import RefusedError
from shiguan.resources import utc_time
from shiguan.serving.authentication import Reader, Writer
from shiguan.serving.document_routes import CurrentLibrary
from shiguan.serving.engine import ReceiptFolder, current_engine
from shiguan.serving.error_replies import ApiError

router = APIRouter(prefix="/api/v1")


class Title(BaseModel, extra="forbid"):
    """Another title."""

    title: Annotated[str, Field(min_length=1, max_length=LONGEST_TITLE, pattern=r"\S")]


async def _of_store(read: Callable[[ConversationStore], Any]) -> Any:
    memory = current_engine().conversations
    try:
        found = None if memory is None else await asyncio.to_thread(read, memory.store)
    except RefusedError:
        found = None
    if not found:
        # The same for an id that was never used, one that is malformed and one of another tenant.
        listing = "GET /api/v1/conversations lists them."
        raise ApiError("not_found", message="There is no such conversation.", next_step=listing)
    return found


async def _whole(tenant_id: str, conversation_id: str) -> tuple[Conversation, list[Turn]]:
    def read(store: ConversationStore) -> Any:
        conversation = store.find(tenant_id, conversation_id)
        return conversation and (conversation, store.turns(tenant_id, conversation_id))

    found: tuple[Conversation, list[Turn]] = await _of_store(read)
    return found


@router.get("/conversations", name="listed", tags=["conversations"])
async def conversations(asker: Reader) -> dict[str, Any]:
    """List the tenant's conversations, the newest first."""
    memory = current_engine().conversations
    if memory is None:
        return {"conversations": []}
    found = await asyncio.to_thread(memory.store.conversations, asker.tenant_id)
    return {"conversations": [head_of(one) for one in found]}


@router.get("/conversations/{conversation_id}", tags=["conversations"])
async def read(conversation_id: str, asker: Reader) -> dict[str, Any]:
    """Give a conversation with its turns."""
    conversation, turns = await _whole(asker.tenant_id, conversation_id)
    return {**head_of(conversation), "turns": [asdict(turn) for turn in turns]}


@router.get("/conversations/{conversation_id}/export", tags=["conversations"], response_class=Response)
async def export(conversation_id: str, asker: Reader, form: Literal["markdown", "json"] = "markdown") -> Response:
    """Give a conversation as a file."""
    written = export_json if form == "json" else export_markdown
    kind = "application/json" if form == "json" else "text/markdown; charset=utf-8"
    return Response(written(*await _whole(asker.tenant_id, conversation_id)), media_type=kind)


@router.patch("/conversations/{conversation_id}", tags=["conversations"])
async def rename(conversation_id: str, body: Title, asker: Writer) -> dict[str, Any]:
    """Give a conversation another title."""
    await _of_store(lambda store: store.rename(asker.tenant_id, conversation_id, body.title))
    return {"id": conversation_id, "title": body.title}


@router.delete("/conversations/{conversation_id}", tags=["conversations"])
async def delete(conversation_id: str, asker: Writer) -> dict[str, Any]:
    """Remove a conversation with its summaries."""
    await _of_store(lambda store: store.delete(asker.tenant_id, conversation_id))
    return {"id": conversation_id, "deleted": True}


async def kept_receipt(request: Request, receipt_id: str, asker: Reader) -> Receipt:
    """Find a receipt of the caller's tenant; any other is the same 404."""
    settings = request.app.state.settings
    found = await asyncio.to_thread(ReceiptFolder(settings).find, asker.tenant_id, receipt_id)
    if found is None:
        days = f"The server keeps receipts for {settings.receipt_days} days."
        raise ApiError("not_found", message="There is no such receipt.", next_step=f"Check the id. {days}")
    return found


KeptReceipt = Annotated[Receipt, Depends(kept_receipt)]


@router.get("/receipts/{receipt_id}", tags=["receipts"])
async def receipt(found: KeptReceipt, library: CurrentLibrary, asker: Reader) -> dict[str, Any]:
    """
    Give the receipt with the id in an answer's `metadata.receipt`.

    `stale` says whether a passage that the answer cites has changed or left the library.
    """
    replay = await asyncio.to_thread(Replay, found, library.stores["parents"], tenant_id=asker.tenant_id)
    return {"receipt": found.model_dump(mode="json"), "stale": replay.is_stale}


@router.get("/receipts/{receipt_id}/export", tags=["receipts"], response_class=Response)
async def export_notes(
    request: Request, found: KeptReceipt, library: CurrentLibrary, asker: Reader, form: Form = "markdown"
) -> Response:
    """Give an answer with its sources as a file for a bibliography or a word processor."""

    def write() -> bytes:
        own = read_sources(request.app.state.settings.folder / "sources.yml", asker.tenant_id)
        return export_answer(found, library.stores["parents"], form, own=own)

    kind, ending = FORMS[form]
    name = f"attachment; filename=shiguan-{found.id[:8]}.{ending}"
    written = await asyncio.to_thread(write)
    return Response(written, media_type=kind, headers={"Content-Disposition": name})


@router.get("/receipts/{receipt_id}/places", tags=["receipts"])
async def places(found: KeptReceipt, library: CurrentLibrary, asker: Reader) -> dict[str, Any]:
    """Find the places that an answer cites again in the sources as they are now: see `shiguan locate`."""
    return {"places": await asyncio.to_thread(locate, found, partial(library.text, tenant_id=asker.tenant_id))}


class Judgement(BaseModel, extra="forbid"):
    """A reader's judgement on an answer."""

    receipt: Annotated[str, Field(max_length=64, description="The answer's `metadata.receipt`.")]
    kind: Kind
    note: Annotated[str, Field(max_length=LONGEST_NOTE, description="In the reader's words; kept as one line.")] = ""


@router.post("/feedback", tags=["feedback"], status_code=201, summary="Say what is right or wrong about an answer")
async def give(request: Request, body: Judgement, asker: Reader) -> dict[str, Any]:
    """Keep a judgement on an answer; it replaces the same key's earlier one on the same receipt."""
    found = await kept_receipt(request, body.receipt, asker)
    settings = request.app.state.settings
    file = FeedbackFile(settings.folder, days=settings.feedback_days)
    return await asyncio.to_thread(file.give, found, body.kind, body.note, reader=asker.key_id)


@router.get("/feedback", tags=["feedback"], summary="List readers' judgements")
async def listed(
    request: Request,
    asker: Reader,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    before: Annotated[int, Query(ge=1, le=2**62, description="The `next` of the page before.")] = 2**62,
) -> dict[str, Any]:
    """List the tenant's judgements, the newest first; `next` is null on the last page."""
    file = FeedbackFile(request.app.state.settings.folder)
    found = await asyncio.to_thread(lambda: list(file.entries(asker.tenant_id, before=before, limit=limit + 1)))
    return {"feedback": found[:limit], "next": found[limit - 1]["number"] if len(found) > limit else None}


_MOST_REPORTS = 200
_LARGEST_REPORT = 8 * 2**20
_TITLE = re.compile(r"<title>([^<]{1,300})</title>")
_ELEMENTS = frozenset("header section div h1 h2 p strong b small span code table thead tbody tr th td".split())
_ATTRIBUTES = frozenset(("class", "data-label"))


def _reports(folder: Path | None, tenant: str) -> dict[str, Path]:
    """Find a tenant's reports, the newest first, in the folder of its name or one below it; links out are ignored."""
    if folder is None:
        return {}
    root, own = folder.resolve(), (folder / tenant).resolve()
    if own.parent != root or own.name != tenant or not own.is_dir():
        return {}
    pages = (page for pattern in ("*.html", "*/*.html") for page in own.glob(pattern))
    kept = [page for page in pages if page.resolve().is_relative_to(own) and page.stat().st_size <= _LARGEST_REPORT]
    kept.sort(key=lambda page: page.stat().st_mtime, reverse=True)
    return {page.relative_to(own).as_posix(): page for page in kept[:_MOST_REPORTS]}


def _listed(name: str, page: Path) -> dict[str, str]:
    with page.open(encoding="utf-8", errors="replace") as file:
        title = _TITLE.search(file.read(2_000))
    written = utc_time(page.stat().st_mtime)
    return {"name": name, "title": html.unescape(title[1]) if title else name, "written": written}


@router.get("/reports", tags=["library"], summary="List the reports")
async def reports(request: Request, reader: Reader) -> dict[str, Any]:
    """List the reports of `shiguan eval` in the tenant's folder below SHIGUAN_REPORTS_DIR, the newest first."""

    def listed() -> list[dict[str, str]]:
        found = _reports(request.app.state.settings.reports_dir, reader.tenant_id)
        return [_listed(name, page) for name, page in found.items()]

    return {"reports": await asyncio.to_thread(listed)}


@router.get("/reports/{name:path}", tags=["library"], summary="Read a report")
async def report(request: Request, name: str, reader: Reader) -> dict[str, Any]:
    """Give a report's `title` and its `body`: texts, and elements as name, attributes and content."""

    def read() -> dict[str, Any]:
        page = _reports(request.app.state.settings.reports_dir, reader.tenant_id).get(name)
        if page is None:
            raise ApiError("not_found", message="There is no such report.", next_step="GET /api/v1/reports lists them.")
        return {**_listed(name, page), "body": report_body(page)}

    return await asyncio.to_thread(read)


def report_body(page: Path) -> list[Any]:
    """Read the content of a report, as texts and the few elements that a report has."""
    root = document_fromstring(page.read_bytes() or b" ", HTMLParser(encoding="utf-8"), ensure_head_body=True)
    main = root.find(".//main")
    return [] if main is None else _parts(main)


def _parts(element: Any) -> list[Any]:
    """List the content of an element; elements that a report never has are left out with their content."""
    parts = [element.text or ""]
    for child in element:
        if child.tag in _ELEMENTS:
            given = {key: value for key, value in child.items() if key in _ATTRIBUTES}
            parts.append([child.tag, given, *_parts(child)])
        parts.append(child.tail or "")
    return [part for part in parts if part]
