"""/api/v1/conversations, receipts and feedback."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field, field_validator
from starlette.responses import Response

from shiguan.conversations import LONGEST_TITLE, Conversation, ConversationStore, Turn
from shiguan.engine.conversations import export_markdown, head_of, shown_conversation
from shiguan.engine.exports import FORMS, Form, export_answer, read_sources
from shiguan.engine.feedback import LONGEST_NOTE, FeedbackFile, Kind
from shiguan.engine.places import locate
from shiguan.engine.receipts import Receipt, replay
from shiguan.errors import RefusedError
from shiguan.serving.authentication import Reader, Writer
from shiguan.serving.engine import current_engine
from shiguan.serving.error_replies import ApiError, check_query
from shiguan.text.works import plain_line

router = APIRouter(prefix="/api/v1", dependencies=[Depends(check_query)])
_JOINERS = "\u200c\u200d"


class Title(BaseModel, extra="forbid"):
    """Another title."""

    title: Annotated[str, Field(min_length=1, max_length=LONGEST_TITLE)]

    @field_validator("title")
    @classmethod
    def _shows(cls, title: str) -> str:
        if not any(map(str.isprintable, plain_line(title, LONGEST_TITLE).strip(_JOINERS))):
            raise ValueError("expected a title with at least one character that shows")
        return title


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
    """Return a conversation with its turns."""
    conversation, turns = await _whole(asker.tenant_id, conversation_id)
    return shown_conversation(conversation, turns)


_MARKDOWN = "text/markdown; charset=utf-8"


@router.get(
    "/conversations/{conversation_id}/export",
    tags=["conversations"],
    response_class=Response,
    responses={200: {"content": {_MARKDOWN: {}}}},
)
async def export(conversation_id: str, asker: Reader) -> Response:
    """Return a conversation as a file of Markdown."""
    found = await _whole(asker.tenant_id, conversation_id)
    written = await current_engine().long_work.run(asker.tenant_id, "export", partial(export_markdown, *found))
    return Response(written, media_type=_MARKDOWN)


@router.patch("/conversations/{conversation_id}", tags=["conversations"])
async def rename(conversation_id: str, body: Title, asker: Writer) -> dict[str, Any]:
    """Rename a conversation."""
    await _of_store(lambda store: store.rename(asker.tenant_id, conversation_id, body.title))
    return {"id": conversation_id, "title": plain_line(body.title, LONGEST_TITLE)}


@router.delete("/conversations/{conversation_id}", tags=["conversations"])
async def delete(conversation_id: str, asker: Writer) -> dict[str, Any]:
    """Remove a conversation with its summaries."""
    await _of_store(lambda store: store.delete(asker.tenant_id, conversation_id))
    return {"id": conversation_id, "deleted": True}


async def kept_receipt(receipt_id: str, asker: Reader) -> Receipt:
    """Find a receipt of the caller's tenant; any other is the same 404."""
    engine = current_engine()
    found = await asyncio.to_thread(engine.receipts.find, asker.tenant_id, receipt_id)
    if found is None:
        days = f"The server keeps receipts for {engine.settings.receipt_days} days."
        raise ApiError("not_found", message="There is no such receipt.", next_step=f"Check the id. {days}")
    return found


KeptReceipt = Annotated[Receipt, Depends(kept_receipt)]


@router.get("/receipts/{receipt_id}", tags=["receipts"])
async def receipt(found: KeptReceipt, asker: Reader) -> dict[str, Any]:
    """
    Give the receipt with the id in an answer's `metadata.receipt`.

    `stale` says whether a source no longer has the words that the answer cites.
    """
    parents = current_engine().library.stores["parents"]
    states = await asyncio.to_thread(replay, found, parents, tenant_id=asker.tenant_id)
    return {"receipt": found.model_dump(mode="json"), "stale": "gone" in states}


@router.get(
    "/receipts/{receipt_id}/export",
    tags=["receipts"],
    response_class=Response,
    responses={200: {"content": {kind: {} for kind, _ in FORMS.values()}}},
)
async def export_notes(found: KeptReceipt, asker: Reader, form: Form = "markdown") -> Response:
    """Return an answer with its sources as a file for a bibliography or a word processor."""
    engine = current_engine()

    def write() -> bytes:
        own = read_sources(engine.settings.folder / "sources.yml", asker.tenant_id)
        return export_answer(found, engine.library.stores["parents"], form, own=own)

    kind, ending = FORMS[form]
    name = f"attachment; filename=shiguan-{found.id[:8]}.{ending}"
    written = await engine.long_work.run(asker.tenant_id, "export", write)
    return Response(written, media_type=kind, headers={"Content-Disposition": name})


@router.get("/receipts/{receipt_id}/places", tags=["receipts"])
async def places(found: KeptReceipt, asker: Reader) -> dict[str, Any]:
    """Find the places that an answer cites again in the sources as they are now: see `shiguan locate`."""
    engine = current_engine()
    find = partial(locate, found, partial(engine.library.text, tenant_id=asker.tenant_id))
    return {"places": await engine.long_work.run(asker.tenant_id, "places", find)}


class Judgement(BaseModel, extra="forbid"):
    """A reader's judgement on an answer."""

    receipt: Annotated[str, Field(max_length=64, description="The answer's `metadata.receipt`.")]
    kind: Kind
    note: Annotated[str, Field(max_length=LONGEST_NOTE, description="In the reader's words; kept as one line.")] = ""


@router.post("/feedback", tags=["feedback"], status_code=201, summary="Say what is right or wrong about an answer")
async def give(body: Judgement, asker: Reader) -> dict[str, Any]:
    """Keep a judgement on an answer; it replaces the same key's earlier one on the same receipt."""
    found = await kept_receipt(body.receipt, asker)
    file = FeedbackFile(current_engine().settings.folder)
    return await asyncio.to_thread(file.give, found, body.kind, body.note, reader=asker.key_id)
