"""Finds numbers, years and dates in Chinese and English text, as values that can be compared in any spelling."""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Literal
from unicodedata import numeric

from shiguan.resources import read_table
from shiguan.text.clock import times_of_day

Kind = Literal["number", "ordinal", "year", "month", "day", "percent", "time"]

_TABLE = read_table(Path(__file__).with_name("quantities.yaml"))
_ERAS: dict[str, list[int]] = _TABLE["eras"]
_WORDS: dict[str, float] = _TABLE["words"]
ORDINALS = {word: value for value, word in enumerate(_TABLE["ordinals"].split(), start=1)}
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "dozen": 12}


def _any_of(words: Iterable[str]) -> str:
    """Write words as a pattern that tries only those with the right first letter: most words of a text have none."""
    rest: dict[str, list[str]] = {}
    for word in words:
        rest.setdefault(word[0], []).append(word[1:])
    words_of = (f"{first}(?:{'|'.join(ends)})" for first, ends in rest.items())
    return f"(?=[{''.join(rest)}])(?:{'|'.join(words_of)})"


_CARDINAL, _ORDINAL, _THEN = _any_of([*_WORDS, *_SCALES]), _any_of(ORDINALS), r"[\s-]+(?:and[\s-]+)?"
# "The ninth and tenth" and "the first two" are two numbers each, not their sum.
_ENGLISH = re.compile(
    rf"\b(?:{_CARDINAL}\b(?:{_THEN}{_CARDINAL}\b|[\s-]and[\s-]a[\s-]half\b)*(?:{_THEN}{_ORDINAL}\b)?|{_ORDINAL}\b)",
    re.IGNORECASE,
)
# Half a million, half an hour, a dozen; a million is as vague as many.
_HALF = re.compile(rf"\bhalf an?(?: ({'|'.join(_SCALES)})\b|(?= hour\b))|\ba (dozen)\b", re.IGNORECASE)
_FOLD = str.maketrans({pair[0]: pair[1] for pair in _TABLE["folds"].split()})
_DIGIT = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_SMALL = {"十": 10, "百": 100, "千": 1000, "廿": 20, "卅": 30}
_LARGE = {"万": 10_000, "亿": 100_000_000}
_PER_HUNDRED, _DIGITS_OR_ONE = "百分之", re.compile(r"\d+|.")
# What a last numeral counts in speech: 两千三 is 2,300, but 一千三人 and 卷一千三 end in a three.
_SPOKEN, _PLACED = {"千": "百", "万": "千", "亿": "千万"}, frozenset("第卷")
_HAN = "零〇一二两三四五六七八九十百千万亿廿卅"
# Numerals of contracts are numbers beside others of their kind (伍拾), and alone are words (退伍军人).
_FORMAL = "零壹贰貳叁參肆伍陸柒捌玖拾佰仟萬億万亿"
_NO_NUMBER = re.compile(
    rf"(?<![第{_FORMAL}])[參肆伍陸拾](?![{_FORMAL}元])|(?<![{_HAN}萬億点點时時得])十分(?![之钟鐘])"
    rf"|十有八九|(?<![{_HAN}萬億])(?:千百|[万萬]千|[亿億][万萬]|千[万萬](?=[别別不要勿莫]))(?![{_HAN}萬億])"
)
# A lone numeral is a number only before one of these; elsewhere it is part of a word (万一, 百姓, 三思).
COUNTED = (
    "年月日岁人名个次万亿里州县镇道天位座军兵骑匹卷章篇世代余元公米吨分成倍家子艘所部"
    "条层场级期届周号度寸尺丈石斤只盏头颗枚件点點时時小升秒比块塊"
)
_ERA = re.compile(rf"({'|'.join(sorted(_ERAS, key=len, reverse=True))})(元|[{_HAN}]+|\d+)(?=年|载)")
# The 1970s are 20世纪70年代 and 上世纪七十年代.
_DECADE = re.compile(rf"(?:上个?|(\d\d|(?<![{_HAN}])[{_HAN}]+))世纪(\d0|[{_HAN}]十)年代")
_DECADE_ALONE = re.compile(rf"(?<!\d)([1-9]0|[12]\d\d0)年代|([{_HAN}]十)年代|(?<!\d)([1-9]0)s\b")
# 12,500 and 12'500, 1.234.567, and 12 500 before a word; 1,5 only before what makes it a decimal.
_ARABIC = re.compile(
    r"(?<![\w.])(?:\d{1,3}(?:,\d{3})+|\d{1,3}(?:['’]\d{3})+(?!\d)|\d{1,3}(?:\.\d{3}){2,}(?![\d.])"
    r"|(?<!\d )[1-9]\d{0,2}(?:[ \u00a0\u2009\u202f]\d{3})+(?=[ \u00a0][a-z]|[\u4e00-\u9fff])"
    r"|\d{1,3},\d{1,2}(?= ?(?:%|per ?cent\b|[mbtr]+illion|bn\b|[kcm]?m\b|kg\b|kilo|met))|\d+)(?:\.\d+)?",
    re.ASCII,
)
# On May 12 500 men came, as Chapter 12 500 times says: a name or a numbered thing takes the first number.
_NUMBERED = re.compile(r"(?:(?<=[\w,] )[A-Z]\w*\.?|\b(?:chapter|page|figure|table|section|verse|line|item|part))\s$")
_WHOLES = re.compile(r"\s?(?:people|(?:wo)?men|inhabitants|residents|soldiers|troops|workers|students|copies|[人名册])")
_THOUSANDS, _DIGITS = re.compile(r"[1-9]\d{0,2}\.\d{3}"), re.compile(r"\d+")
# 2½ and 2 1/2.
_AND_PART = re.compile(r"(?<=\d) ?([½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])|(?<=\d)[ -]([1-9])/([1-9]\d?)(?![\d/])")
# 二十有四 is 二十四, 二十多万 is 二十余万, 六点五 is 6.5, but not where the clock strikes: 下午三点五人来.
_HAN_NUMBER = re.compile(
    rf"[{_HAN}]+(?:(?<=[十百千万])有[{_HAN}]+)*(?:[余多](?=[万亿百千])[{_HAN}]*"
    rf"|(?<![第午晨晚夜早上].)[点點][{_HAN[:12]}]+(?![{_HAN[:12]}十百千点點分刻半线線])[万亿]*)?"
)
# 三到五天.
_TO_IN_HAN = re.compile(rf"[到至][{_HAN}]+([{COUNTED}])")
# 2亿3千万, and 六元八角 or 六块八.
_HAN_SCALES = re.compile(r"(?<![\w.])\d+[百千万亿]+(?:\d+[百千万亿]+)+", re.ASCII)
_MONEY = re.compile(
    rf"(?<![\d.{_HAN}])(\d+|[{_HAN}]+)[元块塊]"
    rf"(?:([\d{_HAN[1:12]}])[角毛](?:([\d{_HAN[1:12]}])分)?|([{_HAN[2:12]}])(?=[，。；、]|$))"
)
_SCALE = re.compile(r"[\s-]*(hundred|thousand|million|billion|trillion)s?\b|\s?[余多]?([百千万亿]+)", re.IGNORECASE)
_SHORT_SCALE = re.compile(r"\s?(bn|mn|tn)\b|\s?([mk])(?=\s(?:euros?|dollars?|pounds?)\b)|([mk])\b")
_SIGNS = tuple("$€£¥")
_SHORT_SCALES = {"bn": 1e9, "mn": 1e6, "tn": 1e12, "m": 1e6, "k": 1e3}
_ROMAN, _ROMAN_NUMBER = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}, re.compile(r"\b[IVXLC]+\b")
# Part IV is part 4, and the Second World War is World War II.
_ROMAN_BEHIND = re.compile(
    r"\b(?i:chapter|part|book|volume|vol\.|section|article|act|scene|appendix|phase|type|figure|table) ([IVXLC]+)\b"
)
_MAY_BE_TIME = re.compile(r"\d ?[apAP]\.?[mM]|\d[:：]\d|[點点时時]")
_WORLD_WAR = re.compile(r"\b(First|Second) World War\b|\bWorld War (I{1,2}|One|Two|[12])\b")
_RANKED = re.compile(rf"\b(?:{'|'.join(ORDINALS)})$", re.IGNORECASE)
_ORDINAL_MONTH = re.compile(r"(?:st|nd|rd|th)\s+month")
# 2/3, 三分之二, two-thirds, a third of them, the poorest fifth; 百分之 is read as a number of per cent.
_PARTS = {"quarter": 4, **{word: value for word, value in ORDINALS.items() if 2 < value < 11}}
_MOST_PARTS = 20
# The digits before a ½, and how far before a number its name is looked for.
_LONGEST_WHOLE, _NAME_BEFORE = 3, 20
# Lower years in two figures may be of either century.
_RECENT = 30
_FRACTION = re.compile(
    rf"(?<![\d/.,])(?<!\d[ -])(\d{{1,3}}) ?[/⁄] ?(\d{{1,3}})(?![\d/])|(?<![{_HAN}])(?!百分)([{_HAN}]+)分之([{_HAN}]+)"
    rf"|\b({_CARDINAL}|a(?=\W\w+ of)|\w{{3,}}est|top|bottom)[\s-]({'|'.join(_PARTS)})s?\b",
    re.IGNORECASE,
)
_MONTHS = {name: number for number, names in enumerate(_TABLE["months"], start=1) for name in names.split()}
# The 5th of May is 5 May.
_RANKS = re.compile(
    rf"(?:st|nd|rd|th)\b(?! (?:of )?(?:{'|'.join(sorted({name[:3].capitalize() for name in _MONTHS}))}))"
)
FULL_MONTHS = {
    short.capitalize(): full.capitalize() for full, *shorts in map(str.split, _TABLE["months"]) for short in shorts
}
"""The names of months by their short forms."""
_PERCENT = re.compile(r"per\s?cent|percentage", re.IGNORECASE)
# 98年 at the head of a clause, or behind what leads to a year, is 1998 as well; 历时98年 and 56年后 are not.
_SHORT_YEAR = re.compile(
    rf"(?:(?<![\u4e00-\u9fff])|(?<=[于於在自从到至]))(?:\d\d|[{_HAN[:12]}]{{2}})(?=年(?![代前后後内間间来來级級]))"
)
# 2018–19: the second year of a span is written with its last two digits.
_YEAR_BEFORE = re.compile(r"(?<!\d)([12]\d)\d\d\s?[-–—/]$", re.ASCII)
# The stop behind a month is part of it only where that is short: Nov., not November.
_MONTH = re.compile(rf"\b({_any_of(_MONTHS)})\b(?:(?<=\b\w{{3}})(?<!may)\.|(?<=\bsept)\.)?", re.IGNORECASE)
_YEAR_BEHIND = re.compile(r",? (?:\d{1,2}, ?)?[12]\d{3}\b(?![,.]\d)")
_COMPARABLE = ({"number", "year"}, {"number", "day"}, {"ordinal", "day"})


