"""Joins the lines of pages to one text: no running heads, and sentences whole over lines, columns and pages."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, islice, pairwise
from statistics import median
from typing import NamedTuple

from shiguan.ingest.pdf.lines import INITIAL, Line
from shiguan.text.places import page_label
from shiguan.text.quantities import numeral

_NUMBER = "\0"  # stands for every number where lines are compared
# So many rows at the top and at the bottom of a page may be running heads or feet, and no more lines than this.
_EDGE_ROWS, _MOST_LINES = 3, 24
# Heads differ on left and right pages; so far a line is compared with others whose words differ.
_PAGES_APART, _PAGES_NEAR, _FEWEST_NEAR, _HEAD_LINES = 2, 4, 3, 4
_HAN = "〇零一二三四五六七八九十百"
_NUMERAL = re.compile(rf"\d+|^\W*[ivxlc]+(?=\W|$)|(?<=\W)[ivxlc]+\W*$|^\W*第?[{_HAN}]+[页頁]?\W*$")
_WORD = re.compile(r"[^\W\d_]+")
_ENDED = re.compile(r"[.!?…。！？；:：]['\"”’」』）)\]]*(?:\[\d+\])*$")
_CAPTION = re.compile(r"(?:Fig|Tab|Plate|Map|Abb|图|圖|表|図)\w*\.?\s*\d")
_ITEM = re.compile(rf"(?:[-*+•·▪‣◦]|[(（]?\d{{1,3}}[.)）]|[{_HAN}]{{1,4}}、)\s*\S")
# Chinese and Japanese have no spaces, Korean and the Latin words in them have.
_UNSPACED = re.compile(r"[\u2e80-\ua4cf\uf900-\ufaff\uff00-\uff60\U00020000-\U0003ffff]")
_SPACED = re.compile(r"[A-Za-z\u00c0-\u024f\uac00-\ud7af]")
_PARENTHESES = str.maketrans("[]", "()")
_HYPHENS = "-‐\u00ad"
_WORDS = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_LAST_PART, _FIRST_PART, _LONGEST_PART = re.compile(r"[^\W\d_]+$"), re.compile(r"[^\W\d_]+"), 40
# A gap between lines that is so much larger than usual, or another size of letters, begins a paragraph. In heights of a
# character: an indent, and how much shorter than its column a line is that ends a paragraph.
_LARGER_GAP, _OTHER_SIZE, _INDENT, _SHORT = 1.4, 0.12, 0.7, 2.5
_ONE_LETTER_WORDS = "AIO"
# Notes below a page have letters so much smaller, and begin with their marks.
_SMALLER, _MARK = 0.93, re.compile(r"[\[(（〔［【]?(?:\d{1,3}(?!\d)|[*†‡§¶＊※①-⑳])")


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
    count the pages; or, whatever its words, if it stands apart where pages nearby have a head, or where most such lines
    interrupt a sentence.

    :returns: The lines that remain, and the numbers printed on the pages; empty where none is known.
    """
    heads, printed, shift = _recurring(pages)
    bodies = [
        _body(page, [(number, place) in heads for place in range(len(page))]) for number, page in enumerate(pages)
    ]
    known: defaultdict[int, list[float]] = defaultdict(list)
    for page, place in heads:
        known[page].append(pages[page][place].base)
    gaps, idle = [_line_gap(page) for page in bodies], 0
    # The number may stand above or below the words.
    for at in (0, -1) * 3:
        found = _interruptions(bodies, at, known, _LARGER_GAP * median(gaps or [0.0]))
        shift = _remove(found, bodies, printed, shift)
        for edge in found:
            known[edge.page].append(edge.line.base)
            gaps[edge.page] = _line_gap(bodies[edge.page])
        idle = 0 if found else idle + 1
        if idle == 2:
            break
    return bodies, _labels(len(pages), printed, shift or 0)


def _recurring(pages: Sequence[Sequence[Line]]) -> tuple[set[tuple[int, int]], dict[int, tuple[str, int]], int | None]:
    """Find the lines that recur, by page and place, the numbers that count pages, and by how much these are larger."""
    largest = 1.1 * median([line.size for page in pages for line in page] or [0.0])
    by_words: defaultdict[str, list[_Edge]] = defaultdict(list)
    for edge in chain.from_iterable(_edges(number, page) for number, page in enumerate(pages)):
        words = _NUMERAL.sub(_NUMBER, edge.line.text.casefold())
        if edge.line.size <= largest or not _WORD.search(words):
            by_words[words].append(edge)
    heads, printed = set[tuple[int, int]](), dict[int, tuple[str, int]]()
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
    return heads, printed, usual[0][0] if usual else None


