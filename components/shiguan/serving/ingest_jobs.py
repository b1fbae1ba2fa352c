"""Puts uploads into the library in the background, of each tenant one at a time."""

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock, Timeout
from haystack import logging
from haystack.dataclasses import ByteStream

from shiguan.engine.library import IngestedFile, Library
from shiguan.engine.loading import load_pipeline
from shiguan.errors import ConfigurationError, ShiguanError, StoreFullError, StoreLockedError
from shiguan.serving import telemetry
from shiguan.serving.error_replies import ApiError, as_api_error
from shiguan.serving.job_folder import JobFolder, JobRecord
from shiguan.tenants import of_tenant, where

logger = logging.getLogger(__name__)

_MOST_ATTEMPTS = 8
_FIRST_PAUSE = 5.0
_LONGEST_PAUSE = 300.0
# What is no fault of the upload is waited for as long as it lasts.
_LASTING = frozenset({"storage_full", "store_unavailable"})
_LASTING_PAUSE = 10.0
# How often a process looks for uploads that another one took on in the same folder.
_LOOK_SECONDS = 2.0
# How often a server that has nothing to do looks whether vectors are missing.
_VECTORS_PAUSE = 30.0
# How many it makes before it looks again; some seconds.
_VECTORS = 256
# How many tenants' uploads go in side by side: a book that takes an hour holds no other tenant up.
_WORKERS = 2
# A batch of passages is embedded within it. A thread that is still in the model when the interpreter ends would abort
# the process.
_STOP_SECONDS = 5.0


class _IngestStoppedError(ShiguanError):
    """The server shuts down, or the upload was deleted while it went in."""


