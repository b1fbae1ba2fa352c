"""Ingests uploads in the background; each is on disk until it is in the library, whatever happens to the process."""

import contextlib
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from filelock import FileLock, Timeout
from haystack import logging
from haystack.dataclasses import ByteStream
from pydantic import ConfigDict, TypeAdapter

from shiguan.engine.library import IngestedFile, Library
from shiguan.engine.loading import load_pipeline
from shiguan.errors import ConfigurationError, ShiguanError, StoreFullError
from shiguan.resources import check_free_space, write_json
from shiguan.serving import telemetry
from shiguan.serving.error_replies import ApiError, as_api_error

logger = logging.getLogger(__name__)

_MOST_ATTEMPTS = 8
_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 300.0
# These are not the upload's fault: it waits as long as they last, in short pauses.
_LASTING, _LASTING_PAUSE = frozenset({"storage_full", "store_unavailable"}), 10.0
# How often a process looks for uploads that another one accepted in the same folder.
_LOOK_SECONDS = 2.0
# How often an idle server looks for missing vectors, and how many it makes at a time.
_VECTORS_PAUSE, _VECTORS = 30.0, 256
# How many tenants' uploads run side by side: a book that takes an hour does not delay another tenant.
_WORKERS = 2
# A batch is embedded within it: a thread still in the model when the interpreter ends would abort the process.
_STOP_SECONDS = 5.0
_ID = re.compile(r"[0-9a-f]{16}-[0-9a-f]{16}")
_KEPT_FINISHED = 1000


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
    `pending/` has two files for each upload: its bytes and, written after them, its record. An upload is accepted when
    its record is written; bytes without a record are left from a crash. `finished/` keeps the last records.
    """

    def __init__(self, path: Path) -> None:
        self.pending = path / "pending"
        self.finished = path / "finished"

    def prepare(self) -> None:
        """Make the folders and remove what a crash left."""
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
        """Accept an upload; after this returns a crash does not lose it."""
        check_free_space(self.pending)
        job_id = f"{time.time_ns():016x}-{secrets.token_hex(8)}"
        data = self.pending / f"{job_id}.bin"
        try:
            with data.open("xb") as file:
                shutil.copyfileobj(content, file)
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
        """Record how an upload ended, and remove its bytes; false if it was no longer pending."""
        write_json(self.finished / f"{record.id}.json", asdict(replace(record, finished=time.time())), mode=0o600)
        (self.pending / f"{record.id}.bin").unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):
            (self.pending / f"{record.id}.json").unlink()
            return True
        return False

    def is_pending(self, job_id: str) -> bool:
        return (self.pending / f"{job_id}.json").exists()

    def find(self, job_id: str) -> JobRecord | None:
        with contextlib.suppress(ValueError):
            if _ID.fullmatch(job_id):
                return _read(self.pending / f"{job_id}.json") or _read(self.finished / f"{job_id}.json")
        return None

    def waiting(self) -> Iterator[JobRecord]:
        """List the pending uploads, oldest first."""
        for path in sorted(self.pending.glob("*.json")):
            try:
                record = _read(path)
            except ValueError:
                # Otherwise it would come first again and again.
                logger.error("The record {file} of an upload cannot be read; it is set aside.", file=path.name)
                for part in (path, path.with_suffix(".bin")):
                    with contextlib.suppress(FileNotFoundError):
                        part.rename(part.with_name(f"{part.name}.broken"))
                continue
            if record is not None:
                yield record


def _read(path: Path) -> JobRecord | None:
    try:
        record = _RECORD.validate_json(path.read_bytes(), strict=True)
    except FileNotFoundError:
        return None
    if record.id != path.stem:
        raise ValueError(f"{path.name} is the record of another upload")
    return record


class _IngestStoppedError(ShiguanError):
    """The server shuts down, or the upload was deleted while it went in."""


class IngestJobs:
    """
    The queue of uploads of one server: of each tenant one at a time, of two tenants side by side.

    An upload is on disk when it is acknowledged, and leaves the queue when it is in the library or cannot be: after a
    crash it begins again, which changes nothing that is already in. While a store is down or a disk full, uploads wait;
    if a stage fails, they are tried again after growing pauses and finally given up. Of several processes that share
    the folder one works, and another takes over when it ends.
    """

    def __init__(self, library: Library, path: Path, *, max_pending: int = 100) -> None:
        self.library = library
        self.folder = JobFolder(path)
        self.max_pending = max_pending
        self._lock = FileLock(path / "worker.lock", thread_local=False)
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._progress: dict[str, tuple[str, int, int]] = {}
        self._changing = threading.Lock()
        self._turns: dict[str, float] = {}  # when each tenant was served last
        self._served: set[str] = set()
        self._next_look = 0.0
        self._vector_writer: Any = None

    def start(self) -> None:
        self.folder.prepare()
        # A daemon: a library that hangs must not keep the server from ending. Unfinished uploads stay queued.
        self._thread = threading.Thread(target=self._work, name="ingest", daemon=True)
        self._thread.start()

    def check(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            raise ConfigurationError("The ingest of uploads does not run.")

    def stop(self) -> None:
        """End the work at its next step; unfinished uploads begin again with the next server."""
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(_STOP_SECONDS)

    def submit(self, tenant_id: str, source: str, content: BinaryIO) -> JobRecord:
        waiting = sum(record.tenant_id == tenant_id for record in self.folder.waiting())
        if waiting >= self.max_pending:
            full = f"{waiting} uploads of this tenant wait to be ingested, the limit."
            raise ApiError("too_many_requests", message=full, headers={"Retry-After": "30"})
        try:
            record = self.folder.add(tenant_id, source, content)
        except (OSError, StoreFullError) as error:
            raise as_api_error(error) from error
        for earlier in self._waiting(tenant_id, source):
            if earlier.id < record.id and earlier.state == "queued":
                self._keep(replace(earlier, state="superseded"))
        self._wake.set()
        return record

    def cancel(self, tenant_id: str, source: str) -> int:
        """Remove a source from the queue; a running ingest of it ends at its next step."""
        return sum(self._keep(replace(record, state="cancelled")) for record in self._waiting(tenant_id, source))

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
                self._serve(self._make_vectors)
                for other in others:
                    other.join(_STOP_SECONDS)

    def _serve(self, otherwise: Callable[[], bool] = bool) -> None:
        """Ingest one upload after the other, and do something else between, until the server stops."""
        while not self._stopping.is_set():
            record = None
            try:
                record = self._next()
                if record is not None:
                    self._ingest(record)
                elif not otherwise():
                    self._wake.wait(_LOOK_SECONDS)
            except Exception as error:
                # A full disk may refuse even the record of a failure; the queue goes on.
                logger.error("Uploads wait: {kind}. Trying again.", kind=type(error).__name__)
                self._stopping.wait(_LOOK_SECONDS)
            finally:
                if record is not None:
                    self._served.discard(record.tenant_id)
                    self._wake.set()

    def _make_vectors(self) -> bool:
        """Make some of the vectors that an interrupted ingest left out; false if there is nothing to do."""
        if time.monotonic() < self._next_look:
            return False
        library, children, parents = self.library, *(self.library.stores[kind] for kind in ("children", "parents"))

        def listen(*_: object) -> None:
            if self._stopping.is_set() or self._wake.is_set():
                raise _IngestStoppedError("There is an upload to take in first.")

        try:
            # Several servers would make the same ones.
            here = hasattr(parents, "turn") and children.unscoped().count_by_file().values()
            if here and any(words != vectors for words, vectors in here):
                if self._vector_writer is None:
                    pipeline = load_pipeline(library.deployment, library.index, data_dir=library.data_dir)
                    self._vector_writer = pipeline.get_component("vector_writer")
                if self._vector_writer.complete_a_file(parents, most=_VECTORS, progress=listen):
                    return True
            self._vector_writer = None
        except _IngestStoppedError:
            return True
        except Exception as error:
            logger.warning("Missing vectors wait: {kind}. Trying again.", kind=type(error).__name__)
        self._next_look = time.monotonic() + _VECTORS_PAUSE
        return False

    def _next(self) -> JobRecord | None:
        """Choose the tenant whose last turn is longest ago and who has none now, and its oldest upload."""
        with self._changing:
            self._wake.clear()
            waiting = list(self.folder.waiting())
            telemetry.JOBS_WAITING.set(len(waiting))
            # A longer wait than any pause means that the clock was set back.
            now = time.time()
            due = [record for record in waiting if not now < record.not_before <= now + _LONGEST_PAUSE]
            due = [record for record in due if record.tenant_id not in self._served]
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
            self._keep(replace(record, state="failed", error=_reported(ApiError("internal"))))
            return
        record = replace(record, state="running", attempts=record.attempts + 1, started=time.time())
        if not self._keep(record):
            return  # it was deleted or replaced since it was looked at
        try:
            content = (self.folder.pending / f"{record.id}.bin").read_bytes()
        except FileNotFoundError:
            # Another process that shares the folder ended it at this very moment.
            (self.folder.pending / f"{record.id}.json").unlink(missing_ok=True)
            return

        def listen(stage: str, done: int, total: int) -> None:
            # The tenant does not need to know which process it waits for.
            self._progress[record.id] = (stage.split(maxsplit=1)[0], done, total)
            if self._stopping.is_set() or not self.folder.is_pending(record.id):
                raise _IngestStoppedError("The ingest was stopped.")

        try:
            stream = ByteStream(content, meta={"file_name": record.source})
            [done] = self.library.ingest([stream], tenant_id=record.tenant_id, progress=listen)
            ended = self._ended(record, done)
        except _IngestStoppedError:
            ended = record  # begins again with the next server
        except Exception as error:
            logger.warning("Upload {job} failed: {kind}", job=record.id, kind=type(error).__name__)
            ended = self._failed(record, as_api_error(error))
        finally:
            self._progress.pop(record.id, None)
        if not self._keep(ended):
            # It was deleted while it was ingested.
            with contextlib.suppress(ShiguanError):
                self.library.delete(record.source, tenant_id=record.tenant_id)

    def _ended(self, record: JobRecord, done: IngestedFile) -> JobRecord:
        broken = next((entry["stage"] for entry in done.skipped if "stage" in entry), None)
        if broken is not None:
            failure = ApiError("internal", message=f"The stage `{broken}` failed.", stage=broken)
            return self._failed(record, failure)
        result = {name: value for name, value in asdict(done).items() if name != "file"}
        if done.skipped and not done.sources:
            entry = done.skipped[0]
            error = ApiError("refused", message=f"{entry['cause']}.", next_step=f"{entry['next_step']}.")
            return replace(record, state="failed", result=result, error=_reported(error))
        return replace(record, state="done", result=result, error=None)

    def _failed(self, record: JobRecord, error: ApiError) -> JobRecord:
        """Try again later, unless a newer upload of the source waits or this one has failed too often."""
        if any(other.id > record.id for other in self._waiting(record.tenant_id, record.source)):
            return replace(record, state="superseded")
        pause = min(_FIRST_PAUSE * 2 ** (record.attempts - 1), _LONGEST_PAUSE)
        if error.kind in _LASTING:
            record, pause = replace(record, attempts=record.attempts - 1), _LASTING_PAUSE
        elif record.attempts >= _MOST_ATTEMPTS:
            return replace(record, state="failed", error=_reported(error))
        return replace(record, state="queued", not_before=time.time() + pause, error=_reported(error))

    def _keep(self, record: JobRecord) -> bool:
        """Record how far an upload is, or how it ended; false if it was removed meanwhile."""
        with self._changing:
            if not self.folder.is_pending(record.id):
                return False
            if record.state in ("queued", "running"):
                self.folder.save(record)
                return True
            ended = self.folder.finish(record)
        if ended:
            telemetry.JOBS.labels(record.state).inc()
            for path in sorted(self.folder.finished.glob("*.json"))[:-_KEPT_FINISHED]:
                path.unlink(missing_ok=True)
        return ended


def _reported(error: ApiError) -> dict[str, Any]:
    body: dict[str, Any] = error.body()["error"]
    return {name: body[name] for name in ("type", "stage", "message", "next_step")}
