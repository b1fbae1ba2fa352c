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

    Passages of different languages are standardised side by side, each language from its own lowest: BM25 scores of
    two vocabularies do not compare, and vectors of different languages lie farther apart than their meanings. What
    stands out in its own language counts, whichever language the question has.

    Where all scores are equal, or there is one hit alone, there is no deviation to divide by. Each of them gets 2,
    what the better one of any two hits gets, so that being found still counts.

    Example:
    ```python
    ScoreStandardizer().run(documents=[Document(content="a", score=9.0), Document(content="b", score=7.0)])
    # scores 2.0 and 0.0
    ```
    """

    def __init__(self, *, one_spread: bool = False) -> None:
        """
        Say whether scores of different languages have the same spread.

        :param one_spread: Divide by one deviation, that of all scores from the mean of their language: for vectors,
            whose cosines differ between languages by a shift only. Otherwise each language has its own: for words.
        """
        self.one_spread = one_spread

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """
        Standardise the scores of one list.

        :param documents: What one retriever found; one without a score counts as the lowest.
        :returns: `documents`, copies in the same order with scores from 0.
        """
        return {"documents": standardized(documents, one_spread=self.one_spread)}


def standardized(documents: Sequence[Document], *, one_spread: bool = False) -> list[Document]:
    """Copy documents with their scores standardised within each language, shifted so that its lowest is 0."""
    languages = [str(document.meta.get("language")) for document in documents]
    lowest: dict[str, float] = {}
    for document, language in zip(documents, languages, strict=True):
        if document.score is not None:
            lowest[language] = min(document.score, lowest.get(language, document.score))
    above = [
        0.0 if document.score is None else document.score - lowest[language]
        for document, language in zip(documents, languages, strict=True)
    ]
    lists: dict[str, list[float]] = {language: [] for language in languages}
    for value, language in zip(above, languages, strict=True):
        lists[language].append(value)
    noise = {language: _NOISE * (abs(lowest.get(language, 0.0)) + max(values)) for language, values in lists.items()}
    if one_spread:
        spreads = dict.fromkeys(lists, _spread(*lists.values()))
    else:
        spreads = {language: _spread(values) for language, values in lists.items()}
    return [
        replace(document, score=value / spreads[language] if spreads[language] > noise[language] else _WITHOUT_SPREAD)
        for document, value, language in zip(documents, above, languages, strict=True)
    ]


def _spread(*lists: list[float]) -> float:
    """Give the deviation of scores from the mean of their own list."""
    deviations = [value - mean for values in lists for mean in [fmean(values)] for value in values]
    return math.sqrt(fmean(deviation**2 for deviation in deviations)) if deviations else 0.0
