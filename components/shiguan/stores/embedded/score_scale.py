"""
Scales the scores of one list so that those of words and of vectors can be added up.

A score becomes `(score - lowest) / sd` over the list. The sum that a `DocumentJoiner` with `join_mode: merge` makes of
two such lists is the sum of standardised scores up to a constant, in which a passage that a list does not have counts
as its lowest: Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval" (ACM TOIS 2023), section 4,
https://arxiv.org/abs/2210.11934. The scale and the zero of a retriever's scores then play no part.

Each language is scaled by itself: BM25 scores of two vocabularies do not compare, and vectors of different languages
lie farther apart than their meanings. What stands out in its own language counts; `LanguageBalancer` then weighs the
languages.

A child gains a fifth of what another child of its passage has: where two places of a passage match, one of them is
less likely to have matched by accident. This belongs to each list and not to their sum, since ranks lie so close
together that any passage found twice would come first (docs/decisions/0012-one-fusion.md has the table).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from haystack.dataclasses import Document

from shiguan.text.passages import rescored

RAW_SCORE = "raw_score"
"""Where a scaled document keeps the retriever's own score, in its meta."""
LEAST_DEVIATION_OF_COSINES = 0.006
"""Cosines that lie closer mean next to nothing: fifty passages of classical Chinese have .0035 among them, of other
texts .01 to .02, and the first of them is not an answer because it stands out from so little."""

# Stores compute with 32 bits: equal passages differ by as much, and dividing by that would make an order of noise.
_NOISE = 1e-6
# What each of equal scores gets, and a single one: the better of any two lies so far above the other.
_WITHOUT_SPREAD = 2.0
_SECOND_MATCH = 0.2


def scaled(documents: Sequence[Document], least_deviation: float = 0.0) -> list[Document]:
    """Copy documents with their scores scaled within each language, from 0, and the raw score in `meta`."""
    scores = [_WITHOUT_SPREAD] * len(documents)
    places: dict[Any, list[int]] = {}
    for at, document in enumerate(documents):
        places.setdefault(document.meta.get("language"), []).append(at)
    for own in places.values():
        raw = np.array([documents[at].score or 0.0 for at in own])
        deviation = raw.std()
        if deviation > _NOISE * np.abs(raw).max():
            above = (raw - raw.min()) / max(deviation, least_deviation)
            for at, score in zip(own, above.tolist(), strict=True):
                scores[at] = score
    passages = [document.meta.get("parent_id") or document.id for document in documents]
    best_two: dict[str, tuple[float, float]] = {}
    for passage, score in zip(passages, scores, strict=True):
        first, second = best_two.get(passage, (0.0, 0.0))
        if score > second:
            best_two[passage] = (score, first) if score > first else (first, score)
    for at, passage in enumerate(passages):
        first, second = best_two.get(passage, (0.0, 0.0))
        other = second if scores[at] == first else first  # the best other child of the same passage
        scores[at] += _SECOND_MATCH * min(other, scores[at])
    found = rescored(documents, scores)
    for twin, document in zip(found, documents, strict=True):
        twin.meta[RAW_SCORE] = document.score
    return found
