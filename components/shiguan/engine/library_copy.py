"""Copies passages from one deployment to another and computes their vectors with the other's embedder."""

from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from haystack.document_stores.types import DuplicatePolicy

from shiguan.checking.definition import VECTOR_WRITER
from shiguan.engine.library import Progress
from shiguan.engine.loading import load_pipeline, load_stores, parameter_of, read_definition
from shiguan.errors import RefusedError
from shiguan.tenants import where

KINDS = ("parents", "children")
"""What is copied, in this order: every child that is found must have its parent."""

_SLICE = 1_000
_SIDE_BY_SIDE = 4


class LibraryCopy:
    """Copies all tenants' passages to another deployment, from where an interrupted copy was; deletes nothing."""

    def __init__(self, source: str, target: str, *, data_dir: str | Path | None = None) -> None:
        if source == target:
            raise RefusedError(f"`{source}` cannot be copied to itself. Name two deployments.")
        self.source = _unscoped(source, data_dir)
        self.target = _unscoped(target, data_dir)
        writer: Any = load_pipeline(target, "index", data_dir=data_dir).get_component(VECTOR_WRITER)
        writer.document_store = writer.document_store.unscoped()
        self.vector_writer = writer
        self._embed_alike = _embedder_of(source) == _embedder_of(target)
        self.counts = {kind: Counter(source=self.source[kind].count_documents(), written=0, known=0) for kind in KINDS}

    def slices(self, kind: str) -> int:
        return -(-self.counts[kind]["source"] // _SLICE)

    def copy(self, kind: str) -> Iterator[None]:
        """Copy the passages that the target lacks, several slices in parallel; yields after each slice."""
        pending: deque[Future[dict[str, int]]] = deque()
        pool = ThreadPoolExecutor(_SIDE_BY_SIDE, thread_name_prefix="copy")
        try:
            for ids in self._sliced(kind):
                pending.append(pool.submit(self._copy_slice, kind, ids))
                if len(pending) == 2 * _SIDE_BY_SIDE:
                    self.counts[kind].update(pending.popleft().result())
                    yield
            while pending:
                self.counts[kind].update(pending.popleft().result())
                yield
        finally:
            pool.shutdown(cancel_futures=True)

    def embed(self, progress: Progress | None = None) -> list[str]:
        before, warnings, total = 0, dict[str, None](), self.counts["children"]["source"]

        def report(stage: str, done: int, _: int) -> None:
            if progress is not None:
                progress(stage, before + done, total)

        children, model = self.source["children"], self.vector_writer.model
        reused = self._embed_alike and children.embedder() == model and not self.target["children"].other_vectors(model)
        for ids in self._sliced("children"):
            if reused:
                self._copy_vectors(where("id", "in", ids))
            result = self.vector_writer.complete(where("id", "in", ids), progress=report)
            before += len(ids)
            warnings |= dict.fromkeys(result["warnings"])
            if result["missing"]:
                break
        return list(warnings)

    def compare(self) -> dict[str, Counter[str]]:
        """Check for every passage of the source whether the target has it, and return all counts."""
        for kind, counts in self.counts.items():
            counts["source"] = counts["missing"] = 0
            for ids in self._sliced(kind):
                there = self.target[kind].existing_ids(ids)
                if kind == "children":
                    there = there.difference(self.target[kind].list_ids_without_vector(where("id", "in", ids)))
                counts.update(source=len(ids), missing=len(ids) - len(there))
            counts["target"] = self.target[kind].count_documents()
        return self.counts

    def close(self) -> None:
        for store in (*self.source.values(), *self.target.values()):
            store.close()

    def _copy_vectors(self, of_slice: dict[str, Any]) -> None:
        lacking = self.target["children"].list_ids_without_vector(of_slice)
        if not lacking:
            return
        vectors = self.source["children"].read_vectors(where("id", "in", lacking))
        found = self.target["children"].filter_documents(where("id", "in", list(vectors))) if vectors else []
        documents = [replace(document, embedding=vectors[document.id]) for document in found]
        self.target["children"].write_vectors(documents, model=self.vector_writer.model)

    def _sliced(self, kind: str) -> Iterator[list[str]]:
        ids = self.source[kind].iter_ids()
        while batch := list(islice(ids, _SLICE)):
            yield batch

    def _copy_slice(self, kind: str, ids: list[str]) -> dict[str, int]:
        known = self.target[kind].existing_ids(ids)
        wanted = [document_id for document_id in ids if document_id not in known]
        found = self.source[kind].filter_documents(where("id", "in", wanted)) if wanted else []
        if found:
            documents = [replace(document, embedding=None, score=None) for document in found]
            self.target[kind].write_documents(documents, policy=DuplicatePolicy.OVERWRITE)
        return {"written": len(found), "known": len(known)}


def _embedder_of(deployment: str) -> Any:
    """Return how a deployment's files have passages embedded: with which model, and with which of their fields."""
    return parameter_of(read_definition(deployment, "index", build=False), VECTOR_WRITER, "document_embedder")


def _unscoped(deployment: str, data_dir: str | Path | None) -> dict[str, Any]:
    """Open a deployment's stores for all tenants together."""
    return {kind: store.unscoped() for kind, store in load_stores(deployment, data_dir=data_dir).items()}