@dataclass(frozen=True)
class Quantity:
    """One number or part of a date."""

    values: frozenset[float]
    kind: Kind
    start: int
    end: int

    def agrees_with(self, other: "Quantity") -> bool:
        """Return whether two quantities may be the same."""
        shared = self.values & other.values
        if len(self.values) > 1 and len(other.values) > 1:
            # The second years of two eras are not the same: 显庆二年, 咸亨二年.
            shared -= {min(self.values)}
        if not shared:
            return False
        return self.comparable_with(other) or {self.kind, other.kind} == {"number", "ordinal"}

    def comparable_with(self, other: "Quantity") -> bool:
        """Return whether two quantities are of comparable kinds."""
        return self.kind == other.kind or {self.kind, other.kind} in _COMPARABLE


def quantities(text: str) -> list[Quantity]:
    """Find the numbers and dates of a text; vague words (一, "several"), and words such as 十分重要, are none."""
    plain = _NO_NUMBER.sub(lambda word: "_" * len(word[0]), text).translate(_FOLD)
    taken = [False] * len(plain)
    found: list[Quantity] = []
    readings = (_times_and_wars, _years, _fractions, _in_several_scales, _numbers, _in_words)
    for (start, end), kind, values in chain.from_iterable(read(plain) for read in readings):
        if not any(taken[start:end]):
            taken[start:end] = [True] * (end - start)
            found.append(Quantity(frozenset(round(float(value), 6) for value in values), kind, start, end))
    return sorted(found, key=lambda quantity: quantity.start)


