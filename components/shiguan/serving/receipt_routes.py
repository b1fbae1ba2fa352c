"""/api/v1/receipts and feedback: how an answer came about, and what its readers say of it, kept for its tenant."""

import asyncio
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from shiguan.engine.feedback import LONGEST_NOTE, FeedbackFile, Kind
from shiguan.engine.receipts import Receipt, Replay, read_receipt, text_sha256
from shiguan.errors import RefusedError
from shiguan.resources import check_free_space, write_json
from shiguan.serving.authentication import Principal, Reader
from shiguan.serving.error_replies import ApiError
from shiguan.serving.settings import ServingSettings

RECEIPT_ID = re.compile(r"[0-9a-f]{64}")
_HOUR = 3600


class ReceiptFolder:
    """The receipts that a server keeps: a file each, whole or not there, in a folder that does not spell the tenant."""

    def __init__(self, settings: ServingSettings) -> None:
        self._path = settings.folder / "receipts"
        self._seconds = settings.receipt_days * 24 * _HOUR
        self._pruned = 0.0

    def keep(self, receipt: Receipt) -> None:
        """Write a receipt, and once an hour remove what is too old, unfinished files of a crash too."""
        path = self._file(receipt.tenant_id, receipt.id)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        check_free_space(path.parent)
        write_json(path, receipt.model_dump(mode="json"), mode=0o600)
        if time.time() - self._pruned > _HOUR:
            self._pruned = time.time()
            for old in self._path.glob("*/*"):
                if not self._is_kept(old):
                    old.unlink(missing_ok=True)

    def find(self, tenant_id: str, receipt_id: str) -> Receipt | None:
        """Find a tenant's receipt; None also for one that is spoiled, or removed at this moment."""
        path = self._file(tenant_id, receipt_id)
        with suppress(RefusedError):
            return read_receipt(path) if RECEIPT_ID.fullmatch(receipt_id) and self._is_kept(path) else None
        return None

    def _file(self, tenant_id: str, receipt_id: str) -> Path:
        return self._path / text_sha256(tenant_id)[:32] / f"{receipt_id}.json"

    def _is_kept(self, path: Path) -> bool:
        with suppress(FileNotFoundError):  # another process removes them, too, and a file that is written is renamed
            return time.time() - path.stat().st_mtime < self._seconds
        return False


async def kept_receipt(request: Request, receipt_id: str, asker: Principal) -> Receipt:
    """Find a receipt of the asker's tenant; any other is the same 404."""
    settings = request.app.state.settings
    found = await asyncio.to_thread(ReceiptFolder(settings).find, asker.tenant_id, receipt_id)
    if found is None:
        days = f"The server keeps receipts for {settings.receipt_days} days."
        raise ApiError("not_found", message="There is no such receipt.", next_step=f"Check the id. {days}")
    return found


router = APIRouter(prefix="/api/v1/receipts", tags=["receipts"])
feedback_router = APIRouter(prefix="/api/v1/feedback", tags=["feedback"])


@router.get("/{receipt_id}")
async def receipt(request: Request, receipt_id: str, asker: Reader) -> dict[str, Any]:
    """
    Give the receipt whose id an answer's `metadata.receipt` has.

    `stale` says whether a passage that the answer cites is not in the library any more as it was.
    """
    found = await kept_receipt(request, receipt_id, asker)
    parents = request.app.state.ingest_jobs.library.stores["parents"]
    replay = await asyncio.to_thread(Replay, found, parents, tenant_id=asker.tenant_id)
    return {"receipt": found.model_dump(mode="json"), "stale": replay.is_stale}


class Judgement(BaseModel, extra="forbid"):
    """What a reader says of an answer."""

    receipt: Annotated[str, Field(max_length=64, description="The answer's `metadata.receipt`.")]
    kind: Kind
    note: Annotated[str, Field(max_length=LONGEST_NOTE, description="In the reader's words; kept as one line.")] = ""


@feedback_router.post("", status_code=201, summary="Say what is right or wrong about an answer")
async def give(request: Request, body: Judgement, asker: Reader) -> dict[str, Any]:
    """Keep a judgement on an answer; it replaces what the same key said of the same receipt before."""
    found = await kept_receipt(request, body.receipt, asker)
    settings = request.app.state.settings
    file = FeedbackFile(settings.folder, days=settings.feedback_days)
    return await asyncio.to_thread(file.give, found, body.kind, body.note, reader=asker.key_id)


@feedback_router.get("", summary="List what readers said")
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
