"""How sure a number is, and a difference of two: bootstrap intervals over the questions of a set, and paired tests."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy

CONFIDENCE = 0.95  # how often an interval holds what it is for
POWER = 0.8  # how often a difference of the smallest detectable size would be seen
RESAMPLES = 10_000  # how often the questions are drawn again
_BATCH = 500  # draws at a time, which bounds memory

Verdict = Literal["better", "worse", "no difference shown", "not judged"]

_TIE = 1.5e-6
"""Values that differ by less are the same: results files keep six places, and sums of logarithms end in noise."""


@dataclass(frozen=True)
class Estimate:
    """A mean over questions with its interval."""

    value: float
    low: float
    high: float
    count: int

    def to_json(self) -> dict[str, Any]:
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
            # Clopper and Pearson's interval in closed form, which it has at both ends.
            end = ((1 - CONFIDENCE) / 2) ** (1 / len(data))
            return Estimate(mean, end, 1.0, len(data)) if mean else Estimate(mean, 0.0, 1 - end, len(data))
        return Estimate(mean, mean, mean, len(data))
    low, high = bootstrap_interval(data, seed=seed)
    return Estimate(mean, low, high, len(data))


def bootstrap_interval(values: Sequence[float] | numpy.ndarray, *, seed: int = 0) -> tuple[float, float]:
    """Draw the questions again and again, and give the middle 95 % of the means."""
    data = numpy.asarray(values, dtype=float)
    rng = numpy.random.default_rng(seed)
    means = [
        data[rng.integers(0, len(data), (min(_BATCH, RESAMPLES - start), len(data)))].mean(axis=-1)
        for start in range(0, RESAMPLES, _BATCH)
    ]
    tail = (1 - CONFIDENCE) / 2
    low, high = numpy.quantile(numpy.concatenate(means), [tail, 1 - tail])
    return float(low), float(high)


@dataclass(frozen=True)
class Difference:
    """
    One metric of run B against run A: the means, B minus A with its interval, and the smallest difference that would be
    seen on this set in 80 % of the cases; how many questions gained and lost, and McNemar's exact test of them.
    """

    metric: str
    before: float
    after: float
    difference: float
    low: float
    high: float
    detectable: float
    gained: int
    lost: int
    p_value: float
    count: int
    higher_is_better: bool = True
    paired: bool = True

    @property
    def verdict(self) -> Verdict:
        """`better` or `worse` only where the interval excludes zero, and the two runs had the same circumstances."""
        if not self.paired:
            return "not judged"
        if self.low <= 0 <= self.high:
            return "no difference shown"
        return "better" if (self.low > 0) == self.higher_is_better else "worse"


def compare_metric(
    metric: str,
    before: Sequence[float],
    after: Sequence[float],
    *,
    higher_is_better: bool = True,
    paired: bool = True,
    seed: int = 0,
) -> Difference:
    """
    Compare one metric of two runs, question by question.

    Pairs tell more than two intervals side by side, since most of what moves a number is the questions themselves.
    The interval is the percentile bootstrap of the mean difference (Efron and Tibshirani 1993, chapter 13). McNemar's
    test (1947), in its exact form, asks whether the questions that changed went one way more often than a coin would;
    for a graded metric it is the sign test, which is the same. The smallest detectable difference is
    (z for 95 % + z for 80 % power) * standard deviation of the differences / sqrt(questions); where no question
    changed, the six questions that an exact test needs, all in one direction.
    """
    if len(before) != len(after) or not len(before):
        raise ValueError(f"`{metric}` needs the same number of values twice, got {len(before)} and {len(after)}.")
    old, new = numpy.asarray(before, dtype=float), numpy.asarray(after, dtype=float)
    changes = new - old
    changes[numpy.abs(changes) < _TIE] = 0.0
    up, down = int((changes > 0).sum()), int((changes < 0).sum())
    mean = float(changes.mean())
    same = changes.min() == changes.max()
    low, high = (mean, mean) if same else bootstrap_interval(changes, seed=seed)
    return Difference(
        metric=metric,
        before=float(old.mean()),
        after=float(new.mean()),
        difference=mean,
        low=low,
        high=high,
        detectable=_detectable(changes),
        gained=up if higher_is_better else down,
        lost=down if higher_is_better else up,
        p_value=_mcnemar(up, down),
        count=len(changes),
        higher_is_better=higher_is_better,
        paired=paired,
    )


def _mcnemar(up: int, down: int) -> float:
    """How often a fair coin, thrown once for each changed question, falls as unevenly as this; McNemar's exact test."""
    count, fewer = up + down, min(up, down)
    falls: int = 2**count
    return min(1.0, 2 * sum(math.comb(count, k) for k in range(fewer + 1)) / falls)


def _detectable(changes: numpy.ndarray) -> float:
    count = len(changes)
    spread = float(changes.std(ddof=1)) if count > 1 else 0.0
    if not spread:
        return min(1.0, 6 / count)
    normal = NormalDist()
    quantiles = normal.inv_cdf(1 - (1 - CONFIDENCE) / 2) + normal.inv_cdf(POWER)
    return quantiles * spread / math.sqrt(count)
