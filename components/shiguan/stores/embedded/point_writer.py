"""Make the engine's points of documents, as the format of a store says."""

import math
from typing import Any

import numpy as np
from haystack import logging
from haystack.dataclasses import Document
from qdrant_edge import Point

from shiguan.errors import StoreError
from shiguan.stores.embedded import points
from shiguan.stores.embedded.shard_format import ShardFormat

logger = logging.getLogger(__name__)

# Embedders that normalise leave this much rounding; such vectors are kept as they are.
_UNIT_TOLERANCE = 1e-5


class PointWriter:
    """Makes points with the vectors of one store format."""

    def __init__(self, form: ShardFormat) -> None:
        self.form = form

    def point(self, document: Document, order: int) -> Point:
        """Make the point of a document."""
        if document.blob is not None:
            logger.warning("The blob of document {id} is not stored; only texts are.", id=document.id)
        payload = points.encode_payload(document, order)
        vectors: dict[str, Any] = {}
        if document.embedding is not None:
            given = np.asarray(document.embedding, dtype=np.float64)
            if self.form.embedding_dim is None:
                payload[points.EMBEDDING] = points.encode_embedding(given)
            else:
                vector = self._fitted(given, f"The embedding of document `{document.id}`")
                if not np.array_equal(vector.astype(np.float64), given):
                    payload[points.EMBEDDING] = points.encode_embedding(given)
                vectors[points.DENSE] = vector
        if self.form.bm25:
            texts = [document.content or "", *self._field_texts(document.meta)]
            sparse = points.bm25_document_vector(
                texts, self.form.bm25_k1, self.form.bm25_b, self.form.bm25_average_length
            )
            if sparse is not None:
                vectors[points.BM25] = sparse
        return Point(points.point_id(document.id), vectors, payload)

    def document_vector(self, document: Document) -> np.ndarray:
        """Make a document's vector."""
        given = np.asarray([] if document.embedding is None else document.embedding, dtype=np.float64)
        return self._fitted(given, f"The embedding of document `{document.id}`")

    def query_vector(self, embedding: list[float]) -> list[float]:
        """Make a question's vector."""
        if self.form.embedding_dim is None:
            raise StoreError(
                "The store cannot be searched by vectors, because its `embedding_dim` is None. Search the store of "
                "children, or set `embedding_dim` and ingest again into another folder."
            )
        vector = self._fitted(np.asarray(embedding, dtype=np.float64), "The question's embedding")
        numbers: list[float] = vector.tolist()
        return numbers

    def _fitted(self, given: np.ndarray, owner: str) -> np.ndarray:
        expected = self.form.embedding_dim
        if given.shape != (expected,):
            raise ValueError(
                f"{owner} has the shape {given.shape}, but the store holds vectors of {expected} numbers. "
                "Use the embedder that the store was made for, or set `embedding_dim` and ingest into another folder."
            )
        norm = math.sqrt(float(given @ given))
        if not math.isfinite(norm):
            raise ValueError(f"{owner} has numbers that are not finite. Check the embedder's output.")
        if self.form.similarity == "cosine" and norm > 0 and abs(norm - 1) > _UNIT_TOLERANCE:
            given = given / norm
        return given.astype(np.float32)

    def _field_texts(self, meta: dict[str, Any]) -> list[str]:
        texts: list[str] = []
        for field in self.form.bm25_fields:
            value = meta.get(field)
            texts += [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str)]
        return texts
