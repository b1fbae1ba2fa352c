"""Compares two runs on the same questions: what differs, how sure that is, and what the set could show at all."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy
from scipy import stats

from shiguan.evaluation.intervals import CONFIDENCE, bootstrap_interval

Verdict = Literal["better", "worse", "no difference shown"]

POWER = 0.8
"""How often a difference of the smallest detectable size would be seen."""

_TIE = 1.5e-6
"""Values that differ by less are the same: results files keep six places, and sums of logarithms end in noise."""


@dataclass(frozen=True)
class Difference:
    """One metric of run B against run A."""

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

    @property
    def verdict(self) -> Verdict:
        """`better` or `worse` only where the interval excludes zero."""
        if self.low <= 0 <= self.high:
            return "no difference shown"
        return "better" if (self.low > 0) == self.higher_is_better else "worse"


def compare_metric(
    metric: str, before: Sequence[float], after: Sequence[float], *, higher_is_better: bool = True, seed: int = 0
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
        p_value=float(stats.binomtest(up, up + down).pvalue) if up + down else 1.0,
        count=len(changes),
        higher_is_better=higher_is_better,
    )


def _detectable(changes: numpy.ndarray) -> float:
    count = len(changes)
    spread = float(changes.std(ddof=1)) if count > 1 else 0.0
    if not spread:
        return min(1.0, 6 / count)
    quantiles = stats.norm.ppf([1 - (1 - CONFIDENCE) / 2, POWER])
    return float(quantiles.sum()) * spread / math.sqrt(count)
