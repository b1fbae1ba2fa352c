"""The format of a data folder, and documents as the engine's points and back, without loss."""

import ctypes
import json
import math
import mmap
import re
import uuid
import zlib
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
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
    KeywordIndexParams,
    Memory,
    Modifier,
    Point,
    SparseVector,
    UpdateOperation,
)

from shiguan.errors import StoreError, StoreFormatError
from shiguan.reading.question import read_question
from shiguan.stores import BM25_B, BM25_K1
from shiguan.text.names import name_terms, names_in_pinyin, sounds_of_text
from shiguan.text.terms import term_indices, terms

logger = logging.getLogger(__name__)

FORMAT_VERSION = 2
"""Raised with every change that old data cannot be read or searched by, of the payload, the terms or the weights."""

FORMAT_FILE = "shiguan.json"
"""The file in the data folder that names the format and the shard in use."""

# The payload of a point. The names are short because every point repeats them.
ID, CONTENT, META, ORDER = "id", "content", "m", "n"
# The vectors of a point.
DENSE, BM25 = "dense", "bm25"

# The length, in terms, that counts as neither long nor short is a little more than a Chinese child has and
# several times an English one, which weakens the correction for length; on children of four collections that found as
# much as the true mean or more.
AVERAGE_LENGTH = 200.0

_KEYWORD_FIELDS = ("tenant_id", "source_id", "file_id", "language")
_NAMESPACE = uuid.UUID("6f1ad56c-6a5d-5f0e-9f2b-9b1a4c0f5f51")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
# Embedders that normalise leave this much rounding; such vectors are kept as they are.
_UNIT_TOLERANCE = 1e-5


@dataclass(frozen=True)
class ShardFormat:
    """The settings that the data of a folder were written with, and depend on."""

    embedding_dim: int | None
    embedding_model: str | None
    bm25_fields: list[str]
    similarity: str = "cosine"
    bm25_k1: float = BM25_K1
    bm25_b: float = BM25_B
    bm25_average_length: float = AVERAGE_LENGTH

    def engine_config(self) -> EdgeConfig:
        # Vectors are of length 1, so the dot product is the cosine. They are read where they lie: read in at opening,
        # they would take 32 MB of the smallest library, and searches are no faster for it.
        dense = EdgeVectorParams(size=self.embedding_dim or 0, distance=Distance.Dot, memory=Memory.Cold)
        return EdgeConfig(
            vectors={DENSE: dense} if self.embedding_dim else None,
            # The engine wants at least one kind of vector; a store without any leaves this one empty.
            sparse_vectors={BM25: EdgeSparseVectorParams(modifier=Modifier.Idf)},
            optimizers=EdgeOptimizersConfig(default_segment_number=1),
            # One query takes less than a millisecond; spreading it over threads costs three times its CPU.
            max_search_threads=1,
        )

    def field_indexes(self) -> list[UpdateOperation]:
        """Index the meta fields that are filtered often."""
        # A parent has no parent, and an empty index costs every process 5 MB.
        fields = (*_KEYWORD_FIELDS, "parent_id") if self.embedding_dim else _KEYWORD_FIELDS
        return [
            UpdateOperation.create_field_index(meta_path(field), KeywordIndexParams(is_tenant=field == "tenant_id"))
            for field in fields
        ]

    def point(self, document: Document, order: int) -> Point:
        """Make the point of a document."""
        if document.blob is not None:
            logger.warning("The blob of document {id} is not stored; only texts are.", id=document.id)
        payload = {ID: document.id, CONTENT: document.content, META: plain_meta(document), ORDER: order}
        vectors: dict[str, Any] = {}
        if document.embedding is not None and self.embedding_dim is not None:
            vectors[DENSE] = self.vector(document)
        if self.embedding_dim is not None:
            texts = [document.content or "", *self._field_texts(document.meta)]
            sparse = bm25_document_vector(texts)
            if sparse is not None:
                vectors[BM25] = sparse
        return Point(point_id(document.id), vectors, payload)

    def vector(self, document: Document) -> np.ndarray:
        """Make a document's vector."""
        given = np.asarray([] if document.embedding is None else document.embedding, dtype=np.float64)
        return self._fitted(given, f"The embedding of document `{document.id}`")

    def query_vector(self, embedding: list[float]) -> list[float]:
        """Make a question's vector."""
        if self.embedding_dim is None:
            raise StoreError(
                "The store cannot be searched by vectors, because its `embedding_dim` is None. Search the store of "
                "children, or set `embedding_dim` and ingest again into another folder."
            )
        vector = self._fitted(np.asarray(embedding, dtype=np.float64), "The question's embedding")
        numbers: list[float] = vector.tolist()
        return numbers

    def _fitted(self, given: np.ndarray, owner: str) -> np.ndarray:
        expected = self.embedding_dim
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
        for field in self.bm25_fields:
            value = meta.get(field)
            texts += [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str)]
        return texts


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


