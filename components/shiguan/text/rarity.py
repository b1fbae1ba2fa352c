"""How rare a search term is in writing at large, and how much of the weight of some terms others have."""

import math
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

from shiguan.resources import read_patterns
from shiguan.text.han import is_wide
from shiguan.text.terms import terms

_FRAME = read_patterns(Path(__file__).with_name("rarity.yaml"))["frame"]

# 14,019 stems with the rank of their commonest word. The embedder's own scores are no measure of English words: its
# pieces come from a hundred languages, and their scores hardly agree with these ranks (correlation .14).
_TABLE = Path(__file__).with_name("word_ranks.txt")
# What comes before the first whole word in that vocabulary are signs and letters.
_FIRST_WORD = 1996
_UNKNOWN = 40_000
_FLOOR, _CEILING = 0.5, 4.5
# A single Han character says less than a pair; one that carries grammar, or a pair with one, hardly anything.
_SINGLE, _FUNCTION = 0.35, 0.3
_FUNCTION_CHARACTERS = frozenset(
    "的是了在于與与和及而之其也者为為以有这這那被把将將由从從到一个個不所他她它们們就都又并並则則乃"
)


def rarity(term: str) -> float:
    """
    Weigh a term by how much it tells, whatever the texts at hand.

    Zipf's law puts a word's frequency at about one over its rank, so the logarithm of the rank is its information.
    """
    if is_wide(term[0]):
        weight = _SINGLE if len(term) == 1 else 1.0
        return weight if _FUNCTION_CHARACTERS.isdisjoint(term) else weight * _FUNCTION
    rank = _ranks().get(term)
    information = math.log(_UNKNOWN / _FIRST_WORD) + 1 if rank is None else math.log(rank / _FIRST_WORD)
    return (_FLOOR + information) / _CEILING


def question_subject(question: str) -> str:
    """
    Take from a question the words that only make it a question.

    English ones are stop words of the search terms already; Chinese ones are cut out here, with a space in their
    place, so that no pair of characters is formed across them.
    """
    subject = _FRAME.sub(" ", question)
    return subject if subject.strip(" ？?。，,！!") else question


def question_weights(question: str) -> dict[str, float]:
    """Weigh the words of a question by their rarity."""
    return {word: rarity(word) for word in terms(question_subject(question))}


def covered(weights: Mapping[str, float], words: Collection[str]) -> float:
    """Give the share of the weight of some words that others have, 0 to 1."""
    total = sum(weights.values())
    return sum(weight for word, weight in weights.items() if word in words) / total if total else 0.0


@cache
def _ranks() -> dict[str, int]:
    lines = _TABLE.read_text(encoding="utf-8").splitlines()[1:]
    return {stem: int(rank) for stem, _, rank in (line.partition(" ") for line in lines)}
