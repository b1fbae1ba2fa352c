"""/api/v1/receipts: how an answer came about, kept for its tenant for some days."""

import asyncio
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request

from shiguan.engine.receipts import Receipt, read_receipt, text_sha256
from shiguan.engine.replay import Replay
from shiguan.errors import RefusedError
from shiguan.resources import check_free_space, write_json
from shiguan.serving.authentication import Principal, current_principal
from shiguan.serving.error_replies import ApiError
from shiguan.serving.settings import ServingSettings

_ID = re.compile(r"[0-9a-f]{64}")
_HOUR = 3600


class ReceiptFolder:
    """
    The receipts that a server keeps: a file each, below a folder for each tenant that does not spell its name.

    A file is whole or not there, however the process ends, and none takes the last room that the library needs.
    """

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
            return read_receipt(path) if _ID.fullmatch(receipt_id) and self._is_kept(path) else None
        return None

    def _file(self, tenant_id: str, receipt_id: str) -> Path:
        return self._path / text_sha256(tenant_id)[:32] / f"{receipt_id}.json"

    def _is_kept(self, path: Path) -> bool:
        with suppress(FileNotFoundError):  # another process removes them, too, and a file that is written is renamed
            return time.time() - path.stat().st_mtime < self._seconds
        return False


router = APIRouter(prefix="/api/v1/receipts", tags=["receipts"])


@router.get("/{receipt_id}")
async def receipt(
    request: Request, receipt_id: str, asker: Annotated[Principal, Depends(current_principal)]
) -> dict[str, Any]:
    """
    Give the receipt whose id an answer's `metadata.receipt` has.

    `stale` says whether a passage that the answer cites is not in the library any more as it was.
    """
    state = request.app.state
    found = await asyncio.to_thread(ReceiptFolder(state.settings).find, asker.tenant_id, receipt_id)
    if found is None:
        days = f"The server keeps receipts for {state.settings.receipt_days} days."
        raise ApiError("not_found", message="There is no such receipt.", next_step=f"Check the id. {days}")
    parents = state.ingest_jobs.library.stores["parents"]
    replay = await asyncio.to_thread(Replay, found, parents, tenant_id=asker.tenant_id)
    return {"receipt": found.model_dump(mode="json"), "stale": replay.is_stale}