def checksums(shard: Path) -> dict[str, int]:
    """Sum up the files that list the documents; if these are damaged the engine ends the process."""
    files = sorted(shard.glob("segments/*/*id_tracker*"))
    return {path.relative_to(shard).as_posix(): zlib.crc32(path.read_bytes()) for path in files}


def torn(shard: Path) -> Path | None:
    """Find a file that is too short: the engine would panic, and print that."""
    for path in shard.glob("segments/**/status.dat"):
        whole = 16 if any(path.parent.glob("flags_*")) else 8
        if path.stat().st_size < whole:
            return path.relative_to(shard)
    return None


def release_index_files(folder: Path) -> None:
    """Take the field indexes out of memory: the engine maps 5 MB of each, mostly holes, and only writes to them."""
    with suppress(AttributeError, OSError, TypeError):
        advise = ctypes.CDLL(None).madvise
        for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
            place, _, file = line.partition(str(folder))
            if "/payload_index/" in file:
                start, end = (int(address, 16) for address in place.split()[0].split("-"))
                advise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), mmap.MADV_DONTNEED)


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


def point_id(document_id: str) -> str:
    """Return the engine's id of a document."""
    return str(uuid.uuid5(_NAMESPACE, document_id))


def meta_path(name: str) -> str:
    """Return the payload path of a meta field."""
    return ".".join([META, *(key if _PLAIN_KEY.fullmatch(key) else f'"{key}"' for key in name.split("."))])


def plain_meta(document: Document) -> dict[str, Any]:
    """Return a document's meta as JSON has it, which is what the engine keeps."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(document.meta, ensure_ascii=False, allow_nan=False).encode())
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The meta of document `{document.id}` is not JSON: {error}. "
            "Turn it into texts, numbers, lists and objects (a date into its ISO form) before storing the document."
        ) from error
    return plain


def decode_document(payload: dict[str, Any], vector: Any = None) -> Document:
    """Restore a document."""
    return Document(
        id=payload[ID],
        content=payload.get(CONTENT),
        meta=payload.get(META) or {},
        embedding=(vector or {}).get(DENSE),
    )


def bm25_document_vector(texts: list[str]) -> SparseVector | None:
    """Weigh a document's terms without the IDF, which the engine has; sounds and other names do not count as length."""
    counts = Counter(index for text in texts for index in term_indices(terms(text)))
    norm = BM25_K1 * (1 - BM25_B + BM25_B * counts.total() / AVERAGE_LENGTH)
    counts.update(index for text in texts for index in term_indices(sounds_of_text(text)))
    counts.update(term_indices(name_terms(texts[0])))
    return SparseVector(list(counts), [tf * (BM25_K1 + 1) / (tf + norm) for tf in counts.values()]) if counts else None


def bm25_query_vector(query: str, also: Mapping[str, float] | None = None) -> SparseVector | None:
    """Make the question's side of BM25: its terms with their weights, the sounds of its names, and other terms."""
    asked = read_question(query)
    names = (*asked.sounds, *terms(" ".join(asked.once(names_in_pinyin))))
    weights = dict(also or {}) | dict.fromkeys(names, 1.0) | asked.search_weights
    # Two terms may share a number, which the engine takes only once.
    numbered = dict(zip(term_indices(weights), weights.values(), strict=True))
    return SparseVector(list(numbered), list(numbered.values())) if numbered else None
