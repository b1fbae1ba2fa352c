"""Asks an embedder how near claims and windows of sentences are in meaning."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from haystack import Document


class DocumentEmbedder(Protocol):
    """Any of Haystack's document embedders."""

    def run(self, documents: list[Document]) -> dict[str, Any]:
        """Give the documents back with their embeddings, in `documents`."""


def window_similarities(embedder: DocumentEmbedder, pairs: Sequence[tuple[str, Sequence[str]]]) -> list[float | None]:
    """
    Compare each claim with its windows, all in one call of the embedder.

    :param embedder: A document embedder.
    :param pairs: Each claim with the windows that have most of its words.
    :returns: The highest cosine similarity of each claim, -1 to 1; None for a claim without words or windows, and where
        the embedder gives no vectors.
    """
    usable = [(claim, [text for text in windows if text.strip()] if claim.strip() else []) for claim, windows in pairs]
    texts = sorted({text for claim, windows in usable if windows for text in (claim, *windows)}, key=len, reverse=True)
    if not texts:
        return [None] * len(pairs)
    embedded = embedder.run(documents=[Document(content=text) for text in texts])["documents"]
    if not all(document.embedding for document in embedded):
        return [None] * len(pairs)
    place = {document.content: row for row, document in enumerate(embedded)}
    # Shape: (number of texts, embedding size).
    vectors = np.asarray([document.embedding for document in embedded], dtype=np.float32)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    found: list[float | None] = []
    for claim, windows in usable:
        if not windows:
            found.append(None)
            continue
        others = vectors[[place[window] for window in windows]]
        found.append(float((others @ vectors[place[claim]]).max()))
    return found
