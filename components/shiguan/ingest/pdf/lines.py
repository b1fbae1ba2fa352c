"""Reads the lines of a PDF's page in reading order, each with its place on the page."""

import ctypes
import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from statistics import median
from typing import Any, NamedTuple
from unicodedata import combining

import pypdfium2.raw as pdfium

# Presentation forms whose letters are the text.
_LIGATURES = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st"}
_SPACES = frozenset((0x0, 0x9, 0xA, 0xD, 0x20, 0xA0, 0x3000))
_LINE_HYPHEN = 2  # PDFium's code for the hyphen at the end of a line
_RIGHT_TO_LEFT = range(0x590, 0x900)
WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uff60\U00020000-\U0003ffff]")
# A superscript after these is an exponent and not the mark of a note: 10⁶, km², x².
_BASE = re.compile(r"(?<![^\W_])(?:10|[A-Za-z]|[kcmdµ]m)$")
_NOTE_MARK = re.compile(r"\d+(?:[,，;–-]\d+)*")
_EXPONENTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
# In heights of a character: what separates two words or columns, the rise and size of a superscript.
_WORD_GAP, _COLUMN_GAP = 0.15, 0.9
_WIDE_GAP, _MANY_LINES = 1.4, 8
# What stands so far below, such as the number of the page, does not belong to the columns.
_FAR = 3
# A first letter that reaches over several lines is so many times larger than they are.
INITIAL = 1.8
# Characters may overlap so far.
_BACK = 0.6
_RISE, _SMALL = 0.15, 0.85
# The longest column has so many lines; a line has so many characters (wide ones count twice) and fills so much of it.
_LINES, _CHARACTERS, _FILLED = 3, 15, 0.75
# Most of its lines begin at its edge, up to this share of its width.
_ALIGNED = 0.02
# Of the characters of a page so many are asked for whether their font says what they are.
_ASKED = 400
_NO_WIDTH = 0.01
# What says how a Han character is read, and the size of its letters.
_IS_READING = re.compile(r"[\u3040-\u30ff\u3100-\u312f\s˙ˊˇˋ・]+|[a-zāáǎàēéěèīíǐìōóǒòūúǔùǖǘǚǜüńňǹ\s]{1,30}")
_READING = 0.65
# Writing that is turned by no quarters but runs downwards, or across the page like a watermark: so far from a quarter.
_VERTICAL, _DIAGONAL, _ASLANT = 4, 5, 0.2


_Place = tuple[float, float, float, float]


@dataclass(slots=True)
class _Run:
    """Characters that stand next to each other on one base line, in coordinates along and across the writing."""

    left: float
    right: float
    base: float
    size: float
    turn: int
    spaced: bool
    # Where its last character begins: both letters of a ligature begin at one place.
    last: float = math.inf
    units: list[int] = field(default_factory=list)
    # Which of its characters, of a script that runs to the left, stand to the right of the one before.
    rising: list[int] = field(default_factory=list)
    group: tuple[int, int] = (0, 0)

    @property
    def text(self) -> str:
        units = list(self.units)
        for begin, end in _stretches(self.rising):
            units[begin - 1 : end + 1] = reversed(units[begin - 1 : end + 1])
        raw = "".join(map(chr, units))
        if raw.isascii():
            return raw
        # Characters beyond the first plane come in two halves; a half alone is nothing.
        return raw.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").translate(_LIGATURES)


