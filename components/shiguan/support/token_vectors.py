"""The stored token vectors of some children, as a ranker reads them."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class TokenVectors:
    """
    The token vectors of the children that were asked for, one below the other, and what a question needs to meet them.

    The similarity of a question's token `q` and the row `r` is their cosine, as nearly as quantised vectors tell,
    `(project(q) @ values[r]) * scales[r]`, about -1 to 1.

    :param ids: The children that have vectors, in the order they were asked for.
    :param bounds: Where each child's rows begin and end: those of `ids[i]` are `bounds[i]:bounds[i + 1]`. Shape:
        (children + 1,). A child without tokens has no rows.
    :param values: The vectors, quantised. Shape: (rows, dimensions), int8.
    :param scales: What products with each row are multiplied by. Shape: (rows,), float32.
    :param projection: What turns the model's vectors into the stored ones; None where those are as the model gave them.
        Shape: (model dimensions, dimensions), float32.
    :param frequencies: How many of all stored children have each token, by the token's id. Shape: (vocabulary,), int32;
        ids beyond its end were never seen.
    :param children: How many children have vectors in the store.
    """

    ids: list[str]
    bounds: np.ndarray
    values: np.ndarray
    scales: np.ndarray
    projection: np.ndarray | None
    frequencies: np.ndarray
    children: int

    def project(self, tokens: np.ndarray) -> np.ndarray:
        """
        Bring a question's token vectors into the space of the stored ones.

        :param tokens: As `TokenEncoder` gives them. Shape: (tokens, model dimensions).
        :returns: Rows of length 1 (0 for a row of zeros). Shape: (tokens, dimensions), float32.
        """
        projected = tokens if self.projection is None else tokens @ self.projection
        return unit_rows(projected)

    def idf(self, token_ids: np.ndarray) -> np.ndarray:
        """
        Say how rare tokens are among the stored children.

        :param token_ids: The ids of a question's tokens. Shape: (tokens,).
        :returns: ln(1 + (N - n + 0.5) / (n + 0.5)) for each, N the children and n those with the token: above 0, as
            the store's BM25 counts it. Shape: (tokens,), float32.
        """
        ids = np.asarray(token_ids, dtype=np.int64)
        found = np.zeros(len(ids), dtype=np.float32)
        known = ids < len(self.frequencies)
        found[known] = self.frequencies[ids[known]]
        return np.log1p((self.children - found + 0.5) / (found + 0.5)).astype(np.float32)


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """
    Give rows the length 1.

    :param rows: Shape: (rows, dimensions).
    :returns: The same directions; rows of zeros stay. Shape: (rows, dimensions), float32.
    """
    rows = np.asarray(rows, dtype=np.float32)
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    norms[norms == 0] = 1.0
    return np.asarray(rows / norms[:, None])
