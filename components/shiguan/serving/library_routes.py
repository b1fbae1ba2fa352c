"""/api/v1/library: reading what is stored: a passage where it stands, the contents of a source, its text, a search."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from shiguan.engine.library import MOST_NEIGHBOURS, Library, shown_passage
from shiguan.engine.turn import MAX_QUESTION
from shiguan.serving.authentication import Reader
from shiguan.serving.engine import current_engine
from shiguan.serving.error_replies import ApiError

router = APIRouter(prefix="/api/v1/library", tags=["library"])

Source = Annotated[str, Query(max_length=500, description="A source's file name, record id or `source_id`.")]
Names = Annotated[list[str] | None, Query(max_length=50, description="Look only here; may be repeated.")]

_MOST_PASSAGES = 200


def _library(request: Request) -> Library:
    library: Library = request.app.state.ingest_jobs.library
    return library


def _none(what: str) -> ApiError:
    return ApiError(
        "not_found", message=f"There is no such {what}.", next_step="GET /api/v1/documents lists the sources."
    )


@router.get("/passages/{passage_id}", summary="Read a passage where it stands")
async def passage(
    request: Request,
    passage_id: str,
    reader: Reader,
    neighbours: Annotated[int, Query(ge=0, le=MOST_NEIGHBOURS, description="Passages before it and after it.")] = 0,
) -> dict[str, Any]:
    """
    Give the `passage` that a citation's `parent_id` names, whole, with those `before` and `after` it in its source.

    Offsets, those of `blocks` and of citations, count code points of `text`.
    """
    tenant = reader.tenant_id
    found = await asyncio.to_thread(_library(request).passage, passage_id, tenant_id=tenant, neighbours=neighbours)
    if found is None:
        raise _none("passage")
    return found


@router.get("/contents", summary="Read the contents of a source")
async def contents(request: Request, source: Source, reader: Reader) -> dict[str, Any]:
    """List the works in a source, each with its sections in order and the positions of their passages."""
    works = await asyncio.to_thread(_library(request).contents, source, tenant_id=reader.tenant_id)
    if not works:
        raise _none("source")
    return {"source": source, "works": works}


@router.get("/passages", summary="Read a stretch of a work")
async def passages(
    request: Request,
    source_id: Annotated[str, Query(max_length=500, description="A work, as /contents names it.")],
    reader: Reader,
    first: Annotated[int, Query(ge=0, le=2**31, description="Position of the first passage.")] = 0,
    last: Annotated[int | None, Query(ge=0, le=2**31, description="Position of the last one.")] = None,
) -> dict[str, Any]:
    """Give up to 200 passages from `first` to `last`, in order; `next` is where the rest begins, null at the end."""
    end = min(first + _MOST_PASSAGES - 1, 2**31 if last is None else last)
    found = await asyncio.to_thread(
        _library(request).passages, source_id, tenant_id=reader.tenant_id, first=first, last=end
    )
    more = len(found) == _MOST_PASSAGES and end != last
    return {"source_id": source_id, "passages": found, "next": end + 1 if more else None}


@router.get("/search", summary="Find passages")
async def search(
    query: Annotated[str, Query(min_length=1, max_length=MAX_QUESTION, description="Words or a question.")],
    reader: Reader,
    source: Names = None,
    section: Names = None,
    top_k: Annotated[int, Query(ge=1, le=50, description="How many passages at most.")] = 10,
) -> dict[str, Any]:
    """Find the passages that an answer in the mode `simple` would be written from; no model is asked."""
    engine = current_engine()
    runner = engine.runner("simple" if "simple" in engine.modes else engine.modes[0])
    options = {"top_k": top_k, "sources": source, "sections": section}
    found, warnings = await asyncio.to_thread(runner.search, query, tenant_id=reader.tenant_id, **options)
    return {
        "passages": [{**shown_passage(document), "score": document.score} for document in found],
        "warnings": warnings,
    }
