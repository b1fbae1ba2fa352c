"""Writes an answer out with uniform citation marks, as Markdown, HTML or plain text, and places its claims in it."""

import html
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from shiguan.claims.claims import ClaimedText

Format = Literal["markdown", "html", "plain"]
FORMATS: tuple[str, ...] = get_args(Format)
_LINE_BREAK = "<br>\n"


def write_cited(
    parts: ClaimedText, known: frozenset[int], added: Mapping[int, Sequence[int]], form: Format
) -> tuple[str, list[tuple[int, int]]]:
    """
    Put an answer together again.

    Markdown has marks as `[1][3]`; HTML is escaped and has each mark as a link to `#source-1`; plain text has none.
    """
    marks: dict[int, list[int]] = {}
    for position, numbers in parts.marks:
        marks.setdefault(position, []).extend(number for number in numbers if number in known)
    for index, more in added.items():
        marks.setdefault(parts.claims[index].end, []).extend(more)
    starts = {claim.start for claim in parts.claims}
    ends = {claim.end for claim in parts.claims}
    out: list[str] = []
    length = at = 0
    start_of: dict[int, int] = {}
    end_of: dict[int, int] = {}
    for place in sorted({*marks, *starts, *ends, len(parts.text)}):
        piece = _escaped(parts.text[at:place], form)
        out.append(piece)
        length += len(piece)
        at = place
        end_of[place] = length
        here = list(dict.fromkeys(marks.get(place, [])))
        if here and form != "plain":
            mark = _mark(here, form)
            if place and not parts.text[place - 1].isspace() and ord(parts.text[place - 1]) < 0x2E80:
                mark = " " + mark
            out.append(mark)
            length += len(mark)
        start_of[place] = length
    return "".join(out), [(start_of[claim.start], end_of[claim.end]) for claim in parts.claims]


def _escaped(text: str, form: Format) -> str:
    return html.escape(text).replace("\n", _LINE_BREAK) if form == "html" else text


def _mark(numbers: Sequence[int], form: Format) -> str:
    if form == "html":
        return "".join(f'<sup class="citation"><a href="#source-{number}">[{number}]</a></sup>' for number in numbers)
    return "".join(f"[{number}]" for number in numbers)
