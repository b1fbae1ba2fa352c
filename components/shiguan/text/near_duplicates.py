"""Tells whether two passages say the same in nearly the same words."""

from functools import lru_cache

from shiguan.text.terms import terms

_SHINGLE = 3
_REMEMBERED = 256
"""Texts whose runs are kept, about 40 KB for a long passage: the same passages are read for many questions."""


@lru_cache(_REMEMBERED)
def shingles(text: str) -> frozenset[tuple[str, ...]]:
    """
    Cut a text into overlapping runs of three search terms.

    Search terms fold case, width and traditional characters, so the same passage in two scripts is one passage.
    """
    words = terms(text)
    if not words:
        return frozenset([(text.strip(),)])
    return frozenset(tuple(words[at : at + _SHINGLE]) for at in range(max(1, len(words) - _SHINGLE + 1)))


def similarity(first: frozenset[tuple[str, ...]], second: frozenset[tuple[str, ...]]) -> float:
    """Compare two sets of shingles (Jaccard)."""
    together = len(first | second)
    return len(first & second) / together if together else 1.0
