"""Which words are opposites, and which deny."""

from functools import cache, partial
from pathlib import Path

from shiguan.resources import read_patterns, read_table
from shiguan.text.terms import terms

_WORDS = Path(__file__).with_name("opposites.yaml")


@cache
def _pairs() -> frozenset[tuple[str, str]]:
    pairs = [pair.split() for pair in read_table(_WORDS)["opposites"].split(",")]
    folded = [(_folded(a), _folded(b)) for a, b in pairs]
    return frozenset([*folded, *((b, a) for a, b in folded)])


def _folded(words: str) -> str:
    """Join the terms of some words; what is no term, such as before and after, stays as it is."""
    return " ".join(terms(words)) or words.lower()


def are_opposites(first: str, second: str) -> bool:
    """Return whether two short runs of words are opposites, whatever their inflection."""
    if (_folded(first), _folded(second)) in _pairs():
        return True
    words = terms(first), terms(second)
    left, right = set(words[0]) - set(words[1]), set(words[1]) - set(words[0])
    return len(left) == len(right) == 1 and (left.pop(), right.pop()) in _pairs()


_patterns = partial(read_patterns, _WORDS)


def negations(sentence: str) -> int:
    """Count the denying words of a sentence."""
    return len(_patterns()["denies"].findall(_patterns()["denies_nothing"].sub(" ", sentence)))
