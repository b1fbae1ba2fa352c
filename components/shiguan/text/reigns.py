"""The reigns by which Chinese texts count years, the dynasties they belong to, and the months of their calendar."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from shiguan.text.languages import HAN, fold_han

_FILE = Path(__file__).with_name("reigns.txt")
STEMS, BRANCHES = "甲乙丙丁戊己庚辛壬癸", "子丑寅卯辰巳午未申酉戌亥"
LONGEST_NAME = 6
# Days before this one are in the Julian calendar, which ends on 4 October 1582; the Gregorian one follows.
_FIRST_GREGORIAN = 2_299_161


@dataclass(frozen=True)
class Reign:
    """An era, or the time of a ruler by whose title years are counted; years are astronomical, 0 is 1 BC."""

    name: str
    dynasty: str
    first: int
    last: int
    great: bool = True

    def year(self, number: int) -> int | None:
        """Return the year with this number in the reign, from 1; None if the reign does not have it."""
        year = self.first + number - 1
        return year if self.first <= year <= self.last else None


class _Tables(NamedTuple):
    reigns: Mapping[str, tuple[Reign, ...]]
    eras: frozenset[str]
    dynasties: Mapping[str, frozenset[str]]
    dynasty_before: re.Pattern[str]
    dynasty_within: re.Pattern[str]
    years: Mapping[int, str]


@cache
def _tables() -> _Tables:
    sections: dict[str, list[str]] = {}
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            sections[line.strip("[]")] = own = []
        elif not line.startswith("#"):
            own.append(line)
    states = {line.split(" ")[0] for line in sections["states"]}
    reigns: dict[str, set[Reign]] = defaultdict(set)
    for line in (*sections["eras"], *sections["rulers"]):
        names, dynasty, first, last = line.split(" ")
        for name in names.split(","):
            reigns[fold_han(name)].add(Reign(name, dynasty, int(first), int(last), dynasty not in states))
    dynasties: dict[str, set[str]] = defaultdict(set)
    for line in (*sections["dynasties"], *sections["states"]):
        for name in line.split(" "):
            dynasties[fold_han(name)].add(line.split(" ")[0])
    any_dynasty = "|".join(sorted(dynasties, key=len, reverse=True))
    of_book = r"(?:本?纪[一二三四五六七八九十]{0,3}|书|史|朝|国)[·\s:：]*"
    return _Tables(
        {name: tuple(sorted(own, key=lambda reign: (reign.first, -reign.last))) for name, own in reigns.items()},
        frozenset(fold_han(line.split(" ")[0]) for line in sections["eras"]),
        {name: frozenset(own) for name, own in dynasties.items()},
        re.compile(rf"(?:(?:大|伪)?({any_dynasty})(?:{of_book})?)$"),
        re.compile(rf"(?:{any_dynasty})(?=本?纪|书|史|朝|代|高祖|太祖|太宗)"),
        {int(line.split(" ", 1)[0]): line for line in sections["months"]},
    )


def reigns() -> Mapping[str, tuple[Reign, ...]]:
    """Return the reigns by name in folded characters, the earliest first; a ruler has one for each title."""
    return _tables().reigns


def eras() -> frozenset[str]:
    """Return the names of eras in folded characters; other names of reigns are titles of rulers, such as 文帝."""
    return _tables().eras


def dynasty_before(text: str) -> tuple[frozenset[str], int]:
    """Return the dynasty that a text in folded characters ends with, `齐纪` or `唐`, and where it begins."""
    found = _tables().dynasty_before.search(text, max(0, len(text) - 12))
    return (_tables().dynasties[found[1]], found.start()) if found else (frozenset(), len(text))


def dynasties_named(text: str) -> frozenset[str]:
    """Return the dynasties that a text in folded characters names as such: 齐纪, 唐朝, 《宋史》."""
    return frozenset().union(*(_tables().dynasties[found] for found in _tables().dynasty_within.findall(text)))


# Characters of temple names and of posthumous names, by which a title before an era is told from other words.
_TEMPLE = (
    "太世高中圣显肃代德顺宪穆敬文武宣懿僖昭玄睿真仁英神哲徽钦光宁理度恭端兴道庄明熹思景毅定裕绍安仪元泰章和成烈义孝"
)
_POSTHUMOUS = f"{_TEMPLE}康厉幽平惠桓灵献怀愍简哀殇冲质闵悼隐炀废少殿高天大至广弘神尧贞襄敏纯皇"
_TITLE = re.compile(
    rf"(?:[{_TEMPLE}][祖宗](?:[{HAN}]{{0,28}}(?:皇帝|天皇|皇后))?|[{_POSTHUMOUS}]{{1,8}}(?:皇帝|帝)"
    rf"|(?:(?<![{HAN}])|(?<=纪)|(?<=[在于]))(?:(?![其之为是封立拜以与自即号曰])[{HAN}]){{1,5}}(?P<lord>皇后|后主|[帝王公侯主]))"
    r"(?:[上中下](?:之[上中下])?)?[\s·:：]*$"
)
_LONGEST_TITLE = 44


def title_before(text: str) -> str:
    """Return the title of a ruler that a text in folded characters ends with, such as 世祖武皇帝; empty for none."""
    found = _TITLE.search(text, max(0, len(text) - _LONGEST_TITLE))
    title = found[0] if found else ""
    # 齐东昏侯: the dynasty is not a part of the title, unless nothing else is.
    own = max((len(name) for name in _tables().dynasties if title.startswith(name)), default=0)
    return title[own:] if found and found["lord"] and len(title) > own + 1 else title


def ruled_by(title: str, dynasty: str, year: int) -> bool:
    """Return whether somebody with this title ruled in a year of a dynasty."""
    names = (title[at : at + size] for at in range(len(title)) for size in range(2, LONGEST_NAME + 1))
    rulers = (reign for name in names if name not in eras() for reign in reigns().get(name, ()))
    return any(ruler.dynasty == dynasty and ruler.first <= year <= ruler.last for ruler in rulers)


@dataclass(frozen=True)
class Month:
    """A month of the Chinese calendar: its number, whether it is the leap month of that number, and its days."""

    number: int
    leap: bool
    first_day: int
    days: int


def months_of(year: int) -> tuple[Month, ...]:
    """Return the months of a year in order; none for a year that is not in the tables, before 246 BC."""
    return tuple(_months(year))


def _months(year: int) -> Iterator[Month]:
    years = _tables().years
    if year not in years:
        return
    _, day, bits, order, *_ = f"{years[year]} ".split(" ")
    usual = "123456789abc"
    if order.isdecimal() and len(order) < 3:
        order = f"{usual[: int(order)]}+{usual[int(order) :]}"
    order = order or usual
    start, number = int(day), 0
    for letter, bit in zip(order, f"{int(bits, 16):0{len(order)}b}", strict=True):
        number, length = number if letter == "+" else int(letter, 16), 29 + int(bit)
        yield Month(number, letter == "+", start, length)
        start += length


def sexagenary(name: str) -> int:
    """Return the position of a day such as 甲子 in the cycle of sixty, from 0; -1 if there is no such day."""
    stem, branch = STEMS.index(name[0]), BRANCHES.index(name[1])
    return next((at for at in range(60) if at % 10 == stem and at % 12 == branch), -1)


def day_in(month: Month, name: str) -> int | None:
    """Return the Julian day number of a day such as 甲子 in a month; None where the month has no such day."""
    ahead = (sexagenary(name) - month.first_day - 49) % 60 if sexagenary(name) >= 0 else 60
    return month.first_day + ahead if ahead < month.days else None


def western_day(day: int) -> tuple[int, int, int]:
    """Turn a Julian day number into year, month, day, Julian until 1582 (Richards, Explanatory Supplement, 15.11)."""
    rest = day + 1401
    if day >= _FIRST_GREGORIAN:
        rest += (4 * day + 274_277) // 146_097 * 3 // 4 - 38
    of_cycle = 4 * rest + 3
    of_year = 5 * (of_cycle % 1461 // 4) + 2
    month = (of_year // 153 + 2) % 12 + 1
    return of_cycle // 1461 - 4716 + (14 - month) // 12, month, of_year % 153 // 5 + 1
