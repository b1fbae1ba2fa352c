"""Uploads on disk: what was taken on is kept until it is in the library, whatever happens to the process."""

import contextlib
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from haystack import logging
from pydantic import ConfigDict, TypeAdapter

from shiguan.resources import check_free_space, write_json

logger = logging.getLogger(__name__)

_ID = re.compile(r"[0-9a-f]{16}-[0-9a-f]{16}")
_KEPT_FINISHED = 1000
_CHUNK = 1024 * 1024


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One upload on its way into the library."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    id: str
    tenant_id: str
    source: str
    size: int
    state: str
    submitted: float
    started: float | None = None
    finished: float | None = None
    attempts: int = 0
    not_before: float = 0.0
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    version: int = 1


_RECORD = TypeAdapter(JobRecord)


class JobFolder:
    """
    `pending/` has each upload twice: its bytes and, written after them, its record. An upload counts as taken on from
    its record on; bytes without a record are leftovers of a crash. `finished/` keeps the records of the last ones.
    """

    def __init__(self, path: Path) -> None:
        self.pending = path / "pending"
        self.finished = path / "finished"
        self._last = 0
        self._numbering = threading.Lock()

    def prepare(self) -> None:
        """Make the folders and sweep what a crash left."""
        for folder in (self.pending, self.finished):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        hour_ago = time.time() - 3600
        for path in self.pending.iterdir():
            orphaned = path.suffix == ".bin" and not path.with_suffix(".json").exists()
            # Another process may be writing here at this moment.
            with contextlib.suppress(FileNotFoundError):
                if (orphaned or path.suffix == ".part") and path.stat().st_mtime < hour_ago:
                    path.unlink()

    def add(self, tenant_id: str, source: str, content: BinaryIO) -> JobRecord:
        """Take an upload on; when this returns, a crash does not lose it."""
        check_free_space(self.pending)
        job_id = self._new_id()
        data = self.pending / f"{job_id}.bin"
        try:
            with data.open("xb") as file:
                shutil.copyfileobj(content, file, _CHUNK)
                file.flush()
                os.fsync(file.fileno())
                size = file.tell()
            record = JobRecord(job_id, tenant_id, source, size, "queued", submitted=time.time())
            self.save(record)
        except BaseException:
            data.unlink(missing_ok=True)
            raise
        return record

    def save(self, record: JobRecord) -> None:
        write_json(self.pending / f"{record.id}.json", asdict(record), mode=0o600)

    def finish(self, record: JobRecord) -> bool:
        """Write down how an upload ended, and let its bytes go."""
        write_json(self.finished / f"{record.id}.json", asdict(replace(record, finished=time.time())), mode=0o600)
        (self.pending / f"{record.id}.bin").unlink(missing_ok=True)
        try:
            (self.pending / f"{record.id}.json").unlink()
        except FileNotFoundError:
            return False
        return True

    def forget(self, job_id: str) -> None:
        (self.pending / f"{job_id}.json").unlink(missing_ok=True)

    def is_pending(self, job_id: str) -> bool:
        return (self.pending / f"{job_id}.json").exists()

    def content(self, job_id: str) -> bytes:
        return (self.pending / f"{job_id}.bin").read_bytes()

    def find(self, job_id: str) -> JobRecord | None:
        if not _ID.fullmatch(job_id):
            return None
        with contextlib.suppress(ValueError):
            return _read(self.pending / f"{job_id}.json") or _read(self.finished / f"{job_id}.json")
        return None

    def waiting(self) -> Iterator[JobRecord]:
        """List what is to go in, oldest first."""
        for path in sorted(self.pending.glob("*.json")):
            try:
                record = _read(path)
            except ValueError:
                # It would come again and again, before all others; people can look at it where it is.
                logger.error("The record {file} of an upload cannot be read; it is set aside.", file=path.name)
                for part in (path, path.with_suffix(".bin")):
                    with contextlib.suppress(FileNotFoundError):
                        part.rename(part.with_name(f"{part.name}.broken"))
                continue
            if record is not None:
                yield record

    def prune(self) -> None:
        """Forget the oldest of the finished uploads."""
        for path in sorted(self.finished.glob("*.json"))[:-_KEPT_FINISHED]:
            path.unlink(missing_ok=True)

    def _new_id(self) -> str:
        with self._numbering:
            self._last = max(self._last + 1, time.time_ns())
            return f"{self._last:016x}-{secrets.token_hex(8)}"


def _read(path: Path) -> JobRecord | None:
    try:
        record = _RECORD.validate_json(path.read_bytes(), strict=True)
    except FileNotFoundError:
        return None
    if record.id != path.stem:
        raise ValueError(f"{path.name} is the record of another upload")
    return record
