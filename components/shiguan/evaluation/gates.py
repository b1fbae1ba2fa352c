"""Which metrics may stop a change, and how far each may fall before it does."""

from collections.abc import Sequence

from shiguan.errors import RefusedError
from shiguan.evaluation.metric import KNOWN, metric
from shiguan.evaluation.paired import Difference

GATES: dict[str, float] = {
    "recall@5": 0.02,
    "recall@10": 0.02,
    "ndcg@10": 0.02,
    "context_recall": 0.02,
    "gold_cited": 0.02,
    "citation_precision": 0.02,
    "citation_recall": 0.02,
    "correct_refusal": 0.03,
    "false_refusal": 0.03,
    "tenant_kept": 0.0,
}
"""
Gated metrics, and how much worse each may get.

These and no others, however many are computed: of twenty harmless comparisons at 95 % one looks real by chance, so what
may stop a change is chosen before it is measured. Metrics that a language model judges are reported and never gate.
"""


def read_gates(texts: Sequence[str]) -> dict[str, float]:
    """Read which metrics gate."""
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