# The span of a quantity, its kind, and its possible values.
_Reading = tuple[tuple[int, int], Kind, set[float]]


def _times_and_wars(plain: str) -> Iterator[_Reading]:
    for span, minutes in times_of_day(plain) if _MAY_BE_TIME.search(plain) else ():
        yield span, "time", minutes
    for match in _WORLD_WAR.finditer(plain):
        yield match.span(), "ordinal", {1.0 + ((match[1] or match[2]) in ("Second", "II", "Two", "2"))}


def _years(plain: str) -> Iterator[_Reading]:
    for match in _ERA.finditer(plain):
        number = 1.0 if match[2] == "元" else _value(match[2])
        if number is not None:
            yield match.span(), "year", {number, *(first + number - 1 for first in _ERAS[match[1]])}
    for match in _DECADE.finditer(plain):
        century, decade = _value(match[1] or "20"), _value(match[2])
        if century is not None and decade is not None:
            yield match.span(), "year", {100 * (century - 1) + decade}
    for match in _DECADE_ALONE.finditer(plain):
        decade = _value(match[1] or match[2] or match[3])
        if decade is not None:
            yield match.span(), "year", {decade, 1900 + decade, 2000 + decade} if decade < 100 else {decade}


def _fractions(plain: str) -> Iterator[_Reading]:
    for match in _FRACTION.finditer(plain):
        arabic, below, han_below, han, word, part = match.groups()
        whole = _PARTS[part.lower()] if part else _value(below or han_below)
        of_it = _WORDS.get(word.lower(), 1) if word else _value(arabic or han)
        # Resolution 43/53 is no share.
        if whole and of_it and of_it < whole and not (arabic and whole > _MOST_PARTS):
            share = 100 * of_it / whole
            yield match.span(), "percent", {share, round(share, 1), round(share)}


