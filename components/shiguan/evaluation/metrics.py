"""What each metric is called, which way is better, and which of them may stop a change."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from shiguan.errors import RefusedError
from shiguan.evaluation.intervals import Difference

Unit = Literal["share", "tokens", "ms", "calls", "money"]


@dataclass(frozen=True)
class Metric:
    """How a metric is shown and read; one that a language model judged never gates."""

    label: str
    unit: Unit = "share"
    higher_is_better: bool = True
    judged: bool = False

    def format(self, value: float, *, signed: bool = False) -> str:
        sign = "+" if signed else ""
        if self.unit == "share":
            return f"{value:{sign}.3f}"
        if self.unit == "money":
            return f"{value:{sign}.5f}"
        return f"{value:{sign},.0f}" if abs(value) >= 100 else f"{value:{sign},.1f}"


_NAMES = (
    "context_recall", "context_precision", "context_tokens", "tenant_kept", "correct", "exact_match", "token_f1",
    "contains_answer", "gold_read", "gold_cited", "citation_precision", "citation_recall", "claims_supported",
    "correct_refusal", "false_refusal",
)  # fmt: skip
KNOWN: dict[str, Metric] = {
    **{f"recall@{k}": Metric(f"Recall@{k}") for k in (1, 5, 10, 20)},
    "ndcg@10": Metric("nDCG@10"),
    "mrr@10": Metric("MRR@10"),
    "all_gold@10": Metric("All gold@10"),
    **{name: Metric(name.replace("_", " ").capitalize()) for name in _NAMES},
    "context_tokens": Metric("Context tokens", "tokens", higher_is_better=False),
    "token_f1": Metric("Token F1"),
    "contains_answer": Metric("Holds the answer"),
    "correct_refusal": Metric("Correct refusals"),
    "false_refusal": Metric("False refusals", higher_is_better=False),
    "haystack_faithfulness": Metric("Faithfulness (Haystack)", judged=True),
    "haystack_context_relevance": Metric("Context relevance (Haystack)", judged=True),
    "ragas_faithfulness": Metric("Faithfulness (Ragas)", judged=True),
    "ragas_answer_relevancy": Metric("Answer relevancy (Ragas)", judged=True),
    "ragas_context_precision": Metric("Context precision (Ragas)", judged=True),
    "ragas_context_recall": Metric("Context recall (Ragas)", judged=True),
    "latency_ms": Metric("Latency", "ms", higher_is_better=False),
    "llm_calls": Metric("LLM calls", "calls", higher_is_better=False),
    "cost": Metric("Cost", "money", higher_is_better=False),
}
"""The metrics that Shiguan computes; docs/evaluation.md and docs/answers.md say what each of them means."""


def metric(name: str) -> Metric:
    """Look a metric up; one that is not known is a share called by its name."""
    return KNOWN.get(name) or Metric(name.replace("_", " "))


_GATED = "recall@5 recall@10 ndcg@10 context_recall gold_cited citation_precision citation_recall".split()
GATES: dict[str, float] = {
    **dict.fromkeys(_GATED, 0.02),
    **dict.fromkeys(("correct_refusal", "false_refusal"), 0.03),
    "tenant_kept": 0.0,
}
"""
Gated metrics, and how much worse each may get.

These and no others, however many are computed: of twenty harmless comparisons at 95 % one looks real by chance, so what
may stop a change is chosen before it is measured. Metrics that a language model judges are reported and never gate.
"""


def read_gates(texts: Sequence[str]) -> dict[str, float]:
    if not texts:
        return dict(GATES)
    if list(texts) == ["none"]:
        return {}
    gates: dict[str, float] = {}
    for text in texts:
        name, _, tolerance = text.partition("=")
        if name not in KNOWN:
            raise RefusedError(f"There is no metric `{name}` to gate. Known are {', '.join(KNOWN)}. Name one of these.")
        if metric(name).judged or metric(name).unit != "share":
            raise RefusedError(
                f"`{name}` cannot gate: only shares that no language model judged can. It is reported; leave it out."
            )
        try:
            gates[name] = float(tolerance) if tolerance else GATES.get(name, 0.02)
        except ValueError as error:
            raise RefusedError(f"The tolerance of `{text}` is no number. Write it as `{name}=0.02`.") from error
        if not 0 <= gates[name] <= 1:
            raise RefusedError(f"The tolerance of `{text}` must be from 0 to 1. Write it as `{name}=0.02`.")
    return gates


def breach(difference: Difference, tolerance: float) -> str | None:
    """
    Say how a metric broke its gate.

    One question more or less never does, however small the set: where a single question weighs more than the tolerance,
    its weight is the tolerance. A tolerance of 0 means 0.
    """
    worse_by = -difference.difference if difference.higher_is_better else difference.difference
    allowed = max(tolerance, 1 / difference.count) if tolerance else 0.0
    if worse_by <= allowed + 1e-6:
        return None
    shown = metric(difference.metric)
    return (
        f"{shown.label} went from {shown.format(difference.before)} to {shown.format(difference.after)}, "
        f"{worse_by:.3f} worse where {allowed:.3f} is tolerated"
    )
