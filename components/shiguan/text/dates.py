"""Finds the dates of a text, of any calendar: reigns, Western years, centuries, sexagenary days, "that year"."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shiguan.text.languages import fold_han
from shiguan.text.quantities import ORDINALS, numeral
from shiguan.text.reigns import (
    LONGEST_NAME,
    Reign,
    day_in,
    dynasties_named,
    dynasty_before,
    eras,
    months_of,
    reigns,
    ruled_by,
    sexagenary,
    title_before,
)
from shiguan.text.times import DAY, MONTH_NAMES, Precision, When

_NUMERAL = "一二三四五六七八九十百廿卅"
_IN_YEAR = (
    rf"(?:[\s，,、的]*(?P<season>[春夏秋冬])(?![{_NUMERAL}]?[官宫秋]))?(?:[\s，,、的]*王?(?P<month>闰?(?:[正元腊]|十[一二三四五六七八九]?|[一二三四五六七八九])月|闰月|[12]?\d月))?"
    rf"(?:(?<=月)[\s，,、（(]*(?P<day>{DAY}|初?[{_NUMERAL}]{{1,3}}[日号]|[123]?\d[日号]))?"
)
_COUNTED = rf"(?:元|[{_NUMERAL}]{{1,5}}|\d{{1,3}})"
_OF_REIGN = re.compile(rf"(?P<number>{_COUNTED})(?:年|载){_IN_YEAR}")
# The part of a date that an annal writes where the year, or the month, is that of the text before.
BELOW = re.compile(
    rf"(?P<year>(?P<number>{_COUNTED})(?:年|载)|[是其同]年|是岁)?{_IN_YEAR}(?P<alone>(?<!月){DAY}(?![{_NUMERAL}]))?"
)
_THAT_YEAR = re.compile(
    r"(?:(?P<season>spring|summer|autumn|winter)\sof\s)?(?:(?:that|the\ssame)|(?P<next>the\s(?:following|next)))\syear(?!\w)"
    r"|[是其同当]年|是岁|(?P<later>[明次翌]年)",
    re.IGNORECASE,
)
_HAN_YEAR = r"[一二三四五六七八九〇零]{3,4}"
# 前221年 is BC, but not the 前 of 此前, 战前, 提前.
_BEFORE_CHRIST = "(?P<bc>(?<![之以此目战日月年天提先当放命世])前)?"
_WESTERN_ZH = re.compile(
    rf"(?:公元|西元)?{_BEFORE_CHRIST}(?P<year>(?<!\d)\d{{1,4}}|{_HAN_YEAR})(?:年)?"
    rf"(?:\s*(?:至|到|[-－–—~～])\s*(?:公元|西元)?(?P<bc2>前)?(?P<to>\d{{1,4}}|{_HAN_YEAR}))?(?<![年\D])?年"
    rf"(?:(?P<month>1?\d|十[一二]?|[一二三四五六七八九])月(?:(?P<day>[123]?\d|[{_NUMERAL}]{{1,3}})[日号])?)?"
)
_DAY_ALONE = re.compile(r"(?<![\d年载])(\d{1,2})月(\d{1,2})日")
_CENTURY_ZH = re.compile(
    rf"(?:公元|西元)?{_BEFORE_CHRIST}(?P<century>\d{{1,2}}|[{_NUMERAL}]{{1,3}})世纪(?:(?P<decade>\d0|[{_NUMERAL}]{{1,2}})年代)?"
)
_MONTH = rf"(?P<month>{'|'.join(f'{name[:3]}(?:{name[3:]})?' for name in MONTH_NAMES)}|Sept)\.?"
_ERA = r"(?:\s?(?P<era>B\.?\s?C\.?(?:\s?E\.?)?|A\.?D\.?|C\.?E\.?)(?![A-Za-z]))"
_DAY_OF_MONTH = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
# What may precede a year that is not marked as one, and what does not follow a year but a number of things.
_CUE = (
    r"(?<!\w)(?:in|since|until|by|about|around|circa|c\.|ca\.|from|between|year|after|before|of)\s(?:the\syear\s)?"
    r"(?:(?:early|late|mid)[\s-])?"
)
_NO_THINGS = (
    r"(?![\w%]|[.,]\d|\s(?!th[iu]s\s|a(?:cross|lways)\s)"
    r"(?:[a-z]{3,}s|people|men|women|feet|percent|per\scent|[mb]illion|thousand|hundred)(?!\w))"
)
# On 10 May 30 men died: behind a month a short number without an era is one of things as well.
_AS_YEAR = (
    rf"(?:{_ERA}|(?<=\d{{4}})(?!,?\d)|(?<!\d{{4}}){_NO_THINGS}(?!\sof\s)"
    r"(?:(?<=\d{3})|(?!\s(?!(?:s?he|they|the|an?|his|h?er|their|it|its|this|when|and|in|at|on|by|to|with|was)\s)[a-z])))"
)
_ENGLISH = [
    re.compile(pattern)
    for pattern in (
        rf"(?<!\d){_DAY_OF_MONTH}\s(?:of\s)?{_MONTH},?\s(?P<year>\d{{1,4}}){_AS_YEAR}",
        rf"{_MONTH}\s(?:{_DAY_OF_MONTH},?\s)?(?P<year>\d{{3,4}}){_AS_YEAR}",
        r"(?<![\d-])(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)(?![\d-])",
        r"(?i)(?<!\w)(?P<century>\d{1,2}(?=st|nd|rd|th)|"
        rf"{'|'.join(ORDINALS)})(?:st|nd|rd|th)?[\s-]centur(?:y|ies){_ERA}?",
        r"(?i)(?<!\w)the\s(?P<decade>[12]\d\d0)s(?!\w)",
        rf"(?i)(?<![\d.,-])(?P<year>\d{{1,4}})\s?(?:[-–—]|to|until)\s?(?P<to>\d{{1,4}}){_ERA}",
        rf"(?<![\d.,-])(?:A\.?D\.?\s(?P<ad>\d{{1,4}})(?!\d)|(?P<year>\d{{1,4}}){_ERA})",
        rf"(?i)(?:{_CUE}|(?<=\()(?:r\.\s)?)(?P<year>\d{{3,4}})"
        rf"(?:(?:\s?[-–—]\s?|\s(?:to|until|and)\s)(?P<to>\d{{2,4}}))?{_NO_THINGS}",
    )
]
_TITLED = 60
_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_SPECIAL = {"正": 1, "元": 1, "腊": 12}
_HEAD = re.compile(r"(?:^|[。！？；!?\n”」』])[\s【\[（(○◎《「]*$")
CHANGED = re.compile(r"改[^。]{0,8}$")
_LAST_YEAR = 2100
# `In 755` is 755; `about 755` and `after 755` are not.
_OF_NO_USE = re.compile(r"^(?:in|of)\s(?:the\s)?(?:year\s)?|^year\s", re.IGNORECASE)
# A date whose reign several dynasties had is resolved by the dates around it, if only one candidate is this near.
_NEAR = 120


@dataclass(frozen=True)
class Mention:
    """A date in a text: its possible times, several if its reign is ambiguous, or the fault why it has none."""

    start: int
    end: int
    label: str
    times: tuple[When, ...]
    fault: str = ""
    reigns: tuple[Reign, ...] = ()
    at_head: bool = False

    @property
    def year_end(self) -> int:
        """Where its year ends in the label: 建元元年, of 建元元年正月."""
        return 1 + max(self.label.find("年"), *map(self.label.find, "载載"))


def find_dates(text: str, context: str = "") -> list[Mention]:
    """Find the dates of a text, in order: an ambiguous one has several times, one that does not exist has a fault."""
    plain = fold_han(text)
    named = dynasties_named(fold_han(context)) | dynasties_named(plain)
    taken: list[Mention] = []
    for mention in sorted([*_of_reigns(plain, named), *_western(plain)], key=lambda found: (found.start, -found.end)):
        if not taken or mention.start >= taken[-1].end:
            label = text[mention.start : mention.end].strip(" (").replace("（", "").replace("(", "")
            label = _OF_NO_USE.sub("", label)
            times = tuple(replace(when, label=label) for when in mention.times)
            head = bool(_HEAD.search(plain, max(0, mention.start - 8), mention.start))
            taken.append(replace(mention, label=label, times=times, at_head=head))
    certain = [mention.times[0].first for mention in taken if len(mention.times) == 1]
    return [resolved(mention, certain) for mention in taken]


def _of_reigns(plain: str, dynasties: frozenset[str]) -> Iterator[Mention]:
    for match in _OF_REIGN.finditer(plain):
        size, named = _reign_before(plain, match.start())
        if not size:
            continue
        number, begin = counted(match["number"]), match.start() - size
        title = title_before(plain[max(0, begin - _TITLED) : begin])
        start = begin - len(title)
        window = max(0, start - 12)
        before, at = dynasty_before(plain[window:start])
        own = [tuple(reign for reign in named if reign.dynasty in some) for some in (before, dynasties)]
        if plain[begin : match.start()] not in eras() and not any(own) and (size < 3 or len(named) > 1):
            continue  # 文帝三年: of which dynasty?
        # Reigns of small states count only where the state is named.
        named = own[0] or own[1] or tuple(reign for reign in named if reign.great) or named
        kept = tuple(reign for reign in named if reign.year(number) is not None)
        titled = tuple(reign for reign in kept if ruled_by(title, reign.dynasty, reign.first + number - 1))
        yield _of_reign(match, window + at if own[0] else start, titled or kept, number, _no_year(named, number))


def _of_reign(match: re.Match[str], start: int, kept: tuple[Reign, ...], number: int, fault: str) -> Mention:
    whens = []
    for year in dict.fromkeys(reign.first + number - 1 for reign in kept):
        when, fault = within_year(When(year, year, calendar="reign"), match.groupdict())
        whens += [when] if when else []
    return Mention(start, match.end(), match[0], tuple(whens), "" if whens else fault, kept)


def _reign_before(plain: str, at: int) -> tuple[int, tuple[Reign, ...]]:
    """Return the length of the longest reign name right before a number, and the reigns of that name."""
    sizes = range(min(LONGEST_NAME, at), 1, -1)
    size = next((size for size in sizes if plain[at - size : at] in reigns()), 0)
    return size, reigns().get(plain[at - size : at], ()) if size else ()


def _no_year(named: Sequence[Reign], number: int) -> str:
    longest = max(named, key=lambda reign: reign.last - reign.first)
    return f"{longest.name} has {longest.last - longest.first + 1} years and no year {number}"


def counted(word: str) -> int:
    """Read the number of a year, a month or a day."""
    return 1 if word == "元" else numeral(word)


def within_year(year: When, parts: Mapping[str, str | None]) -> tuple[When | None, str]:
    """Set the month, the day or the season of a reign year; None and the reason where the year has none such."""
    if not parts.get("month"):
        return (replace(year, precision="season") if parts.get("season") else year), ""
    name = str(parts["month"])
    leap, name = name.startswith("闰"), name.strip("闰月")
    number = _SPECIAL.get(name) or (counted(name) if name else None)
    months = months_of(year.first)
    if number is None:
        number = next((month.number for month in months if month.leap), None)
    if number is not None and not 1 <= number <= 12:
        return None, f"a year has no month {number}"
    when = replace(year, month=number, leap=leap, precision="month")
    return _on_day(when, str(parts["day"])) if parts.get("day") else (when, "")


def _on_day(when: When, day: str) -> tuple[When | None, str]:
    own = [month for month in months_of(when.first) if (month.number, month.leap) == (when.month, when.leap)]
    if re.fullmatch(DAY, day):
        if sexagenary(day) < 0:
            return None, f"there is no day {day} in the round of sixty"
        # Texts that were copied for a thousand years have wrong days: the month still counts.
        return replace(when, precision="day" if any(day_in(month, day) for month in own) else "month"), ""
    number = counted(day.strip("初日号"))
    return (replace(when, precision="day"), "") if 1 <= number <= 30 else (None, f"a month has no day {number}")


def _western(plain: str) -> Iterator[Mention]:
    for match in _WESTERN_ZH.finditer(plain):
        parts = match.groupdict()
        # 十五年 and 15年 are fifteen years.
        if parts["bc"] or "元" in match[0] or len(parts["year"]) > 2:
            years = [parts["year"], parts["to"]] if parts["to"] else [parts["year"]]
            before = [parts["bc"], parts["bc2"] or (parts["bc"] and "公元" not in match[0][3:])]
            yield _mention(match, [_year(counted(y), bool(bc)) for y, bc in zip(years, before, strict=False)], parts)
    for match in _DAY_ALONE.finditer(plain):
        month, day = map(int, match.groups())
        if not 1 <= month <= 12 or not 1 <= day <= _LENGTHS[month - 1]:
            yield Mention(match.start(), match.end(), match[0], (), f"there is no day {match[0]} in any year")
    for match in _CENTURY_ZH.finditer(plain):
        yield _century(match, counted(match["century"]), bool(match["bc"]), match["decade"])
    for pattern in _ENGLISH:
        for match in pattern.finditer(plain):
            parts = {"era": "", "to": None, "month": None, "day": None, **match.groupdict()}
            before_christ = (parts["era"] or "").lower().startswith("b")
            if parts.get("century"):
                word = parts["century"].lower()
                yield _century(match, ORDINALS.get(word) or int(word), before_christ, None)
            elif parts.get("decade"):
                first = int(parts["decade"])
                when = When(first, first + (99 if first % 100 == 0 else 9), "decade")
                yield Mention(match.start(), match.end(), match[0], (when,))
            else:
                year = parts.get("ad") or parts["year"]
                to = parts["to"]
                if to and len(to) < len(year) and not before_christ:
                    to = year[: len(year) - len(to)] + to
                numbers = [_year(int(number), before_christ) for number in (year, to) if number]
                yield _mention(match, numbers, parts)


def _year(number: int, before_christ: bool) -> int:
    return 1 - number if before_christ else number


def _century(match: re.Match[str], number: int, before_christ: bool, decade: str | None) -> Mention:
    first = -100 * number + 1 if before_christ else 100 * (number - 1) + 1
    when = When(first, first + 99, "century")
    if decade:
        when = When(first - 1 + counted(decade), first + 8 + counted(decade), "decade")
    return Mention(match.start(), match.end(), match[0], (when,))


def _mention(match: re.Match[str], years: Sequence[int], parts: dict[str, Any]) -> Mention:
    """Create the mention of Western years, a month or a day, with the fault if it does not exist."""
    label, month, day = match[0].strip(" ("), parts.get("month"), parts.get("day")
    fault = ""
    if counted(parts.get("year") or parts["ad"]) == 0:
        fault = "there is no year 0"
    elif max(years) > _LAST_YEAR:
        fault = f"{max(years)} is later than any source"
    elif years[-1] < years[0]:
        fault = f"{label} runs backwards"
    number = _month(month) if month else None
    if number is not None and not fault:
        of_month = counted(day) if day else 1
        short = number == 2 and (years[0] % 4 or (years[0] > 1582 and not years[0] % 100 and years[0] % 400))
        longest = 28 if short else (*_LENGTHS, *[0] * 99)[number - 1]
        if not 1 <= number <= 12:
            fault = f"a year has no month {number}"
        elif not 1 <= of_month <= longest:
            fault = f"{MONTH_NAMES[number - 1]} {years[0]} has no day {of_month}"
    precision: Precision = "range" if len(years) > 1 else "day" if day else "month" if number else "year"
    when = When(years[0], years[-1], precision, number)
    return Mention(match.start(), match.end(), label, () if fault else (when,), fault)


def _month(name: str) -> int:
    if name[0].isalpha() and name.isascii():
        return [known[:3].lower() for known in MONTH_NAMES].index(name[:3].lower()) + 1
    return _SPECIAL.get(name) or counted(name)


def resolved(mention: Mention, certain: Sequence[int]) -> Mention:
    """Resolve an ambiguous date to the time that is near certain years, if there is exactly one."""
    if len(mention.times) < 2 or not certain:
        return mention
    distances = [min(abs(when.first - year) for year in certain) for when in mention.times]
    nearest = min(distances)
    kept = [when for when, distance in zip(mention.times, distances, strict=True) if distance <= max(nearest, 1)]
    return replace(mention, times=tuple(kept)) if nearest <= _NEAR and len(kept) == 1 else mention


def that_year(text: str, mentions: Sequence[Mention]) -> Iterator[When]:
    """Yield the times that a text names by the date before them: `in the spring of that year`, 明年."""
    for found in _THAT_YEAR.finditer(fold_han(text)):
        before = [each.times[0] for each in mentions if each.end <= found.start() and len(each.times) == 1]
        if before and before[-1].first == before[-1].last:
            year = before[-1].first + bool(found["next"] or found["later"])
            yield When(year, year, "season" if found["season"] else "year", how="carried", label=found[0])
