"""Checks whether a text has a name: as spelled, translated, in pinyin, or by its consonants."""

import re
from functools import cached_property

from shiguan.text.dictionary import dictionary_words
from shiguan.text.languages import has_han
from shiguan.text.name_forms import han_names, surname_size
from shiguan.text.names import TRANSLITERATED, reading, sounds_of_names, sounds_of_text, syllables
from shiguan.text.terms import fold_accents, fold_text, terms

_LATIN = re.compile("[A-Za-z]")
# The endings of adjectives of places: American, Libyan, Chinese.
_OF_PLACE = re.compile(r"(?:ian|ean|ese|ish|ans?|ns?|ic|i)$")
_FEWEST_CONSONANTS = 2
# One in three consonants may differ in the other script.
_SLIP = 3


def _forms(name: str) -> list[str]:
    """Return what of a name shows that it is meant: of a person the given name, of anything else two characters."""
    surname = surname_size(name)
    if surname:
        return [name, name[surname:]] if len(name) > surname + 1 else [name]
    return [name[at : at + 2] for at in range(len(name) - 1)]


class NamedText:
    """A text in which names are searched for; everything is computed when a name needs it."""

    def __init__(self, string: str, words: frozenset[str]) -> None:
        self._text = string
        self._terms = words

    def has(self, name: str) -> bool:
        """Return whether the text has a name, or any word of it."""
        return self._has_han(name) if has_han(name[:1]) else len(self.lacking(name)) < len(name.split())

    def lacking(self, name: str) -> list[str]:
        """Return the words of a name that the text does not have."""
        if has_han(name[:1]):
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
        return has_han(self._text)

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
