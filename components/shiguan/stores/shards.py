"""The data folders that this process has open: one engine for each, shared by all stores that name it."""

import atexit
import contextlib
import json
import os
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from haystack import logging
from qdrant_edge import (
    Distance,
    EdgeConfig,
    EdgeOptimizersConfig,
    EdgeShard,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    KeywordIndexParams,
    Modifier,
    UpdateOperation,
)

from shiguan.errors import StoreError, StoreFormatError, StoreLockedError
from shiguan.stores.points import BM25, DENSE, meta_path

logger = logging.getLogger(__name__)

FORMAT_VERSION = 1
_FORMAT_FILE = "shiguan.json"
_LOCK_FILE = "lock"
_FIRST = "shard-1"
# The first shard until the format file names it.
_CREATING = "creating"


@dataclass(frozen=True)
class ShardFormat:
    """What the data of a folder were written with; everything here is baked into them."""

    embedding_dim: int | None
    similarity: str
    embedding_model: str | None
    bm25: bool
    bm25_k1: float
    bm25_b: float
    bm25_average_length: float
    bm25_fields: list[str]


class Shard:
    """
    One open data folder: the engine, its locks and its format.

    Reads go on beside each other and beside a write; writes follow one another.

    :param folder: The data folder, resolved.
    :param expected: What the caller writes with.
    :param keyword_fields: Meta fields to index, the tenant's first.
    :raises StoreLockedError: If another process has the folder open.
    :raises StoreFormatError: If its data were written with something else.
    """

    def __init__(self, folder: Path, expected: ShardFormat, keyword_fields: list[str]) -> None:
        self.folder = folder
        self.format = expected
        self._writing = threading.RLock()
        self._readers = threading.Condition()
        self._reading = 0
        self._last_order = 0
        self._lock = FileLock(folder / _LOCK_FILE, thread_local=False)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except Timeout:
            raise StoreLockedError(
                f"The data folder `{folder}` is open in another Shiguan process; the embedded store serves one process "
                "at a time. Close the other one, or use the deployment `elasticsearch_qdrant` for several processes."
            ) from None
        except OSError as error:
            raise StoreError(
                f"The data folder `{folder}` cannot be used: {error}. Choose a writable folder with `--data-dir` or "
                "the variable SHIGUAN_DATA_DIR."
            ) from error
        try:
            self._edge: EdgeShard | None = self._open(keyword_fields)
        except BaseException:
            self._lock.release()
            raise

    @contextlib.contextmanager
    def read(self) -> Iterator[EdgeShard]:
        """
        Use the engine for reading.

        :returns: The engine, which stays open inside the block.
        :raises StoreError: If the store has been closed.
        """
        with self._readers:
            edge = self._engine()
            self._reading += 1
        try:
            yield edge
        finally:
            with self._readers:
                self._reading -= 1
                if not self._reading:
                    self._readers.notify_all()

    @contextlib.contextmanager
    def write(self) -> Iterator[EdgeShard]:
        """
        Use the engine for a write, or for reads and writes that belong together.

        What was written is on disk when the block ends.

        :returns: The engine; no other write happens inside the block.
        :raises StoreError: If the store has been closed.
        """
        with self._writing:
            edge = self._engine()
            try:
                yield edge
            finally:
                edge.flush()

    def next_orders(self, count: int) -> range:
        """
        Give numbers to the documents of a write; called inside `write`.

        :param count: How many.
        :returns: Their numbers, higher than all before, also after the clock was set back within this process.
        """
        start = max(self._last_order + 1, time.time_ns())
        self._last_order = start + count
        return range(start, start + count)

    def close(self) -> None:
        """Write everything to disk and free the folder for other processes; safe to call twice and from any thread."""
        with self._writing, self._readers:
            self._readers.wait_for(lambda: not self._reading)
            if self._edge is not None:
                edge, self._edge = self._edge, None
                edge.close()
                self._lock.release()

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._edge is None

    def check_format(self, expected: ShardFormat) -> None:
        """
        Compare the folder's format with the one that a caller writes with.

        :param expected: The caller's.
        :raises StoreFormatError: If they differ; a model name only if both are known.
        """
        found, wanted = asdict(self.format), asdict(expected)
        for name, value in wanted.items():
            if name == "embedding_model" and None in (value, found[name]):
                continue
            if found.get(name) != value:
                raise _mismatch(self.folder, name, found.get(name), value)

    def _engine(self) -> EdgeShard:
        if self._edge is None:
            raise StoreError(f"The store in `{self.folder}` has been closed. Make a new store object to open it again.")
        return self._edge

    def _open(self, keyword_fields: list[str]) -> EdgeShard:
        expected = self.format
        record = _read_format(self.folder)
        if record is None:
            record = self._create()
        if record.get("format_version") != FORMAT_VERSION:
            raise _mismatch(self.folder, "format_version", record.get("format_version"), FORMAT_VERSION)
        try:
            self.format = ShardFormat(**record["format"])
        except (KeyError, TypeError) as error:
            known = sorted(asdict(expected))
            raise _mismatch(self.folder, "format", sorted(record.get("format", {})), known) from error
        self.check_format(expected)
        if expected.embedding_model and not self.format.embedding_model:
            self.format = expected
            _write_json(self.folder / _FORMAT_FILE, record | {"format": asdict(expected)})
        edge = self._load(self.folder / record["shard"])
        for position, field in enumerate(keyword_fields):
            params = KeywordIndexParams(is_tenant=True) if position == 0 else KeywordIndexParams()
            edge.update(UpdateOperation.create_field_index(meta_path(field), params))
        return edge

    def _create(self) -> dict[str, Any]:
        """Make an empty shard aside. The format file comes when it is whole, and the opener puts it in its place."""
        if any(path.name.startswith("shard-") for path in self.folder.iterdir()):
            raise StoreFormatError(
                f"The data folder `{self.folder}` has data but no `{_FORMAT_FILE}`, so their format is unknown. "
                "Put the file back, or ingest again into another folder."
            )
        shutil.rmtree(self.folder / _CREATING, ignore_errors=True)
        EdgeShard.create(str(self.folder / _CREATING), engine_config(self.format)).close()
        record = {"format_version": FORMAT_VERSION, "shard": _FIRST, "format": asdict(self.format)}
        _write_json(self.folder / _FORMAT_FILE, record)
        return record

    def _load(self, path: Path) -> EdgeShard:
        if not path.exists() and (self.folder / _CREATING).exists():
            (self.folder / _CREATING).rename(path)
        try:
            return EdgeShard.load(str(path))
        except Exception as error:  # the engine raises nothing more special
            raise StoreError(
                f"The data in `{path}` cannot be opened: {error}. Move the folder away and ingest again."
            ) from error


