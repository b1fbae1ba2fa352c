"""Reads the lines of a PDF's page in reading order, each with its place on the page."""

import ctypes
import math
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import chain, groupby, pairwise
from statistics import median, mode
from types import MappingProxyType
from typing import Any, NamedTuple

import pypdfium2.raw as pdfium

from shiguan.ingest.epub.pictures import subscript
from shiguan.ingest.pdf.runs import BACK, COLUMN_GAP, NO_WIDTH, RIGHT_TO_LEFT, RISE, WIDE, Run, read_runs, rows_of

# A superscript after these is an exponent and not the mark of a note: 10⁶, km², x².
_BASE = re.compile(r"(?<![^\W_])(?:10|[A-Za-z]|[kcmdµ]m)$")
_NOTE_MARK = re.compile(r"\d+(?:[,，;–-]\d+)*")
_EXPONENTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
# In heights of a character: what separates two words, and columns of few lines.
_WORD_GAP = 0.15
_WIDE_GAP, _MANY_LINES = 1.4, 8
# What stands so far below, such as the number of the page, does not belong to the columns.
_FAR = 3
# A first letter that reaches over several lines is so many times larger than they are.
INITIAL = 1.8
_SMALL = 0.85  # the size of a superscript
# The longest column has so many lines; a line has so many characters (wide ones count twice) and fills so much of it.
_LINES, _CHARACTERS, _FILLED = 3, 15, 0.75
# Most of its lines begin at its edge, up to this share of its width.
_ALIGNED = 0.02
# In quarters: decimals of a turn, and how far one may slant from most; how far below a page the rest goes.
_PLACES, _ASLANT, _BELOW = 3, 0.05, 10_000
# White text is looked for among so many drawings; of each color, 0 to 255.
_MOST_DRAWN, _WHITE = 200, 253
# So many shapes with so many points each are asked for what they cut out; each text has its own.
_MOST_CLIPS, _MOST_POINTS = 8, 64
# Of the characters of a page so many are asked for whether their font says what they are.
_ASKED = 400


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
    # How many characters of the file nobody sees, by kind.
    unseen: Mapping[str, int] = MappingProxyType({})


def read_lines(page: Any) -> PageLines:
    """Read the lines of a page; two columns that the file writes row by row are read one after the other."""
    unseen = _remove_unseen(page)
    _prepare(page)
    with closing(page.get_textpage()) as text_page:
        return _read_lines(text_page.raw)._replace(unseen=unseen)