def _in_several_scales(plain: str) -> Iterator[_Reading]:
    for match in _MONEY.finditer(plain):
        whole, tenths, hundredths, spoken = map(_value, match.groups("零"))
        yield match.span(), "number", {(whole or 0) + ((tenths or spoken or 0) + (hundredths or 0) / 10) / 10}
    for match in _HAN_SCALES.finditer(plain):
        yield match.span(), _kind(plain, *match.span()), {_value(match[0]) or 0.0}


def _numbers(plain: str) -> Iterator[_Reading]:
    for match in _arabic(plain):
        values = _arabic_values(match[0], plain, match.end())
        start, end = match.span()
        if part := _AND_PART.match(plain, end) if end - start <= _LONGEST_WHOLE else None:
            more = numeric(part[1]) if part[1] else int(part[2]) / int(part[3])
            values, end = {value + more for value in values}, part.end()
        if scale := _SCALE.match(plain, end):
            factor = _SCALES[scale[1].lower()] if scale[1] else _scale(scale[2])
            values, end = {value * factor for value in values}, scale.end()
        elif (short := _SHORT_SCALE.match(plain, end)) and (not short[3] or plain.startswith(_SIGNS, start - 1, start)):
            values, end = {value * _SHORT_SCALES[short[0].strip()] for value in values}, short.end()
        yield (start, end), _kind(plain, start, end), {*values, *_second_year(plain, match)}
    for match in _HAN_NUMBER.finditer(plain):
        counted = _TO_IN_HAN.match(plain, match.end())
        before = plain[max(0, match.start() - 3) : match.start()]
        following = counted[1] if counted else plain[match.end() : match.end() + 1]
        han = _han_value(match[0], following, before)
        if han is not None:
            start = match.start() - len(_PER_HUNDRED) * (before == _PER_HUNDRED)
            # 三百五 is 350 in speech and 305 in old books, as in 户三万一千三百三.
            either = match[0][-2:-1] == "百" and before[-1:] not in _PLACED and not (following and following in COUNTED)
            values = {han, han + 9 * _DIGIT.get(match[0][-1], 0) * either}
            yield (start, match.end()), _kind(plain, *match.span()), values | _second_year(plain, match)


