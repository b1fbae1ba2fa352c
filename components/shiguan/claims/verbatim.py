"""Finds a claim in a passage word for word."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from shiguan.reading.edges import hidden_denial, number_around, splits_number
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
    places = islice(_places(claim, passage), _MOST_PLACES)
    return next((span for span in places if not _cut(passage, span)), None)


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


def _cut(passage: str, span: tuple[int, int]) -> bool:
    edges = any(_splits_word(passage, at) or splits_number(passage, at) for at in span)
    return edges or bool(hidden_denial(passage, span[0]))


def _places(claim: str, passage: str) -> Iterator[tuple[int, int]]:
    """Yield where a passage has the letters of a claim, with its notes and without them."""
    asked, text = read_text(claim), read_text(passage)
    wanted, _ = asked.once(_bare)
    if len(wanted) < _SHORTEST and not (len(wanted) >= _SHORTEST // 2 and _HAN_PAIR.search(wanted)):
        return
    for left_out in ((), text.notes) if text.notes else ((),):
        shown = read_text(text.without_notes()) if left_out else text
        if asked.once(_letters) not in shown.once(_letters):
            continue
        letters, places = text.once(_bare, left_out) if left_out else text.once(_bare)
        at = letters.find(wanted)
        while at >= 0:
            yield places[at], places[at + len(wanted) - 1] + 1
            at = letters.find(wanted, at + 1)


def _letters(text: str) -> str:
    """Fold a text to its letters and digits; every claim is searched for in the same ones, and few are there."""
    return "".join(filter(str.isalnum, "".join(map(_folded, text))))


def _bare(text: str, left_out: tuple[tuple[int, int], ...] = ()) -> tuple[str, list[int]]:
    """Fold a text, some stretches left out, to its letters, digits and the signs of numbers, each with its place."""
    letters: list[str] = []
    places: list[int] = []
    at = 0
    for start, end in (*left_out, (len(text), len(text))):
        for place, character in enumerate(text[at:start], start=at):
            for folded in _folded(character):
                if folded.isalnum() or (folded in ".%+-" and letters and letters[-1].isdigit()):
                    letters.append(folded)
                    places.append(place)
        at = end
    while letters and letters[-1] in ".-":
        letters.pop()
        places.pop()
    return "".join(letters), places


@lru_cache(maxsize=16_384)
def _folded(character: str) -> str:
    return "" if character.isspace() else unicodedata.normalize("NFKC", character).lower()


def _splits_word(text: str, at: int) -> bool:
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    return not is_wide(before) and not is_wide(after) and before.isalnum() and after.isalnum()
