"""Finds names in a sentence, and checks whether a text has one: as spelled, translated, in pinyin, or by consonants."""

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import groupby

from shiguan.text.dictionary import dictionary_words
from shiguan.text.languages import HAN
from shiguan.text.names import (
    SURNAMES,
    TRANSLITERATED,
    capitalised_words,
    reading,
    sounds_of_names,
    sounds_of_text,
    syllables,
)
from shiguan.text.terms import fold_accents, fold_text, terms

_HAN_RUN = re.compile(f"[{HAN}]+")
_LATIN = re.compile("[A-Za-z]")
_IS_NAME = re.compile(r"(?:[A-Z][\w'’.-]*(?: (?:of|the|and|de|von) | |$))+")
# All surnames but those that begin more words than names.
CLEAR_SURNAMES = frozenset(SURNAMES) - frozenset("于安常任从方高时何全应解管会金马水江白石毛黄路车花包和向成连明门国平")
_TITLES = frozenset("陛下 殿下 阁下 上帝 皇上 大人".split())
_TEXTS, _SENTENCES = 64, 1_024
# A Chinese name that the dictionary lacks is cut into single characters: a surname and one or two more; nothing shows
# how many, so two characters are taken.
_SHORTEST_FOREIGN, _NAME = 3, 2
# The endings of adjectives of places: American, Libyan, Chinese.
_OF_PLACE = re.compile(r"(?:ian|ean|ese|ish|ans?|ns?|ic|i)$")
_FEWEST_CONSONANTS = 2
# One in three consonants may differ in the other script.
_SLIP = 3


@lru_cache(_SENTENCES)
def names_of(sentence: str) -> tuple[str, ...]:
    """Return the names of a sentence: runs of capitalised words, and what looks like a name in Han characters."""
    return tuple(dict.fromkeys([*_latin_names(sentence), *_han_names(sentence)]))


def _latin_names(sentence: str) -> list[str]:
    runs: list[str] = []
    at = 0
    for word in capitalised_words(sentence):
        start = sentence.index(word, at)
        if runs and sentence[at:start] == " ":
            runs[-1] += f" {word}"
        else:
            runs.append(word)
        at = start + len(word)
    return runs


def _han_names(sentence: str) -> Iterator[str]:
    for run in _HAN_RUN.findall(sentence):
        words = [("".join(parts), meanings) for parts, meanings in dictionary_words(run, translated=False)]
        for single, some in groupby(words, key=lambda word: len(word[0]) == 1):
            if single:
                yield from _surnamed("".join(word for word, _ in some))
                continue
            for word, meanings in some:
                capital = all(meaning[:1].isupper() for meaning in meanings)
                if capital and any(map(_IS_NAME.fullmatch, meanings)) and word not in _TITLES:
                    yield word


def _surnamed(letters: str) -> Iterator[str]:
    """Find names in characters that the dictionary lacks: 郭子仪, 张巡, and transliterations of foreign names."""
    at = 0
    while at < len(letters) - 1:
        end = at
        while end < len(letters) and letters[end] in TRANSLITERATED:
            end += 1
        if end - at < _SHORTEST_FOREIGN:
            end = at + _NAME if letters[at] in CLEAR_SURNAMES else at
        if end > at:
            yield letters[at:end]
        at = max(end, at + 1)


@lru_cache(_TEXTS)
def named_text(text: str) -> "NamedText":
    """Prepare a text; cached, because the same passages are read for every name of an answer."""
    return NamedText(text)


