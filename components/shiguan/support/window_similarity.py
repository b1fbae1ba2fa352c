"""Asks an embedder how near claims and windows of sentences are in meaning."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from haystack import Document

from shiguan.support.languages import detect_language


class DocumentEmbedder(Protocol):
    """Any of Haystack's document embedders."""

    def run(self, documents: list[Document]) -> dict[str, Any]:
        """Give the documents back with their embeddings, in `documents`."""


def window_similarities(
    embedder: DocumentEmbedder, pairs: Sequence[tuple[str, Sequence[str]]], languages: Sequence[str] | None
) -> list[float | None]:
    """
    Compare each claim with its windows, all in one call of the embedder.

    :param embedder: A document embedder.
    :param pairs: Each claim with the windows that have most of its words.
    :param languages: ISO 639-1 codes that the embedder knows; None for all.
    :returns: The highest cosine similarity of each claim, -1 to 1; None for a claim in another language or without a
        window in one of them.
    """
    known: dict[str, bool] = {}

    def knows(text: str) -> bool:
        if text not in known:
            known[text] = bool(text.strip()) and (languages is None or detect_language(text) in languages)
        return known[text]

    usable = [
        (claim, [window for window in windows if knows(window)]) if knows(claim) else ("", [])
        for claim, windows in pairs
    ]
    texts = sorted({text for claim, windows in usable if windows for text in (claim, *windows)}, key=len, reverse=True)
    if not texts:
        return [None] * len(pairs)
    embedded = embedder.run(documents=[Document(content=text) for text in texts])["documents"]
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
