"""/api/v1/documents: a tenant's sources put in, listed and taken out."""

import asyncio
import unicodedata
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException

from shiguan.engine.library import SUFFIXES
from shiguan.serving.authentication import Principal, Reader, Writer, check_tenant
from shiguan.serving.error_replies import ApiError
from shiguan.serving.ingest_jobs import IngestJobs
from shiguan.serving.key_use import audit

router = APIRouter(prefix="/api/v1/documents", tags=["documents"])

_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            }
        },
    }
}


def _jobs(request: Request) -> IngestJobs:
    jobs: IngestJobs = request.app.state.ingest_jobs
    return jobs


async def _audit(request: Request, principal: Principal, action: str, **told: Any) -> None:
    who = {"tenant": principal.tenant_id, "key": principal.key_id, "request": request.state.request_id}
    await asyncio.to_thread(audit, request.app.state.settings.folder, action, **who, **told)


@router.post("", status_code=202, openapi_extra=_FORM)
async def upload(request: Request, principal: Writer) -> JSONResponse:
    """
    Take a file on; it is ingested in the background.

    The reply comes when the file is safe on disk. The same name again replaces what came under it.
    """
    jobs = _jobs(request)
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise _refused("send the file as multipart/form-data")
    try:
        async with request.form(max_files=1, max_fields=4, max_part_size=64 * 1024) as form:
            tenant = form.get("tenant_id")
            check_tenant(principal, tenant if isinstance(tenant, str) else None)
            file = form.get("file")
            if not isinstance(file, UploadFile):
                raise _refused("there is no part `file` with a file in it")
            name = source_name(file.filename)
            record = await asyncio.to_thread(jobs.submit, principal.tenant_id, name, file.file)
            await _audit(request, principal, "upload", source=name, job=record.id, bytes=record.size)
    except ApiError:
        raise
    except (MultiPartException, HTTPException) as error:  # which of the two depends on where Starlette runs
        raise _refused("the multipart body cannot be read, or has more than one file") from error
    return JSONResponse(
        jobs.shown(record), status_code=202, headers={"Location": f"/api/v1/documents/jobs/{record.id}"}
    )


@router.get("/jobs/{job_id}")
async def job(request: Request, job_id: str, principal: Reader) -> dict[str, Any]:
    """Tell how far an upload is, and what became of it."""
    found = await asyncio.to_thread(_jobs(request).find, principal.tenant_id, job_id)
    if found is None:
        raise ApiError("not_found", message="There is no such job.", next_step="Check the id that the upload gave.")
    return found


@router.get("")
async def documents(request: Request, principal: Reader) -> dict[str, Any]:
    """List the tenant's sources."""
    sources = await asyncio.to_thread(_jobs(request).library.sources, tenant_id=principal.tenant_id)
    return {"sources": sources}


@router.delete("/{source:path}")
async def delete(request: Request, source: str, principal: Writer) -> dict[str, Any]:
    """Take a source out, by the name, record id or source id that the list shows; uploads of it that wait, too."""
    jobs = _jobs(request)

    def remove() -> tuple[int, int]:
        cancelled = jobs.cancel(principal.tenant_id, source)
        return jobs.library.delete(source, tenant_id=principal.tenant_id), cancelled

    await _audit(request, principal, "delete", source=source)
    deleted, cancelled = await asyncio.to_thread(remove)
    if not deleted and not cancelled:
        raise ApiError("not_found", message="There is no such source.", next_step="GET /api/v1/documents lists them.")
    return {"source": source, "deleted": deleted, "cancelled_jobs": cancelled}


def _refused(problem: str) -> ApiError:
    return ApiError(
        "invalid_request", message=f"The upload was refused: {problem}.", fields=[{"field": "file", "problem": problem}]
    )


_LONGEST = 200


def source_name(given: str | None) -> str:
    """
    Make a name out of what a client sent, or refuse it.

    Folders before the name are dropped, as are characters that do not show or turn the direction of writing: what a
    person reads in a list is what is there. The name is never used as a path.
    """
    text = unicodedata.normalize("NFC", (given or "").encode("utf-8", "replace").decode("utf-8"))
    text = "".join(c for c in text if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
    name = text.replace("\\", "/").rsplit("/", 1)[-1].strip().lstrip(".").strip()
    if not name:
        raise _refused("the upload has no file name")
    if len(name.encode()) > _LONGEST:
        raise _refused(f"the file name has more than {_LONGEST} bytes")
    if not name.lower().endswith(SUFFIXES) or name.lower() in SUFFIXES:
        raise _refused(f"its name must end with one of {', '.join(SUFFIXES)}")
    return name