def _in_words(plain: str) -> Iterator[_Reading]:
    for match in _ENGLISH.finditer(plain):
        if (value := _english_value(match[0].lower())) is not None:
            yield match.span(), _kind(plain, *match.span()), {value}
    for match in _HALF.finditer(plain):
        yield match.span(), "number", {_SCALES["dozen"] if match[2] else _SCALES.get((match[1] or "").lower(), 1) / 2}
    for match in _ROMAN_BEHIND.finditer(plain):
        yield match.span(1), "number", {numeral(match[1])}
    for match in _MONTH.finditer(plain):
        # Months stand beside a number; `may` and `march`, without a capital, only before a year.
        near = plain[max(0, match.start() - 5) : match.end() + 6]
        is_month = match[0][0].isupper() or match[1].lower() not in ("may", "march")
        if (is_month and re.search(r"\d", near)) or _YEAR_BEHIND.match(plain, match.end()):
            yield match.span(), "month", {float(_MONTHS[match[1].lower()])}


def _english_value(words: str) -> float | None:
    """Read an English number; None for the vague ones."""
    parts = [part for part in re.split(r"[\s-]+", words) if part not in ("and", "a")]
    if parts in (["one"], ["first"], ["second"]) or all(part in _SCALES for part in parts):
        return None
    total = current = 0.0
    for part in parts:
        if part == "hundred":
            current = (current or 1) * 100
        elif part in _SCALES:
            total, current = total + (current or 1) * _SCALES[part], 0.0
        else:
            current += 0.5 if part == "half" else _WORDS.get(part) or ORDINALS.get(part, 0)
    return total + current


def _arabic(plain: str) -> list[re.Match[str]]:
    found, at = [], 0
    while match := _ARABIC.search(plain, at):
        is_two = not match[0].isascii() or " " in match[0]
        if is_two and _NUMBERED.search(plain[max(0, match.start() - _NAME_BEFORE) : match.start()]):
            match = _DIGITS.match(plain, match.start()) or match
        found.append(match)
        at = match.end()
    return found


def _arabic_values(written: str, plain: str, end: int) -> set[float]:
    """Read an Arabic number: 12.500 men are as many as 12,500 or, as it is written elsewhere, 12.5."""
    digits = re.sub(r"[\s'’]|,(?=\d{3})", "", written).replace(",", ".")
    value = float(digits.replace(".", "") if digits.count(".") > 1 else digits)
    return {value, 1000 * value} if _THOUSANDS.fullmatch(digits) and _WHOLES.match(plain, end) else {value}


def numerals(text: str) -> set[float]:
    """Return the values of all numerals in Han characters, including those that are part of a word, such as 四音符."""
    return {value for match in _HAN_NUMBER.finditer(text.translate(_FOLD)) if (value := _value(match[0])) is not None}


def values_in_words(text: str) -> set[float]:
    """Return the values of what another language may write as a number: months, Roman numerals, parts of Han words."""
    months = {float(_MONTHS[match[1].lower()]) for match in _MONTH.finditer(text) if match[0][0].isupper()}
    return months | {float(numeral(match[0])) for match in _ROMAN_NUMBER.finditer(text)} | numerals(text)


def numeral(written: str) -> int:
    """Read a number that stands alone, as of a page or a chapter: 12, XII, 十二; 0 if it is none."""
    word = written.lower()
    if word.isdecimal():
        return int(word[:9])
    if word and set(word) <= _ROMAN.keys():
        values = [_ROMAN[letter] for letter in word]
        return sum(-one if one < after else one for one, after in pairwise([*values, 0]))
    return int(next(iter(numerals(word)), 0))


