"""Finds a claim word for word in a passage, and the places where one repeats it with something else put in."""

import re
import unicodedata
from difflib import SequenceMatcher

from shiguan.text.terms import terms

# Shorter claims are found word for word by chance.
_SHORTEST = 8
# From this share of characters in common on, a claim repeats its source.
_REPEATED = 0.7
_HAN = re.compile(r"[\u3400-\u9fff]{2,}")
_LONGEST = 600


def find_verbatim(claim: str, passage: str) -> tuple[int, int] | None:
    """Find a claim in a passage, ignoring case, width, punctuation and white space."""
    wanted, _ = _bare(claim)
    if len(wanted) < _SHORTEST and not (len(wanted) >= _SHORTEST // 2 and _HAN.search(wanted)):
        return None
    said, places = _bare(passage)
    at = said.find(wanted)
    if at < 0:
        return None
    start, end = places[at], places[at + len(wanted) - 1] + 1
    # `11 men` is not said where `111 men` is.
    if _splits_word(passage, start) or _splits_word(passage, end):
        return None
    return start, end


def substitutes(claim: str, span: str, passage: str) -> list[str]:
    """
    Find what a claim that repeats a span nearly word for word says in place of the span's words.

    Only runs of Han characters are looked at: names in other scripts show by their capitals.
    """
    if len(claim) > _LONGEST or not _HAN.search(claim):
        return []
    first, places = _bare(claim)
    second, _ = _bare(span)
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    blocks = matcher.get_matching_blocks()
    if sum(block.size for block in blocks if block.size > 1) < _REPEATED * len(first):
        return []
    said = set(terms(passage))
    found = []
    for tag, start, end, other_start, other_end in matcher.get_opcodes():
        if tag != "replace" or other_end - other_start < 1:
            continue
        run = claim[places[start] : places[end - 1] + 1]
        if len(run) >= 2 and _HAN.search(run) and not any(pair in said for pair in terms(run) if len(pair) == 2):
            found.append(run)
    return found


def _bare(text: str) -> tuple[str, list[int]]:
    """Fold a text to its letters and digits, with the place of each in the text."""
    letters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        if character.isspace():
            continue
        for folded in unicodedata.normalize("NFKC", character).lower():
            if folded.isalnum() or (folded in ".%+-" and letters and letters[-1].isdigit()):
                letters.append(folded)
                places.append(place)
    while letters and letters[-1] in ".-":
        letters.pop()
        places.pop()
    return "".join(letters), places


def _splits_word(text: str, at: int) -> bool:
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    both_latin = before < "\u2e80" and after < "\u2e80"
    return both_latin and before.isalnum() and after.isalnum()
