"""The comparison of one metric in two runs, question by question."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy

from shiguan.evaluation.metrics import bootstrap_interval, metric

_QUANTILES = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)  # detected in 80 % of cases
# Values that differ by less count as equal: results files keep six decimals.
_TIE = 1.5e-6


@dataclass(frozen=True)
class Difference:
    """One metric of run B against run A, see `compare_metric`; `count` questions have it in both."""

    metric: str
    before: float
    after: float
    difference: float
    low: float
    high: float
    detectable: float
    gained: int
    lost: int
    count: int
    higher_is_better: bool = True
    paired: bool = True

    @property
    def verdict(self) -> Literal["better", "worse", "no difference shown", "not judged"]:
        """`better` or `worse` only where the interval excludes zero and both runs had the same conditions."""
        if not self.paired:
            return "not judged"
        if self.low <= 0 <= self.high:
            return "no difference shown"
        return "better" if (self.low > 0) == self.higher_is_better else "worse"


def compare_metric(name: str, before: Sequence[float], after: Sequence[float]) -> Difference:
    """
    Compare one metric of two runs, question by question.

    The interval is the percentile bootstrap of the mean difference (Efron and Tibshirani 1993, chapter 13). The
    smallest detectable difference is (z for 95 % + z for 80 % power) * standard deviation of the differences /
    sqrt(questions); where no question changed, six, all in one direction.
    """
    if len(before) != len(after) or not len(before):
        raise ValueError(f"`{name}` needs the same number of values twice, got {len(before)} and {len(after)}.")
    old, new = numpy.asarray(before, dtype=float), numpy.asarray(after, dtype=float)
    changes = new - old
    changes[numpy.abs(changes) < _TIE] = 0.0
    up, down = int((changes > 0).sum()), int((changes < 0).sum())
    low, high = bootstrap_interval(changes)
    spread = float(changes.std(ddof=1)) if len(changes) > 1 else 0.0
    higher_is_better = metric(name).higher_is_better
    return Difference(
        metric=name,
        before=float(old.mean()),
        after=float(new.mean()),
        difference=float(changes.mean()),
        low=low,
        high=high,
        detectable=_QUANTILES * spread / math.sqrt(len(changes)) if spread else min(1.0, 6 / len(changes)),
        gained=up if higher_is_better else down,
        lost=down if higher_is_better else up,
        count=len(changes),
        higher_is_better=higher_is_better,
        # The second run finds a warm machine: a verdict on latency would be about that.
        paired=name != "latency_ms",
    )
