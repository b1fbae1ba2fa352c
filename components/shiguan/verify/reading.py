"""Splits a text into its quotations, with the text around them, and its other sentences."""

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise

from shiguan.llm.run import raise_if_cancelled
from shiguan.text.sentences import sentence_spans

_CLOSERS = {"“": "”", "„": "”", "「": "」", "『": "』", "«": "»", '"': '"'}
_DEEPEST = 8
# How many characters next to a quotation are read for the name of its source.
_NEARBY = 400
_MARK = re.compile(r"[“”„\"「」『』«»]|\n[^\S\n]*\n")
_BLOCK = re.compile(r"(?:^[ \t]{0,3}>[^\n]*(?:\n|\Z))+", re.MULTILINE)
_BY = re.compile(r"\s*(?:—|–|--)\s*(\S.{1,200})")
# A few spaces: all quotations of one sentence look behind it.
_BEHIND = re.compile(r"[^\S\n]{0,4}[(（\[［][^()（）\[\]［］\n]{1,200}[)）\]］]")


@dataclass(frozen=True)
class Part:
    """A quotation, or a sentence without one: its place in the text, its words, and what may name its source."""

    kind: str
    start: int
    end: int
    text: str
    named: str = ""


def read_text(text: str) -> tuple[list[Part], int]:
    """Split a text into parts, and count the quotation marks that do not close."""
    plain = _BLOCK.sub(lambda block: re.sub(r"[^\n]", " ", block[0]), text)
    spans, unclosed = _quoted(plain)
    sentences = [span for span in sentence_spans(plain) if any(map(str.isalnum, plain[slice(*span)]))]
    starts, ends = [start for start, _ in sentences], [end for _, end in sentences]
    free = dict.fromkeys(sentences)
    edges = [0, *(edge for span in spans for edge in span), len(plain)]
    pieces = [plain[a:b] if at % 2 == 0 else " " * (b - a) for at, (a, b) in enumerate(pairwise(edges))]
    outside = "".join(pieces)
    parts = []
    for start, end in spans:
        raise_if_cancelled()
        around = sentences[bisect_right(ends, start) : bisect_left(starts, end)]
        first, last = around[0][0] if around else start, max(end, around[-1][1] if around else end)
        named = f"{outside[max(first, start - _NEARBY) : start]} {outside[end : min(last, end + _NEARBY)]}"
        behind = _BEHIND.match(text, last)
        parts.append(Part("quotation", start, end, text[start + 1 : end - 1], named + (behind[0] if behind else "")))
        for span in around:
            free.pop(span, None)
    for match in _BLOCK.finditer(text):
        quoted = re.sub(r"(?m)^[ \t]*(?:>[ \t]*)+", "", match[0]).rstrip()
        words, _, last_line = quoted.rpartition("\n")
        by = _BY.fullmatch(last_line) if words else None
        before = sentences[: bisect_right(ends, match.start())][-1:]
        named = by[1] if by else outside[slice(*before[0])][-_NEARBY:] if before else ""
        parts.append(Part("quotation", *match.span(), words if by else quoted, named))
    parts += [Part("claim", *span, text[slice(*span)]) for span in free]
    return sorted((part for part in parts if any(map(str.isalnum, part.text))), key=lambda part: part.start), unclosed


def _quoted(text: str) -> tuple[list[tuple[int, int]], int]:
    """Find the text in quotation marks, the outermost where they nest; none goes beyond its paragraph."""
    spans: list[tuple[int, int]] = []
    waiting: list[tuple[str, int]] = []
    unclosed = 0
    for match in _MARK.finditer(text):
        mark, closers = match[0], [closer for closer, _ in waiting]
        if mark in closers:
            at = len(closers) - 1 - closers[::-1].index(mark)
            start, unclosed = waiting[at][1], unclosed + len(waiting) - at - 1
            del waiting[at:]
            while spans and spans[-1][0] > start:
                spans.pop()
            spans.append((start, match.end()))
            continue
        if mark[0] == "\n" or len(waiting) == _DEEPEST:
            unclosed += len(waiting)
            waiting.clear()
        if mark in _CLOSERS:
            waiting.append((_CLOSERS[mark], match.start()))
    return spans, unclosed + len(waiting)
