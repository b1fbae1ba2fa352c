"""Finds a claim in a passage word for word."""

import re
import unicodedata
from functools import lru_cache

from shiguan.text.languages import HAN
from shiguan.text.terms import is_wide

# Shorter claims are found word for word by chance.
_SHORTEST = 8
_HAN_PAIR = re.compile(f"[{HAN}]{{2}}")


def find_verbatim(claim: str, passage: str) -> tuple[int, int] | None:
    """Find a claim in a passage, ignoring case, width, punctuation and white space."""
    wanted, _ = _bare(claim)
    if len(wanted) < _SHORTEST and not (len(wanted) >= _SHORTEST // 2 and _HAN_PAIR.search(wanted)):
        return None
    if _letters(claim) not in _letters(passage):
        return None
    letters, places = _bare(passage)
    at = letters.find(wanted)
    if at < 0:
        return None
    start, end = places[at], places[at + len(wanted) - 1] + 1
    # `11 men` is not found in `111 men`.
    if _splits_word(passage, start) or _splits_word(passage, end):
        return None
    return start, end


@lru_cache(maxsize=128)
def _letters(text: str) -> str:
    """Fold a text to its letters and digits; every claim is searched for in the same ones, and few are there."""
    return "".join(filter(str.isalnum, "".join(map(_folded, text))))


@lru_cache(maxsize=128)
def _bare(text: str) -> tuple[str, list[int]]:
    """Fold a text to its letters, digits and the signs of numbers, with the place of each."""
    letters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        for folded in _folded(character):
            if folded.isalnum() or (folded in ".%+-" and letters and letters[-1].isdigit()):
                letters.append(folded)
                places.append(place)
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
