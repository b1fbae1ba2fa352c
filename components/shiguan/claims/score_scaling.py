"""Brings the scores of passages to one scale, whatever ranked them."""

from collections.abc import Hashable, Mapping
from math import isfinite, isnan
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
# A passage without a score is neither good nor bad.
_UNKNOWN = 0.5


def scaled_scores(scores: Mapping[Key, float | None]) -> dict[Key, float]:
    """
    Scale scores to 0..1.

    Scores that are all within 0 and 1 stay as they are; with larger ones all are divided by the largest; with negative
    ones (logits of a ranker) they are spread between the lowest, 0, and the highest, 1.
    """
    known = [score for score in scores.values() if score is not None and isfinite(score)]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)

    def scaled(score: float | None) -> float:
        if score is None or isnan(score):
            return _UNKNOWN
        if low < 0:
            value = (score - low) / (high - low) if high > low else _UNKNOWN
        else:
            value = score / high if high > 1 else score
        return min(max(value, 0.0), 1.0)

    return {key: scaled(score) for key, score in scores.items()}
