"""
How often an answer is wrong, as more and more questions are answered.

A system that may refuse is not one number: whoever wants fewer wrong answers pays with more refusals. Sorted by
confidence, the first answers make up the low-coverage end of the curve, and its height is the share of wrong ones
among them (El-Yaniv and Wiener, "On the Foundations of Noise-free Selective Classification", 2010; the area under the
curve as in Geifman et al., "Bias-Reduced Uncertainty Estimation for Deep Neural Classifiers", 2019, section 2).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any


@dataclass(frozen=True)
class RiskPoint:
    """What happens if every answer of at least some confidence is given, and no other."""

    confidence: float
    coverage: float
    risk: float


@dataclass(frozen=True)
class RiskCurve:
    """The whole curve."""

    points: list[RiskPoint]
    area: float
    questions: int


def risk_curve(answers: Sequence[tuple[float, bool]], *, refused: int = 0) -> RiskCurve:
    """Draw the curve."""
    total = len(answers) + refused
    points: list[RiskPoint] = []
    given = wrong = 0
    area = 0.0
    for confidence, group in groupby(sorted(answers, key=lambda one: -one[0]), key=lambda one: one[0]):
        members = [right for _, right in group]
        given += len(members)
        wrong += members.count(False)
        points.append(RiskPoint(confidence, given / total, wrong / given))
        # Equal confidences cannot be told apart, so each of them bears the risk of all.
        area += len(members) * wrong / given
    return RiskCurve(points, area / given if given else 0.0, total)


def curve_table(curve: RiskCurve, steps: int = 10) -> list[dict[str, float]]:
    """Thin the curve out for a table: `coverage`, `risk` and the `confidence` to ask for, at even steps and the end."""
    reached = (
        next((p for p in curve.points if p.coverage >= step / steps - 1e-9), None) for step in range(1, steps + 1)
    )
    shown = [point for point in reached if point is not None]
    if curve.points and (not shown or round(shown[-1].coverage, 4) < round(curve.points[-1].coverage, 4)):
        shown.append(curve.points[-1])
    return [{name: round(getattr(p, name), 4) for name in ("coverage", "risk", "confidence")} for p in shown]


def risk_section(answers: Sequence[tuple[float, bool]], *, refused: int) -> dict[str, Any]:
    """Write the curve of what would be wrong if only the surest answers were given, for `Results.sections`."""
    curve = risk_curve(answers, refused=refused)
    if not curve.points:
        return {}
    rows = [[f"{row['coverage']:.2f}", f"{row['risk']:.3f}", f"{row['confidence']:.3f}"] for row in curve_table(curve)]
    return {
        "Risk over coverage": {
            "text": "What share of the answers would be wrong if only the surest were given. The confidence is the "
            "support of the weakest claim times the share of the question's words that the cited passages have. Mean "
            f"risk {curve.area:.3f}.",
            "curve": [[point.coverage, point.risk] for point in curve.points],
            "columns": [">coverage", ">risk", ">confidence at least"],
            "rows": rows,
        }
    }
