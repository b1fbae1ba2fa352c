"""Ingests uploads in the background; each is on disk until it is in the library, whatever happens to the process."""

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
from typing import Any, BinaryIO
from unicodedata import normalize

from filelock import FileLock, Timeout
from haystack import logging
from haystack.dataclasses import ByteStream
from pydantic import TypeAdapter

from shiguan.engine.library import IngestedFile, Library
from shiguan.errors import ConfigurationError, ShiguanError, StoreError, StoreFullError
from shiguan.resources import check_free_space, write_json
from shiguan.serving import telemetry
from shiguan.serving.error_replies import ApiError, as_api_error

logger = logging.getLogger(__name__)

# How often an upload may end the process.
_MOST_ATTEMPTS = 8
# These are not the upload's fault: it waits as long as they last, in short pauses.
_LASTING, _LASTING_PAUSE = frozenset({"storage_full", "store_unavailable", "upstream_unavailable"}), 10.0
# How often a process looks for uploads that another one accepted in the same folder.
_LOOK_SECONDS = 2.0
# How many tenants' uploads run side by side: a book that takes an hour does not delay another tenant.
_WORKERS = 2
# A batch is embedded within it: a thread still in the model when the interpreter ends would abort the process.
_STOP_SECONDS = 5.0
_ID = re.compile(r"[0-9a-f]{16}-[0-9a-f]{16}")
# How many uploads of one tenant may wait.
_MOST_WAITING = 100
_KEPT_FINISHED = 1000


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One upload on its way into the library."""

    id: str
    tenant_id: str
    source: str
    size: int
    state: str
    submitted: float
    started: float | None = None
    finished: float | None = None
    attempts: int = 0
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None

    @property
    def waits(self) -> bool:
        """Whether it is waiting."""
        return self.state in ("queued", "running")


_RECORD = TypeAdapter(JobRecord)


class JobFolder:
    """For each upload a file of its bytes and, written last, its record, which accepts it; the newest records stay."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._accepting = threading.Lock()

    def prepare(self) -> None:
        """Make the folder and remove what a crash left."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        hour_ago = time.time() - 3600
        for path in self.path.iterdir():
            # Another process may be writing here at this moment.
            with contextlib.suppress(FileNotFoundError):
                record = path.with_suffix(".json")
                if record.exists() and self.find(path.stem) is None:
                    # Of another version, or damaged: nobody knows whose the bytes are, which stay for who can tell.
                    if path == record:
                        logger.warning("The record {path} of an upload does not fit: it is left out.", path=path)
                    continue
                left = path.suffix in (".bin", ".part") and not self.is_waiting(path.stem)
                if left and path.stat().st_mtime < hour_ago:
                    path.unlink()

    def add(self, tenant_id: str, source: str, content: BinaryIO) -> JobRecord:
        """Accept an upload; after this returns a crash does not lose it."""
        check_free_space(self.path)
        data = self.path / f"{secrets.token_hex(8)}.part"
        try:
            with data.open("xb") as file:
                shutil.copyfileobj(content, file)
                file.flush()
                os.fsync(file.fileno())
                size = file.tell()
            with self._accepting:  # so that of two uploads the one that is seen later has the later id
                job_id = f"{time.time_ns():016x}-{secrets.token_hex(8)}"
                data = data.rename(self.path / f"{job_id}.bin")
                record = JobRecord(job_id, tenant_id, source, size, "queued", submitted=time.time())
                self.save(record)
        except BaseException:
            data.unlink(missing_ok=True)
            raise
        return record

    def save(self, record: JobRecord) -> None:
        write_json(self.path / f"{record.id}.json", asdict(record), mode=0o600)

    def end(self, record: JobRecord) -> None:
        """Record how an upload ended, and remove its bytes and the oldest records."""
        self.save(replace(record, finished=time.time()))
        (self.path / f"{record.id}.bin").unlink(missing_ok=True)
        ended = (path for path in self.path.glob("*.json") if not path.with_suffix(".bin").exists())
        for path in sorted(ended)[:-_KEPT_FINISHED]:
            path.unlink(missing_ok=True)

    def find(self, job_id: str) -> JobRecord | None:
        if _ID.fullmatch(job_id):
            with contextlib.suppress(OSError, ValueError):
                return _RECORD.validate_json((self.path / f"{job_id}.json").read_bytes())
        return None

    def is_waiting(self, job_id: str) -> bool:
        record = self.find(job_id)
        return record is not None and record.waits

    def waiting(self) -> Iterator[JobRecord]:
        """List the waiting uploads, oldest first."""
        for path in sorted(self.path.glob("*.bin")):
            record = self.find(path.stem)
            if record is not None and record.waits:
                yield record


class _IngestStoppedError(ShiguanError):
    """The server shuts down, or the upload was deleted while it went in."""


class IngestJobs:
    """The queue of uploads: of each tenant one at a time, of two side by side; of several processes one works on it."""

    def __init__(self, library: Library, path: Path) -> None:
        self.library = library
        self.folder = JobFolder(path)
        self._lock = FileLock(path / "worker.lock", thread_local=False)
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._progress: dict[str, tuple[str, int, int]] = {}
        self._changing = threading.Lock()
        self._turns: dict[str, float] = {}  # when each tenant was served last
        self._served: set[str] = set()

    def start(self) -> None:
        self.folder.prepare()
        # A daemon: a library that hangs must not keep the server from ending. Unfinished uploads stay queued.
        self._thread = threading.Thread(target=self._work, name="ingest", daemon=True)
        self._thread.start()

    def check(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            raise ConfigurationError("The ingest of uploads does not run.")
        if not self.folder.path.is_dir():
            raise StoreError(f"The folder `{self.folder.path}` is gone. Restore it, and start again.")

    def stop(self) -> None:
        """End the work at its next step; unfinished uploads begin again with the next server."""
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(_STOP_SECONDS)

    def submit(self, tenant_id: str, source: str, content: BinaryIO) -> JobRecord:
        waiting = sum(record.tenant_id == tenant_id for record in self.folder.waiting())
        if waiting >= _MOST_WAITING:
            full = f"{waiting} uploads of this tenant wait to be ingested, the limit."
            raise ApiError("too_many_requests", message=full, headers={"Retry-After": "30"})
        try:
            record = self.folder.add(tenant_id, source, content)
        except (OSError, StoreFullError) as error:
            told = as_api_error(error)
            if told.kind == "storage_full":
                raise told from error
            raise StoreError(f"The upload cannot be kept: {error}") from error
        for earlier in self._waiting(tenant_id, source):
            if earlier.id < record.id and earlier.state == "queued":
                self._keep(replace(earlier, state="superseded"))
        self._wake.set()
        return record

    def cancel(self, tenant_id: str, source: str) -> int:
        """Remove a source from the queue; a running ingest of it ends at its next step."""
        waiting = self._waiting(tenant_id, normalize("NFC", source))  # as uploads are named
        return sum(self._keep(replace(record, state="cancelled")) for record in waiting)

    def _waiting(self, tenant_id: str, source: str) -> list[JobRecord]:
        return [record for record in self.folder.waiting() if (record.tenant_id, record.source) == (tenant_id, source)]

    def find(self, tenant_id: str, job_id: str) -> dict[str, Any] | None:
        record = self.folder.find(job_id)
        return self.shown(record) if record is not None and record.tenant_id == tenant_id else None

    def shown(self, record: JobRecord) -> dict[str, Any]:
        stage, done, total = self._progress.get(record.id, (None, 0, 0))
        kept = ("id", "source", "state", "submitted", "started", "finished", "attempts", "result", "error")
        shown = {name: getattr(record, name) for name in kept}
        return {**shown, "bytes": record.size, "progress": {"stage": stage, "done": done, "total": total}}

    def _work(self) -> None:
        while not self._stopping.is_set():
            with contextlib.suppress(Timeout), self._lock.acquire(timeout=_LOOK_SECONDS):
                # Daemons, like this thread.
                others = [threading.Thread(target=self._serve, daemon=True) for _ in range(_WORKERS - 1)]
                for other in others:
                    other.start()
                self._serve()
                for other in others:
                    other.join(_STOP_SECONDS)

    def _serve(self) -> None:
        """Ingest one upload after the other until the server stops."""
        while not self._stopping.is_set():
            record = None
            try:
                record = self._next()
                if record is not None:
                    self._ingest(record)
                else:
                    self._wake.wait(_LOOK_SECONDS)
            except Exception as error:
                # A full disk may refuse even the record of a failure; the queue goes on.
                logger.error("Uploads wait: {kind}. Trying again.", kind=type(error).__name__)
                self._stopping.wait(_LOOK_SECONDS)
            finally:
                if record is not None:
                    self._served.discard(record.tenant_id)
                    self._wake.set()

    def _next(self) -> JobRecord | None:
        """Choose the tenant whose last turn is longest ago and who has none now, and its oldest upload."""
        with self._changing:
            self._wake.clear()
            waiting = list(self.folder.waiting())
            telemetry.JOBS_WAITING.set(len(waiting))
            due = [record for record in waiting if record.tenant_id not in self._served]
            if not due:
                return None
            record = min(due, key=lambda record: (self._turns.get(record.tenant_id, 0.0), record.id))
            self._turns = {each.tenant_id: self._turns.get(each.tenant_id, 0.0) for each in waiting}
            self._turns[record.tenant_id] = time.monotonic()
            self._served.add(record.tenant_id)
            return record

    def _ingest(self, record: JobRecord) -> None:
        if record.attempts >= _MOST_ATTEMPTS:
            # It ended the process each time, or its end could not be recorded.
            self._keep(_failed(record, ApiError("internal")))
            return
        record = replace(record, state="running", attempts=record.attempts + 1, started=time.time())
        if not self._keep(record):
            return  # it was deleted or replaced since it was looked at
        try:
            content = (self.folder.path / f"{record.id}.bin").read_bytes()
        except FileNotFoundError:
            # Another process that shares the folder cancelled it at this very moment.
            self._keep(replace(record, state="cancelled"))
            return

        def listen(stage: str, done: int, total: int) -> None:
            # The tenant does not need to know which process it waits for.
            self._progress[record.id] = (stage.split(maxsplit=1)[0], done, total)
            if self._stopping.is_set() or not self.folder.is_waiting(record.id):
                raise _IngestStoppedError("The ingest was stopped.")

        try:
            stream = ByteStream(content, meta={"file_name": record.source})
            [done] = self.library.ingest([stream], tenant_id=record.tenant_id, progress=listen)
            ended = _ended(record, done)
        except _IngestStoppedError:
            ended = record  # begins again with the next server
        except Exception as error:
            logger.warning("Upload {job} failed: {kind}", job=record.id, kind=type(error).__name__)
            ended = _failed(record, as_api_error(error))
        finally:
            self._progress.pop(record.id, None)
        if not self._keep(ended):
            # It was deleted while it was ingested.
            with contextlib.suppress(ShiguanError):
                self.library.delete(record.source, tenant_id=record.tenant_id)
        elif ended.state == "queued":
            self._stopping.wait(_LASTING_PAUSE)

    def _keep(self, record: JobRecord) -> bool:
        """Record how far an upload is, or how it ended; false if it was removed meanwhile."""
        with self._changing:
            if not self.folder.is_waiting(record.id):
                return False
            if record.waits:
                self.folder.save(record)
            else:
                self.folder.end(record)
                telemetry.JOBS.labels(record.state).inc()
            return True


def _ended(record: JobRecord, done: IngestedFile) -> JobRecord:
    broken = next((entry["stage"] for entry in done.skipped if "stage" in entry), None)
    if broken is not None:
        return _failed(record, ApiError("internal", message=f"The stage `{broken}` failed.", stage=broken))
    result = {name: value for name, value in asdict(done).items() if name != "file"}
    if done.skipped and not done.sources:
        entry = done.skipped[0]
        error = ApiError("refused", message=f"{entry['cause']}.", next_step=f"{entry['next_step']}.")
        return replace(record, state="failed", result=result, error=_reported(error))
    return replace(record, state="done", result=result, error=None)


def _failed(record: JobRecord, error: ApiError) -> JobRecord:
    if error.kind in _LASTING:
        return replace(record, state="queued", attempts=record.attempts - 1, error=_reported(error))
    return replace(record, state="failed", error=_reported(error))


def _reported(error: ApiError) -> dict[str, Any]:
    body: dict[str, Any] = error.body()["error"]
    return {name: body[name] for name in ("type", "stage", "message", "next_step")}
