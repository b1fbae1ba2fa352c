"""How token vectors are written: fewer dimensions, and a byte for each."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from shiguan.support.token_vectors import unit_rows

DIMENSIONS = 128
"""How many dimensions are kept."""

_LEVELS = 127
_SCALE = np.dtype("<f2")


@dataclass(frozen=True)
class TokenQuantiser:
    """
    Writes and reads the token vectors of one file.

    Vectors are turned into the directions in which token vectors differ most (the leading eigenvectors of their second
    moments; the mean is not taken out, so that products of vectors stay what they were), cut after `DIMENSIONS`,
    brought back to length 1 and rounded to a byte for each number, with one scale for each vector.

    :param projection: Shape: (model dimensions, dimensions), float32; None to keep the model's dimensions.
    :param dimensions: How many numbers a stored vector has.
    """

    projection: np.ndarray | None
    dimensions: int

    def pack(self, tokens: np.ndarray) -> bytes:
        """
        Write vectors as bytes.

        :param tokens: As the model gives them, of length 1. Shape: (tokens, model dimensions).
        :returns: `dimensions` bytes for each vector, and after all of these their scales, two bytes each.
        """
        rows = tokens if self.projection is None else unit_rows(tokens @ self.projection)
        scales = (np.abs(rows).max(axis=1, initial=0.0) / _LEVELS).astype(_SCALE)
        # Divided by the rounded scale, so that what is read back is as near as can be.
        steps = np.maximum(scales, np.finfo(_SCALE).tiny).astype(np.float32)[:, None]
        values = np.clip(np.rint(rows / steps), -_LEVELS, _LEVELS).astype(np.int8)
        packed: bytes = values.tobytes() + scales.tobytes()
        return packed

    def unpack(self, blobs: list[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """
        Read the vectors of some children.

        :param blobs: What `pack` gave for each.
        :returns: Where each child's rows begin and end, shape (children + 1,); all values, shape (rows, dimensions),
            int8; their scales, which give the rows the length 1, shape (rows,), float32.
        """
        counts = [len(blob) // (self.dimensions + _SCALE.itemsize) for blob in blobs]
        bounds = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        values = np.empty((bounds[-1], self.dimensions), dtype=np.int8)
        scales = np.empty(bounds[-1], dtype=np.float32)
        for blob, count, start in zip(blobs, counts, bounds.tolist(), strict=False):
            rows = np.frombuffer(blob, dtype=np.int8, count=count * self.dimensions)
            values[start : start + count] = rows.reshape(count, self.dimensions)
            scales[start : start + count] = np.frombuffer(blob, dtype=_SCALE, offset=rows.size)
        return bounds, values, scales

    def rows(self, blob: bytes) -> np.ndarray:
        """
        Give back one child's vectors as numbers.

        :param blob: What `pack` gave.
        :returns: Shape: (tokens, dimensions), float32.
        """
        _, values, scales = self.unpack([blob])
        return np.asarray(values * scales[:, None])


def fit(batches: Iterable[np.ndarray], model_dimensions: int) -> TokenQuantiser:
    """
    Find the directions to keep.

    :param batches: Token vectors of length 1. Shape of each: (tokens, model dimensions).
    :param model_dimensions: How many numbers the model gives.
    :returns: The quantiser, the same one for the same vectors.
    """
    moments = np.zeros((model_dimensions, model_dimensions))
    for rows in batches:
        moments += rows.T @ rows
    _, directions = np.linalg.eigh(moments)
    # eigh gives the greatest last.
    kept = np.ascontiguousarray(directions[:, ::-1][:, :DIMENSIONS], dtype=np.float32)
    return TokenQuantiser(kept, kept.shape[1])
