"""The open data folders of this process: one engine for each, shared by all stores that name it."""

import atexit
import contextlib
import os
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from haystack import logging
from qdrant_edge import EdgeShard, Filter, UpdateOperation

from shiguan.errors import StoreError, StoreFormatError, StoreLockedError
from shiguan.resources import FOR_DELETING, FOR_OPENING, FOR_WRITING, check_free_space, private_files, write_json
from shiguan.stores import is_model, other_vectors
from shiguan.stores.embedded import quantizing
from shiguan.stores.embedded.points import (
    DENSE,
    FORMAT_FILE,
    FORMAT_VERSION,
    ShardFormat,
    checksums,
    damaged,
    mismatch,
    read_record,
    release_index_files,
    torn,
)
from shiguan.stores.embedded.reading import count_vectors
from shiguan.stores.embedded.sharing import OPENING_SECONDS, EngineClient, EngineServer, connect, described, read_owner

logger = logging.getLogger(__name__)

EXACT_BELOW = 20_000  # documents whose vectors are compared by all of their numbers at once
_LOCK_FILE = "lock"
# The first shard until the format file names it.
_CREATING = "creating"
# A copy whose vectors are being quantized.
_BUILDING = "building"


class Shard:
    """One open data folder. Reads run beside each other and beside a write; writes run one after another."""

    def __init__(self, folder: Path, expected: ShardFormat) -> None:
        self.folder = folder
        self.counts: dict[str, Any] = {}
        self._record: dict[str, Any] = {}
        self.closed = False  # or no longer to be used, in a forked child
        self._quantizing: subprocess.Popen[bytes] | None = None
        self._may_quantize = True
        self.format = expected
        self._writing = threading.RLock()
        self._readers = threading.Condition()
        self._reading = Counter[EdgeShard]()  # a replaced engine still has its last readers
        self._last_order = 0
        self.server: EngineServer | None = None
        self._lock = FileLock(folder / _LOCK_FILE, mode=0o600, thread_local=False)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o700)
            self._lock.acquire(timeout=0)
        except Timeout:
            raise StoreLockedError(
                f"The data folder `{folder}` is open in {described(read_owner(folder))}, which cannot be reached from "
                "here. End it, run both on one machine, or use the deployment `elasticsearch_qdrant`."
            ) from None
        except OSError as error:
            raise StoreError(
                f"The data folder `{folder}` cannot be used: {error}. Choose a writable folder with `--data-dir` or "
                "the variable SHIGUAN_DATA_DIR."
            ) from error
        try:
            check_free_space(folder, FOR_OPENING)
            with private_files():
                self._edge: EdgeShard | None = self._open()
        except BaseException:
            self._lock.release()
            raise

    @contextlib.contextmanager
    def read(self) -> Iterator[EdgeShard]:
        """Provide the engine for reading; it stays open inside the block."""
        with self._readers:
            edge = self._engine()
            self._reading[edge] += 1
        try:
            with self._telling_of_damage():
                yield edge
        finally:
            with self._readers:
                self._reading -= Counter((edge,))  # at none it is gone from there
                self._readers.notify_all()

    @contextlib.contextmanager
    def write(self) -> Iterator[EdgeShard]:
        """Provide the engine for a write, which is on disk when the block ends; no other write happens inside it."""
        with self._telling_of_damage(), self._writing, private_files():
            try:
                yield self._engine()
                self._flush()
                # It costs as much as all points, so it waits for half as many new ones.
                if self._unquantized() > max(EXACT_BELOW, self._record.get("quantized_points", 0) // 2):
                    self._quantize()
            except BaseException as error:
                # On a full disk this fails too; the error of the write is the one to report.
                with contextlib.suppress(Exception):
                    self._flush()
                if type(error) is not Exception and not isinstance(error, OSError):
                    raise
                # The engine has no exceptions of its own.
                raise StoreError(
                    f"The data folder `{self.folder}` could not be written: {error}. What was in the library stays. "
                    "See that its disk has room and that the folder may be written, then run the same again."
                ) from error
            finally:
                # A reader that counts at this moment keeps its number in the old dictionary.
                self.counts = {}

    def _flush(self) -> None:
        if self._edge is not None:
            self._edge.flush()

    def update(self, edge: EdgeShard, change: UpdateOperation, vectors: int) -> None:
        """Write points or only vectors, unless the disk is almost full; called inside `write`."""
        check_free_space(self.folder)
        edge.update(change)
        self._record["written_since"] = self._unquantized() + vectors

    def claim_vectors(self, edge: EdgeShard, model: str | None) -> None:
        """Refuse vectors of another embedder than the stored ones, else record the embedder; called inside `write`."""
        if model is None or is_model(self.format.embedding_model, model):
            return
        if count_vectors(edge):
            raise StoreFormatError(other_vectors(self.folder, self.format.embedding_model, model))
        self._save_model(model)

    def drop_vectors(self) -> None:
        """Delete all vectors, so that another embedder's can be written; words stay."""
        with self.write() as edge:
            edge.update(UpdateOperation.delete_vectors_by_filter(Filter(), [DENSE]))
            self._record |= {"written_since": 0, "quantized_points": 0}
            self._save_model(None)

    def _save_model(self, model: str | None) -> None:
        self.format = replace(self.format, embedding_model=model)
        self._record["format"] = asdict(self.format)
        self._save_record()

    def delete(self, edge: EdgeShard, point_ids: list[str]) -> None:
        """Delete points, unless there is no room to record that; called inside `write`."""
        check_free_space(self.folder, FOR_DELETING)
        edge.update(UpdateOperation.delete_points([*point_ids]))

    def next_orders(self, count: int) -> range:
        """Return numbers for the documents of a write, above all earlier ones; called inside `write`."""
        start = max(self._last_order + 1, time.time_ns())
        self._last_order = start + count
        return range(start, start + count)

    def close(self) -> None:
        """Write everything to disk and free the folder for other processes; safe to call twice and from any thread."""
        self._may_quantize = False
        if (process := self._quantizing) is not None:
            process.kill()
        server, self.server = self.server, None
        if server is not None:
            server.close()
        with self._telling_of_damage(), self._writing, self._readers, private_files():
            if (edge := self._edge) is not None:
                self._edge, self.closed = None, True
                self._readers.wait_for(lambda: edge not in self._reading)
                edge.close()
                with contextlib.suppress(OSError):  # a deleted folder, a full disk: the next opening checks less
                    self._record["checksums"] = checksums(self.folder / self._record["shard"])
                    self._save_record()
                self._lock.release()

    def _unquantized(self) -> int:
        """Count the vectors that were written since all were quantized."""
        return int(self._record.get("written_since", 0))

    def _quantize(self) -> None:
        """Have a process quantize a copy while searches go on, and swap that in; a kill leaves the old shard in use."""
        if not self._may_quantize:
            return
        building = self.folder / _BUILDING
        try:
            self._swap(self._quantized_copy(building))
        except Exception as error:
            # A store without it is slower but correct. What failed once would fail again at every write.
            if self._may_quantize:
                logger.warning("The vectors stay as they are and searches take longer: {error}", error=str(error))
            self._may_quantize = False
        finally:
            shutil.rmtree(building, ignore_errors=True)

    def _quantized_copy(self, building: Path) -> Path:
        current = self.folder / self._record["shard"]
        self._flush()
        size = sum(path.stat().st_size for path in current.rglob("*") if path.is_file())
        check_free_space(self.folder, FOR_WRITING + 2 * size)
        shutil.rmtree(building, ignore_errors=True)
        shutil.copytree(current, building)
        process = self._quantizing = quantizing.start(building, self.format.embedding_dim or 0)
        try:
            if not self._may_quantize:  # closed just now, before it could be killed
                process.kill()
            _, errors = process.communicate()
        finally:
            self._quantizing = None
            process.kill()
        if process.returncode:
            said = errors.decode(errors="replace").strip()[-500:]
            raise RuntimeError(said or f"exit code {process.returncode}")
        number = int(current.name.rpartition("-")[2]) + 1
        return building.rename(self.folder / f"shard-{number}")

    def _swap(self, path: Path) -> None:
        """Replace this shard with another; called inside `write`."""
        edge = EdgeShard.load(str(path))
        old_edge, old_path = self._engine(), self.folder / self._record["shard"]
        self._record |= {"shard": path.name, "quantized_points": count_vectors(edge), "written_since": 0}
        self._save_record()
        with self._readers:
            self._edge = edge  # whoever comes now reads there, so that the last of the old one's readers is soon gone
            self._readers.wait_for(lambda: old_edge not in self._reading)
        old_edge.close()
        shutil.rmtree(old_path, ignore_errors=True)

    def _save_record(self) -> None:
        """Write the format file; a kill leaves the old or the new one."""
        write_json(self.folder / FORMAT_FILE, self._record, mode=0o600)

    @property
    def quantized(self) -> bool:
        """Whether most vectors are quantized."""
        return bool(self._record.get("quantized_points"))

    def check_format(self, expected: ShardFormat) -> None:
        """Compare the folder's format with the one that a caller writes with."""
        found, wanted = asdict(self.format), asdict(expected)
        for name, value in wanted.items():
            if name != "embedding_model" and found.get(name) != value:
                raise mismatch(self.folder, name, found.get(name), value)

    def _engine(self) -> EdgeShard:
        if self._edge is None:
            raise StoreError(f"The store in `{self.folder}` has been closed. Make a new store object to open it again.")
        return self._edge

    def _open(self) -> EdgeShard:
        expected = self.format
        found = read_record(self.folder)
        record = self._record = self._create() if found is None else found
        if record.get("format_version") != FORMAT_VERSION:
            raise mismatch(self.folder, "format_version", record.get("format_version"), FORMAT_VERSION)
        try:
            self.format = ShardFormat(**record["format"])
        except (KeyError, TypeError) as error:
            raise mismatch(self.folder, "format", sorted(record.get("format", {})), sorted(asdict(expected))) from error
        self.check_format(expected)
        for path in self.folder.iterdir():  # what a kill has left over
            if path.name == _BUILDING or (path.name.startswith("shard-") and path.name != record["shard"]):
                shutil.rmtree(path, ignore_errors=True)
        edge = self._load(self.folder / record["shard"])
        # The file counts what was written until the last orderly close; a kill may have lost some of it.
        outside = count_vectors(edge) - int(record.get("quantized_points", 0))
        record["written_since"] = max(outside, record.get("written_since", 0))
        for operation in expected.field_indexes():
            edge.update(operation)
        release_index_files(self.folder)
        return edge

    def _create(self) -> dict[str, Any]:
        """Make an empty shard aside. The format file follows when it is whole, and `_load` moves it into place."""
        if any(path.name.startswith("shard-") for path in self.folder.iterdir()):
            raise StoreFormatError(
                f"The data folder `{self.folder}` has data but no `{FORMAT_FILE}`, so their format is unknown. "
                "Put the file back, or ingest again into another folder."
            )
        # The engine's first files are mapped into memory as well.
        check_free_space(self.folder)
        shutil.rmtree(self.folder / _CREATING, ignore_errors=True)
        EdgeShard.create(str(self.folder / _CREATING), self.format.engine_config()).close()
        # The embedder is written down with its first vectors.
        self.format = replace(self.format, embedding_model=None)
        self._record = {"format_version": FORMAT_VERSION, "shard": "shard-1", "format": asdict(self.format)}
        self._save_record()
        return self._record

    @contextlib.contextmanager
    def _telling_of_damage(self, opening: Path | None = None) -> Iterator[None]:
        """Turn the engine's errors about its files into a sentence; while it opens them, all of its errors."""
        try:
            yield
        except BaseException as error:  # a panic comes beside `Exception`
            known = str(error).startswith(_OF_FILES) or (opening is not None and isinstance(error, Exception))
            if not known and type(error).__name__ != "PanicException":
                raise
            raise damaged(opening or self.folder / self._record["shard"], error) from error

    def _load(self, path: Path) -> EdgeShard:
        if not path.exists() and (self.folder / _CREATING).exists():
            (self.folder / _CREATING).rename(path)
        if (closed_with := self._record.pop("checksums", None)) is not None:
            if checksums(path) != closed_with:
                raise damaged(path, "the files that list its documents are not those of when it was last closed")
            # Loading updates these files; a process that is killed from here on leaves no checksums to compare.
            self._save_record()
        if (short := torn(path)) is not None:
            raise damaged(path, f"`{short}` is cut off")
        with self._telling_of_damage(path):
            return EdgeShard.load(str(path))


_OF_FILES = "Service runtime error: "
_open_shards: dict[Path, Shard | EngineClient] = {}
_opening = threading.Lock()


def open_shard(folder: Path, expected: ShardFormat, answer: Any) -> Shard | EngineClient:
    """Return the engine for a folder, opened if it is not open yet, or the connection to another process's."""
    folder = folder.resolve()
    with _opening:
        shard = _open_shards.get(folder)
        if shard is None or shard.closed:
            shard = _open_shards[folder] = _open_or_connect(folder, answer, expected)
        elif isinstance(shard, Shard):
            shard.check_format(expected)
        return shard


def _open_or_connect(folder: Path, answer: Callable[..., Any], expected: ShardFormat) -> Shard | EngineClient:
    deadline = time.monotonic() + OPENING_SECONDS
    while True:
        try:
            shard = Shard(folder, expected)
        except StoreLockedError:
            # Its process may be opening or closing it at this moment.
            client = connect(folder)
            if client is not None:
                return client
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
            continue
        try:
            shard.server = EngineServer(folder, partial(answer, shard))
        except OSError as error:
            logger.debug("Other processes cannot reach {folder}: {error}", folder=str(folder), error=str(error))
        return shard


@atexit.register
def close_all_shards() -> None:
    """Close every open folder; called at the end of the process."""
    with _opening:
        while _open_shards:
            _open_shards.popitem()[1].close()


def _forget_after_fork() -> None:
    # The engine's threads do not survive a fork. A child uses the store through its parent, like any other process.
    global _opening  # noqa: PLW0603
    for shard in _open_shards.values():
        if isinstance(shard, Shard):
            shard.closed = True
            if shard.server is not None:
                shard.server.abandon()
    _abandoned.extend(_open_shards.values())
    _open_shards.clear()
    _opening = threading.Lock()


_abandoned: list[Shard | EngineClient] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