def _remove(
    edges: list[_Edge], pages: list[list[Line]], printed: dict[int, tuple[str, int]], shift: int | None
) -> int | None:
    """Remove lines from pages, and note which pages their numbers count; return by how much these are larger."""
    counted = [(edge.shift(place), edge, number) for edge in edges for place, number in enumerate(edge.numbers)]
    if shift is None:
        shift = next(
            (one for one, count in Counter(one for one, _, _ in counted).most_common(1) if count >= _FEWEST_NEAR), None
        )
    printed.update({edge.page: (number, one) for one, edge, number in counted if one == shift})
    for edge in edges:
        del pages[edge.page][edge.place]
    return shift


def _interruptions(pages: list[list[Line]], at: int, known: dict[int, list[float]], gap: float) -> list[_Edge]:
    """Find the first or last lines of pages that are heads by their place, though no other has their words."""
    apart = {
        number: _Edge(number, at, page[at], _numbers(page[at]))
        for number, page in enumerate(pages)
        if _lines_apart(page, at, gap)
    }
    found = []
    for number, edge in apart.items():
        near = range(max(number - _PAGES_NEAR, 0), min(number + _PAGES_NEAR + 1, len(pages)))
        known_near = (base for page in near if abs(page - number) <= _PAGES_APART for base in known.get(page, ()))
        same = [apart[page] for page in near if page in apart and _same_place(apart[page].line.base, edge.line)]
        if any(_same_place(base, edge.line) for base in known_near):
            found.append(edge)
        elif len(same) >= _FEWEST_NEAR and 3 * sum(_interrupts(pages, each, gap) for each in same) > len(same):
            # Notes and captions also stand apart.
            text, base = edge.line.text, edge.line.base
            around = [own for page in near if (own := _bases_inside(pages[page], gap))]
            outside = all(max(own) < base for own in around) or (
                all(base < min(own) for own in around) and not _MARK.match(text)
            )
            alike = sum(each.line.text == text for each in same) >= _FEWEST_NEAR
            if alike or (outside and not (_CAPTION.match(text) or _ENDED.search(text[-40:]))):
                found.append(edge)
    return found


def _bases_inside(page: Sequence[Line], gap: float) -> list[float]:
    first, last = (_lines_apart(page, end, gap) for end in (0, -1))
    return [line.base for line in page[first : len(page) - last]]


def _lines_apart(page: Sequence[Line], at: int, gap: float) -> int:
    """Return how many lines at this edge of a page are further from the rest than lines usually are."""
    lines = page[:_HEAD_LINES] if at == 0 else page[: -_HEAD_LINES - 1 : -1]
    for count, (line, after) in enumerate(pairwise(lines), start=1):
        ended = _ENDED.search(line.text[-40:])
        if abs(line.base - after.base) > gap and (count == 1 or not ended):
            return count
        if ended:  # a paragraph
            return 0
    return 0


def _same_place(base: float, line: Line) -> bool:
    return abs(base - line.base) < line.size / 2


def _interrupts(pages: list[list[Line]], edge: _Edge, gap: float) -> bool:
    page = pages[edge.page]
    if edge.place:
        before, after = page[: -_lines_apart(page, -1, gap)], (pages[edge.page + 1 :][:1] or [[]])[0]
    else:
        before, after = pages[edge.page - 1] if edge.page else [], page[_lines_apart(page, 0, gap) :]
    goes_on = after and (after[0].text[0].islower() or _UNSPACED.match(after[0].text))
    return bool(goes_on) and _is_unfinished(before[: _notes_begin(before)])


def _is_unfinished(page: Sequence[Line]) -> bool:
    return bool(page) and not (page[-1].row or _ENDED.search(page[-1].text[-40:]) or _is_short(page[-1]))


def _notes_begin(page: Sequence[Line]) -> int:
    """Return where the notes begin that stand below a page in smaller letters, each with its mark; else its length."""
    body = _SMALLER * median([line.size for line in page] or [0.0])
    first = next((at for at in range(len(page), 0, -1) if page[at - 1].size >= body), 0)
    lowest = min((line.base for line in page[:first]), default=0.0)
    is_notes = (
        0 < first < len(page)
        and (_MARK.match(page[first].text) or _CAPTION.match(page[first].text))
        and page[first].base < lowest
    )
    return first if is_notes else len(page)


def _is_short(line: Line) -> bool:
    return line.right < line.end - _SHORT * line.size


def _line_gap(page: Sequence[Line]) -> float:
    """Return the usual distance of two lines."""
    gaps = [one.base - other.base for one, other in pairwise(page) if 0 < one.base - other.base < 3 * one.size]
    return median(gaps or [math.inf])