def engine_config(form: ShardFormat) -> EdgeConfig:
    """
    Give the engine's configuration for a format.

    :param form: The format.
    :returns: The configuration.
    """
    # Vectors are stored as they were given or normalised by us, so the dot product is the cosine, and the engine keeps
    # the given numbers.
    vectors = {DENSE: EdgeVectorParams(size=form.embedding_dim, distance=Distance.Dot)} if form.embedding_dim else None
    return EdgeConfig(
        vectors=vectors,
        # The engine wants at least one kind of vector; a store without any leaves this one empty.
        sparse_vectors={BM25: EdgeSparseVectorParams(modifier=Modifier.Idf)},
        optimizers=EdgeOptimizersConfig(default_segment_number=1),
        # One query takes less than a millisecond; spreading it over threads costs three times its CPU.
        max_search_threads=1,
    )


_open_shards: dict[Path, Shard] = {}
_opening = threading.Lock()


def open_shard(folder: Path, expected: ShardFormat, keyword_fields: list[str]) -> Shard:
    """
    Give the process's engine for a folder, opening it if it is not open yet.

    :param folder: The data folder.
    :param expected: What the caller writes with.
    :param keyword_fields: Meta fields to index, the tenant's first.
    :returns: The engine, the same one for every caller that names the folder.
    :raises StoreLockedError: If another process has the folder open.
    :raises StoreFormatError: If its data were written with something else.
    """
    folder = folder.resolve()
    with _opening:
        shard = _open_shards.get(folder)
        if shard is None or shard.closed:
            shard = _open_shards[folder] = Shard(folder, expected, keyword_fields)
        else:
            shard.check_format(expected)
        return shard


@atexit.register
def close_all_shards() -> None:
    """Close every open folder; called at the end of the process."""
    with _opening:
        while _open_shards:
            _open_shards.popitem()[1].close()


def _forget_after_fork() -> None:
    # The engine's threads do not survive a fork. A child that uses the store opens it itself, and is told that its
    # parent has it open.
    global _opening  # noqa: PLW0603
    _abandoned.extend(_open_shards.values())
    _open_shards.clear()
    _opening = threading.Lock()


_abandoned: list[Shard] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)


def _read_format(folder: Path) -> dict[str, Any] | None:
    try:
        record = json.loads((folder / _FORMAT_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise StoreFormatError(
            f"`{folder / _FORMAT_FILE}` is damaged: {error}. Put a copy back, or ingest again into another folder."
        ) from error
    if not isinstance(record, dict):
        raise _mismatch(folder, "format file", type(record).__name__, "object")
    return record


def _write_json(path: Path, record: dict[str, Any]) -> None:
    aside = path.with_suffix(".tmp")
    with aside.open("w", encoding="utf-8") as file:
        json.dump(record, file, ensure_ascii=False, indent=2)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)


def _mismatch(folder: Path, name: str, found: object, expected: object) -> StoreFormatError:
    return StoreFormatError(
        f"The data in `{folder}` were written with {name} {found!r}, but {expected!r} was expected. "
        "Ingest again into another folder, or use the settings that they were written with."
    )
