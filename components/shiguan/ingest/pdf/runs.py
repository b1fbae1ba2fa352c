"""Reads the characters of a PDF's page as runs, without what stands beside the text: readings, numbers of lines."""

import ctypes
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, islice, pairwise
from statistics import median, median_low
from typing import Any
from unicodedata import combining, normalize

import pypdfium2.raw as pdfium

# Presentation forms whose letters are the text, and radicals that fonts name in place of whole characters.
_LETTERS = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st"}
_LETTERS |= {code: normalize("NFKC", chr(code)) for code in range(0x2F00, 0x2FD6)}
_RADICALS = "⺎⺟⺠⻁⻄⻅⻆⻉⻋⻑⻓⻔⻘⻙⻚⻛⻜⻝⻢⻣⻤⻥⻦⻧⻨⻩⻪⻬⻮⻰⻳"
_LETTERS |= dict(
    zip(map(ord, _RADICALS), "兀母民虎西见角贝车長长门青韦页风飞食马骨鬼鱼鸟卤麦黄黾齐齿龙龟", strict=True)
)
_SPACES = frozenset((0x0, 0x9, 0xA, 0xD, 0x20, 0xA0, 0x3000))
_LINE_HYPHEN = 2  # PDFium's code for the hyphen at the end of a line
RIGHT_TO_LEFT = range(0x590, 0x900)
WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uff60\U00020000-\U0003ffff]")
# In heights of a character: what separates two words or columns, the rise of a superscript, how far characters overlap.
COLUMN_GAP, RISE, BACK = 0.9, 0.15, 0.6
NO_WIDTH = 0.01
# What says how a Han character is read, and the size of its letters.
_IS_READING = re.compile(r"[\u3040-\u30ff\u3100-\u312f\s˙ˊˇˋ・]+|[a-zāáǎàēéěèīíǐìōóǒòūúǔùǖǘǚǜüńňǹ\s]{1,30}")
_READING = 0.65
# Writing that is turned by no quarters but runs downwards, or across the page like a watermark: so far from a quarter.
_VERTICAL, _DIAGONAL, _ASLANT = 4, 5, 0.2

# Numbers in a margin: so many at least where every line has one, so many where every third or more has; lines of text
# have so many characters and mostly fill so much of the longest.
_EVERY_LINE, _SOME_LINES, _APART, _CHARACTERS, _FILLED = 5, 2, 3, 15, 0.85
_MOST_MARGINS = 4
_DIGITS = frozenset(range(0x30, 0x3A))

_Place = tuple[float, float, float, float]


@dataclass(slots=True)
class Run:
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
        units = list(self.units) if self.rising else self.units
        for begin, end in _stretches(self.rising) if self.rising else ():
            units[begin - 1 : end + 1] = reversed(units[begin - 1 : end + 1])
        raw = "".join(map(chr, units))
        if raw.isascii():
            return raw
        # Characters beyond the first plane come in two halves; a half alone is nothing.
        return raw.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").translate(_LETTERS)


