"""Joins the lines of pages to one text: no running heads, and sentences whole over lines, columns and pages."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, islice, pairwise
from statistics import median
from typing import NamedTuple

from shiguan.ingest.pdf.lines import Line
from shiguan.text.places import page_label
from shiguan.text.quantities import numerals

_NUMBER = "\0"  # stands for every number where lines are compared
# So many rows at the top and at the bottom of a page may be running heads or feet, and no more lines than this.
_EDGE_ROWS, _MOST_LINES = 3, 24
# Heads differ on left and right pages.
_PAGES_APART = 2
_HAN = "〇零一二三四五六七八九十百"
_NUMERAL = re.compile(rf"\d+|^\W*[ivxlc]+(?=\W|$)|(?<=\W)[ivxlc]+\W*$|^\W*第?[{_HAN}]+[页頁]?\W*$")
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
_WORD = re.compile(r"[^\W\d_]+")
_ENDED = re.compile(r"[.!?…。！？；:：]['\"”’」』）)\]]*(?:\[\d+\])*$")
_ITEM = re.compile(rf"(?:[-*+•·▪‣◦]|[(（]?\d{{1,3}}[.)）]|[{_HAN}]{{1,4}}、)\s*\S")
# Chinese and Japanese have no spaces, Korean and the Latin words in them have.
_UNSPACED = re.compile(r"[\u2e80-\ua4cf\uf900-\ufaff\uff00-\uff60\U00020000-\U0003ffff]")
_SPACED = re.compile(r"[A-Za-z\u00c0-\u024f\uac00-\ud7af]")
_HYPHENS = "-‐\u00ad"
_WORDS = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_LAST_PART, _FIRST_PART, _LONGEST_PART = re.compile(r"[^\W\d_]+$"), re.compile(r"[^\W\d_]+"), 40
# A gap between lines that is so much larger than usual, or another size of letters, begins a paragraph. In heights of a
# character: an indent, and how much shorter than its column a line is that ends a paragraph.
_LARGER_GAP, _OTHER_SIZE, _INDENT, _SHORT = 1.4, 0.12, 0.7, 2.5


class _Edge(NamedTuple):
    """A line at the top or bottom of a page, with its numbers."""

    page: int
    place: int
    line: Line
    numbers: list[str]

    def shift(self, place: int) -> int:
        """Return by how much a number is larger than the page's index."""
        return _value(self.numbers[place]) - self.page


def remove_heads(pages: Sequence[Sequence[Line]]) -> tuple[list[list[Line]], list[str]]:
    """
    Take running heads, feet and page numbers out of pages.

    A line is one if it stands at the same place of a page nearby with the same words, while its numbers are the same or
    count the pages.

    :returns: The lines that remain, and the numbers printed on the pages; empty where none is known.
    """
    largest = 1.1 * median([line.size for page in pages for line in page] or [0.0])
    by_words: defaultdict[str, list[_Edge]] = defaultdict(list)
    for edge in chain.from_iterable(_edges(number, page) for number, page in enumerate(pages)):
        words = _NUMERAL.sub(_NUMBER, edge.line.text.casefold())
        if edge.line.size <= largest or not _WORD.search(words):
            by_words[words].append(edge)
    heads: set[tuple[int, int]] = set()
    printed: dict[int, tuple[str, int]] = {}
    for words, edges in by_words.items():
        for one, other in _neighbours(edges):
            same = [after == before for before, after in zip(one.numbers, other.numbers, strict=True)]
            counting = [place for place in range(len(same)) if one.shift(place) == other.shift(place)]
            if all(same[place] or place in counting for place in range(len(same))) and (
                counting or _WORD.search(words)
            ):
                for edge in (one, other):
                    heads.add((edge.page, edge.place))
                    if counting:
                        printed[edge.page] = edge.numbers[counting[-1]], edge.shift(counting[-1])
    usual = Counter(shift for number, shift in printed.values() if number.isdecimal()).most_common(1)
    for edge in chain.from_iterable(edges for words, edges in by_words.items() if not _WORD.search(words)):
        # The first page of a chapter has its number elsewhere.
        if usual and len(edge.numbers) == 1 and edge.shift(0) == usual[0][0]:
            heads.add((edge.page, edge.place))
            printed[edge.page] = edge.numbers[0], edge.shift(0)
    bodies = [
        _body(page, [(number, place) in heads for place in range(len(page))]) for number, page in enumerate(pages)
    ]
    return bodies, _labels(len(pages), printed, usual[0][0] if usual else 0)


def _edges(number: int, page: Sequence[Line]) -> Iterator[_Edge]:
    rows: list[float] = []
    for base, size in sorted((line.base, line.size) for line in page):
        if not rows or base - rows[-1] > size / 2:
            rows.append(base)
    for place, line in islice(
        (
            (place, line)
            for place, line in enumerate(page)
            if line.base < rows[:_EDGE_ROWS][-1] + line.size / 2 or line.base >= rows[-_EDGE_ROWS:][0]
        ),
        _MOST_LINES,
    ):
        yield _Edge(number, place, line, [found[0] for found in _NUMERAL.finditer(line.text.casefold())])