def _remove_unseen(page: Any) -> dict[str, int]:
    """
    Remove the texts that nobody sees, and count the characters of each kind of them.

    A page, or a part of it, is cropped by them (printers' marks, the other half of a scanned sheet), or they are white
    where nothing is drawn. Beyond a page that is not cropped stands what a bad program did not break into lines.
    """
    shown = page.get_bbox()
    page.set_cropbox(-_BELOW, -_BELOW, _BELOW, _BELOW)
    cropped = page.get_bbox() != shown  # what the page has or inherits
    page.set_cropbox(*shown)
    texts, others = list[Any](), list[Any]()
    for index in range(pdfium.FPDFPage_CountObjects(page)):
        item = pdfium.FPDFPage_GetObject(page, index)
        is_text = pdfium.FPDFPageObj_GetType(item) == pdfium.FPDF_PAGEOBJ_TEXT
        (texts if is_text else others).append(item)
    drawn = [_bounds(item) for item in others if not _is_white(item)] if any(map(_is_white, texts)) else []
    unseen: defaultdict[str, list[Any]] = defaultdict(list)
    for item in texts:
        box = _bounds(item)
        if box[3] <= box[1]:  # spaces have no place
            continue
        if (cropped and not _meet(box, shown)) or not all(_meet(box, clip) for clip in _clips(item)):
            unseen["text outside the page"].append(item)
        elif _is_white(item) and len(drawn) <= _MOST_DRAWN and not any(_meet(box, other) for other in drawn):
            unseen["white text"].append(item)
    if not unseen:
        return {}
    with closing(page.get_textpage()) as text_page:  # each text in UTF-16, with a NUL at its end
        sizes = {
            kind: sum(pdfium.FPDFTextObj_GetText(item, text_page, None, 0) // 2 - 1 for item in some)
            for kind, some in unseen.items()
        }
    for item in chain.from_iterable(unseen.values()):
        pdfium.FPDFPage_RemoveObject(page, item)
        pdfium.FPDFPageObj_Destroy(item)
    return sizes


_Box = tuple[float, float, float, float]


def _bounds(item: Any) -> _Box:
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    pdfium.FPDFPageObj_GetBounds(item, left, bottom, right, top)
    return left.value, bottom.value, right.value, top.value


def _meet(one: _Box, other: _Box) -> bool:
    return one[0] <= other[2] and other[0] <= one[2] and one[1] <= other[3] and other[1] <= one[3]


def _is_white(item: Any) -> bool:
    """Return whether a text or a shape is filled with white, as far as one can tell."""
    kind = pdfium.FPDFPageObj_GetType(item)
    if kind == pdfium.FPDF_PAGEOBJ_TEXT:
        filled = pdfium.FPDFTextObj_GetTextRenderMode(item) == pdfium.FPDF_TEXTRENDERMODE_FILL
    else:
        filled = kind == pdfium.FPDF_PAGEOBJ_PATH
    color = [ctypes.c_uint() for _ in range(4)]
    return filled and bool(pdfium.FPDFPageObj_GetFillColor(item, *color)) and min(c.value for c in color[:3]) >= _WHITE


def _clips(item: Any) -> Iterator[_Box]:
    """Yield the boxes around the shapes that an object is cut out by."""
    clip = pdfium.FPDFPageObj_GetClipPath(item)
    x, y = ctypes.c_float(), ctypes.c_float()
    for path in range(min(pdfium.FPDFClipPath_CountPaths(clip), _MOST_CLIPS) if clip else 0):
        points, count = [], pdfium.FPDFClipPath_CountPathSegments(clip, path)
        for index in range(count if count <= _MOST_POINTS else 0):
            segment = pdfium.FPDFClipPath_GetPathSegment(clip, path, index)
            pdfium.FPDFPathSegment_GetPoint(segment, x, y)
            points.append((x.value, y.value))
        if points:
            across, up = zip(*points, strict=True)
            yield min(across), min(up), max(across), max(up)


def _prepare(page: Any) -> None:
    """
    Turn a page upright, and draw text without width as outlines.

    PDFium skips what has no width, as text has whose font is not in the file. All turns with most of the text, as on a
    page that was scanned aslant; what slants by no quarters from that, such as a watermark, goes below the page.
    """
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    turned, usual = list[tuple[Any, float]](), Counter[float]()
    for index in range(pdfium.FPDFPage_CountObjects(page)):
        item = pdfium.FPDFPage_GetObject(page, index)
        if own := _turns(item):
            pdfium.FPDFPageObj_GetBounds(item, left, bottom, right, top)
            if right.value - left.value < NO_WIDTH:
                pdfium.FPDFTextObj_SetTextRenderMode(item, pdfium.FPDF_TEXTRENDERMODE_STROKE)
                pdfium.FPDFPageObj_SetStrokeWidth(item, 1)
                pdfium.FPDFPageObj_TransformF(item, pdfium.FS_MATRIX(1, 0, 0, 1, 0, 0))
            turned.append((item, mode(own) if len(own) > 1 else own[0]))
            usual[turned[-1][1]] += round(math.hypot(right.value - left.value, top.value - bottom.value))
    most = usual.most_common(1)[0][0] if any(usual) else 0.0
    for item, own_turn in turned if any(usual) else ():
        turn, below = (most, 0) if abs((own_turn - most + 0.5) % 1 - 0.5) < _ASLANT else (own_turn, _BELOW)
        c, s = math.cos(turn * math.pi / 2), math.sin(turn * math.pi / 2)
        pdfium.FPDFPageObj_TransformF(item, pdfium.FS_MATRIX(c, -s, s, c, 0, -below))


def _turns(item: Any, a: float = 1, b: float = 0, c: float = 0, d: float = 1) -> list[float]:
    """Return by how many quarters each text of an object is turned; the matrix is that of the form around it."""
    if (kind := pdfium.FPDFPageObj_GetType(item)) not in (pdfium.FPDF_PAGEOBJ_TEXT, pdfium.FPDF_PAGEOBJ_FORM):
        return []
    own = pdfium.FS_MATRIX()
    pdfium.FPDFPageObj_GetMatrix(item, own)
    right, up = own.a * a + own.b * c, own.a * b + own.b * d
    if kind == pdfium.FPDF_PAGEOBJ_TEXT:
        return [round(math.atan2(up, right) / (math.pi / 2), _PLACES) % 4]
    matrix = right, up, own.c * a + own.d * c, own.c * b + own.d * d
    inner = (pdfium.FPDFFormObj_GetObject(item, index) for index in range(pdfium.FPDFFormObj_CountObjects(item)))
    return [turn for each in inner for turn in _turns(each, *matrix)]


def _read_lines(text_page: Any) -> PageLines:
    count = max(pdfium.FPDFText_CountChars(text_page), 0)
    runs = read_runs(text_page, count)
    _set_groups(runs)
    lines = [line for _, group in groupby(sorted(runs, key=lambda run: run.group), lambda run: run.group)
             for line in _lines(list(group))]  # fmt: skip
    asked = range(0, count, max(1, count // _ASKED))
    undefined = sum(pdfium.FPDFText_HasUnicodeMapError(text_page, index) == 1 for index in asked)
    return PageLines(lines, undefined / max(len(asked), 1))


def _lines(runs: list[Run]) -> list[Line]:
    """Join the runs of a column to lines, in the order of the file."""
    rows: list[list[Run]] = []
    for run in runs:
        if rows and _on_line(rows[-1], run):
            rows[-1].append(run)
        else:
            rows.append([run])
    lines = [_line(row) for row in rows]
    if 2 * sum(after.base > line.base + line.size / 2 for line, after in pairwise(lines)) >= len(lines) > 1:
        # The file goes upwards, as PDFium does in columns of vertical writing.
        lines.sort(key=lambda line: -line.base)
    # Where most lines begin and end: a head may be wider, a last line is shorter.
    begin = sorted(line.left for line in lines)[len(lines) // 4]
    end = sorted(line.right for line in lines)[3 * len(lines) // 4]
    return [Line(*line[:-2], begin, end) for line in lines]


def _on_line(line: list[Run], run: Run) -> bool:
    main = max(line, key=lambda each: each.size) if len(line) < 8 else line[0]
    size = max(main.size, run.size)
    if len(main.units) == 1 and main.size > INITIAL * run.size and main.base < run.base:
        return False
    if run.turn != main.turn or abs(run.base - main.base) > 0.5 * size:
        return False
    if run.units[0] in RIGHT_TO_LEFT and run.right < line[-1].left + BACK * size:
        return True
    return run.left > line[-1].right - BACK * size


def _line(runs: list[Run]) -> Line:
    main = max(runs, key=lambda run: (len(run.units), run.size))
    text, widest = "", 0.0
    for number, run in enumerate(runs):
        own, before = run.text, runs[number - 1]
        gap = max(run.left - before.right, before.left - run.right) if number else 0.0
        widest = max(widest, gap)
        raised = run.size < _SMALL * main.size and run.base > main.base + RISE * main.size
        if raised and _NOTE_MARK.fullmatch(own):
            exponent = own.isdecimal() and _BASE.search(text[-4:])
            own = own.translate(_EXPONENTS) if exponent else f"[{own}]"
        elif text and (run.spaced or gap > _WORD_GAP * main.size):
            text += " "
        elif run.size < _SMALL * main.size and run.base < main.base - RISE * main.size:
            own = subscript(text, own) or own
        text += own
    left, right = min(run.left for run in runs), max(run.right for run in runs)
    return Line(text, left, right, main.base, main.size, widest > _WIDE_GAP * main.size)


# ---- columns ---------------------------------------------------------------------------------------------------------

_Gaps = list[tuple[float, float]]


def _set_groups(runs: list[Run]) -> None:
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


def _zones(runs: list[Run]) -> Iterator[tuple[list[list[Run]], _Gaps]]:
    """Yield successive rows with the gaps that all of them have: the more rows a gap has, the surer it is a gutter."""
    rows: list[list[Run]] = []
    common: _Gaps = []
    for row in rows_of(runs):
        gaps = _gaps(row)
        shared = _shared(common, gaps, COLUMN_GAP * row[0].size) if rows else gaps
        far = rows and rows[-1][0].base - row[0].base > _FAR * row[0].size
        if far or (rows and len(shared) < 3 and (len(common) > 2 or len(gaps) > 2)):
            yield rows, common
            rows, shared = [], gaps
        rows.append(row)
        common = shared
    if rows:
        yield rows, common


def _gaps(row: list[Run]) -> _Gaps:
    """Return the stretches of a row without text that are wide enough for a gutter, and both its sides."""
    gaps, at = [], -math.inf
    for run in sorted(row, key=lambda run: run.left):
        if run.left - at >= COLUMN_GAP * run.size:
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


def _gutters(rows: list[list[Run]], gaps: _Gaps) -> list[float]:
    """Return where the columns after the first begin; nothing where the parts of the rows are no lines of text."""
    # Between the words of a few lines there may be a gap by chance.
    least = (COLUMN_GAP if len(rows) >= _MANY_LINES else _WIDE_GAP) * median(run.size for row in rows for run in row)
    gutters = [end for begin, end in gaps[1:-1] if end - begin >= least]
    if not gutters:
        return []
    columns: list[list[list[Run]]] = [[] for _ in range(len(gutters) + 1)]
    for row in rows:
        for number, group in groupby(
            sorted(row, key=lambda run: run.left), lambda run: bisect_right(gutters, run.left)
        ):
            columns[number].append(list(group))
    # The last column of a text may have one line.
    return gutters if max(map(len, columns)) >= _LINES and all(map(_is_text, columns)) else []


def _is_text(column: list[list[Run]]) -> bool:
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
