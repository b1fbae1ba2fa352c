"""Quantize the vectors of a store beside its searches, and swap the result in when it is done."""

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from haystack import logging
from qdrant_edge import EdgeShard, Point, UpdateOperation

from shiguan.stores.embedded import index_process
from shiguan.stores.embedded.points import BM25, DENSE

if TYPE_CHECKING:
    from shiguan.stores.embedded.shards import Shard

logger = logging.getLogger(__name__)

BUILDING = "building"
"""The folder of an unfinished index."""

_BATCH = 256
# Fewer changes than this are carried over while writers wait; about 0.1 seconds.
_FEW = 1000


class IndexBuilder:
    """
    One build: copies the shard, lets another process index the copy, carries over what was written meanwhile, swaps.

    The engine's own `optimize` blocks the interpreter until it is done, minutes for a large store, so a thread cannot
    run it beside searches; a process can. A kill at any moment leaves the old shard in use.
    """

    def __init__(self, shard: "Shard", dimensions: int) -> None:
        self._shard = shard
        self._dimensions = dimensions
        self._changed: set[str] = set()
        self._stopped = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._starting = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="shiguan-index", daemon=True)
        self.failed = False

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def note(self, point_ids: list[str]) -> None:
        """Record a write; called with the store's write lock held."""
        self._changed.update(point_ids)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Give up and wait until nothing of the build runs any more; the write lock must not be held."""
        with self._starting:
            self._stopped.set()
            if self._process is not None and self._process.poll() is None:
                self._process.kill()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        building = self._shard.folder / BUILDING
        try:
            shutil.rmtree(building, ignore_errors=True)
            points = self._shard.copy_to(building)
            if self._index(building):
                self._replace(building, points)
        except Exception as error:
            # A store without it is slower but correct, so a failure must not reach anything else.
            self.failed = True
            if not self._stopped.is_set():
                logger.warning("The vectors stay as they are and searches take longer: {error}", error=str(error))
        finally:
            shutil.rmtree(building, ignore_errors=True)
            self._shard.builder_ended(self)

    def _index(self, building: Path) -> bool:
        with self._starting:
            if self._stopped.is_set():
                return False
            path = os.pathsep.join(entry for entry in sys.path if entry)
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-P", index_process.__file__, str(building), str(self._dimensions)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": path},
            )
        _, errors = self._process.communicate()
        if self._stopped.is_set():
            return False
        if self._process.returncode:
            raise RuntimeError(
                errors.decode(errors="replace").strip()[-500:] or f"exit code {self._process.returncode}"
            )
        return True

    def _replace(self, building: Path, points: int) -> None:
        target = self._shard.next_shard_folder()
        shutil.rmtree(target, ignore_errors=True)
        building.rename(target)
        edge = EdgeShard.load(str(target))
        swapped = False
        try:
            while not (swapped or self._stopped.is_set()):
                with self._shard.write():
                    changed, self._changed = self._changed, set()
                    if len(changed) <= _FEW:
                        self._carry_over(changed, edge)
                        self._shard.swap(edge, target, points)
                        swapped = True
                if not swapped:
                    self._carry_over(changed, edge)
        finally:
            if not swapped:
                edge.close()

    def _carry_over(self, changed: set[str], edge: EdgeShard) -> None:
        ids = list(changed)
        for start in range(0, len(ids), _BATCH):
            batch = ids[start : start + _BATCH]
            with self._shard.read() as current:
                records = current.retrieve([*batch], with_payload=True, with_vector=[DENSE, BM25])
            present = {str(record.id) for record in records}
            moved = [Point(record.id, record.vector or {}, record.payload) for record in records]
            if moved:
                edge.update(UpdateOperation.upsert_points(moved))
            gone = [point_id for point_id in batch if point_id not in present]
            if gone:
                edge.update(UpdateOperation.delete_points([*gone]))
