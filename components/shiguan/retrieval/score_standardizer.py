"""Brings the scores of a retriever to a scale that all retrievers share."""

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from haystack import Document, component

# Stores compute with 32 bits: equal passages differ by as much, and dividing by that would make an order of noise.
_NOISE = 1e-6
# What the better of two hits gets whatever their scores, for these lie one deviation each from their mean.
_WITHOUT_SPREAD = 2.0


@component
class ScoreStandardizer:
    """
    Makes scores of words and of vectors fit to be added up.

    Stands behind each retriever, before a `DocumentJoiner` with `join_mode: merge`. A score becomes
    `(score - mean) / sd` over the list, shifted so that the lowest is 0. The sum that the joiner then makes is the sum
    of standardised scores up to a constant, in which a passage that a list does not have counts as its lowest: Bruch,
    Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval" (ACM TOIS 2023), section 4,
    https://arxiv.org/abs/2210.11934. Scale and zero of a retriever's scores then play no part.

    Where all scores are equal, or there is one hit alone, there is no deviation to divide by. Each of them gets 2,
    what the better one of any two hits gets, so that being found still counts.

    Example:
    ```python
    ScoreStandardizer().run(documents=[Document(content="a", score=9.0), Document(content="b", score=7.0)])
    # scores 2.0 and 0.0
    ```
    """

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """
        Standardise the scores of one list.

        :param documents: What one retriever found; one without a score counts as the lowest.
        :returns: `documents`, copies in the same order with scores from 0.
        """
        return {"documents": standardized(documents)}


def standardized(documents: Sequence[Document]) -> list[Document]:
    """Copy documents with their scores standardised over the list and shifted so that the lowest is 0."""
    known = [document.score for document in documents if document.score is not None]
    lowest = min(known, default=0.0)
    scores = [lowest if document.score is None else document.score for document in documents]
    if not scores:
        return []
    mean = fmean(scores)
    spread = math.sqrt(fmean((score - mean) ** 2 for score in scores))
    if spread <= _NOISE * max(abs(score) for score in scores):
        return [replace(document, score=_WITHOUT_SPREAD) for document in documents]
    return [
        replace(document, score=(score - lowest) / spread) for document, score in zip(documents, scores, strict=True)
    ]
