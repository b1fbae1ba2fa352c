"""
Times: how they are compared, written, and kept with a passage; years are numbered as by astronomers: 0 is 1 BC.

A reign year is the Western year in which it began: 天宝十四载 is 755, and so are its last days, in January 756.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from shiguan.text.reigns import BRANCHES, STEMS, day_in, months_of, western_day

Precision = Literal["day", "month", "season", "year", "decade", "century", "range"]

DAY = f"[{STEMS}][{BRANCHES}]"
"""The pattern of a day's name in the cycle of sixty, such as 甲子."""
MONTH_NAMES = "January February March April May June July August September October November December".split()
_MONTHS_ZH = (*"正二三四五六七八九十", "十一", "十二")
WHEN_FROM, WHEN_TO = "when_from", "when_to"
"""The meta fields with the first and the last year of a passage."""


@dataclass(frozen=True)
class When:
    """A time, from year to year, more exact where that is known; months of a reign are those of its calendar."""

    first: int
    last: int
    precision: Precision = "year"
    month: int | None = None
    leap: bool = False
    calendar: Literal["reign", "western"] = "western"
    how: Literal["written", "carried"] = "written"
    label: str = ""

    def nearness(self, other: "When") -> float:
        """Return how well another time fits this one, which is asked for, 0 to 1."""
        if other.last < self.first or other.first > self.last:
            return 0.0
        if self.month is not None and self.calendar == other.calendar:
            if other.month is None:
                return 0.3 if other.precision != "season" else 0.4
            return float((self.month, self.leap) == (other.month, other.leap))
        # A passage about a century hardly answers a question about a year.
        return 1.0 if other.last - other.first <= max(self.last - self.first, 10) else 0.3


def western_of(when: When) -> str:
    """Write a time as Western historians do: `16 December 755`, `755`, `140 BC`, `701–800`."""
    day = day_number(when)
    if day is not None:
        year, month, of_month = western_day(day)
        return f"{of_month} {MONTH_NAMES[month - 1]} {_written(year)}"
    first, last = map(_written, (when.first, when.last))
    return first if first == last else f"{first}–{last}"


def _written(year: int) -> str:
    return str(year) if year > 0 else f"{1 - year} BC"


def day_number(when: When) -> int | None:
    """Return the Julian day number of a sexagenary day; None for any other time."""
    named = re.search(f"{DAY}$", when.label) if when.precision == "day" else None
    own = (m for m in months_of(when.first) if (m.number, m.leap) == (when.month, when.leap))
    return next((day for m in own if (day := day_in(m, named[0])) is not None), None) if named else None


def month_name(month: int | None, *, leap: bool) -> str:
    """Write a month of the Chinese calendar: 正月, 闰九月."""
    if month is None:
        return "闰月" if leap else ""
    return f"{'闰' if leap else ''}{_MONTHS_ZH[month - 1]}月"


def time_meta(times: Sequence[When]) -> dict[str, Any]:
    """Write the times of a passage for its meta: `when`, and the first and last certain year for filters."""
    best: dict[tuple[Any, ...], When] = {}
    for when in times:
        best.setdefault((when.first, when.last, when.month, when.leap), when)
    monthly = {(when.first, when.last) for when in best.values() if when.month}
    # 建元元年 adds nothing to 建元元年正月.
    kept = [when for when in best.values() if when.month or (when.first, when.last) not in monthly]
    labels = [when.label for when in kept if when.how == "written"]
    entries: list[dict[str, Any]] = [
        {"as": when.label[:60], "from": when.first, "to": when.last, "precision": when.precision}
        | {"calendar": when.calendar, "how": when.how}
        | ({"month": when.month, "leap": when.leap} if when.month or when.leap else {})
        | ({"open": True} if labels.count(when.label) > 1 else {})
        for when in kept
    ]
    certain = [entry for entry in entries if "open" not in entry]
    meta: dict[str, Any] = {"when": entries} if entries else {}
    if certain:
        meta |= {WHEN_FROM: min(e["from"] for e in certain), WHEN_TO: max(e["to"] for e in certain)}
    return meta


def times_in(meta: dict[str, Any]) -> list[When]:
    """Read the times of a passage from its meta; none if it has none, or was ingested before times were stored."""
    return [
        When(
            entry["from"], entry["to"], entry["precision"], entry.get("month"), entry.get("leap", False),
            entry["calendar"], entry["how"], entry["as"],
        )
        for entry in meta.get("when") or ()
    ]  # fmt: skip