def _edges(number: int, page: Sequence[Line]) -> Iterator[_Edge]:
    rows: list[float] = []
    for base, size in sorted((line.base, line.size) for line in page):
        if not rows or base - rows[-1] > size / 2:
            rows.append(base)
    edges = (
        _Edge(number, place, line, _numbers(line))
        for place, line in enumerate(page)
        if line.base < rows[:_EDGE_ROWS][-1] + line.size / 2 or line.base >= rows[-_EDGE_ROWS:][0]
    )
    yield from islice(edges, _MOST_LINES)


def _numbers(line: Line) -> list[str]:
    return [found[0] for found in _NUMERAL.finditer(line.text.casefold())]


def _body(page: Sequence[Line], heads: list[bool]) -> list[Line]:
    """Leave out the heads above and below everything else; where there is nothing else, the numbers alone."""
    rest = [line for line, head in zip(page, heads, strict=True) if not head] or [
        line for line in page if _WORD.search(_NUMERAL.sub("", line.text.casefold()))
    ]
    bases = [line.base for line in rest]
    low, high = min(bases, default=math.inf), max(bases, default=-math.inf)
    return [
        line
        for line, head in zip(page, heads, strict=True)
        if not head or low - line.size / 2 <= line.base <= high + line.size / 2
    ]


def _value(written: str) -> int:
    return numeral(re.sub(r"\W", "", written))


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
    words = Counter(word.casefold() for page in pages for line in page for word in _WORDS.findall(line.text))
    parts: list[str] = []
    starts: list[int] = []
    length, last = 0, None
    for number, lines in enumerate(pages):
        page = _with_notes_inside(lines) if number + 1 < len(pages) else lines
        usual = _line_gap(page)
        for place, line in enumerate(page):
            if last is not None:
                between = _between(last, line, usual if place else 0.0)
                if _is_initial(last, line):
                    between = " " if _is_word(last.text, line.text, words) else ""
                elif last.text[-1] in _HYPHENS and between != "\n\n":
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


def _with_notes_inside(page: Sequence[Line]) -> Sequence[Line]:
    """Put the notes below an unfinished sentence into it as a book's reader does, before a word that is broken."""
    begin = _notes_begin(page)
    if begin == len(page) or not _is_unfinished(page[:begin]):
        return page
    note = " ".join(join_pages([page[begin:]])[0].split()).translate(_PARENTHESES)
    last = page[begin - 1]
    at = last.text.rfind(" ") + 1 if last.text[-1] in _HYPHENS else len(last.text)
    before, broken = last.text[:at].rstrip(), last.text[at:]
    inside = f"[脚注：{note}]{broken}" if _UNSPACED.search(before[-1:]) else f" [Note: {note}] {broken}".rstrip()
    return [*page[: begin - 1], last._replace(text=before + inside)]


def _between(last: Line, line: Line, usual: float) -> str:
    """Choose what separates two lines; without a usual distance they are on two pages."""
    ended = _ENDED.search(last.text[-40:])
    short = _is_short(last)
    follows = usual and last.base > line.base and (last.begin, last.end) == (line.begin, line.end)
    indent = line.left - (last.left if follows else line.begin)
    broken = last.text[-1] in _HYPHENS and line.text[0].islower()
    # The size of recognised text (OCR) varies.
    if (abs(line.size - last.size) > _OTHER_SIZE * last.size and not broken) or (
        follows and last.base - line.base > _LARGER_GAP * usual
    ):
        return "\n\n"
    if ended and (short or indent > _INDENT * line.size):
        return "\n\n"
    if short or last.row or line.row or _ITEM.match(line.text):
        return "\n"
    sides = last.text[-1] + line.text[0]
    # Chinese lines also end within a number.
    number = sides.isdecimal() and _UNSPACED.search(last.text) and _UNSPACED.search(line.text)
    return "" if number or (_UNSPACED.search(sides) and not _SPACED.search(sides)) else " "


def _is_initial(last: Line, line: Line) -> bool:
    """Return whether the last line is the large first letter of this one."""
    return (
        len(last.text) == 1
        and last.text.isalpha()
        and last.size > INITIAL * line.size
        and last.right <= line.left + line.size
    )


def _is_word(initial: str, after: str, words: Counter[str]) -> bool:
    first = _FIRST_PART.match(after)
    rest = first[0].casefold() if first else ""
    return initial in _ONE_LETTER_WORDS and (not rest or (words[rest] > 1 and not words[initial.casefold() + rest]))


def _keeps_hyphen(before: str, after: str, words: Counter[str]) -> bool:
    """Return whether a hyphen at the end of a line is part of the word; what the text has elsewhere decides."""
    first, rest = _LAST_PART.search(before[-_LONGEST_PART:-1]), _FIRST_PART.match(after)
    if before[-1] == "\u00ad" or not first or not rest:
        return before[-1] != "\u00ad"
    whole, compound = (f"{first[0]}{hyphen}{rest[0]}".casefold() for hyphen in ("", "-"))
    return not rest[0][0].islower() or (compound in words and whole not in words)