def _stretches(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last of successive numbers."""
    for _, group in groupby(enumerate(places), lambda pair: pair[1] - pair[0]):
        stretch = [place for _, place in group]
        yield stretch[0], stretch[-1]


def read_runs(text_page: Any, count: int) -> list[Run]:
    """Read the runs of a page with so many characters, in the order of the file."""
    runs = _runs(text_page, count, vertical=False)
    if count > 8 and 2 * len(runs) > count:
        # Nearly every character begins a line: the text may run downwards.
        runs = min(runs, _runs(text_page, count, vertical=True), key=len)
    rows = list(rows_of(runs))
    beside = {id(run) for run in chain(_readings(rows), _line_numbers(rows))}
    return [run for run in runs if id(run) not in beside]


def _runs(text_page: Any, count: int, *, vertical: bool) -> list[Run]:
    x, y, box = ctypes.c_double(), ctypes.c_double(), pdfium.FS_RECTF()
    at_x, at_y, at_box = ctypes.byref(x), ctypes.byref(y), ctypes.byref(box)
    unicode, origin, loose = pdfium.FPDFText_GetUnicode, pdfium.FPDFText_GetCharOrigin, pdfium.FPDFText_GetLooseCharBox
    runs: list[Run] = []
    run, spaced = Run(0, 0, math.inf, 0, 0, spaced=False), False
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
            or left < run.last - BACK * size
            or left - run.right > COLUMN_GAP * size
            or abs(size - run.size) > RISE * run.size
            or run.turn
            or unit in RIGHT_TO_LEFT
        ):
            origin(text_page, index, at_x, at_y)
            place = _turned(run.turn, x.value, y.value, box)
            if not _goes_on(run, unit, place):
                turns = pdfium.FPDFText_GetCharAngle(text_page, index) / (math.pi / 2)
                turn = _VERTICAL if vertical else round(turns) % 4 if abs(turns - round(turns)) < _ASLANT else _DIAGONAL
                place = _turned(turn, x.value, y.value, box)
                run = Run(*place, turn, spaced)
                runs.append(run)
                spaced = False
                bottoms.clear()
            bottoms.add(bottom)
            left, right, _, _ = place
            if unit in RIGHT_TO_LEFT and not spaced and left > run.last + NO_WIDTH and _rises(run.units, unit):
                run.rising.append(len(run.units))
        if spaced:
            # PDFium writes spaces of its own between characters that are spread over a line.
            spread = run.units and _is_unspaced(run.units[-1]) and _is_unspaced(unit)
            if not (spread and pdfium.FPDFText_IsGenerated(text_page, index - 1) == 1):
                run.units.append(0x20)
            spaced = False
        run.last = left
        run.left = left if left < run.left else run.left  # calls would take a twentieth of the time of a page
        run.right = right if right > run.right else run.right
        hyphen = unit == _LINE_HYPHEN and pdfium.FPDFText_IsHyphen(text_page, index) == 1
        run.units.append(0x2D if hyphen else unit)
    return runs


def _is_unspaced(unit: int) -> bool:
    return 0x2E80 <= unit < 0xA4D0 or 0xFF00 <= unit < 0xFF60


def _rises(units: list[int], unit: int) -> bool:
    return bool(units) and units[-1] in RIGHT_TO_LEFT and not combining(chr(unit))


def _readings(rows: list[list[Run]]) -> Iterator[Run]:
    """Yield what stands in small kana, pinyin or zhuyin beside Han characters to say how they are read."""
    for small, row in pairwise(rows):
        size, height = max(run.size for run in row), small[0].base - row[0].base
        if max(run.size for run in small) <= _READING * size and 0.5 * size < height < 1.5 * size:
            left, right = min(run.left for run in row) - size, max(run.right for run in row) + size
            toned = not all(run.text.isascii() for run in small)
            if (
                toned
                and all(_IS_READING.fullmatch(run.text) and left < run.left and run.right < right for run in small)
                and any(WIDE.search(run.text) for run in row)
            ):
                yield from small


def _line_numbers(rows: list[list[Run]]) -> Iterator[Run]:
    """Yield the numbers that count the lines in a margin or between two columns, as laws and editions have them."""
    margins: list[list[tuple[int, Run]]] = []
    found = ((at, run) for at, row in enumerate(rows) for run in _numbers_apart(row))
    right = -math.inf
    for at, run in sorted(found, key=lambda each: each[1].left):
        margins += [[]] if run.left > right else []
        right = max(right, run.right) if margins[-1] else run.right
        margins[-1].append((at, run))
    for numbers in islice(filter(_step, margins), _MOST_MARGINS):
        own = {id(run) for _, run in numbers}
        left, right = min(run.left for _, run in numbers), max(run.right for _, run in numbers)
        between = chain.from_iterable(rows[numbers[0][0] : numbers[-1][0] + 1])
        alone = not any(run.left < right and run.right > left and id(run) not in own for run in between)
        if alone and (_step(numbers) > 1 or _is_beside_text([rows[at] for at, _ in numbers], right)):
            yield from (run for _, run in numbers)


def _numbers_apart(row: list[Run]) -> Iterator[Run]:
    numbers = [run for run in row if run.turn == 0 and len(run.units) <= 4 and _DIGITS.issuperset(run.units)]
    if numbers:
        runs = sorted(row, key=lambda run: run.left)
        edges = [-math.inf, *(run.right for run in runs)], [*(run.left for run in runs), math.inf]
        places = {id(run): place for place, run in enumerate(runs)}
        for run in numbers:
            place, gap = places[id(run)], COLUMN_GAP * run.size
            if edges[0][place] + gap <= run.left and run.right + gap <= edges[1][place + 1]:
                yield run


def _step(numbers: list[tuple[int, Run]]) -> int:
    """Return by how much most numbers are larger than those above, if that is the number of lines between; else 0."""
    numbers.sort(key=lambda each: each[0])
    pairs = [(below - above, int(own.text) - int(one.text)) for (above, one), (below, own) in pairwise(numbers)]
    counted = [step for lines, step in pairs if lines == step]
    step = median_low(counted) if counted and 2 * len(counted) >= len(pairs) else 0
    return step if len(numbers) >= (_SOME_LINES if step >= _APART else _EVERY_LINE) else 0


def _is_beside_text(rows: list[list[Run]], edge: float) -> bool:
    """Return whether what follows the numbers in their rows is running text, and no cells of a table or contents."""
    widths, apart = [], 0
    for row in rows:
        text: list[Run] = []
        for run in sorted(row, key=lambda run: run.left):
            if run.left >= edge and (not text or run.left - text[-1].right <= COLUMN_GAP * run.size):
                text.append(run)
        if text and sum(len(run.units) for run in text) >= _CHARACTERS:
            widths.append(text[-1].right - text[0].left)
            apart += text[0].text[:1].isupper() or text[-1].text[-1:].isdecimal()
    return 2 * len(widths) > len(rows) and median(widths) >= _FILLED * max(widths) and 2 * apart <= len(widths)


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


def _goes_on(run: Run, unit: int, place: _Place) -> bool:
    left, right, base, size = place
    if abs(base - run.base) > 0.1 * size or abs(size - run.size) > RISE * run.size:
        return False
    if unit in RIGHT_TO_LEFT and left < run.last:
        return run.left - right <= COLUMN_GAP * size
    return left >= run.last - BACK * size and left - run.right <= COLUMN_GAP * size


def rows_of(runs: Iterable[Run]) -> Iterator[list[Run]]:
    row: list[Run] = []
    for run in sorted(runs, key=lambda run: -run.base):
        # Lines of two columns need not stand exactly side by side.
        if row and row[0].base - run.base > 0.6 * row[0].size:
            yield row
            row = []
        row.append(run)
    if row:
        yield row
