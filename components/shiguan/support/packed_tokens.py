"""Token vectors as they are stored and travel: one bit for each dimension."""

import hashlib
import math
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import numpy as np

from shiguan.support.token_encoder import EncodedText

META_KEY = "token_vectors"
"""The meta key under which a document's `PackedTokens` travel from the embedder to the store."""

_SEED = b"shiguan token vectors 1"
_TOKEN = np.dtype("<u4")


@dataclass(frozen=True)
class PackedTokens:
    """
    The token vectors of one document.

    Being immutable it is never copied on the way from component to component.

    :param model: The embedder that made them.
    :param dimensions: How many numbers its vectors have.
    :param token_ids: The ids of the document's tokens, each once, ascending; 4 bytes each, the lowest first.
    :param vectors: The bits of the first token's vector, filled up to a whole byte, then those of the next.
    """

    model: str
    dimensions: int
    token_ids: bytes
    vectors: bytes

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def pack(text: EncodedText, model: str) -> PackedTokens:
    """
    Pack what an embedder made of a text.

    Each vector is turned by `rotation` and only the signs of its numbers are kept. After a random rotation these hold
    nearly all that a comparison with an exact vector needs: the method is that of Gao and Long, "RaBitQ: Quantizing
    High-Dimensional Vectors with a Theoretical Error Bound for Approximate Nearest Neighbor Search" (SIGMOD 2024),
    section 3, without the factor that they store for each vector. A cosine is found with a standard error of
    sqrt((pi / 2 - 1) / dimensions), 0.04 for 384.

    :param text: The tokens and their vectors.
    :param model: The embedder's name.
    :returns: The same, packed: `dimensions` / 8 bytes for each token, and 4 for each different one.
    """
    dimensions = text.tokens.shape[1]
    bits = np.packbits(text.tokens @ rotation(dimensions) > 0, axis=1)
    return PackedTokens(model, dimensions, np.unique(text.token_ids).astype(_TOKEN).tobytes(), bits.tobytes())


def token_ids(packed: bytes) -> np.ndarray:
    """
    Read the ids of tokens.

    :param packed: `PackedTokens.token_ids`, of one document or of several joined.
    :returns: The ids. Shape: (ids,).
    """
    return np.frombuffer(packed, dtype=_TOKEN)


def unpack(packed: list[bytes], dimensions: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """
    Read the vectors of some documents.

    :param packed: `PackedTokens.vectors` of each.
    :param dimensions: How many numbers the model's vectors have.
    :returns: Where each document's rows begin and end, shape (documents + 1,); the vectors, 1 and -1, shape (rows,
        dimensions), int8; what each row is multiplied by so that its product with a vector of length 1, turned by
        `rotation`, is their cosine, shape (rows,), float32.
    """
    width = -(-dimensions // 8)
    bounds = np.concatenate([[0], np.cumsum([len(vectors) // width for vectors in packed], dtype=np.int64)])
    rows = np.frombuffer(b"".join(packed), dtype=np.uint8).reshape(-1, width)
    values = np.unpackbits(rows, axis=1, count=dimensions).view(np.int8)
    np.left_shift(values, 1, out=values)
    np.subtract(values, 1, out=values)
    # A random vector of length 1 has numbers of this size in the mean, so this makes up for the lengths that were lost.
    scales = np.full(len(rows), math.sqrt(math.pi / 2 / dimensions), dtype=np.float32)
    return bounds, values, scales


@cache
def rotation(dimensions: int) -> np.ndarray:
    """
    Give the rotation under which vectors are packed.

    It is random but always the same, on every machine: the orthonormal basis that the Gram-Schmidt method makes of
    columns of 1 and -1, which are the bits of a hash.

    :param dimensions: How many numbers a vector has.
    :returns: Shape: (dimensions, dimensions), float32.
    """
    digest = hashlib.shake_256(_SEED).digest(-(-dimensions * dimensions // 8))
    bits = np.unpackbits(np.frombuffer(digest, dtype=np.uint8), count=dimensions * dimensions)
    basis, triangle = np.linalg.qr(bits.reshape(dimensions, dimensions) * 2.0 - 1.0)
    # The factors are unique once the diagonal is positive; libraries differ in that.
    turned = np.asarray(basis * np.where(np.diag(triangle) < 0, -1.0, 1.0), dtype=np.float32)
    turned.flags.writeable = False
    return turned
