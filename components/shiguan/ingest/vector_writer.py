"""Embeds the children in the store, slice by slice."""

from collections.abc import Callable
from itertools import islice
from typing import Any

from haystack import Document, component
from haystack.components.embedders.types import DocumentEmbedder

from shiguan.errors import ModelMissingError
from shiguan.llm.calls import warm_up_generator
from shiguan.serialization import Serializable
from shiguan.tenants import all_of, where

# How many children are in memory with their vectors, which is all that a killed process can lose.
_SLICE = 256
# The progress is reported before each batch, and the callback may stop the work.
_BATCH = 16

Progress = Callable[[str, int, int], None]


@component
class VectorWriter(Serializable):
    """
    Embeds the children that have no vector yet and writes their vectors, 256 at a time.

    It comes after `PassageWriter`, which alone sends what it takes: words are written and searchable, and the passages
    of older versions are gone, before the first vector is made. The store, and not this run, decides what is to be
    embedded, so work that an earlier run left undone is done too, and nothing is embedded twice. Each slice is safe
    once it is written: a killed process loses only the current one.

    The embedder is loaded when there is something to embed. If its weights are not available, children stay without
    vectors and are found by their words, with a warning. If the store has vectors of another embedder, these are
    neither mixed with new ones nor deleted unless `replace_others` asks for it.
    """

    tenant_role = "writes"

    def __init__(self, document_embedder: DocumentEmbedder, *, document_store: Any) -> None:
        """
        Set the embedder and the store.

        :param document_embedder: Any document embedder component.
        :param document_store: Where the children are: a store in which documents may wait for their vectors. One that
            lists those that wait from a random place on lets several processes share the work.
        """
        self.document_embedder = document_embedder
        self.document_store = document_store

    @component.output_types(written=int, missing=int, warnings=list[str])
    def run(self, files: list[dict[str, Any]], progress: Progress | None = None) -> dict[str, Any]:
        """
        Make and write the vectors that this run's files lack.

        :param files: Filters for this run's files, from `PassageWriter`.
        :param progress: A function called with `"vectors"`, how many are done, and of how many. If it raises, the work
            ends after the slices that are done.
        :returns: `written`, how many vectors; `missing`, how many children of these files still have none; `warnings`.
        """
        done = [self.complete(of_files, progress=progress) for of_files in files]
        return {
            "written": sum(each["written"] for each in done),
            "missing": sum(each["missing"] for each in done),
            "warnings": list(dict.fromkeys(warning for each in done for warning in each["warnings"])),
        }

    def complete(
        self,
        filters: dict[str, Any] | None,
        *,
        replace_others: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """
        Make and write the vectors that stored children lack; without `filters`, those of all tenants.

        `replace_others` first deletes vectors of another embedder, of all tenants.
        """
        store = self.document_store
        other = store.other_vectors(self.model)
        if other is not None and not replace_others:
            return self._undone(filters, other)
        ids = store.iter_ids_without_vector(filters)
        some = list(islice(ids, _SLICE))
        try:
            if some or other is not None:
                warm_up_generator(self.document_embedder)
        except ModelMissingError as error:
            return self._undone(filters, str(error))
        if other is not None:
            store.drop_vectors()
            ids = store.iter_ids_without_vector(filters)
            some = list(islice(ids, _SLICE))
        written = done = 0
        total = max(len(some), store.count_without_vector(filters))
        while some:
            # Another process may have embedded them meanwhile.
            lacking = store.list_ids_without_vector(all_of(filters, where("id", "in", some)))
            documents = store.filter_documents(all_of(filters, where("id", "in", lacking))) if lacking else []
            # A batch costs as much as its longest member.
            documents.sort(key=lambda document: len(document.content or ""))
            embedded: list[Document] = []
            for first in range(0, len(documents), _BATCH):
                if progress is not None:
                    progress("vectors", done + first, max(total, done + len(some)))
                embedded += self.document_embedder.run(documents=documents[first : first + _BATCH])["documents"]
            written += store.write_vectors(embedded, model=self.model) if embedded else 0
            done += len(some)
            some = list(islice(ids, _SLICE))
        if progress is not None and done:
            progress("vectors", done, done)
        return {"written": written, "missing": 0, "warnings": []}

    def _undone(self, filters: dict[str, Any] | None, warning: str) -> dict[str, Any]:
        missing = sum(1 for _ in self.document_store.iter_ids_without_vector(filters))
        return {"written": 0, "missing": missing, "warnings": [warning]}

    @property
    def model(self) -> str:
        """The embedder's identity: its attribute `identity`, else its model's name, else that of its class."""
        embedder = self.document_embedder
        return str(getattr(embedder, "identity", None) or getattr(embedder, "model", None) or type(embedder).__name__)