class IngestJobs:
    """
    The queue of uploads of one server: of each tenant one at a time, of two tenants side by side.

    An upload is on disk when it is acknowledged and leaves the queue only when it is in the library or cannot ever be:
    whoever follows a process that died begins it again, which changes nothing that is in already. While a store is down
    or a disk full they wait; where a stage fails, they are tried again after growing pauses and at last given up. Of
    several processes that share the folder one works, and the others take over should it end.
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
        self._choosing = threading.Lock()
        self._turns: dict[str, float] = {}
        self._served: set[str] = set()
        self._next_look = 0.0
        self._vector_writer: Any = None

    def start(self) -> None:
        self.folder.prepare()
        # A daemon: a library that hangs must not keep the server from ending. What it had not finished stays queued.
        self._thread = threading.Thread(target=self._work, name="ingest", daemon=True)
        self._thread.start()

    def check(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            raise ConfigurationError("The ingest of uploads does not run.")

    def stop(self) -> None:
        """End the work at its next step; what is unfinished begins again with the next server."""
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(_STOP_SECONDS)

    def submit(self, tenant_id: str, source: str, content: BinaryIO) -> JobRecord:
        waiting = sum(record.tenant_id == tenant_id for record in self.folder.waiting())
        if waiting >= self.max_pending:
            raise ApiError(
                "too_many_requests",
                message=f"{waiting} uploads of this tenant wait to be ingested, the limit.",
                headers={"Retry-After": "30"},
            )
        try:
            record = self.folder.add(tenant_id, source, content)
        except (OSError, StoreFullError) as error:
            raise as_api_error(error) from error
        for earlier in self._waiting(tenant_id, source):
            if earlier.id < record.id and earlier.state == "queued":
                self._finish(replace(earlier, state="superseded"))
        self._wake.set()
        return record

    def cancel(self, tenant_id: str, source: str) -> int:
        """Take out of the queue what is to be deleted; an ingest that is at work on it ends at its next step."""
        return sum(self._finish(replace(one, state="cancelled")) for one in self._waiting(tenant_id, source))

    def _waiting(self, tenant_id: str, source: str) -> list[JobRecord]:
        return [one for one in self.folder.waiting() if (one.tenant_id, one.source) == (tenant_id, source)]

    def find(self, tenant_id: str, job_id: str) -> dict[str, Any] | None:
        record = self.folder.find(job_id)
        if record is None or record.tenant_id != tenant_id:
            return None
        return self.shown(record)

    def shown(self, record: JobRecord) -> dict[str, Any]:
        stage, done, total = self._progress.get(record.id, (None, 0, 0))
        shown = {"id": record.id, "source": record.source, "state": record.state, "bytes": record.size}
        shown |= {name: getattr(record, name) for name in ("submitted", "started", "finished", "attempts")}
        progress = {"stage": stage, "done": done, "total": total}
        return {**shown, "progress": progress, "result": record.result, "error": record.error}

    def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                with self._lock.acquire(timeout=_LOOK_SECONDS):
                    # Daemons, as this thread is.
                    others = [threading.Thread(target=self._serve, daemon=True) for _ in range(_WORKERS - 1)]
                    for other in others:
                        other.start()
                    self._serve(self._make_vectors)
                    for other in others:
                        other.join(_STOP_SECONDS)
            except Timeout:
                continue

    def _serve(self, otherwise: Callable[[], bool] = bool) -> None:
        """Work on one tenant's upload after the other, and at something else between, until the server stops."""
        while not self._stopping.is_set():
            record = None
            try:
                record = self._next()
                if record is not None:
                    self._ingest(record)
                elif not otherwise():
                    self._wake.wait(_LOOK_SECONDS)
            except Exception as error:
                # A full disk may refuse even the record of a failure; the queue outlives that.
                logger.error("Uploads wait: {kind}. Trying again.", kind=type(error).__name__)
                self._stopping.wait(_LOOK_SECONDS)
            finally:
                if record is not None:
                    self._served.discard(record.tenant_id)
                    self._wake.set()

    def _make_vectors(self) -> bool:
        """Make some of the vectors that an interrupted ingest left to be made; false where there is nothing to do."""
        if time.monotonic() < self._next_look:
            return False
        try:
            if self._make_slice():
                return True
            self._vector_writer = None
        except _IngestStoppedError:
            return True
        except Exception as error:
            logger.warning("Missing vectors wait: {kind}. Trying again.", kind=type(error).__name__)
        self._next_look = time.monotonic() + _VECTORS_PAUSE
        return False

    def _make_slice(self) -> bool:
        library, children, parents = self.library, *(self.library.stores[kind] for kind in ("children", "parents"))
        if not hasattr(parents, "turn"):  # several servers would make the same ones
            return False

        def listen(*_: object) -> None:
            if self._stopping.is_set() or self._wake.is_set():
                raise _IngestStoppedError("There is an upload to take in first.")

        for file_id, (words, vectors) in children.unscoped().count_by_file().items():
            of_file = where("meta.file_id", "==", file_id)
            if vectors == words or not (found := parents.unscoped().list_meta(of_file, ["tenant_id", "source"])):
                continue
            if self._vector_writer is None:
                pipeline = load_pipeline(library.deployment, library.index, data_dir=library.data_dir)
                self._vector_writer = pipeline.get_component("vector_writer")
            tenant_id, name = found[0]["tenant_id"], Path(found[0]["source"]).name
            # Whoever writes the file makes its vectors.
            with contextlib.suppress(StoreLockedError), parents.turn(tenant_id, name):
                wanted = of_tenant(tenant_id, of_file)
                return bool(self._vector_writer.complete(wanted, most=_VECTORS, progress=listen)["written"])
        return False

    def _next(self) -> JobRecord | None:
        """Choose of the tenants that are not served the one whose turn is longest ago, and of it what came first."""
        with self._choosing:
            self._wake.clear()
            waiting = list(self.folder.waiting())
            telemetry.JOBS_WAITING.set(len(waiting))
            # A wait that is longer than any pause is one for a clock that was set back.
            now, longest = time.time(), max(_LONGEST_PAUSE, _LASTING_PAUSE)
            due = [
                one
                for one in waiting
                if not now < one.not_before <= now + longest and one.tenant_id not in self._served
            ]
            if not due:
                return None
            record = min(due, key=lambda record: (self._turns.get(record.tenant_id, 0.0), record.id))
            self._turns = {name: turn for name, turn in self._turns.items() if name in {r.tenant_id for r in waiting}}
            self._turns[record.tenant_id] = time.monotonic()
            self._served.add(record.tenant_id)
            return record

    def _ingest(self, record: JobRecord) -> None:
        if record.attempts >= _MOST_ATTEMPTS:
            # It ended the process each time, or nobody could write down how it ended.
            self._finish(replace(record, state="failed", error=_told(ApiError("internal"))))
            return
        record = replace(record, state="running", attempts=record.attempts + 1, started=time.time())
        with self._changing:
            # It may have been deleted or replaced since it was looked at.
            if not self.folder.is_pending(record.id):
                return
            self.folder.save(record)
        try:
            content = self.folder.content(record.id)
        except FileNotFoundError:
            # Another process that shares the folder ended it at this very moment.
            self.folder.forget(record.id)
            return
        try:
            stream = ByteStream(content, meta={"file_name": record.source})
            [done] = self.library.ingest([stream], tenant_id=record.tenant_id, progress=self._listener(record.id))
        except _IngestStoppedError:
            self._after_stop(record)
        except Exception as error:
            logger.warning("Upload {job} failed: {kind}", job=record.id, kind=type(error).__name__)
            self._again(record, as_api_error(error))
        else:
            self._conclude(record, done)
        finally:
            self._progress.pop(record.id, None)

    def _conclude(self, record: JobRecord, done: IngestedFile) -> None:
        broken = next((entry["stage"] for entry in done.skipped if "stage" in entry), None)
        if broken is not None:
            self._again(record, ApiError("internal", message=f"The stage `{broken}` failed.", stage=broken))
            return
        result = {name: value for name, value in asdict(done).items() if name != "file"}
        state, error = "done", None
        if done.skipped and not done.sources:
            entry = done.skipped[0]
            told = ApiError("refused", message=f"{entry['cause']}.", next_step=f"{entry['next_step']}.")
            state, error = "failed", _told(told)
        if not self._finish(replace(record, state=state, result=result, error=error)):
            self._after_stop(record)

    def _again(self, record: JobRecord, error: ApiError) -> None:
        if any(other.id > record.id for other in self._waiting(record.tenant_id, record.source)):
            self._finish(replace(record, state="superseded"))
        elif error.kind in _LASTING:
            self._queue_again(replace(record, attempts=record.attempts - 1), _LASTING_PAUSE, error)
        elif record.attempts >= _MOST_ATTEMPTS:
            self._finish(replace(record, state="failed", error=_told(error)))
        else:
            self._queue_again(record, min(_FIRST_PAUSE * 2 ** (record.attempts - 1), _LONGEST_PAUSE), error)

    def _queue_again(self, record: JobRecord, pause: float, error: ApiError) -> None:
        with self._changing:
            if self.folder.is_pending(record.id):
                self.folder.save(replace(record, state="queued", not_before=time.time() + pause, error=_told(error)))

    def _after_stop(self, record: JobRecord) -> None:
        """Finish a deletion that came while its source went in."""
        if not self.folder.is_pending(record.id):
            with contextlib.suppress(ShiguanError):
                self.library.delete(record.source, tenant_id=record.tenant_id)

    def _finish(self, record: JobRecord) -> bool:
        with self._changing:
            ended = self.folder.is_pending(record.id) and self.folder.finish(record)
        if ended:
            telemetry.JOBS.labels(record.state).inc()
            self.folder.prune()
        return ended

    def _listener(self, job_id: str) -> Any:
        def listen(stage: str, done: int, total: int) -> None:
            # Which process it waits for is none of the tenant's business.
            self._progress[job_id] = (stage.split(maxsplit=1)[0], done, total)
            if self._stopping.is_set() or not self.folder.is_pending(job_id):
                raise _IngestStoppedError("The ingest was stopped.")

        return listen


def _told(error: ApiError) -> dict[str, Any]:
    body: dict[str, Any] = error.body()["error"]
    return {name: body[name] for name in ("type", "stage", "message", "next_step")}
