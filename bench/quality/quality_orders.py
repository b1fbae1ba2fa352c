"""Ways to make one ranked list of children out of several, as plain functions over ranked lists."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean, pstdev

from haystack import Document

Lists = Sequence[Sequence[Document]]
Order = Callable[[Lists], list[Document]]


def reciprocal_rank(k: int = 60, weights: Sequence[float] | None = None) -> Order:
    """
    Fuse by rank: each list gives a document weight / (k + rank), ranks from 1.

    Cormack, Clarke and Buettcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods"
    (SIGIR 2009), who take k = 60; so does Haystack's `DocumentJoiner`, which has no parameter for it.
    """

    def gains(number: int, documents: Sequence[Document]) -> list[float]:
        weight = 1.0 if weights is None else weights[number]
        return [weight / (k + rank) for rank in range(1, len(documents) + 1)]

    return _summed(gains)


def weighted_sum(weights: Sequence[float]) -> Order:
    """
    Fuse by score: each list's scores are brought to mean 0 and deviation 1, weighted and added.

    A document that a list does not have gets that list's lowest score.
    """

    def gains(number: int, documents: Sequence[Document]) -> list[float]:
        scores = [document.score or 0.0 for document in documents]
        spread = pstdev(scores) or 1.0
        mean = fmean(scores)
        standard = [(score - mean) / spread for score in scores]
        return [weights[number] * (value - min(standard)) for value in standard]

    return _summed(gains)


def only(number: int) -> Order:
    """Take one list as it is."""
    return lambda lists: list(lists[number])


def _summed(gains: Callable[[int, Sequence[Document]], list[float]]) -> Order:
    def order(lists: Lists) -> list[Document]:
        documents: dict[str, Document] = {}
        totals: dict[str, float] = defaultdict(float)
        for number, ranked in enumerate(lists):
            if not ranked:
                continue
            for document, gain in zip(ranked, gains(number, ranked), strict=True):
                documents.setdefault(document.id, document)
                totals[document.id] += gain
        # Later stages sort by score again, and scores of two kinds are no order.
        return [replace(documents[key], score=totals[key]) for key in sorted(totals, key=lambda key: -totals[key])]

    return order
