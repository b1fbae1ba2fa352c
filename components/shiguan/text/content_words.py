"""The words of a sentence that tell something, each in every form in which a text of either language may have it."""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from shiguan.text.dictionary import dictionary_words
from shiguan.text.languages import character_weight
from shiguan.text.name_forms import names_of
from shiguan.text.quantities import COUNTED, quantities
from shiguan.text.terms import is_wide, rarity, terms

_SENTENCES = 2_048
"""Sentences whose words are kept: those of an answer are read once for all passages and once for each."""


@dataclass(frozen=True)
class ContentWord:
    """A word, how much it tells, and the sets of terms of which a text that says it has one."""

    text: str
    weight: float
    forms: tuple[frozenset[str], ...]
    characters: frozenset[str] = frozenset()
    """Those of a word in Han characters that tell something by themselves: another word may share one (烧毁, 焚烧)."""

    def said_by(self, words: frozenset[str], *, by_characters: float = 0.0) -> float:
        """Give the share of it, 0 to 1, that a text with these terms has; characters in common count for so much."""
        if any(form <= words for form in self.forms):
            return 1.0
        if not by_characters or not self.characters:
            return 0.0
        return by_characters * len(self.characters & words) / len(self.characters)


@lru_cache(_SENTENCES)
def content_words(sentence: str, *, translated: bool = False, names: bool = True) -> tuple[ContentWord, ...]:
    """
    Give the words of a sentence that tell something: no numbers, no function words, each once.

    Chinese words are those of the dictionary, the longest first; what it does not have, names mostly, are single
    characters, which tell less.

    :param sentence: The sentence.
    :param translated: Whether a text in the other language, Chinese or English, may say them: by the dictionary.
    :param names: Whether capitalised names count as words, too.
    :returns: The words in their order.
    """
    plain = without_quantities(sentence)
    leave = frozenset() if names else frozenset(term for name in names_of(sentence) for term in terms(name))
    found: dict[str, ContentWord] = {}
    for parts, meanings in dictionary_words(plain, translated=translated):
        telling = frozenset(part for part in parts if not is_wide(part) or character_weight(part))
        if leave.issuperset(parts) or not telling:
            continue
        forms = [_form(parts), *(_form(terms(meaning)) for meaning in meanings if translated and terms(meaning))]
        is_long = is_wide(parts[0]) and len(parts) > 1
        weight = (
            1.0 if is_long else max(map(rarity, parts)) if is_wide(parts[0]) else math.sqrt(max(map(rarity, parts)))
        )
        word = "".join(parts) if is_wide(parts[0]) else " ".join(parts)
        found.setdefault(word, ContentWord(word, weight, tuple(forms), telling if is_long else frozenset()))
    return tuple(found.values())


def _form(parts: list[str]) -> frozenset[str]:
    """Give the terms of a word: of one in several Han characters the pairs, which say in what order they stand."""
    singles = [part for part in parts if not (len(part) == 2 and is_wide(part))]
    pairs = frozenset(f"{one}{other}" for one, other in pairwise(singles) if is_wide(one) and is_wide(other))
    return pairs or frozenset(singles)


def without_quantities(sentence: str) -> str:
    """Put spaces in the place of the numbers and dates of a sentence, and of what Chinese counts them with."""
    pieces = list(sentence)
    for number in quantities(sentence):
        end = number.end + (sentence[number.end : number.end + 1] in COUNTED)
        pieces[number.start : end] = " " * (end - number.start)
    return "".join(pieces)