def _stretches(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last of successive numbers."""
    for _, group in groupby(enumerate(places), lambda pair: pair[1] - pair[0]):
        stretch = [place for _, place in group]
        yield stretch[0], stretch[-1]


class Line(NamedTuple):
    """A line: its text, where it begins and ends along the writing, its base line, the height of its characters."""

    text: str
    left: float
    right: float
    base: float
    size: float
    # Whether it is a row of a table, whose cells stand apart.
    row: bool
    # The edges of its column.
    begin: float = 0
    end: float = 0


class PageLines(NamedTuple):
    """The lines of a page in reading order, and the share of its characters that their font does not define."""

    lines: list[Line]
    undefined: float


def read_lines(page: Any) -> PageLines:
    """Read the lines of a page; two columns that the file writes row by row are read one after the other."""
    _give_extent(page)
    with closing(page.get_textpage()) as text_page:
        return _read_lines(text_page.raw)


def _give_extent(page: Any) -> None:
    """Draw text without width as outlines, because PDFium skips it: it has none where its font is not in the file."""
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    for index in range(pdfium.FPDFPage_CountObjects(page)):
        text = pdfium.FPDFPage_GetObject(page, index)
        if pdfium.FPDFPageObj_GetType(text) == pdfium.FPDF_PAGEOBJ_TEXT:
            pdfium.FPDFPageObj_GetBounds(text, left, bottom, right, top)
            if right.value - left.value < _NO_WIDTH:
                pdfium.FPDFTextObj_SetTextRenderMode(text, pdfium.FPDF_TEXTRENDERMODE_STROKE)
                pdfium.FPDFPageObj_SetStrokeWidth(text, 1)
                pdfium.FPDFPageObj_TransformF(text, pdfium.FS_MATRIX(1, 0, 0, 1, 0, 0))


def _read_lines(text_page: Any) -> PageLines:
    count = max(pdfium.FPDFText_CountChars(text_page), 0)
    runs = _runs(text_page, count, vertical=False)
    if count > 8 and 2 * len(runs) > count:
        # Nearly every character begins a line: the text may run downwards.
        runs = min(runs, _runs(text_page, count, vertical=True), key=len)
    runs = _without_readings(runs)
    _set_groups(runs)
    lines = [line for _, group in groupby(sorted(runs, key=lambda run: run.group), lambda run: run.group)
             for line in _lines(list(group))]  # fmt: skip
    asked = range(0, count, max(1, count // _ASKED))
    undefined = sum(pdfium.FPDFText_HasUnicodeMapError(text_page, index) == 1 for index in asked)
    return PageLines(lines, undefined / max(len(asked), 1))


def _runs(text_page: Any, count: int, *, vertical: bool) -> list[_Run]:
    x, y, box = ctypes.c_double(), ctypes.c_double(), pdfium.FS_RECTF()
    at_x, at_y, at_box = ctypes.byref(x), ctypes.byref(y), ctypes.byref(box)
    unicode, origin, loose = pdfium.FPDFText_GetUnicode, pdfium.FPDFText_GetCharOrigin, pdfium.FPDFText_GetLooseCharBox
    runs: list[_Run] = []
    run, spaced = _Run(0, 0, math.inf, 0, 0, spaced=False), False
    bottoms: set[float] = set()
    for index in range(count):
        unit = unicode(text_page, index)
        if unit in _SPACES:
            spaced = True
            continue
        loose(text_page, index, at_box)
        left, right, bottom = box.left, box.right, box.bottom
        size = box.top - bottom
        # Characters that reach down as far as one before have its base line: most need no further question.
        if (
            bottom not in bottoms
            or left < run.last - _BACK * size
            or left - run.right > _COLUMN_GAP * size
            or abs(size - run.size) > _RISE * run.size
            or run.turn
            or unit in _RIGHT_TO_LEFT
        ):
            origin(text_page, index, at_x, at_y)
            place = _turned(run.turn, x.value, y.value, box)
            if not _goes_on(run, unit, place):
                turns = pdfium.FPDFText_GetCharAngle(text_page, index) / (math.pi / 2)
                turn = _VERTICAL if vertical else round(turns) % 4 if abs(turns - round(turns)) < _ASLANT else _DIAGONAL
                place = _turned(turn, x.value, y.value, box)
                run = _Run(*place, turn, spaced)
                runs.append(run)
                spaced = False
                bottoms.clear()
            bottoms.add(bottom)
            left, right, _, _ = place
            if unit in _RIGHT_TO_LEFT and not spaced and left > run.last + _NO_WIDTH and _rises(run.units, unit):
                run.rising.append(len(run.units))
        if spaced:
            run.units.append(0x20)
            spaced = False
        run.last = left
        run.left = min(run.left, left)
        run.right = max(run.right, right)
        hyphen = unit == _LINE_HYPHEN and pdfium.FPDFText_IsHyphen(text_page, index) == 1
        run.units.append(0x2D if hyphen else unit)
    return runs


def _rises(units: list[int], unit: int) -> bool:
    return bool(units) and units[-1] in _RIGHT_TO_LEFT and not combining(chr(unit))


def _without_readings(runs: list[_Run]) -> list[_Run]:
    """Leave out what stands in small kana, pinyin or zhuyin beside Han characters to say how they are read."""
    readings: set[int] = set()
    for small, row in pairwise(_rows(runs)):
        size, height = max(run.size for run in row), small[0].base - row[0].base
        if max(run.size for run in small) <= _READING * size and 0.5 * size < height < 1.5 * size:
            left, right = min(run.left for run in row) - size, max(run.right for run in row) + size
            toned = not all(run.text.isascii() for run in small)
            if (
                toned
                and all(_IS_READING.fullmatch(run.text) and left < run.left and run.right < right for run in small)
                and any(WIDE.search(run.text) for run in row)
            ):
                readings.update(map(id, small))
    return [run for run in runs if id(run) not in readings]


def _turned(turn: int, x: float, y: float, box: Any) -> _Place:
    """Return left, right, base line and height as a reader sees them who turns the page upright."""
    if turn == 0:
        return box.left, box.right, y, box.top - box.bottom
    if turn == 2:
        return -box.right, -box.left, -y, box.top - box.bottom
    if turn == 3:
        return box.bottom, box.top, -x, box.right - box.left
    if turn == _DIAGONAL:
        return box.left, box.right, 0, box.top - box.bottom
    return -box.top, -box.bottom, (box.left + box.right) / 2 if turn == _VERTICAL else x, box.right - box.left


def _goes_on(run: _Run, unit: int, place: _Place) -> bool:
    left, right, base, size = place
    if abs(base - run.base) > 0.1 * size or abs(size - run.size) > _RISE * run.size:
        return False
    if unit in _RIGHT_TO_LEFT and left < run.last:
        return run.left - right <= _COLUMN_GAP * size
    return left >= run.last - _BACK * size and left - run.right <= _COLUMN_GAP * size


def _lines(runs: list[_Run]) -> list[Line]:
    """Join the runs of a column to lines, in the order of the file."""
    rows: list[list[_Run]] = []
    for run in runs:
        if rows and _on_line(rows[-1], run):
            rows[-1].append(run)
        else:
            rows.append([run])
    lines = [_line(row) for row in rows]
    if 2 * sum(after.base > line.base + line.size / 2 for line, after in pairwise(lines)) > len(lines):
        # The file goes upwards, as PDFium does in columns of vertical writing.
        lines.sort(key=lambda line: -line.base)
    # Where most lines begin and end: a head may be wider, a last line is shorter.
    begin = sorted(line.left for line in lines)[len(lines) // 4]
    end = sorted(line.right for line in lines)[3 * len(lines) // 4]
    return [Line(*line[:-2], begin, end) for line in lines]


def _on_line(line: list[_Run], run: _Run) -> bool:
    main = max(line, key=lambda each: each.size) if len(line) < 8 else line[0]
    size = max(main.size, run.size)
    if len(main.units) == 1 and main.size > INITIAL * run.size and main.base < run.base:
        return False
    if run.turn != main.turn or abs(run.base - main.base) > 0.5 * size:
        return False
    if run.units[0] in _RIGHT_TO_LEFT and run.right < line[-1].left + _BACK * size:
        return True
    return run.left > line[-1].right - _BACK * size


def _line(runs: list[_Run]) -> Line:
    main = max(runs, key=lambda run: (len(run.units), run.size))
    text, widest = "", 0.0
    for number, run in enumerate(runs):
        own, before = run.text, runs[number - 1]
        gap = max(run.left - before.right, before.left - run.right) if number else 0.0
        widest = max(widest, gap)
        raised = run.size < _SMALL * main.size and run.base > main.base + _RISE * main.size
        if raised and _NOTE_MARK.fullmatch(own):
            exponent = own.isdecimal() and _BASE.search(text[-4:])
            own = own.translate(_EXPONENTS) if exponent else f"[{own}]"
        elif text and (run.spaced or gap > _WORD_GAP * main.size):
            text += " "
        text += own
    left, right = min(run.left for run in runs), max(run.right for run in runs)
    return Line(text, left, right, main.base, main.size, widest > _WIDE_GAP * main.size)


# ---- columns ---------------------------------------------------------------------------------------------------------

_Gaps = list[tuple[float, float]]


def _set_groups(runs: list[_Run]) -> None:
    """Set the numbers of the parts of a page that are read one after the other; without columns there is one."""
    usual = Counter(run.turn for run in runs).most_common(1)
    zones = list(_zones([run for run in runs if run.turn == usual[0][0]]))
    columns = [_gutters(rows, gaps) for rows, gaps in zones]
    if not any(columns):
        return
    for run in runs:
        run.group = (len(zones), 0)
    number = 0
    for (rows, _), gutters in zip(zones, columns, strict=True):
        number += bool(gutters)
        for run in (run for row in rows for run in row):
            run.group = (number, bisect_right(gutters, run.left))
        number += bool(gutters)


def _zones(runs: list[_Run]) -> Iterator[tuple[list[list[_Run]], _Gaps]]:
    """Yield successive rows with the gaps that all of them have: the more rows a gap has, the surer it is a gutter."""
    rows: list[list[_Run]] = []
    common: _Gaps = []
    for row in _rows(runs):
        gaps = _gaps(row)
        shared = _shared(common, gaps, _COLUMN_GAP * row[0].size) if rows else gaps
        far = rows and rows[-1][0].base - row[0].base > _FAR * row[0].size
        if far or (rows and len(shared) < 3 and (len(common) > 2 or len(gaps) > 2)):
            yield rows, common
            rows, shared = [], gaps
        rows.append(row)
        common = shared
    if rows:
        yield rows, common


def _rows(runs: Iterable[_Run]) -> Iterator[list[_Run]]:
    row: list[_Run] = []
    for run in sorted(runs, key=lambda run: -run.base):
        # Lines of two columns need not stand exactly side by side.
        if row and row[0].base - run.base > 0.6 * row[0].size:
            yield row
            row = []
        row.append(run)
    if row:
        yield row


def _gaps(row: list[_Run]) -> _Gaps:
    """Return the stretches of a row without text that are wide enough for a gutter, and both its sides."""
    gaps, at = [], -math.inf
    for run in sorted(row, key=lambda run: run.left):
        if run.left - at >= _COLUMN_GAP * run.size:
            gaps.append((at, run.left))
        at = max(at, run.right)
    return [*gaps, (at, math.inf)]


def _shared(some: _Gaps, others: _Gaps, least: float) -> _Gaps:
    found, a, b = [], 0, 0
    while a < len(some) and b < len(others):
        begin, end = max(some[a][0], others[b][0]), min(some[a][1], others[b][1])
        if end - begin >= least:
            found.append((begin, end))
        a, b = (a + 1, b) if some[a][1] < others[b][1] else (a, b + 1)
    return found


def _gutters(rows: list[list[_Run]], gaps: _Gaps) -> list[float]:
    """Return where the columns after the first begin; nothing where the parts of the rows are no lines of text."""
    # Between the words of a few lines there may be a gap by chance.
    least = (_COLUMN_GAP if len(rows) >= _MANY_LINES else _WIDE_GAP) * median(run.size for row in rows for run in row)
    gutters = [end for begin, end in gaps[1:-1] if end - begin >= least]
    if not gutters:
        return []
    columns: list[list[list[_Run]]] = [[] for _ in range(len(gutters) + 1)]
    for row in rows:
        for number, group in groupby(
            sorted(row, key=lambda run: run.left), lambda run: bisect_right(gutters, run.left)
        ):
            columns[number].append(list(group))
    # The last column of a text may have one line.
    return gutters if max(map(len, columns)) >= _LINES and all(map(_is_text, columns)) else []


def _is_text(column: list[list[_Run]]) -> bool:
    if not column:
        return False
    edges = [(parts[0].left, max(run.right for run in parts)) for parts in column]
    begin = min(left for left, _ in edges)
    width = max(right for _, right in edges) - begin
    if (
        median(left for left, _ in edges) - begin > _ALIGNED * width
        or median(right - left for left, right in edges) < _FILLED * width
    ):
        return False
    characters = (sum(len(run.units) + len(WIDE.findall(run.text)) for run in parts) for parts in column)
    return median(characters) >= _CHARACTERS