def _han_value(numeral: str, following: str, before: str) -> float | None:
    """Read a numeral in Han characters; None if it is part of a word."""
    word = re.sub("[余多有]", "", numeral).replace("點", "点")
    if "点" in word:
        whole, _, rest = word.partition("点")
        digits = rest.rstrip("万亿")
        decimal = f"{_value(whole) or 0:.0f}." + "".join(str(_DIGIT[digit]) for digit in digits)
        return float(decimal) * _scale(rest[len(digits) :])
    if before == _PER_HUNDRED or (before[-1:] == "比" and set(before[-2:-1]) & _DIGIT.keys()):
        return _value(word)
    if len(word) == 1 and (not following or following not in COUNTED or (word in "百千万亿" and following != "余")):
        return None
    # 三五人 and 六七人 are no certain number; 九八年 is a year.
    if len(word) == 2 and all(_DIGIT.get(character) for character in word) and following != "年":
        return None
    if numeral == "万一" or (word == "一" and following not in "年月日"):
        return None
    is_whole = before[-1:] in _PLACED or "有" in numeral or (following and following in COUNTED)
    if _DIGIT.get(word[-1]) and not is_whole:
        word += _SPOKEN.get(word[-2:-1], "")
    return _value(word)


def _second_year(plain: str, match: re.Match[str]) -> set[float]:
    if (short := _SHORT_YEAR.match(plain, match.start())) and (year := _value(short[0])) is not None:
        return {1900 + year} if year >= _RECENT else {2000 + year} if short[0][0] in "0零〇" else set()
    century = _YEAR_BEFORE.search(plain[max(0, match.start() - 8) : match.start()])
    return {int(century[1]) * 100 + float(match[0])} if century and len(match[0]) == 2 else set()


def _kind(plain: str, start: int, end: int) -> Kind:
    after = plain[end : end + 12].lstrip()
    before = plain[max(0, start - 10) : start].rstrip().lower()
    if after[:1] in ("年", "载"):
        return "year"
    if after[:1] == "月" or _ORDINAL_MONTH.match(plain, end) or _ORDINAL_MONTH.match(plain, end - 2):
        return "month"
    if after[:1] in ("日", "号"):
        return "day"
    if after[:1] == "%" or _PERCENT.match(after) or plain[max(0, start - 3) : start] == _PER_HUNDRED:
        return "percent"
    word = re.search(r"([a-z]+)\.?$", before)
    if word and word[1] in _MONTHS and end - start <= 4:
        return "day" if len(plain[start:end]) <= 2 else "year"
    is_ordinal = plain[start - 1 : start] == "第" or _RANKS.match(plain, end) or _RANKED.search(plain[start:end])
    return "ordinal" if is_ordinal else "number"


def _scale(word: str) -> float:
    return math.prod((float((_SMALL | _LARGE)[character]) for character in word), start=1.0)


def _value(word: str) -> float | None:
    """Read a Chinese or Arabic numeral."""
    if word.isdigit() and word.isascii():
        return float(word)
    if all(character in _DIGIT for character in word):
        # 一九四九 is read digit by digit.
        return float("".join(str(_DIGIT[character]) for character in word))
    total = section = digit = 0.0
    for character in _DIGITS_OR_ONE.findall(word):
        if character in _DIGIT or character.isdecimal():
            digit = _DIGIT[character] if character in _DIGIT else float(character)
        elif character in _SMALL:
            unit = _SMALL[character]
            if unit > section > 0:  # 十二千克
                section, digit = 0.0, section + digit
            section += unit if unit in (20, 30) else (digit or 1) * unit
            digit = 0
        elif character in _LARGE:
            large, below = _LARGE[character], section + digit
            # 一亿二千万, but 四万万 and 三万五千亿
            total = total + below * large if below and total >= large else (total + below or 1) * large
            section = digit = 0
        else:
            return None
    return total + section + digit
