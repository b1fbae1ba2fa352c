"""Documents as the engine's points, and back, without loss."""

import base64
import json
import math
import re
import uuid
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from haystack.dataclasses import Document, SparseEmbedding
from qdrant_edge import SparseVector

from shiguan.text.names import sounds_of_names, sounds_of_text
from shiguan.text.terms import term_index, terms

# The payload of a point. The names are short because every point repeats them.
ID, CONTENT, META, ORDER, EMBEDDING, SPARSE = "id", "content", "m", "n", "e", "s"
# The vectors of a point.
DENSE, BM25 = "dense", "bm25"

# The engine takes a list for each of its elements and True for 1, and may round large numbers, so values other than
# plain ones are kept as JSON under this key of an object, where no filter on the field itself can match them.
COMPOUND = "#"
# Beside it for a number that the engine cannot hold: 1 if it is greater than all it can hold, -1 if less.
BEYOND = "#beyond"

# Of BM25. The length, in terms, that counts as neither long nor short is a little more than a Chinese child has and
# several times an English one, which weakens the correction for length; on children of four collections that found as
# much as the true mean or more.
K1, B, AVERAGE_LENGTH = 1.2, 0.75, 200.0

_NAMESPACE = uuid.UUID("6f1ad56c-6a5d-5f0e-9f2b-9b1a4c0f5f51")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
_INTEGERS = range(-(2**63), 2**63)


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
    if isinstance(value, bool):
        # The engine's Python door turns a filter for True into one for 1.
        return _compound(value, path)
    if isinstance(value, dict) and value:
        return encode_meta(value, path)
    if isinstance(value, int):
        return value if value in _INTEGERS else _compound(value, path) | {BEYOND: 1 if value > 0 else -1}
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return _compound(value, path) | ({} if math.isnan(value) else {BEYOND: 1 if value > 0 else -1})
    return _compound(value, path)


def _compound(value: Any, path: str) -> dict[str, Any]:
    try:
        return {COMPOUND: json.dumps(value, ensure_ascii=False)}
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`{path}` holds a `{type(value).__name__}` that is not JSON: {error}. "
            "Turn it into texts, numbers, lists and objects (a date into its ISO form) before storing the document."
        ) from error


def encode_payload(document: Document, order: int) -> dict[str, Any]:
    """Turn a document into a payload, all but its embedding."""
    payload = {ID: document.id, CONTENT: document.content, META: encode_meta(document.meta), ORDER: order}
    if document.sparse_embedding is not None:
        payload[SPARSE] = json.dumps(document.sparse_embedding.to_dict())
    return payload


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


def bm25_document_vector(texts: Iterable[str]) -> SparseVector | None:
    """
    Give the document's side of BM25: the weight of each of its terms, without the IDF, which the engine knows.

    How its Han characters sound is searched too, and does not count as length.
    """
    texts = list(texts)
    counts = Counter(index for text in texts for index in map(term_index, terms(text)))
    norm = K1 * (1 - B + B * counts.total() / AVERAGE_LENGTH)
    counts.update(index for text in texts for index in map(term_index, sounds_of_text(text)))
    return SparseVector(list(counts), [tf * (K1 + 1) / (tf + norm) for tf in counts.values()]) if counts else None


def bm25_query_vector(query: str) -> SparseVector | None:
    """Give the question's side of BM25: how often it has each term, and the sounds of its names."""
    counts = Counter(map(term_index, [*terms(query), *sounds_of_names(query)]))
    return SparseVector(list(counts), [float(count) for count in counts.values()]) if counts else None