class NamedText:
    """A text in which names are searched for."""

    def __init__(self, text: str) -> None:
        """Set the text; everything else is computed when a name needs it."""
        self._text = text

    def has(self, name: str) -> bool:
        """Return whether the text has a name, or any word of it."""
        return self._has_han(name) if _HAN_RUN.match(name) else len(self.lacking(name)) < len(name.split())

    def lacking(self, name: str) -> list[str]:
        """Return the words of a name that the text does not have."""
        if _HAN_RUN.match(name):
            return [] if self._has_han(name) else [name]
        words = [word for word in name.split() if terms(word) and not self._has_word(word)]
        if not words or not self._is_han:
            return words
        return [word for word in words if not self._hears(word, alone=" " not in name)]

    def _has_word(self, word: str) -> bool:
        if self._terms.issuperset(terms(word)):
            return True
        plain = fold_accents(word)
        base = _OF_PLACE.sub("", plain)
        if len(base) > 2 and any(t.startswith(base) and len(t) <= len(base) + 2 for t in self._terms):
            return True
        letters = plain.replace(".", "")
        return word.isupper() and 1 < len(letters) < 6 and letters in self._initials

    def _hears(self, word: str, *, alone: bool) -> bool:
        """Find a Latin word in Han characters."""
        meanings = (meaning for _, some in dictionary_words(word, translated=True) for meaning in some)
        if any(fold_text(meaning) in self._folded for meaning in meanings):
            return True
        sounds = list(sounds_of_names(word))
        if sounds and any(sound in self._sounds for sound in sounds):
            return True
        own = consonants(word)
        spoken = syllables(word)
        if alone and len(spoken) == 1:  # Shu is 蜀; a surname alone proves nothing
            return spoken[0] in self._readings
        return any(_is_within(own, other) for other in self._transliterations)

    def _has_han(self, name: str) -> bool:
        folded = fold_text(name)
        pairs = [folded[at : at + 2] for at in range(len(folded) - 1)]
        if any(pair in self._folded for pair in pairs):
            return True
        if not _LATIN.search(self._text):
            return False
        meanings = [meaning for _, some in dictionary_words(name, translated=False) for meaning in some]
        if any(self._terms.issuperset(terms(meaning)) for meaning in meanings if meaning[:1].isupper()):
            return True
        sounds = list(sounds_of_text(name))
        if sounds and self._pinyin.issuperset(sounds[-1:]):
            return True
        own = _consonants_of_han(name) if TRANSLITERATED.issuperset(folded) else ""
        fewest = sum(map(str.isupper, own)) - 1
        return bool(own) and any(_is_within(other, own) for other in self._capitalised if len(other) >= fewest)

    @cached_property
    def _is_han(self) -> bool:
        return bool(_HAN_RUN.search(self._text))

    @cached_property
    def _terms(self) -> frozenset[str]:
        return frozenset(terms(self._text))

    @cached_property
    def _folded(self) -> str:
        return fold_text(self._text)

    @cached_property
    def _sounds(self) -> frozenset[str]:
        return frozenset(sounds_of_text(self._text))

    @cached_property
    def _readings(self) -> frozenset[str]:
        return frozenset(map(reading, self._folded))

    @cached_property
    def _pinyin(self) -> frozenset[str]:
        return frozenset(sounds_of_names(self._text))

    @cached_property
    def _initials(self) -> frozenset[str]:
        """The first letters of runs of capitalised words: US for United States."""
        runs = re.findall(r"[A-Z][\w'’]*(?:\s+(?:of|the|and|for|de)?\s*[A-Z][\w'’]*)+", self._text)
        return frozenset("".join(re.findall(r"\b[A-Z]", run)).lower() for run in runs)

    @cached_property
    def _transliterations(self) -> frozenset[str]:
        runs = re.findall(f"[{''.join(sorted(TRANSLITERATED))}]{{2,}}", self._folded)
        return frozenset(map(_consonants_of_han, runs))

    @cached_property
    def _capitalised(self) -> frozenset[str]:
        return frozenset(
            map(consonants, (word for word in re.findall(r"\b[A-Z][a-zà-ÿ'’]+", self._text) if not syllables(word)))
        )


# Consonants that Chinese writes alike stand for each other; those that it leaves out (h, w, y) are left out.
_SPELLINGS = [(re.compile(a), b) for a, b in (
    ("ph", "f"), ("th", "t"), ("sh", "s"), ("t?ch", "j"), ("ck", "k"), ("gh", ""), ("c(?=[eiy])", "s"), ("c", "k"),
    ("x", "ks"), ("g(?=[eiy])", "j"), (r"\bkn", "n"), ("wh?", "f"),
)]  # fmt: skip
_CLASSES = str.maketrans("bpdtgkqlrfvmnszjc", "PPTTKKKLLFFMNSSCS")
_INITIALS = str.maketrans("bpdtgkhlrfwmnszcxjq", "PPTTKKKLLFFMNSSSSCC")


def consonants(word: str) -> str:
    """Return the consonants of a Latin word as Chinese would write them: Queequeg is KKK, and so is 魁魁格."""
    plain = fold_accents(word).removesuffix("'s").removesuffix("’s")
    for spelled, heard in _SPELLINGS:
        plain = spelled.sub(heard, plain)
    found = re.sub("[^A-Z]", "", plain.translate(_CLASSES))
    return re.sub(r"(.)\1+", r"\1", found) if not re.search(r"(.)[aeiou]+\1", plain) else found


def _consonants_of_han(run: str) -> str:
    """Return those of Han characters; a small letter closes a syllable and may be nothing (班 for Ba)."""
    found = ""
    for sound in filter(None, map(reading, run)):
        first = "C" if sound[:2] in ("zh", "ch") else sound[0].translate(_INITIALS)
        found += (first if first.isupper() else "") + ("n" if sound.rstrip("g").endswith("n") else "")
        found += "l" if sound == "er" else ""
    return found


def _is_within(own: str, other: str) -> bool:
    """Return whether consonants occur in others in order, but for one slip in three; two must be all and agree."""
    if len(own) <= _FEWEST_CONSONANTS:
        return len(own) == _FEWEST_CONSONANTS and own == other.upper()
    before = [0] * (len(other) + 1)
    for place, letter in enumerate(own, start=1):
        now = [place]
        for at, heard in enumerate(other):
            skipped = now[-1] + (0 if heard.islower() else 1)
            now.append(min(before[at] + (letter != heard.upper()), before[at + 1] + 1, skipped))
        before = now
    return min(before) <= (len(own) - _FEWEST_CONSONANTS) // _SLIP
