"""Describes the place of a span of a passage: its printed page, paragraph, CFI, and a quotation to find it by."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from shiguan.text.terminal import one_line

LONGEST_LABEL = 20
CONTEXT = 32
"""How many characters before and after a quotation distinguish it from others with the same words."""

_WIDEST = "\uffff"

Mark = tuple[int, str]
"""A place in a text at which a page begins, and the page's label."""
Run = tuple[int, str, int]
"""
The start of a stretch of text that is contiguous in a file: its place in the text, the CFI of its node, and the offset.

Offsets count UTF-16 units, as in EPUB CFI; a run ends after each character that takes two of them. A negative offset
means the node itself: a note, a picture or a formula, whose text is not that of the file.
"""

_PARAGRAPH = re.compile(r"\n\s*\n")
_WORDS_OF_PAGE = re.compile(
    r"(?i)[\s\[({]*(?:(?:pages?|pg|seite)(?=[\s._-]|\d|[ivxlcdm]+$)|(?:pp?|s)(?=[\s._-]|\d)|第)?[\s._-]*(.*?)\s*[页頁]?[\s\])}.]*"
)
_LABEL = re.compile(r"\w(?:[\w .,:/*†‡–-]*[\w*†‡])?")


def page_label(text: str) -> str:
    """Read the label of a page, without the word for page; empty if it cannot be one, because books may have any."""
    found = _WORDS_OF_PAGE.fullmatch(one_line(text[: 4 * LONGEST_LABEL]))
    label = found[1] if found else ""
    return label if len(label) <= LONGEST_LABEL and _LABEL.fullmatch(label) else ""


def page_words(citation: Mapping[str, Any]) -> str:
    """Write the page of a citation as in references: `p. 63`, `pp. 63–65`; empty where it has none."""
    page = str(citation.get("page") or "")
    return f"{'pp' if re.search('[–,]', page) else 'p'}. {page}" if page else ""


def place_of(meta: Mapping[str, Any], text: str, span: tuple[int, int], offset: int = 0) -> dict[str, Any]:
    """Describe a span of a passage, which begins at `offset` in the stored one: page, paragraph, CFI, quotation."""
    start, end = span
    found: dict[str, Any] = {}
    begins = [label for at, label in meta.get("pages") or () if at <= offset + start]
    if begins and begins[-1]:
        found["page"] = begins[-1]
    if isinstance(meta.get("paragraph"), int) and not offset:
        found["paragraph"] = meta["paragraph"] + paragraphs_before(text, start)
    if cfi := cfi_of(meta.get("cfi") or (), offset + start, offset + end, text[start:end]):
        found["cfi"] = cfi
    found["selector"] = {
        "type": "TextQuoteSelector",
        "exact": text[start:end],
        "prefix": text[max(0, start - CONTEXT) : start],
        "suffix": text[end : end + CONTEXT],
    }
    return found


def paragraphs_before(text: str, at: int) -> int:
    return sum(1 for _ in _PARAGRAPH.finditer(text, 0, at))


def cfi_of(runs: Sequence[Sequence[Any]], start: int, end: int, text: str) -> str:
    """Write the EPUB CFI (1.1, W3C) of a span by the runs of its passage, `epubcfi(/6/4!/4/2,/1:3,/3:8)`, or ""."""
    offset, within = start, _runs_within(runs, start, end)
    shown = [run for run in within if run[0][2] >= 0]
    if not shown:
        return f"epubcfi({within[0][0][1]})" if within else ""
    # A note or a picture at an end is not text of that place: the span is what is between them.
    (first, start, _), (last, before, end) = shown[0], shown[-1]
    while end > before + 1 and text[end - offset - 1].isspace():
        end -= 1
    begin = f":{first[2] + start - first[0]}"
    stop = f":{last[2] + end - last[0] + (text[end - offset - 1] > _WIDEST)}"
    steps, ending = first[1].split("/"), last[1].split("/")
    shared = 0
    while shared < min(len(steps), len(ending)) - 1 and steps[shared] == ending[shared]:
        shared += 1
    if "!" not in "".join(steps[:shared]):
        return f"epubcfi({first[1]}{begin})"  # it ends in another file, but a range is within one file
    inner, outer = ("/".join(["", *path[shared:]]) for path in (steps, ending))
    return f"epubcfi({'/'.join(steps[:shared])},{inner}{begin},{outer}{stop})"


def _runs_within(runs: Sequence[Sequence[Any]], start: int, end: int) -> list[tuple[Run, int, int]]:
    """Return the runs that a span touches, each with its part of the span."""
    found: list[tuple[Run, int, int]] = []
    path = ""
    for number, (begin, own, offset) in enumerate(runs):
        path = own or path  # the node is written only where it differs from that of the run before
        stop = runs[number + 1][0] if number + 1 < len(runs) else end
        if begin < end and stop > start:
            found.append(((begin, path, offset), max(begin, start), min(stop, end)))
    return found


def runs_of(raw: str, written: str, path: str) -> list[Run]:
    """Map the written text of a node, whose white space is collapsed and some characters dropped, to its raw text."""
    if len(raw.strip()) == len(written) and max(raw, default="") <= _WIDEST:
        return [(0, path, len(raw) - len(raw.lstrip()))]
    runs: list[Run] = []
    source = units = 0
    goes_on = False
    for at, char in enumerate(written):
        before = source
        while raw[source] != char and not (char.isspace() and raw[source].isspace()):
            source += 1
        if not goes_on or source != before:
            units += source - before + sum(char > _WIDEST for char in raw[before:source])
            runs.append((at, path, units))
        goes_on = char <= _WIDEST
        units += 1 + (not goes_on)
        source += 1
    return runs
