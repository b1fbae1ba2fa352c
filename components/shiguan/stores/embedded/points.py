"""What a data folder holds: its format, and documents as the engine's points and back, without loss."""

import base64
import json
import math
import re
import uuid
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from haystack import logging
from haystack.dataclasses import Document, SparseEmbedding
from qdrant_edge import (
    Distance,
    EdgeConfig,
    EdgeOptimizersConfig,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    Memory,
    Modifier,
    Point,
    SparseVector,
)

from shiguan.errors import StoreError, StoreFormatError
from shiguan.stores import BM25_B, BM25_K1
from shiguan.text.languages import search_weights
from shiguan.text.names import sounds_of_names, sounds_of_text
from shiguan.text.terms import term_index, terms

logger = logging.getLogger(__name__)

FORMAT_VERSION = 1
"""Raised with every change that old data cannot be read or searched by, of the payload, the terms or the weights."""

FORMAT_FILE = "shiguan.json"
"""The file in the data folder that names the format and the shard in use."""

# The payload of a point. The names are short because every point repeats them.
ID, CONTENT, META, ORDER, EMBEDDING, SPARSE = "id", "content", "m", "n", "e", "s"
# The vectors of a point.
DENSE, BM25 = "dense", "bm25"

# The engine takes a list for each of its elements and True for 1, and may round large numbers, so values other than
# plain ones are kept as JSON under this key of an object, where no filter on the field itself can match them.
COMPOUND = "#"
# Beside it for a number that the engine cannot hold: 1 if it is greater than all it can hold, -1 if less.
BEYOND = "#beyond"

# The length, in terms, that counts as neither long nor short is a little more than a Chinese child has and
# several times an English one, which weakens the correction for length; on children of four collections that found as
# much as the true mean or more.
AVERAGE_LENGTH = 200.0

_NAMESPACE = uuid.UUID("6f1ad56c-6a5d-5f0e-9f2b-9b1a4c0f5f51")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
_INTEGERS = range(-(2**63), 2**63)
# Embedders that normalise leave this much rounding; such vectors are kept as they are.
_UNIT_TOLERANCE = 1e-5


@dataclass(frozen=True)
class ShardFormat:
    """What the data of a folder were written with; everything here is baked into them."""

    embedding_dim: int | None
    embedding_model: str | None
    bm25: bool
    bm25_fields: list[str]
    similarity: str = "cosine"
    bm25_k1: float = BM25_K1
    bm25_b: float = BM25_B
    bm25_average_length: float = AVERAGE_LENGTH

    def engine_config(self) -> EdgeConfig:
        # Vectors are stored as they were given or normalised by us, so the dot product is the cosine, and the engine
        # keeps the given numbers. They are read where they lie: read in at opening, they would take 32 MB of the
        # smallest library, and searches are no faster for it.
        dense = EdgeVectorParams(size=self.embedding_dim or 0, distance=Distance.Dot, memory=Memory.Cold)
        return EdgeConfig(
            vectors={DENSE: dense} if self.embedding_dim else None,
            # The engine wants at least one kind of vector; a store without any leaves this one empty.
            sparse_vectors={BM25: EdgeSparseVectorParams(modifier=Modifier.Idf)},
            optimizers=EdgeOptimizersConfig(default_segment_number=1),
            # One query takes less than a millisecond; spreading it over threads costs three times its CPU.
            max_search_threads=1,
        )

    def point(self, document: Document, order: int) -> Point:
        """Make the point of a document."""
        if document.blob is not None:
            logger.warning("The blob of document {id} is not stored; only texts are.", id=document.id)
        payload = {ID: document.id, CONTENT: document.content, META: encode_meta(document.meta), ORDER: order}
        if document.sparse_embedding is not None:
            payload[SPARSE] = json.dumps(document.sparse_embedding.to_dict())
        vectors: dict[str, Any] = {}
        if document.embedding is not None:
            given = np.asarray(document.embedding, dtype=np.float64)
            # Where the engine's vector is another one, or there is none, the given numbers are kept beside it.
            if self.embedding_dim is None:
                payload[EMBEDDING] = encode_embedding(given)
            else:
                vector = self._fitted(given, f"The embedding of document `{document.id}`")
                if not np.array_equal(vector.astype(np.float64), given):
                    payload[EMBEDDING] = encode_embedding(given)
                vectors[DENSE] = vector
        if self.bm25:
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
    """Sum up the files that say which documents there are; where these are damaged the engine ends the process."""
    files = sorted(shard.glob("segments/*/*id_tracker*"))
    return {path.relative_to(shard).as_posix(): zlib.crc32(path.read_bytes()) for path in files}


