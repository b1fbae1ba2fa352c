"""
Brings the scores of one list to a scale that the lists of words and of vectors share, so that they can be added up.

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
from dataclasses import dataclass
from typing import Self

import numpy as np
from haystack.dataclasses import Document

from shiguan.text.passages import rescored

RAW_SCORE = "raw_score"
"""Where a scaled document keeps the retriever's own score, in its meta."""
LEAST_DEVIATION_OF_COSINES = 0.006
"""Cosines that lie closer tell next to nothing: fifty passages of classical Chinese have .0035 among them, of other
texts .01 to .02, and the first of them is no answer for standing out of so little."""

# Stores compute with 32 bits: equal passages differ by as much, and dividing by that would make an order of noise.
_NOISE = 1e-6
# What each of equal scores gets, and a single one: the better of any two lies so far above the other.
_WITHOUT_SPREAD = 2.0
_SECOND_MATCH = 0.2


def scaled(documents: Sequence[Document], least_deviation: float = 0.0) -> list[Document]:
    """Copy documents with their scores scaled within each language, from 0, and the raw score in `meta`."""
    lists: dict[str, list[float]] = {}
    for document in documents:
        lists.setdefault(_language(document), []).append(document.score or 0.0)
    scales = {language: _Scale.of(scores, least_deviation) for language, scores in lists.items()}
    scores = [scales[_language(document)].scaled(document.score or 0.0) for document in documents]
    families: dict[str, list[float]] = {}
    for document, score in zip(documents, scores, strict=True):
        families.setdefault(_parent(document), []).append(score)
    return [
        rescored(
            document,
            score + _SECOND_MATCH * _second_match(families[_parent(document)], score),
            **{RAW_SCORE: document.score},
        )
        for document, score in zip(documents, scores, strict=True)
    ]


def _second_match(family: Sequence[float], score: float) -> float:
    """Give the score of the best other child of the same passage, no more than the child's own."""
    first, second, *_ = [*sorted(family, reverse=True), 0.0]
    return min(second if score == first else first, score)


def _language(document: Document) -> str:
    return str(document.meta.get("language"))


def _parent(document: Document) -> str:
    return str(document.meta.get("parent_id") or document.id)


@dataclass(frozen=True)
class _Scale:
    """What the scores of one language in one list are measured by."""

    lowest: float
    deviation: float

    @classmethod
    def of(cls, scores: Sequence[float], least: float) -> Self:
        """Measure scores; a deviation of noise is none, any other has a least."""
        lowest, deviation = min(scores), float(np.std(scores))
        return cls(lowest, max(deviation, least) if deviation > _NOISE * max(map(abs, scores)) else 0.0)

    def scaled(self, score: float) -> float:
        """Give a score in deviations above the lowest."""
        return (score - self.lowest) / self.deviation if self.deviation else _WITHOUT_SPREAD
