"""Finds names in a sentence, and checks whether a text has one: as spelled, translated, in pinyin, or by consonants."""

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache

from shiguan.text.dictionary import dictionary_words
from shiguan.text.languages import HAN, fold_han
from shiguan.text.names import (
    LONG_SURNAMES,
    NEVER_GIVEN,
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
_VERBS = frozenset("于任从全应会成连和向")
_TITLES = frozenset("陛下 殿下 阁下 上帝 皇上 大人".split())
_TEXTS, _SENTENCES = 64, 1_024
_SHORTEST_FOREIGN, _MOST_GIVEN = 3, 2
Span = tuple[int, int]
# The endings of adjectives of places: American, Libyan, Chinese.
_OF_PLACE = re.compile(r"(?:ian|ean|ese|ish|ans?|ns?|ic|i)$")
_FEWEST_CONSONANTS = 2
# One in three consonants may differ in the other script.
_SLIP = 3


@lru_cache(_SENTENCES)
def names_of(sentence: str) -> tuple[str, ...]:
    """Return the names of a sentence: runs of capitalised words, and what looks like a name in Han characters."""
    return tuple(dict.fromkeys([*_latin_names(sentence), *(sentence[slice(*span)] for span in han_names(sentence))]))


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


@lru_cache(_SENTENCES)
def han_names(text: str) -> tuple[Span, ...]:
    """
    Find the names in Han characters: those of the dictionary, persons, rulers, and transliterations.

    A person is a surname and one or two characters that are neither words of the dictionary nor such as only verbs and
    particles are (郭子仪, 张巡, 哥舒翰); a ruler is 宗 or 祖 behind one character.
    """
    found: list[Span] = []
    for run in _HAN_RUN.finditer(text):
        at, singles = run.start(), run.start()
        for parts, meanings in dictionary_words(run[0], translated=False):
            if len(parts) > 1:
                found += _in_singles(text, singles, at)
                capital = all(meaning[:1].isupper() for meaning in meanings)
                if capital and any(map(_IS_NAME.fullmatch, meanings)) and "".join(parts) not in _TITLES:
                    found.append((at, at + len(parts)))
                singles = at + len(parts)
            at += len(parts)
        found += _in_singles(text, singles, at)
    return tuple(found)


def _in_singles(text: str, start: int, end: int) -> Iterator[Span]:
    """Find names among characters that are no words of the dictionary together."""
    letters, at = fold_han(text[start:end]), 0
    while at < len(letters) - 1:
        size = _name_size(letters, at)
        if size:
            yield start + at, start + at + size
        at += size or 1


def _name_size(letters: str, at: int) -> int:
    foreign = at
    while foreign < len(letters) and letters[foreign] in TRANSLITERATED:
        foreign += 1
    if foreign - at >= _SHORTEST_FOREIGN:
        return foreign - at
    if letters[at + 1] in "宗祖" and letters[at] not in NEVER_GIVEN:
        return 2
    surname = 2 if letters[at : at + 2] in LONG_SURNAMES else int(letters[at] in SURNAMES and letters[at] not in _VERBS)
    given = 0
    while given < _MOST_GIVEN and letters[at + surname + given : at + surname + given + 1] not in NEVER_GIVEN:
        given += 1
    # Some surnames are words more often, and then take two characters.
    sure = surname > 1 or letters[at] in CLEAR_SURNAMES
    return surname + given if surname and given and (sure or given == _MOST_GIVEN) else 0


def surname_size(name: str) -> int:
    """Return the length of the surname that a name in simplified characters begins with; 0 where it is no person's."""
    size = 2 if name[:2] in LONG_SURNAMES else int(name[:1] in CLEAR_SURNAMES)
    return size if size and 0 < len(name) - size <= _MOST_GIVEN else 0


def _forms(name: str) -> list[str]:
    """Return what of a name shows that it is meant: of a person the given name, of anything else two characters."""
    surname = surname_size(name)
    if surname:
        return [name, name[surname:]] if len(name) > surname + 1 else [name]
    return [name[at : at + 2] for at in range(len(name) - 1)]


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
        if any(form in self._folded for form in _forms(folded)) or folded[:-1] in self._persons:
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
    def _persons(self) -> frozenset[str]:
        """The persons of the text, as it names them."""
        return frozenset(
            name for span in han_names(self._text) if surname_size(name := fold_text(self._text[slice(*span)]))
        )

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