def _body(page: Sequence[Line], heads: list[bool]) -> list[Line]:
    """Leave out the heads above and below everything else; where there is nothing else, the numbers alone."""
    rest = [line for line, head in zip(page, heads, strict=True) if not head] or [
        line for line in page if _WORD.search(_NUMERAL.sub("", line.text.casefold()))
    ]
    low, high = (
        min((line.base for line in rest), default=math.inf),
        max((line.base for line in rest), default=-math.inf),
    )
    return [
        line
        for line, head in zip(page, heads, strict=True)
        if not head or low - line.size / 2 <= line.base <= high + line.size / 2
    ]


def _value(numeral: str) -> int:
    bare = re.sub(r"\W", "", numeral)
    if bare.isdecimal():
        return int(bare[:9])
    if bare[0] not in _ROMAN:
        return int(next(iter(numerals(bare)), 0))
    values = [_ROMAN[letter] for letter in bare]
    return sum(-one if one < after else one for one, after in pairwise([*values, 0]))


def _neighbours(edges: list[_Edge]) -> Iterator[tuple[_Edge, _Edge]]:
    """Yield pairs of lines that stand at the same place of two pages next to each other, or one further."""
    recent: list[_Edge] = []
    for edge in edges:
        recent = [each for each in recent if edge.page - each.page <= _PAGES_APART]
        for each in recent:
            if each.page < edge.page and abs(each.line.base - edge.line.base) < each.line.size:
                yield each, edge
        recent.append(edge)


def _labels(count: int, printed: dict[int, tuple[str, int]], usual: int) -> list[str]:
    """Return the printed numbers; a page without one counts on from the page before it."""
    labels: list[str] = []
    shift = usual
    for page in range(count):
        number, shift = printed.get(page, ("", shift))
        known = printed and shift == usual and page + shift > 0
        labels.append(page_label(number) or (str(page + shift) if known else ""))
    return labels


def join_pages(pages: Sequence[Sequence[Line]]) -> tuple[str, list[int]]:
    """Join the lines of all pages; also return where in the text each page begins."""
    words = {word.casefold() for page in pages for line in page for word in _WORDS.findall(line.text)}
    parts: list[str] = []
    starts: list[int] = []
    length, last = 0, None
    for number, page in enumerate(pages):
        # The usual distance of two lines.
        gaps = [one.base - other.base for one, other in pairwise(page) if 0 < one.base - other.base < 3 * one.size]
        usual = median(gaps or [math.inf])
        for place, line in enumerate(page):
            if last is not None:
                between = _between(last, line, usual if place else 0.0)
                if last.text[-1] in _HYPHENS and between != "\n\n":
                    kept = _keeps_hyphen(last.text, line.text, words)
                    parts[-1], length = (parts[-1], length) if kept else (parts[-1][:-1], length - 1)
                    between = ""
                parts.append(between)
                length += len(between)
            if not place:
                # Pages without text begin where the next one does.
                starts += [length] * (number + 1 - len(starts))
            parts.append(line.text)
            length += len(line.text)
            last = line
    return "".join(parts), starts + [length] * (len(pages) - len(starts))


def _between(last: Line, line: Line, usual: float) -> str:
    """Choose what separates two lines; without a usual distance they are on two pages."""
    ended = _ENDED.search(last.text[-40:])
    short = last.right < last.end - _SHORT * last.size
    follows = usual and last.base > line.base and (last.begin, last.end) == (line.begin, line.end)
    indent = line.left - (last.left if follows else line.begin)
    if abs(line.size - last.size) > _OTHER_SIZE * last.size or (
        follows and last.base - line.base > _LARGER_GAP * usual
    ):
        return "\n\n"
    if ended and (short or indent > _INDENT * line.size):
        return "\n\n"
    if short or last.row or line.row or _ITEM.match(line.text):
        return "\n"
    sides = last.text[-1] + line.text[0]
    return "" if _UNSPACED.search(sides) and not _SPACED.search(sides) else " "


def _keeps_hyphen(before: str, after: str, words: set[str]) -> bool:
    """Return whether a hyphen at the end of a line is part of the word; what the text has elsewhere decides."""
    first, rest = _LAST_PART.search(before[-_LONGEST_PART:-1]), _FIRST_PART.match(after)
    if before[-1] == "\u00ad" or not first or not rest:
        return before[-1] != "\u00ad"
    whole, compound = (f"{first[0]}{hyphen}{rest[0]}".casefold() for hyphen in ("", "-"))
    return not rest[0][0].islower() or (compound in words and whole not in words)
