"""
Makes wrong claims out of right ones: a sentence with one number, date or name swapped for another.

Everything is drawn from one seeded generator, so that the same rows give the same swaps everywhere.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["number", "date", "name"]

_DIGITS = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?", re.ASCII)
_YEAR = re.compile(r"(?<![\d.,])[12]\d{3}(?![\d,.]\d)(?=年|\b|[^\d])", re.ASCII)
_MONTHS = "January February March April May June July August September October November December".split()
_MONTH = re.compile(rf"\b({'|'.join(_MONTHS)})\b(?=\s+\d)|(?<=\d\s)({'|'.join(_MONTHS)})\b")
_HAN_DATE = re.compile(r"(?<=[年月])(\d{1,2})(?=[月日])|(?<![\d.,])(\d{1,2})(?=月\d)")
_WORDS = "two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty".split()
_WORD = re.compile(rf"\b({'|'.join(_WORDS)})\b")
_HAN_DIGITS = "二三四五六七八九"
_HAN_NUMBER = re.compile(rf"[{_HAN_DIGITS}](?=[个名位年月日岁人次条座部]|十)")
# A capitalised word, or several in a row, that does not open its sentence.
_NAME = re.compile(r"(?<=[a-z0-9,;] )[A-Z][a-zé-ü]+(?:[ -][A-Z][a-zé-ü]+)*\b")
_NO_NAMES = frozenset({*_MONTHS, *"Monday Tuesday Wednesday Thursday Friday Saturday Sunday The However".split()})
_HAN_PLACES = (
    "中国 美国 英国 法国 德国 日本 韩国 印度 俄罗斯 意大利 西班牙 加拿大 澳大利亚 巴西 埃及 北京 上海 香港 台湾 "
    "广州 南京 杭州 武汉 成都 西安 重庆 天津 苏州 福建 浙江 江苏 广东 湖南 湖北 四川 云南 山东 "
    "山西 河南 河北 伦敦 巴黎 纽约 东京 柏林 罗马"
).split()
_HAN_PLACE = re.compile("|".join(_HAN_PLACES))
_HAN = re.compile(r"[\u4e00-\u9fff·]{2,8}")


@dataclass(frozen=True)
class Swap:
    """A claim with one thing swapped."""

    id: str
    language: str
    source: str
    evidence: str
    claim: str
    kind: Kind
    old: str
    new: str


def swaps(rows: Sequence[dict[str, Any]], seed: int = 20) -> list[Swap]:
    """Swap one thing in the first evidence of every row where there is a number, a date or a name to swap."""
    generator = random.Random(seed)
    chinese = any(row["lang"].startswith("zh") for row in rows)
    names = sorted({name for row in rows for name in (_han_names(row) if chinese else _english_names(row["source"]))})
    made = []
    for row in rows:
        evidence = row["evidences"][0]["text"]
        found: dict[Kind, list[tuple[int, int, str]]] = {
            "date": _dates(evidence, generator),
            "number": _numbers(evidence, generator),
            "name": _names(row, evidence, names, generator, chinese=chinese),
        }
        kinds = [kind for kind, places in found.items() if places]
        if not kinds:
            continue
        fewest = {kind: sum(swap.kind == kind for swap in made) for kind in kinds}
        kind = min(kinds, key=lambda one: fewest[one])
        start, end, new = generator.choice(found[kind])
        claim = evidence[:start] + new + evidence[end:]
        if claim in row["source"]:
            continue
        language = "zh" if chinese else "en"
        made.append(Swap(row["id"], language, row["source"], evidence, claim, kind, evidence[start:end], new))
    return made


def _dates(text: str, generator: random.Random) -> list[tuple[int, int, str]]:
    found = []
    for match in _YEAR.finditer(text):
        year = int(match[0])
        if 1000 <= year <= 2100:
            found.append((match.start(), match.end(), str(year + generator.choice([-20, -10, -3, -1, 1, 2, 7, 10]))))
    for match in _MONTH.finditer(text):
        other = generator.choice([month for month in _MONTHS if month != match[0]])
        found.append((match.start(), match.end(), other))
    for match in _HAN_DATE.finditer(text):
        other = generator.choice([value for value in range(1, 13) if value != int(match[0])])
        found.append((match.start(), match.end(), str(other)))
    return found


def _numbers(text: str, generator: random.Random) -> list[tuple[int, int, str]]:
    dates = [(match.start(), match.end()) for pattern in (_YEAR, _HAN_DATE) for match in pattern.finditer(text)]
    found = []
    for match in _DIGITS.finditer(text):
        if any(start < match.end() and match.start() < end for start, end in dates):
            continue
        at = generator.randrange(len(match[0]))
        while not match[0][at].isdigit():
            at = generator.randrange(len(match[0]))
        digit = generator.choice([d for d in "123456789" if d != match[0][at]])
        found.append((match.start(), match.end(), match[0][:at] + digit + match[0][at + 1 :]))
    for pattern, words in ((_WORD, _WORDS), (_HAN_NUMBER, list(_HAN_DIGITS))):
        for match in pattern.finditer(text):
            other = generator.choice([word for word in words if word != match[0]])
            found.append((match.start(), match.end(), other))
    return found


def _names(
    row: dict[str, Any], evidence: str, names: Sequence[str], generator: random.Random, *, chinese: bool
) -> list[tuple[int, int, str]]:
    patterns = [re.compile("|".join(map(re.escape, _han_names(row)))), _HAN_PLACE] if chinese else [_NAME]
    found = []
    for pattern in patterns:
        for match in pattern.finditer(evidence) if pattern.pattern else ():
            if match[0] in _NO_NAMES:
                continue
            choices = _HAN_PLACES if pattern is _HAN_PLACE else names
            # A name of the same passage is the hardest to find: nothing in the claim is new.
            near = [name for name in choices if name in row["source"]] if generator.random() < 0.3 else []
            others = [name for name in near or choices if name not in evidence and match[0] not in name]
            if others:
                found.append((match.start(), match.end(), generator.choice(others)))
    return found


def _english_names(text: str) -> set[str]:
    return {match[0] for match in _NAME.finditer(text) if match[0] not in _NO_NAMES and len(match[0]) > 3}


def _han_names(row: dict[str, Any]) -> list[str]:
    """Take the title, and short answers between quotation marks or brackets, for names."""
    title = re.sub(r"\s*\(.*\)$", "", row["title"])
    found = [title] if _HAN.fullmatch(title) and len(title) <= 6 else []
    answers = [answer.strip("《》「」“”") for answer in row["answers"]]
    quoted = [a for a in answers if re.search(rf"[《「“]{re.escape(a)}[》」”]", row["source"])]
    return found + [answer for answer in quoted if _HAN.fullmatch(answer)]
