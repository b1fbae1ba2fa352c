"""/api/v1/conversations: what a tenant asked under an id, listed, read, renamed, exported and deleted."""

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter
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
from shiguan.errors import RefusedError
from shiguan.llm.reply_cache import TenantCache
from shiguan.serving.authentication import Reader, Writer
from shiguan.serving.engine import current_engine
from shiguan.serving.error_replies import ApiError

router = APIRouter(prefix="/api/v1/conversations", tags=["conversations"])


class Title(BaseModel, extra="forbid"):
    """Another title."""

    title: Annotated[str, Field(min_length=1, max_length=LONGEST_TITLE, pattern=r"\S")]


async def _of_store(read: Callable[[ConversationStore], Any]) -> Any:
    conversations = current_engine().conversations
    try:
        found = None if conversations is None else await asyncio.to_thread(read, conversations.store)
    except RefusedError:
        found = None
    if not found:
        # The same for an id that was never used, one that can be none and one of another tenant's.
        listing = "GET /api/v1/conversations lists them."
        raise ApiError("not_found", message="There is no such conversation.", next_step=listing)
    return found


async def _whole(tenant_id: str, conversation_id: str) -> tuple[Conversation, list[Turn]]:
    def read(store: ConversationStore) -> Any:
        conversation = store.find(tenant_id, conversation_id)
        return conversation and (conversation, store.turns(tenant_id, conversation_id))

    found: tuple[Conversation, list[Turn]] = await _of_store(read)
    return found


@router.get("")
async def listed(asker: Reader) -> dict[str, Any]:
    """List the tenant's conversations, the newest first."""
    conversations = current_engine().conversations
    if conversations is None:
        return {"conversations": []}
    found = await asyncio.to_thread(conversations.store.conversations, asker.tenant_id)
    return {"conversations": [head_of(one) for one in found]}


@router.get("/{conversation_id}")
async def read(conversation_id: str, asker: Reader) -> dict[str, Any]:
    """Give a conversation with its turns."""
    conversation, turns = await _whole(asker.tenant_id, conversation_id)
    return {**head_of(conversation), "turns": [asdict(turn) for turn in turns]}


@router.get("/{conversation_id}/export", response_class=Response)
async def export(conversation_id: str, asker: Reader, form: Literal["markdown", "json"] = "markdown") -> Response:
    """Give a conversation as a file."""
    written = export_json if form == "json" else export_markdown
    kind = "application/json" if form == "json" else "text/markdown; charset=utf-8"
    return Response(written(*await _whole(asker.tenant_id, conversation_id)), media_type=kind)


@router.patch("/{conversation_id}")
async def rename(conversation_id: str, body: Title, asker: Writer) -> dict[str, Any]:
    """Give a conversation another title."""
    await _of_store(lambda store: store.rename(asker.tenant_id, conversation_id, body.title))
    return {"id": conversation_id, "title": body.title}


@router.delete("/{conversation_id}")
async def delete(conversation_id: str, asker: Writer) -> dict[str, Any]:
    """Remove a conversation with its summaries."""
    await _of_store(lambda store: store.delete(asker.tenant_id, conversation_id))
    await asyncio.to_thread(TenantCache(current_engine().settings.folder, asker.tenant_id).clear)
    return {"id": conversation_id, "deleted": True}
