"""What the embedded document store does about vectors that come after the words."""

import json
from abc import ABC, abstractmethod
from typing import Any

from haystack.dataclasses import Document
from qdrant_edge import CountRequest, PayloadSelector, PointVectors

from shiguan.stores.embedded import points
from shiguan.stores.embedded.point_writer import PointWriter
from shiguan.stores.embedded.reading import (
    count_values,
    count_vectors,
    existing_ids,
    resolve,
    scroll_records,
    without_vector,
)
from shiguan.stores.embedded.shard_format import ShardFormat, is_model, other_vectors
from shiguan.stores.embedded.shards import Shard

_IN_ORDER = PayloadSelector.Include([points.ID, points.ORDER])
# A server's tenants ask with a filter each; more different ones than this are counted anew.
_MOST_COUNTS = 1000


class VectorOperations(ABC):
    """The methods of `QdrantEdgeDocumentStore` for documents that are found by words first and by vectors later."""

    embedding_model: str | None

    @property
    @abstractmethod
    def _shard(self) -> Shard:
        """The open folder."""

    @abstractmethod
    def _format(self) -> ShardFormat:
        """Say what documents are written with."""

    def list_ids_without_vector(self, filters: dict[str, Any] | None = None) -> list[str]:
        """Give the ids of the documents that have no vector yet."""
        with self._shard.read() as edge:
            records = scroll_records(edge, without_vector(edge, filters), _IN_ORDER)
            rows = [(payload[points.ORDER], payload[points.ID]) for payload in (record.payload for record in records)]
        return [document_id for _, document_id in sorted(rows)]

    def write_vectors(self, documents: list[Document], *, model: str) -> int:
        """
        Give stored documents their vectors; when it returns, these are on disk.

        Nothing else of the documents is written, and of an embedding what the search needs: float32, of length 1 where
        `similarity` is the cosine.
        """
        writer = PointWriter(self._format())
        vectors = {document.id: writer.document_vector(document) for document in documents}
        with self._shard.write() as edge:
            stored = existing_ids(edge, list(vectors))
            batch = [
                PointVectors(points.point_id(document_id), {points.DENSE: vector.tolist()})
                for document_id, vector in vectors.items()
                if document_id in stored
            ]
            if batch:
                self._shard.claim_vectors(edge, model)
                self._shard.add_vectors(edge, batch)
        return len(batch)

    def drop_vectors(self) -> None:
        """Forget all vectors, so that another embedder's can be written; documents and their words stay."""
        self._shard.drop_vectors()

    def other_vectors(self, model: str | None = None) -> str | None:
        """Tell whether the vectors are those of another embedder."""
        wanted = model or self.embedding_model
        shard = self._shard
        found = shard.format.embedding_model
        if wanted is None or is_model(found, wanted) or not self._count("with a vector", None):
            return None
        return other_vectors(shard.folder, found, wanted)

    def vector_warnings(self, filters: dict[str, Any] | None) -> list[str]:
        """Say what a search by vectors cannot find; counted once after each write."""
        other = self.other_vectors()
        if other is not None:
            return [other]
        if not self._count("without a vector", None):
            return []
        missing = self._count("without a vector", filters)
        if not missing:
            return []
        return [
            f"{missing:,} of {self._count('all', filters):,} retrieval units have no vector yet and were searched by "
            "their words alone. `shiguan ingest --resume` makes the missing ones."
        ]

    def count_by_file(self, filters: dict[str, Any] | None = None) -> dict[str, tuple[int, int]]:
        """Count the documents of each file."""
        with self._shard.read() as edge:
            words = count_values(edge, "file_id", resolve(edge, filters))
            missing = count_values(edge, "file_id", without_vector(edge, filters))
        return {file: (count, count - missing.get(file, 0)) for file, count in words.items()}

    def _count(self, which: str, filters: dict[str, Any] | None) -> int:
        counts = self._shard.counts
        key = f"{which} {json.dumps(filters, sort_keys=True, default=str)}"
        if key not in counts:
            with self._shard.read() as edge:
                if which == "with a vector":
                    found = count_vectors(edge)
                else:
                    condition = resolve(edge, filters) if which == "all" else without_vector(edge, filters)
                    found = int(edge.count(CountRequest(exact=True, filter=condition)))
            if len(counts) < _MOST_COUNTS:
                counts[key] = found
            return found
        return counts[key]
