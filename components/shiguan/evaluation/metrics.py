"""The metrics, and the confidence interval of a mean."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy

Unit = Literal["share", "tokens", "ms", "calls", "money"]


@dataclass(frozen=True)
class Metric:
    """How a metric is shown."""

    label: str
    unit: Unit = "share"
    higher_is_better: bool = True

    def format(self, value: float, *, signed: bool = False) -> str:
        sign = "+" if signed else ""
        if self.unit == "share":
            return f"{value:{sign}.3f}"
        if self.unit == "money":
            return f"{value:{sign}.5f}"
        return f"{value:{sign},.0f}" if abs(value) >= 100 else f"{value:{sign},.1f}"

    def interval(self, low: float, high: float, *, signed: bool = False) -> str:
        return f"{self.format(low, signed=signed)} to {self.format(high, signed=signed)}"


_NAMES = (
    "context_recall", "context_precision", "context_tokens", "tenant_kept", "correct", "contains_answer", "gold_read",
    "gold_cited", "citation_precision", "citation_recall", "claims_supported", "correct_refusal", "false_refusal",
)  # fmt: skip
KNOWN: dict[str, Metric] = {
    **{f"recall@{k}": Metric(f"Recall@{k}") for k in (1, 5, 10, 20)},
    "ndcg@10": Metric("nDCG@10"),
    "mrr@10": Metric("MRR@10"),
    "all_gold@10": Metric("All gold@10"),
    **{name: Metric(name.replace("_", " ").capitalize()) for name in _NAMES},
    "context_tokens": Metric("Context tokens", "tokens", higher_is_better=False),
    "contains_answer": Metric("Holds the answer"),
    "correct_refusal": Metric("Correct refusals"),
    "false_refusal": Metric("False refusals", higher_is_better=False),
    "faithfulness": Metric("Faithfulness (judged)"),
    "answer_relevancy": Metric("Answer relevancy (judged)"),
    "judged_context_precision": Metric("Context precision (judged)"),
    "judged_context_recall": Metric("Context recall (judged)"),
    "latency_ms": Metric("Latency", "ms", higher_is_better=False),
    "llm_calls": Metric("LLM calls", "calls", higher_is_better=False),
    "cost": Metric("Cost", "money", higher_is_better=False),
}
"""The metrics that Shiguan computes; docs/evaluation.md and docs/answers.md explain each."""


def metric(name: str) -> Metric:
    """Look up a metric; an unknown one is a share labelled with its name."""
    return KNOWN.get(name) or Metric(name.replace("_", " "))


_TAIL = 0.05  # how often an interval misses the true value
RESAMPLES = 10_000  # how often the questions are drawn again
_BATCH = 500  # draws at a time, which bounds memory


@dataclass(frozen=True)
class Estimate:
    """A mean over questions with its interval."""

    value: float
    low: float
    high: float
    count: int

    def to_json(self) -> dict[str, Any]:
        return {name: round(value, 6) for name, value in asdict(self).items()}


def estimate_mean(values: Sequence[float]) -> Estimate:
    """
    Compute the mean of one number per question and its interval, the percentile bootstrap (Efron, Tibshirani 1993).

    Where all are 0 or all are 1 it is that of Clopper and Pearson 1934: twenty hits of twenty do not prove 1.
    """
    if not len(values):
        raise ValueError("A mean needs at least one value, got none.")
    data = numpy.asarray(values, dtype=float)
    mean, count = float(data.mean()), len(data)
    low, high = bootstrap_interval(data)
    if low == high and mean in (0.0, 1.0):
        # Clopper and Pearson's interval in closed form, which it has at both ends.
        end = (_TAIL / 2) ** (1 / count)
        low, high = (end, 1.0) if mean else (0.0, 1 - end)
    return Estimate(mean, low, high, count)


def bootstrap_interval(data: numpy.ndarray) -> tuple[float, float]:
    """Resample the questions, with the same draws on every call, and return the middle 95 % of the means."""
    if data.min() == data.max():
        return float(data[0]), float(data[0])
    rng = numpy.random.default_rng(0)
    means = [
        data[rng.integers(0, len(data), (min(_BATCH, RESAMPLES - start), len(data)))].mean(axis=-1)
        for start in range(0, RESAMPLES, _BATCH)
    ]
    low, high = numpy.quantile(numpy.concatenate(means), [_TAIL / 2, 1 - _TAIL / 2])
    return float(low), float(high)
