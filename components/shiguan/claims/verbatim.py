"""Finds a claim in a passage word for word."""

import re
from collections.abc import Iterator
from itertools import islice

from shiguan.reading.edges import hidden_denial, number_around
from shiguan.reading.folded import Folded, fold
from shiguan.reading.text import read_text
from shiguan.text.languages import HAN
from shiguan.text.quantities import quantities
from shiguan.text.terms import is_wide

# Shorter claims are found word for word by chance.
_SHORTEST = 8
# Of a claim that is cut at every place no more are looked at.
_MOST_PLACES = 64
_HAN_PAIR = re.compile(f"[{HAN}]{{2}}")


def find_verbatim(claim: str, passage: str) -> tuple[int, int] | None:
    """
    Find a claim in a passage, ignoring case, width, punctuation, white space and inserted notes.

    What begins or ends inside a word or a number of the passage, or behind a word that denies it, is not found.
    """
    wanted = fold(claim)
    spans = (
        there.span(at, at + len(wanted.key))
        for there in _readings(wanted, passage)
        for at in islice(wanted.find(there), _MOST_PLACES)
        if not there.hides_denial(at)
    )
    return next(spans, None)


def cut_number(claim: str, passage: str) -> tuple[str, str] | None:
    """Return the number that a claim begins or ends with and the longer one of which the passage has it."""
    for start, end in islice(_places(claim, passage), _MOST_PLACES):
        if _splits_word(passage, start) or _splits_word(passage, end) or hidden_denial(passage, start):
            continue
        for at in (start, end):
            begin, stop = number_around(passage, at)
            claimed, found = passage[max(start, begin) : min(end, stop)], passage[begin:stop]
            if begin < at < stop and not _same_number(claimed, found):
                return claimed, found
    return None


def cut_denial(claim: str, passage: str) -> str:
    """Return the word of a passage that denies or limits what a claim repeats without it; empty if there is none."""
    places = islice(_places(claim, passage), _MOST_PLACES)
    return next((denial for start, _ in places if (denial := hidden_denial(passage, start))), "")


def _same_number(claimed: str, found: str) -> bool:
    numbers = quantities(found)
    return any(one.agrees_with(other) for one in quantities(claimed) for other in numbers)


def _readings(wanted: Folded, passage: str) -> Iterator[Folded]:
    """Yield a passage with its notes and without them, if a claim is long enough to be looked for."""
    if len(wanted.key) >= _SHORTEST or (len(wanted.key) >= _SHORTEST // 2 and _HAN_PAIR.search(wanted.key)):
        yield fold(passage)
        if read_text(passage).notes:
            yield fold(passage, noted=False)


def _places(claim: str, passage: str) -> Iterator[tuple[int, int]]:
    """Yield where a passage has the letters of a claim, even within its words and numbers."""
    wanted = fold(claim)
    for there in _readings(wanted, passage):
        at = there.key.find(wanted.key)
        while at >= 0:
            yield there.span(at, at + len(wanted.key))
            at = there.key.find(wanted.key, at + 1)


def _splits_word(text: str, at: int) -> bool:
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    return not is_wide(before) and not is_wide(after) and before.isalnum() and after.isalnum()
