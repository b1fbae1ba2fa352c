"""How sure a number is: means with bootstrap intervals, drawn from the questions of a set."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy

CONFIDENCE = 0.95
"""How often an interval holds what it is for."""

RESAMPLES = 10_000
"""How often the questions are drawn again."""

_BATCH = 500
"""Draws at a time, which bounds memory."""


@dataclass(frozen=True)
class Estimate:
    """
    A mean over questions with its interval.

    :param value: The mean.
    :param low: The lower end of the 95 % interval.
    :param high: The upper end.
    :param count: How many questions it is of.
    """

    value: float
    low: float
    high: float
    count: int

    def to_json(self) -> dict[str, Any]:
        """
        Write the estimate as JSON knows it.

        :returns: The four fields, rounded to six places.
        """
        return {name: round(value, 6) for name, value in asdict(self).items()}


def estimate_mean(values: Sequence[float], *, seed: int = 0) -> Estimate:
    """
    Give the mean of one number per question, and how far it would move on other questions of the same kind.

    The interval is the percentile bootstrap over questions (Efron and Tibshirani, "An Introduction to the Bootstrap",
    1993, chapter 13). Where every value is 0, or every value is 1, there is nothing to draw: the interval of the
    binomial distribution (Clopper and Pearson 1934) stands instead, for twenty hits of twenty are no proof of 1.

    :param values: One per question.
    :param seed: Makes the draws repeatable.
    :returns: The mean and its 95 % interval.
    :raises ValueError: If there are no values.
    """
    if not len(values):
        raise ValueError("A mean needs at least one value, got none.")
    data = numpy.asarray(values, dtype=float)
    mean = float(data.mean())
    if data.min() == data.max():
        if mean in (0.0, 1.0):
            # Clopper and Pearson's interval in closed form, which it has at both ends.
            end = ((1 - CONFIDENCE) / 2) ** (1 / len(data))
            return Estimate(mean, end, 1.0, len(data)) if mean else Estimate(mean, 0.0, 1 - end, len(data))
        return Estimate(mean, mean, mean, len(data))
    low, high = bootstrap_interval(data, seed=seed)
    return Estimate(mean, low, high, len(data))


def bootstrap_interval(values: Sequence[float] | numpy.ndarray, *, seed: int = 0) -> tuple[float, float]:
    """
    Draw the questions again and again, and give the middle 95 % of the means.

    :param values: One per question; not all the same.
    :param seed: Makes the draws repeatable.
    :returns: The ends of the interval.
    """
    data = numpy.asarray(values, dtype=float)
    rng = numpy.random.default_rng(seed)
    means = [
        data[rng.integers(0, len(data), (min(_BATCH, RESAMPLES - start), len(data)))].mean(axis=-1)
        for start in range(0, RESAMPLES, _BATCH)
    ]
    tail = (1 - CONFIDENCE) / 2
    low, high = numpy.quantile(numpy.concatenate(means), [tail, 1 - tail])
    return float(low), float(high)
