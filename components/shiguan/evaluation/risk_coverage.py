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


@dataclass(frozen=True)
class RiskPoint:
    """
    What happens if every answer of at least some confidence is given, and no other.

    :param confidence: The lowest confidence that is let through, 0 to 1 where the confidence is.
    :param coverage: The share of all questions that are answered, 0 to 1.
    :param risk: The share of wrong answers among them, 0 to 1.
    """

    confidence: float
    coverage: float
    risk: float


@dataclass(frozen=True)
class RiskCurve:
    """
    The whole curve.

    :param points: By growing coverage; answers of the same confidence come together.
    :param area: The mean risk over all numbers of answered questions, 0 to 1, lower is better; 0 without answers.
    :param questions: How many questions there were, refused ones too.
    """

    points: list[RiskPoint]
    area: float
    questions: int

    def risk_at(self, coverage: float) -> float | None:
        """
        Read the curve at a coverage.

        :param coverage: 0 to 1.
        :returns: The risk of the first point that covers so much; None where so much is never answered.
        """
        return next((point.risk for point in self.points if point.coverage >= coverage - 1e-9), None)


def risk_curve(answers: Sequence[tuple[float, bool]], *, refused: int = 0) -> RiskCurve:
    """
    Draw the curve.

    :param answers: For every question that was answered its confidence and whether the answer was right.
    :param refused: How many questions were not answered at all; the curve ends before they would come.
    :returns: The curve.
    """
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
    """
    Thin the curve out for a table.

    :param curve: The curve.
    :param steps: How many even steps of coverage.
    :returns: For every step that is reached `coverage`, `risk` and the `confidence` that has to be asked for.
    """
    rows = []
    for step in range(1, steps + 1):
        point = next((p for p in curve.points if p.coverage >= step / steps - 1e-9), None)
        if point is not None:
            rows.append(
                {
                    "coverage": round(point.coverage, 4),
                    "risk": round(point.risk, 4),
                    "confidence": round(point.confidence, 4),
                }
            )
    if curve.points and (not rows or rows[-1]["coverage"] < round(curve.points[-1].coverage, 4)):
        last = curve.points[-1]
        rows.append(
            {
                "coverage": round(last.coverage, 4),
                "risk": round(last.risk, 4),
                "confidence": round(last.confidence, 4),
            }
        )
    return rows
