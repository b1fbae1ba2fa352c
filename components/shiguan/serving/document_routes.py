"""/api/v1/documents and /api/v1/library: add, list and remove the sources of a tenant, and read what is stored."""

import asyncio
import unicodedata
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException

from shiguan.engine.library import MOST_NEIGHBOURS, SUFFIXES, shown_passage
from shiguan.engine.timeline import SEARCH, matched
from shiguan.engine.timeline import timeline as list_times
from shiguan.serving.authentication import Reader, Writer, check_tenant
from shiguan.serving.current_request import Principal, current_request
from shiguan.serving.engine import Question, current_engine
from shiguan.serving.error_replies import ApiError, check_query
from shiguan.serving.ingest_jobs import IngestJobs
from shiguan.serving.keys import audit

router = APIRouter(prefix="/api/v1", dependencies=[Depends(check_query)])


async def _current_jobs(request: Request) -> Any:
    return request.app.state.ingest_jobs


Jobs = Annotated[IngestJobs, Depends(_current_jobs)]


async def _audit(principal: Principal, action: str, **details: Any) -> None:
    who = {"tenant": principal.tenant_id, "key": principal.key_id, "request": current_request().id}
    await asyncio.to_thread(audit, current_engine().settings.folder, action, **who, **details)


@asynccontextmanager
async def uploaded(request: Request) -> AsyncIterator[tuple[UploadFile, FormData]]:
    """Provide the one file of a form, and the form."""
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise _refused("send the file as multipart/form-data")
    try:
        async with request.form(max_files=1, max_fields=4, max_part_size=64 * 1024) as form:
            file = form.get("file")
            if not isinstance(file, UploadFile):
                raise _refused("there is no part `file` with a file in it")
            yield file, form
    except (MultiPartException, HTTPException) as error:  # Starlette raises the one or the other
        if isinstance(error, ApiError):
            raise
        raise _refused("the multipart body cannot be read, or has more than one file") from error


@router.post("/documents", tags=["documents"], status_code=202)
async def upload(request: Request, jobs: Jobs, principal: Writer) -> JSONResponse:
    """
    Accept a file; it is ingested in the background.

    The reply comes when the file is safe on disk. A file with the same name replaces the earlier one.
    """
    async with uploaded(request) as (file, form):
        tenant = form.get("tenant_id")
        check_tenant(principal, tenant if isinstance(tenant, str) else None)
        name = source_name(file.filename)
        record = await asyncio.to_thread(jobs.submit, principal.tenant_id, name, file.file)
        await _audit(principal, "upload", source=name, job=record.id, bytes=record.size)
    return JSONResponse(
        jobs.shown(record), status_code=202, headers={"Location": f"/api/v1/documents/jobs/{record.id}"}
    )


@router.get("/documents/jobs/{job_id}", tags=["documents"])
async def job(jobs: Jobs, job_id: str, principal: Reader) -> dict[str, Any]:
    """Return the progress of an upload, and its result."""
    found = await asyncio.to_thread(jobs.find, principal.tenant_id, job_id)
    if found is None:
        raise _none("job", "Check the id that the upload gave.")
    return found


@router.get("/documents", tags=["documents"])
async def documents(principal: Reader) -> dict[str, Any]:
    """List the tenant's sources."""
    sources = await asyncio.to_thread(current_engine().library.sources, tenant_id=principal.tenant_id)
    return {"sources": sources}


@router.delete("/documents/{source:path}", tags=["documents"])
async def delete(jobs: Jobs, source: str, principal: Writer) -> dict[str, Any]:
    """Remove a source, by the name, record id or source id that the list shows, and its waiting uploads."""

    def remove() -> tuple[int, int]:
        cancelled = jobs.cancel(principal.tenant_id, source)
        return jobs.library.delete(source, tenant_id=principal.tenant_id), cancelled

    await _audit(principal, "delete", source=source)
    deleted, cancelled = await asyncio.to_thread(remove)
    if not deleted and not cancelled:
        raise _none("source")
    return {"source": source, "deleted": deleted, "cancelled_jobs": cancelled}


def _refused(problem: str) -> ApiError:
    return ApiError(
        "invalid_request", message=f"The upload was refused: {problem}.", fields=[{"field": "file", "problem": problem}]
    )


_LONGEST = 200


