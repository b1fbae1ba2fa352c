"""Finds the content words of a sentence, each in every form in which a text of either language may have it."""

import math
from dataclasses import dataclass
from itertools import pairwise

from shiguan.text.dictionary import dictionary_words
from shiguan.text.languages import character_weight
from shiguan.text.name_forms import names_of
from shiguan.text.quantities import COUNTED, quantities
from shiguan.text.terms import is_wide, rarity, terms


@dataclass(frozen=True)
class ContentWord:
    """A word, its weight, and its forms as sets of terms; a text has the word if it has all terms of a form."""

    text: str
    weight: float
    forms: tuple[frozenset[str], ...]
    characters: frozenset[str] = frozenset()
    """The characters of a Chinese word that carry meaning by themselves: another word may share one (烧毁, 焚烧)."""

    def said_by(self, words: frozenset[str], *, by_characters: float = 0.0) -> float:
        """Return the share of the word, 0 to 1, that a text with these terms has; shared characters count partly."""
        if any(form <= words for form in self.forms):
            return 1.0
        if not by_characters or not self.characters:
            return 0.0
        return by_characters * len(self.characters & words) / len(self.characters)


def content_words(sentence: str, *, translated: bool = False, names: bool = True) -> tuple[ContentWord, ...]:
    """
    Return the content words of a sentence in order, without numbers and function words, each once.

    Chinese words are those of the dictionary, the longest first; what it lacks, mostly names, is split into characters,
    which have less weight. `translated` adds translations as forms; without `names`, names are left out.
    """
    plain = without_quantities(sentence)
    leave = frozenset() if names else frozenset(term for name in names_of(sentence) for term in terms(name))
    found: dict[str, ContentWord] = {}
    for parts, meanings in dictionary_words(plain, translated=translated):
        telling = frozenset(part for part in parts if not is_wide(part) or character_weight(part))
        if leave.issuperset(parts) or not telling:
            continue
        forms = [_form(parts), *(_form(terms(meaning)) for meaning in meanings if translated and terms(meaning))]
        wide, weight = is_wide(parts[0]), max(map(rarity, parts))
        is_long = wide and len(parts) > 1
        weight = 1.0 if is_long else weight if wide else math.sqrt(weight)
        word = ("" if wide else " ").join(parts)
        found.setdefault(word, ContentWord(word, weight, tuple(forms), telling if is_long else frozenset()))
    return tuple(found.values())


def _form(parts: list[str]) -> frozenset[str]:
    """Return the terms of a word; of several Han characters only the pairs, which keep their order."""
    singles = [part for part in parts if not (len(part) == 2 and is_wide(part))]
    pairs = frozenset(f"{first}{second}" for first, second in pairwise(singles) if is_wide(first) and is_wide(second))
    return pairs or frozenset(singles)


def without_quantities(sentence: str) -> str:
    """Replace the numbers and dates of a sentence, and their Chinese measure words, by spaces."""
    pieces = list(sentence)
    for number in quantities(sentence):
        end = number.end + (sentence[number.end : number.end + 1] in COUNTED)
        pieces[number.start : end] = " " * (end - number.start)
    return "".join(pieces)
