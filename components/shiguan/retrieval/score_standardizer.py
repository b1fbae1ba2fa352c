"""Brings the scores of a retriever to a scale that all retrievers share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import pstdev
from typing import Self

from haystack import Document, component

RETRIEVALS = ("hybrid", "words", "vectors")
"""Which lists passages may come from."""

# Stores compute with 32 bits: equal passages differ by as much, and dividing by that would make an order of noise.
_NOISE = 1e-6
# What the better of two hits gets whatever their scores, for these lie one deviation each from their mean.
_WITHOUT_SPREAD = 2.0
# Cosines that lie closer tell next to nothing: fifty passages of classical Chinese have .0035 among them, of other
# texts .01 to .02, and the first of them is no answer for standing out of so little.
LEAST_DEVIATION = 0.006


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
    stands out in its own language counts; `LanguageBalancer` then weighs the languages.

    Where all scores are equal, or there is one hit alone, there is no deviation to divide by. Each of them gets 2,
    what the better one of any two hits gets, so that being found still counts.

    Example:
    ```python
    ScoreStandardizer().run(documents=[Document(content="a", score=9.0), Document(content="b", score=7.0)])
    # scores 2.0 and 0.0
    ```
    """

    def __init__(self, *, finds_by: str = "") -> None:
        """
        Say whose list it is.

        :param finds_by: `words` or `vectors`: how the list was found, so that `retrieval` can leave it out. A deviation
            of vectors below .006 counts as .006 (docs/decisions/0012 has the numbers).
        :raises ValueError: If it is neither.
        """
        if finds_by not in ("", *RETRIEVALS[1:]):
            raise ValueError(f"`finds_by` must be one of {', '.join(RETRIEVALS[1:])}, got {finds_by!r}.")
        self.finds_by = finds_by

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document], retrieval: str = "hybrid") -> dict[str, list[Document]]:
        """
        Standardise the scores of one list.

        :param documents: What one retriever found; one without a score counts as the lowest.
        :param retrieval: `words` or `vectors` to leave out a list that was found the other way.
        :returns: `documents`, copies in the same order with scores from 0.
        :raises ValueError: If `retrieval` is none of the three.
        """
        if left_out(self.finds_by, retrieval):
            return {"documents": []}
        return {"documents": standardized(documents, LEAST_DEVIATION if self.finds_by == "vectors" else 0.0)}


def left_out(finds_by: str, retrieval: str) -> bool:
    """Tell whether a list does not count, by how it was found."""
    if retrieval not in RETRIEVALS:
        raise ValueError(f"`retrieval` must be one of {', '.join(RETRIEVALS)}, got {retrieval!r}.")
    return bool(finds_by) and retrieval not in ("hybrid", finds_by)


def standardized(documents: Sequence[Document], least_deviation: float = 0.0) -> list[Document]:
    """Copy documents with their scores standardised within each language, shifted so that its lowest is 0."""
    languages = [str(document.meta.get("language")) for document in documents]
    lists: dict[str, list[float | None]] = {language: [] for language in languages}
    for document, language in zip(documents, languages, strict=True):
        lists[language].append(document.score)
    scales = {language: _Scale.of(scores, least_deviation) for language, scores in lists.items()}
    return [
        replace(document, score=scales[language].standardized(document.score))
        for document, language in zip(documents, languages, strict=True)
    ]


@dataclass(frozen=True)
class _Scale:
    """What the scores of one language in one list are measured by."""

    lowest: float
    spread: float

    @classmethod
    def of(cls, scores: list[float | None], least: float) -> Self:
        """Measure scores: a missing one is as low as the lowest, a spread of noise is none, any other has a least."""
        known = [score for score in scores if score is not None]
        lowest, best = min(known, default=0.0), max(known, default=0.0)
        spread = pstdev(lowest if score is None else score for score in scores)
        return cls(lowest, max(spread, least) if spread > _NOISE * max(abs(lowest), abs(best)) else 0.0)

    def standardized(self, score: float | None) -> float:
        """Give a score in deviations above the lowest."""
        above = self.lowest if score is None else score
        return (above - self.lowest) / self.spread if self.spread else _WITHOUT_SPREAD
