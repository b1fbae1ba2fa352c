"""What is baked into a data folder: checked when it is opened again, and followed by the points that are written."""

import json
import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from haystack import logging
from haystack.dataclasses import Document
from qdrant_edge import (
    Distance,
    EdgeConfig,
    EdgeOptimizersConfig,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    Memory,
    Modifier,
    Point,
)

from shiguan.errors import StoreError, StoreFormatError
from shiguan.resources import write_json
from shiguan.stores.embedded import points
from shiguan.stores.embedded.points import BM25, DENSE

FORMAT_VERSION = 1
"""Raised with every change that old data cannot be read or searched by, of the payload, the terms or the weights."""

FORMAT_FILE = "shiguan.json"
"""The file in the data folder that names the format and the shard in use."""


@dataclass(frozen=True)
class ShardFormat:
    """What the data of a folder were written with; everything here is baked into them."""

    embedding_dim: int | None
    embedding_model: str | None
    bm25: bool
    bm25_fields: list[str]
    similarity: str = "cosine"
    bm25_k1: float = points.K1
    bm25_b: float = points.B
    bm25_average_length: float = points.AVERAGE_LENGTH


def engine_config(form: ShardFormat) -> EdgeConfig:
    """Give the engine's configuration for a format."""
    # Vectors are stored as they were given or normalised by us, so the dot product is the cosine, and the engine keeps
    # the given numbers. They are read where they lie: read in at opening, they would take 32 MB of the smallest
    # library, and searches are no faster for it.
    dense = EdgeVectorParams(size=form.embedding_dim or 0, distance=Distance.Dot, memory=Memory.Cold)
    vectors = {DENSE: dense} if form.embedding_dim else None
    return EdgeConfig(
        vectors=vectors,
        # The engine wants at least one kind of vector; a store without any leaves this one empty.
        sparse_vectors={BM25: EdgeSparseVectorParams(modifier=Modifier.Idf)},
        optimizers=EdgeOptimizersConfig(default_segment_number=1),
        # One query takes less than a millisecond; spreading it over threads costs three times its CPU.
        max_search_threads=1,
    )


def read_record(folder: Path) -> dict[str, Any] | None:
    """Read a folder's format file."""
    try:
        record = json.loads((folder / FORMAT_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise StoreFormatError(
            f"`{folder / FORMAT_FILE}` is damaged: {error}. Put a copy back, or ingest again into another folder."
        ) from error
    if not isinstance(record, dict):
        raise mismatch(folder, "format file", type(record).__name__, "object")
    return record


def write_record(folder: Path, record: dict[str, Any]) -> None:
    """Write a folder's format file; a kill leaves the old or the new one."""
    write_json(folder / FORMAT_FILE, record, mode=0o600)


def checksums(shard: Path) -> dict[str, int]:
    """Sum up the files that say which documents there are; where these are damaged the engine ends the process."""
    files = sorted(shard.glob("segments/*/*id_tracker*"))
    return {path.relative_to(shard).as_posix(): zlib.crc32(path.read_bytes()) for path in files}


def damaged(shard: Path, cause: object) -> StoreError:
    """Make the error for data that cannot be read."""
    return StoreError(
        f"The data in `{shard}` are damaged and cannot be opened: {cause}. Put a copy of the whole folder back, or "
        "move the folder away and ingest again."
    )


def mismatch(folder: Path, name: str, found: object, expected: object) -> StoreFormatError:
    """Make the error for data that were written with something else."""
    return StoreFormatError(
        f"The data in `{folder}` were written with {name} {found!r}, but {expected!r} was expected. "
        "Ingest again into another folder, or use the settings that they were written with."
    )


def is_model(found: str | None, wanted: str) -> bool:
    """Tell whether vectors are those of a model."""
    return found is not None and f"{found},".startswith(f"{wanted},")


def other_vectors(folder: Path, found: str | None, wanted: str) -> str:
    """Say that the vectors of a folder are another embedder's, and what to do."""
    return (
        f"The vectors in `{folder}` were made with {f'`{found}`' if found else 'an earlier embedder'} and not with "
        f"`{wanted}`, so passages are found by their words alone until `shiguan ingest --resume` makes them anew."
    )


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
            sparse = points.bm25_document_vector(texts)
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
        if norm > 0 and abs(norm - 1) > _UNIT_TOLERANCE:
            given = given / norm
        return given.astype(np.float32)

    def _field_texts(self, meta: dict[str, Any]) -> list[str]:
        texts: list[str] = []
        for field in self.form.bm25_fields:
            value = meta.get(field)
            texts += [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str)]
        return texts
