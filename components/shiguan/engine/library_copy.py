"""From one deployment to another: passages as they are, vectors by the other's embedder."""

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from haystack.document_stores.types import DuplicatePolicy

from shiguan.engine.library import Progress
from shiguan.engine.loading import load_pipeline, load_stores
from shiguan.errors import RefusedError

KINDS = ("parents", "children")
"""What is copied, in this order: a child that is found must lead to a parent."""

_BATCH = 256


@dataclass
class CopiedPassages:
    """How far the copy of one kind is."""

    source: int
    written: int = 0
    known: int = 0
    missing: int = 0
    target: int = 0


class LibraryCopy:
    """
    Copies all tenants' passages from one deployment to another.

    Ids say what a passage is, so a copy that was interrupted goes on where it was: what is there is not sent, and not
    embedded, again. Nothing is deleted on either side. Words are copied; vectors are made by the target's embedder,
    which is another one.

        copy = LibraryCopy("embedded", "elasticsearch_qdrant")
        for kind in KINDS:
            for ids in copy.batches(kind):
                copy.copy(kind, ids)
        copy.embed()
        copy.compare()
    """

    def __init__(self, source: str, target: str, *, data_dir: str | Path | None = None) -> None:
        if source == target:
            raise RefusedError(f"`{source}` cannot be copied to itself. Name two deployments.")
        self.source = _unscoped(source, data_dir)
        self.target = _unscoped(target, data_dir)
        # The two know different models, so vectors cannot be taken along.
        writer: Any = load_pipeline(target, "index", data_dir=data_dir).get_component("vector_writer")
        writer.document_store = writer.document_store.unscoped()
        self.vector_writer = writer
        # A server makes what it searches by once, at the end.
        self._loading = ExitStack()
        for store in self.target.values():
            if hasattr(store, "bulk_loading"):
                self._loading.enter_context(store.bulk_loading())
        self._ids: dict[str, list[str]] = {}
        self._done = {kind: CopiedPassages(source=0) for kind in KINDS}

    def batches(self, kind: str) -> list[list[str]]:
        """List what there is to copy."""
        ids = self._all_ids(kind)
        return [ids[start : start + _BATCH] for start in range(0, len(ids), _BATCH)]

    def copy(self, kind: str, ids: list[str]) -> None:
        """Copy passages that the target does not have."""
        known = self.target[kind].existing_ids(ids)
        wanted = [document_id for document_id in ids if document_id not in known]
        documents = [
            replace(document, embedding=None, score=None)
            for document in (self.source[kind].get_documents_by_id(wanted) if wanted else [])
        ]
        if documents:
            self.target[kind].write_documents(documents, policy=DuplicatePolicy.OVERWRITE)
        self._done[kind].written += len(documents)
        self._done[kind].known += len(known)

    def embed(self, progress: Progress | None = None) -> list[str]:
        """Make the vectors that children of the target lack."""
        self._loading.close()
        return list(self.vector_writer.complete(None, progress=progress)["warnings"])

    def compare(self) -> dict[str, CopiedPassages]:
        """Ask the target for every passage of the source."""
        bare = set(self.target["children"].list_ids_without_vector())
        for kind, done in self._done.items():
            ids = self._all_ids(kind)
            done.source = len(ids)
            there = {known for batch in self.batches(kind) for known in self.target[kind].existing_ids(batch)}
            done.missing = len(ids) - len(there - bare if kind == "children" else there)
            done.target = self.target[kind].count_documents()
        return dict(self._done)

    def close(self) -> None:
        """Let go of the stores of both deployments."""
        self._loading.close()
        for stores in (self.source, self.target):
            for store in stores.values():
                store.close()

    def _all_ids(self, kind: str) -> list[str]:
        if kind not in self._ids:
            self._ids[kind] = sorted(self.source[kind].list_ids())
        return self._ids[kind]


def _unscoped(deployment: str, data_dir: str | Path | None) -> dict[str, Any]:
    """Open a deployment's stores for all tenants, whose passages are copied together."""
    return {kind: store.unscoped() for kind, store in load_stores(deployment, data_dir=data_dir).items()}