def torn(shard: Path) -> Path | None:
    """Find a file that is shorter than the engine takes for granted: it would panic, and print that."""
    for path in shard.glob("segments/**/status.dat"):
        whole = 16 if any(path.parent.glob("flags_*")) else 8
        if path.stat().st_size < whole:
            return path.relative_to(shard)
    return None


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


def point_id(document_id: str) -> str:
    """Give the engine's id of a document."""
    return str(uuid.uuid5(_NAMESPACE, document_id))


def encode_key(key: str) -> str:
    """Give the name of a meta key in the payload."""
    return COMPOUND + key if key.startswith(COMPOUND) else key


def meta_path(name: str) -> str:
    """Give the payload path of a meta field."""
    keys = (encode_key(key) for key in name.split("."))
    return ".".join([META, *(key if _PLAIN_KEY.fullmatch(key) else f'"{key}"' for key in keys)])


def encode_meta(meta: dict[str, Any], path: str = "meta") -> dict[str, Any]:
    """Turn a document's meta into a payload that filters match exactly."""
    encoded = {}
    for key, value in meta.items():
        if not isinstance(key, str):
            raise ValueError(f"The key {key!r} of `{path}` is no text. Write it as a text before storing the document.")
        encoded[encode_key(key)] = _encode_value(value, f"{path}.{key}")
    return encoded


def decode_meta(payload: dict[str, Any]) -> dict[str, Any]:
    """Give back the meta that `encode_meta` took."""
    return {(key[1:] if key.startswith(COMPOUND) else key): decode_value(value) for key, value in payload.items()}


def decode_value(value: Any) -> Any:
    """Give back one value of a meta."""
    if not isinstance(value, dict):
        return value
    return json.loads(value[COMPOUND]) if COMPOUND in value else decode_meta(value)


def _encode_value(value: Any, path: str) -> Any:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict) and value:
        return encode_meta(value, path)
    if isinstance(value, int) and not isinstance(value, bool):
        return value if value in _INTEGERS else _compound(value, path) | {BEYOND: 1 if value > 0 else -1}
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return _compound(value, path) | ({} if math.isnan(value) else {BEYOND: 1 if value > 0 else -1})
    # A truth, too: the engine's Python door turns a filter for True into one for 1.
    return _compound(value, path)


def _compound(value: Any, path: str) -> dict[str, Any]:
    try:
        return {COMPOUND: json.dumps(value, ensure_ascii=False)}
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`{path}` holds a `{type(value).__name__}` that is not JSON: {error}. "
            "Turn it into texts, numbers, lists and objects (a date into its ISO form) before storing the document."
        ) from error


def decode_document(payload: dict[str, Any], vector: Any = None) -> Document:
    """Give back a document."""
    sparse = payload.get(SPARSE)
    embedding = None
    if vector is not None:
        exact = payload.get(EMBEDDING)
        embedding = decode_embedding(exact) if exact else vector.get(DENSE)
    return Document(
        id=payload[ID],
        content=payload.get(CONTENT),
        meta=decode_meta(payload.get(META) or {}),
        embedding=embedding,
        sparse_embedding=SparseEmbedding.from_dict(json.loads(sparse)) if sparse else None,
    )


def encode_embedding(values: np.ndarray) -> str:
    """Write an embedding as text, exactly."""
    single = values.astype("<f4")
    kind, array = ("f4", single) if np.array_equal(single.astype("<f8"), values) else ("f8", values.astype("<f8"))
    return f"{kind}:{base64.b64encode(array.tobytes()).decode()}"


def decode_embedding(text: str) -> list[float]:
    """Read an embedding written by `encode_embedding`."""
    kind, _, data = text.partition(":")
    numbers: list[float] = np.frombuffer(base64.b64decode(data), dtype=f"<{kind}").tolist()
    return numbers


def bm25_document_vector(texts: list[str]) -> SparseVector | None:
    """
    Give the document's side of BM25: the weight of each of its terms, without the IDF, which the engine knows.

    How its Han characters sound is searched too, and does not count as length.
    """
    counts = Counter(index for text in texts for index in map(term_index, terms(text)))
    norm = BM25_K1 * (1 - BM25_B + BM25_B * counts.total() / AVERAGE_LENGTH)
    counts.update(index for text in texts for index in map(term_index, sounds_of_text(text)))
    return SparseVector(list(counts), [tf * (BM25_K1 + 1) / (tf + norm) for tf in counts.values()]) if counts else None


def bm25_query_vector(query: str, also: Mapping[str, float] | None = None) -> SparseVector | None:
    """Give the question's side of BM25: its terms with their weights, the sounds of its names, and other terms."""
    weights = dict(also or {}) | search_weights(query) | dict.fromkeys(sounds_of_names(query), 1.0)
    # Two terms may share a number, which the engine takes but once.
    numbered = {term_index(term): weight for term, weight in weights.items()}
    return SparseVector(list(numbered), list(numbered.values())) if numbered else None
