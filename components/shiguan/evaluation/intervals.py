"""How sure a number is: means with bootstrap intervals, drawn from the questions of a set."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy
from scipy import stats

CONFIDENCE = 0.95
"""How often an interval holds what it is for."""

RESAMPLES = 10_000
"""How often the questions are drawn again."""

_BATCH = 500
"""Draws at a time, which bounds memory."""


@dataclass(frozen=True)
class Estimate:
    """A mean over questions with its interval."""

    value: float
    low: float
    high: float
    count: int

    def to_json(self) -> dict[str, Any]:
        """Write the estimate as JSON knows it."""
        return {name: round(value, 6) for name, value in asdict(self).items()}


def estimate_mean(values: Sequence[float], *, seed: int = 0) -> Estimate:
    """
    Give the mean of one number per question, and how far it would move on other questions of the same kind.

    The interval is the percentile bootstrap over questions (Efron and Tibshirani, "An Introduction to the Bootstrap",
    1993, chapter 13). Where every value is 0, or every value is 1, there is nothing to draw: the interval of the
    binomial distribution (Clopper and Pearson 1934) stands instead, for twenty hits of twenty are no proof of 1.
    """
    if not len(values):
        raise ValueError("A mean needs at least one value, got none.")
    data = numpy.asarray(values, dtype=float)
    mean = float(data.mean())
    if data.min() == data.max():
        if mean in (0.0, 1.0):
            exact = stats.binomtest(round(mean * len(data)), len(data)).proportion_ci(CONFIDENCE, method="exact")
            return Estimate(mean, float(exact.low), float(exact.high), len(data))
        return Estimate(mean, mean, mean, len(data))
    low, high = bootstrap_interval(data, seed=seed)
    return Estimate(mean, low, high, len(data))


def bootstrap_interval(values: Sequence[float] | numpy.ndarray, *, seed: int = 0) -> tuple[float, float]:
    """Draw the questions again and again, and give the middle 95 % of the means."""
    interval = stats.bootstrap(
        (numpy.asarray(values, dtype=float),),
        numpy.mean,
        n_resamples=RESAMPLES,
        batch=_BATCH,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=numpy.random.default_rng(seed),
    ).confidence_interval
    return float(interval.low), float(interval.high)
