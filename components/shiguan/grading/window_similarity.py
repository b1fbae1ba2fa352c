"""Compares claims and windows of sentences in meaning, by an embedder."""

from collections.abc import Sequence
from inspect import signature
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from haystack import Document, logging
from haystack.components.embedders.types import DocumentEmbedder

from shiguan.llm.run import CheckStoppedError, current_run, raise_if_cancelled
from shiguan.models.engine import VectorMemory

# A check whose question was cancelled ends after its current slice of texts.
_SLICE = 32
# A second attempt and the next turn of a conversation check much the same passages; about ten MB for each embedder.
_REMEMBERED = 4_000
_memories: "WeakKeyDictionary[DocumentEmbedder, VectorMemory]" = WeakKeyDictionary()

logger = logging.getLogger(__name__)


def try_similarities(
    embedder: DocumentEmbedder | None, pairs: Sequence[tuple[str, Sequence[str]]]
) -> tuple[list[float | None], list[str]]:
    if embedder is None or not pairs:
        return [None] * len(pairs), []
    try:
        return window_similarities(embedder, pairs), []
    except CheckStoppedError:
        raise
    # Any embedder may be configured, so any error may occur.
    except Exception as error:
        logger.warning("The embedder failed in the check of an answer: {error}", error=repr(error))
        kind = type(error).__name__
        return [None] * len(pairs), [f"The embedder failed ({kind}); the answer was checked by words alone."]


def window_similarities(embedder: DocumentEmbedder, pairs: Sequence[tuple[str, Sequence[str]]]) -> list[float | None]:
    """Compare each claim with its windows; texts that were recently compared for the tenant are not embedded again."""
    usable = [(claim, [text for text in windows if text.strip()] if claim.strip() else []) for claim, windows in pairs]
    claims = {claim for claim, windows in usable if windows}
    windows_of_all = {window for _, windows in usable for window in windows}
    # A claim is embedded like a question, because it is compared with passages.
    asking = {"kind": "query"} if "kind" in signature(embedder.run).parameters else {}
    of_claims, of_windows = _vectors(embedder, claims, **asking), _vectors(embedder, windows_of_all)
    if not of_claims or not of_windows:
        return [None] * len(pairs)
    return [
        max((float(of_windows[window] @ of_claims[claim]) for window in windows), default=None)
        for claim, windows in usable
    ]


def _vectors(embedder: DocumentEmbedder, wanted: set[str], **options: str) -> dict[str, np.ndarray]:
    """Return the unit vector of each text; empty where the embedder gives none."""
    texts = sorted(wanted, key=len)
    if not texts:
        return {}
    run = current_run()
    if run is None or not run.tenant_id:
        vectors = _embedded(embedder, texts, **options)
    else:
        memory = _memories.setdefault(embedder, VectorMemory(_REMEMBERED))
        kind = options.get("kind", "passage")
        vectors = memory.vectors(run.tenant_id, kind, texts, lambda new: _embedded(embedder, new, **options))
    return dict(zip(texts, vectors, strict=True)) if len(vectors) == len(texts) else {}


def _embedded(embedder: DocumentEmbedder, texts: Sequence[str], **options: str) -> list[np.ndarray]:
    run: Any = embedder.run
    embedded: list[Document] = []
    for at in range(0, len(texts), _SLICE):
        raise_if_cancelled()
        batch = [Document(content=text) for text in texts[at : at + _SLICE]]
        embedded += run(documents=batch, **options)["documents"]
    if not all(document.embedding for document in embedded):
        return []
    vectors = np.asarray([document.embedding for document in embedded], dtype=np.float32)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return list(vectors)
