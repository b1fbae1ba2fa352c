"""Finds citation marks in any spelling, and writes them in one."""

import re
import unicodedata
from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from shiguan.llm.source_blocks import neutral_text
from shiguan.resources import read_patterns

# A prompt never has this many sources; a longer range is a mistake, such as years in brackets.
_LONGEST_RANGE, _MOST_SOURCES = 50, 1000
_DIGITS = re.compile(r"\d+|[¹²³⁰⁴-⁹]+|[①-⑳]")
_ROUND = str.maketrans("[]【】［］〔〕", "()（）（）（）")


@dataclass(frozen=True)
class Mark:
    """One bracket of citations."""

    start: int
    end: int
    numbers: tuple[int, ...]


_patterns: Callable[[], dict[str, re.Pattern[str]]] = partial(read_patterns, Path(__file__).with_name("marks.yaml"))


def find_marks(text: str) -> list[Mark]:
    """Find the citation marks of a text, in any spelling; links and numbers of four digits or more are not marks."""
    marks = []
    for match in _patterns()["mark"].finditer(text):
        if _patterns()["linked"].match(text, match.end()):
            continue
        if (numbers := _numbers(match[0])) and max(numbers) < _MOST_SOURCES:
            marks.append(Mark(match.start(), match.end(), numbers))
    return marks


def _numbers(listed: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for first, last in _patterns()["numbers"].findall(_patterns()["beside"].sub("", listed)):
        low = int(unicodedata.normalize("NFKC", first))
        high = int(unicodedata.normalize("NFKC", last)) if last else low
        numbers.extend([low, high] if low > high or high - low > _LONGEST_RANGE else range(low, high + 1))
    return tuple(dict.fromkeys(numbers))


def uniform_marks(text: str) -> str:
    """Write the marks of a text as `[1]`, and so that its sentences stay complete without them."""
    patterns = _patterns()
    if not _DIGITS.search(text):
        return patterns["broken"].sub("", text)
    text = patterns["closing"].sub(lambda found: _written(_numbers(found[0])), text)
    text = patterns["mark"].sub(lambda found: _one_form(text, found), text)
    for _ in range(3):
        text = patterns["joined"].sub("", patterns["wrapped"].sub(r"\1", text))
    for name in ("round", "named"):
        text = patterns[name].sub(lambda found: _written(_numbers(found[0])), text)
    text = patterns["definition"].sub(r"\1 ", patterns["sources"].sub(r"\1", text))
    text = patterns["subject"].sub(lambda found: _noun(found, "The source" if found.start() == 0 else ""), text)
    text = patterns["noun"].sub(lambda found: _noun(found, f"{found['before']} the source"), text)
    text = patterns["han"].sub(lambda found: f"{found['before']}资料{found['marks']}", text)
    return patterns["broken"].sub("", text)


def lowered_marks(text: str) -> str:
    """Write raised marks, such as `<sup>1</sup>`, `^1^` or ¹ after a stop, as `[1]`."""
    return _patterns()["raised"].sub(lambda found: _written(_numbers(unicodedata.normalize("NFKC", found[0]))), text)


def _one_form(text: str, found: re.Match[str]) -> str:
    if _patterns()["linked"].match(text, found.end()):
        return found[0]
    numbers = _numbers(found[0])
    return _written(numbers) if max(numbers) < _MOST_SOURCES else found[0].translate(_ROUND)


def _written(numbers: tuple[int, ...]) -> str:
    return "".join(f"[{number}]" for number in numbers)


def _noun(found: re.Match[str], words: str) -> str:
    if not words:
        before = found.string[: found.start()].rstrip()
        words = "The source" if not before or before[-1] in ".!?\n" else "the source"
    plural = "s" if len(_DIGITS.findall(found["marks"])) > 1 else ""
    return f"{words}{plural} {found['marks'].strip()} "[: None if found.re is _patterns()["subject"] else -1]


def neutral_answer(text: str, known: Container[int]) -> str:
    """Make an answer harmless for another prompt, keeping only its marks that name known passages."""
    parts, at = [], 0
    for mark in find_marks(text):
        parts += [neutral_text(text[at : mark.start]), *(f"[{number}]" for number in mark.numbers if number in known)]
        at = mark.end
    return "".join([*parts, neutral_text(text[at:])]).strip()