def source_name(given: str | None) -> str:
    """Clean the file name that a client sent, or refuse it; it is never used as a path."""
    text = (given or "").encode("utf-8", "replace").decode("utf-8")
    text = "".join(c for c in text if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
    name = unicodedata.normalize("NFC", text).replace("\\", "/").rsplit("/", 1)[-1].strip().lstrip(".").strip()
    if not name:
        raise _refused("the upload has no file name")
    if len(name.encode()) > _LONGEST:
        raise _refused(f"the file name has more than {_LONGEST} bytes")
    if not name.lower().endswith(SUFFIXES) or name.lower() in SUFFIXES:
        raise _refused(f"its name must end with one of {', '.join(SUFFIXES)}")
    return name


Source = Annotated[str, Query(max_length=500, description="A source's file name, record id or `source_id`.")]
Names = Annotated[list[str] | None, Query(max_length=50, description="Look only here; may be repeated.")]

_MOST_PASSAGES = 200


def _none(what: str, named: str = "GET /api/v1/documents lists the sources.") -> ApiError:
    return ApiError("not_found", message=f"There is no such {what}.", next_step=named)


@router.get("/library/passages/{passage_id}", tags=["library"], summary="Read a passage in its context")
async def passage(
    passage_id: str,
    reader: Reader,
    neighbours: Annotated[int, Query(ge=0, le=MOST_NEIGHBOURS, description="Passages before it and after it.")] = 0,
) -> dict[str, Any]:
    """
    Give the `passage` that a citation's `parent_id` names, whole, with those `before` and `after` it in its source.

    Offsets, those of `blocks` and of citations, count code points of `text`.
    """
    tenant, library = reader.tenant_id, current_engine().library
    found = await asyncio.to_thread(library.passage, passage_id, tenant_id=tenant, neighbours=neighbours)
    if found is None:
        raise _none("passage")
    return found


@router.get("/library/contents", tags=["library"], summary="Read the contents of a source")
async def contents(source: Source, reader: Reader) -> dict[str, Any]:
    """List the works in a source, each with its sections in order and the positions of their passages."""
    works = await asyncio.to_thread(current_engine().library.contents, source, tenant_id=reader.tenant_id)
    if not works:
        raise _none("source")
    return {"source": source, "works": works}


@router.get("/library/passages", tags=["library"], summary="Read a stretch of a work")
async def passages(
    source_id: Annotated[str, Query(max_length=500, description="A work, as /contents names it.")],
    reader: Reader,
    first: Annotated[int, Query(ge=0, le=2**31, description="Position of the first passage.")] = 0,
    last: Annotated[int | None, Query(ge=0, le=2**31, description="Position of the last one.")] = None,
) -> dict[str, Any]:
    """Return up to 200 passages from `first` to `last`, in order; `next` is where the rest begins, null at the end."""
    end = min(first + _MOST_PASSAGES - 1, 2**31 if last is None else last)
    library = current_engine().library
    found = await asyncio.to_thread(library.passages, source_id, tenant_id=reader.tenant_id, first=first, last=end)
    more = len(found) == _MOST_PASSAGES and end != last
    return {"source_id": source_id, "passages": found, "next": end + 1 if more else None}


@router.get("/library/timeline", tags=["library"], summary="Read what the library says by year")
async def timeline(
    reader: Reader,
    query: Annotated[Question | None, Query(description="Only what is found by these words.")] = None,
    when: Annotated[str | None, Query(max_length=100, description="Years, such as `755..763`.")] = None,
    source: Names = None,
) -> dict[str, Any]:
    """
    List passages by the times that they mention, 200 lines at most, the earliest first; `count` is the total.

    `as` is what the source calls the time, `western` its conversion, `from` and `to` are years as astronomers count
    them: 0 is 1 BC. `how` is `written` in the passage, or `carried` over from the text before it.
    """
    engine, children = current_engine(), None
    if query:
        options = {"when": when, "sources": source}
        found, _ = await engine.search(query, reader.tenant_id, **SEARCH, **options)
        children = matched(query, found)
    known: dict[str, Any] = {"when": when, "sources": source, "children": children}
    work = partial(list_times, engine.library, tenant_id=reader.tenant_id, **known)
    return await engine.long_work.run(reader.tenant_id, "timeline", work)


@router.get("/library/search", tags=["library"], summary="Find passages")
async def search(
    query: Annotated[Question, Query(description="Words or a question.")],
    reader: Reader,
    source: Names = None,
    section: Names = None,
    top_k: Annotated[int, Query(ge=1, le=50, description="How many passages at most.")] = 10,
    *,
    when: Annotated[str | None, Query(max_length=100, description="Years, such as `755..763`.")] = None,
) -> dict[str, Any]:
    """Find the passages that an answer in the mode `simple` would be written from; no model is asked."""
    options = {"top_k": top_k, "sources": source, "sections": section, "when": when}
    found, warnings = await current_engine().search(query, reader.tenant_id, **options)
    return {
        "passages": [{**shown_passage(document), "score": document.score} for document in found],
        "warnings": warnings,
    }
