"""Recognises the fixed sentence by which a mode says that the sources do not hold the answer."""

from functools import cache

from shiguan.claims.citation_marks import find_marks
from shiguan.llm.prompts import not_found_sentence
from shiguan.text.terms import terms

_MODES = ("simple", "advanced", "precise")
_LANGUAGES = ("en", "zh")


def is_not_found(text: str) -> bool:
    """
    Tell whether a text is the not-found sentence of any mode, in any of its languages, and nothing else.

    Compared by search terms, so that quotes, punctuation, emphasis, case and traditional characters do not matter;
    citation marks that a model put behind it are ignored.
    """
    plain = text
    for mark in reversed(find_marks(text)):
        plain = plain[: mark.start] + " " + plain[mark.end :]
    said = tuple(terms(plain))
    return bool(said) and said in _sentences()


@cache
def _sentences() -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(terms(not_found_sentence(mode, language))) for mode in _MODES for language in _LANGUAGES)
