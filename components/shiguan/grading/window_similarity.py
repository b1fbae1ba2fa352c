"""Asks an embedder how near claims and windows of sentences are in meaning."""

from collections.abc import Sequence
from inspect import signature
from typing import Any

import numpy as np
from haystack import Document, logging
from haystack.components.embedders.types import DocumentEmbedder

from shiguan.claims.checker import CheckStoppedError, go_on

# After each slice of texts a check whose question was cancelled ends.
_SLICE = 32

logger = logging.getLogger(__name__)


def try_similarities(
    embedder: DocumentEmbedder | None, pairs: Sequence[tuple[str, Sequence[str]]], *, raise_on_failure: bool
) -> tuple[list[float | None], list[str]]:
    """Compare where there is an embedder, and warn where it fails."""
    if embedder is None or not pairs:
        return [None] * len(pairs), []
    try:
        return window_similarities(embedder, pairs), []
    except CheckStoppedError:
        raise
    # Any embedder may stand here, so any error may come.
    except Exception as error:
        if raise_on_failure:
            raise
        logger.warning("The embedder failed in the check of an answer: {error}", error=repr(error))
        kind = type(error).__name__
        return [None] * len(pairs), [f"The embedder failed ({kind}); the answer was checked by words alone."]


def window_similarities(embedder: DocumentEmbedder, pairs: Sequence[tuple[str, Sequence[str]]]) -> list[float | None]:
    """Compare each claim with its windows, in two calls of the embedder."""
    usable = [(claim, [text for text in windows if text.strip()] if claim.strip() else []) for claim, windows in pairs]
    claims = sorted({claim for claim, windows in usable if windows}, key=len)
    windows_of_all = sorted({window for _, windows in usable for window in windows}, key=len)
    if not claims:
        return [None] * len(pairs)
    # A claim looks for what supports it, as a question does.
    asking = {"kind": "query"} if "kind" in signature(embedder.run).parameters else {}
    of_claims, of_windows = _vectors(embedder, claims, **asking), _vectors(embedder, windows_of_all)
    if not of_claims or not of_windows:
        return [None] * len(pairs)
    found: list[float | None] = []
    for claim, windows in usable:
        if not windows:
            found.append(None)
            continue
        found.append(max(float(of_windows[window] @ of_claims[claim]) for window in windows))
    return found


def _vectors(embedder: DocumentEmbedder, texts: list[str], **options: str) -> dict[str, np.ndarray]:
    """Give each text its unit vector; nothing where the embedder gives none."""
    run: Any = embedder.run
    embedded: list[Document] = []
    for at in range(0, len(texts), _SLICE):
        go_on()
        some = [Document(content=text) for text in texts[at : at + _SLICE]]
        embedded += run(documents=some, **options)["documents"]
    if not all(document.embedding for document in embedded):
        return {}
    vectors = np.asarray([document.embedding for document in embedded], dtype=np.float32)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return dict(zip(texts, vectors, strict=True))
