"""The lines of a table of measurements, with their bars, and the area under the ROC curve."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy


@dataclass(frozen=True)
class Row:
    """One line of the table; `at_least` or `at_most` is its bar."""

    name: str
    value: float
    at_least: float | None = None
    at_most: float | None = None
    half_b: float | None = None
    overlap: float | None = None
    cases: int = 0

    @property
    def holds(self) -> bool:
        """Whether the bar is kept."""
        low = self.at_least is None or self.value >= self.at_least
        return low and (self.at_most is None or self.value <= self.at_most)


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Give the area under the ROC curve."""
    if not positive or not negative:
        return 0.5
    ordered = numpy.sort(negative)
    below, up_to = (numpy.searchsorted(ordered, positive, side) for side in ("left", "right"))
    return float((below + up_to).mean() / (2 * len(negative)))


def table(rows: Iterable[Row]) -> str:
    """Write the table in Markdown."""
    lines = ["| what | cases | value | bar | half B | token overlap |", "|---|---:|---:|---:|---:|---:|"]
    for row in rows:
        bar = f"≥ {row.at_least:g}" if row.at_least is not None else f"≤ {row.at_most:g}" if row.at_most else ""
        rest = [f"{value:.3f}" if value is not None else "" for value in (row.half_b, row.overlap)]
        missed = "" if row.holds else " (missed)"
        lines.append(f"| {row.name} | {row.cases} | {row.value:.3f}{missed} | {bar} | {rest[0]} | {rest[1]} |")
    return "\n".join(lines)
