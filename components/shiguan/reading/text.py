"""A text, and the memory that finds it again by its string, with all that was worked out of it before."""

import math
import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from threading import Lock
from typing import Any, Concatenate, Final, Generic, ParamSpec, TypeVar

from shiguan.text.dates import find_dates
from shiguan.text.dictionary import dictionary_words
from shiguan.text.languages import character_weight, detect_language, has_han
from shiguan.text.name_forms import (
    capitalised_consonants,
    consonants,
    consonants_of_han,
    forms_of_name,
    initials_of,
    names_of,
    persons_of,
    sounds_within,
    transliterations_of,
)
from shiguan.text.names import TRANSLITERATED, reading, sounds_of_names, sounds_of_text, syllables
from shiguan.text.quantities import COUNTED, quantities
from shiguan.text.sentences import sentence_spans
from shiguan.text.terms import fold_accents, fold_text, is_wide, rarity, terms

Result = TypeVar("Result")
More = ParamSpec("More")
# The endings of adjectives of places: American, Libyan, Chinese.
_COUNTRY = re.compile(r"(..+?)(?:[人语文]|(?<=国))$")
_OF_PLACE = re.compile(r"(?:ian|ean|ese|ish|ans?|ns?|ic|i)$")
_BRACKET = re.compile(r"\[(?:脚注：|Note: )?|\]")


class kept(Generic[Result]):  # noqa: N801  # it stands where a decorator of a property would
    """An attribute of a text that a function makes of its string, on first use."""

    def __init__(self, function: Callable[[str], Result]) -> None:
        self._function = function

    def __set_name__(self, kind: type, name: str) -> None:
        self._name = name

    def __get__(self, text: "Text", kind: type | None = None) -> Result:
        found = vars(text)[self._name] = self._function(text.string)
        return found


def note_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Find the notes that stand in a text as `[Note: …]` or `[脚注：…]`, brackets in them included; in order."""
    if "[Note: " not in text and "[脚注：" not in text:
        return ()
    open_brackets: list[tuple[int, bool]] = []
    spans: list[tuple[int, int]] = []
    for match in _BRACKET.finditer(text):
        if match[0] != "]":
            open_brackets.append((match.start(), len(match[0]) > 1))
        elif open_brackets:
            start, is_note = open_brackets.pop()
            if is_note:
                while spans and spans[-1][0] > start:
                    spans.pop()
                spans.append((start, match.end()))
    return tuple(spans)


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
    """Return the content words of a sentence in order, each once; `translated` adds forms, without `names` these go."""
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


class Text:
    """A text; what is asked of it is worked out on first use and kept with it. Nothing kept may be changed."""

    def __init__(self, string: str) -> None:
        self.string = string
        self._kept: dict[Any, Any] = {}

    def once(
        self, function: Callable[Concatenate[str, More], Result], *given: More.args, **named: More.kwargs
    ) -> Result:
        """Return what a function of a module makes of the text and further values: it is called once for each."""
        key = (function, given, *named.items())
        if key not in self._kept:
            self._kept[key] = function(self.string, *given, **named)
        found: Result = self._kept[key]
        return found

    language = kept(detect_language)
    sentences = kept(sentence_spans)
    terms = kept(terms)
    quantities = kept(quantities)
    dates = kept(find_dates)
    names = kept(names_of)
    notes = kept(note_spans)
    _has_han = kept(has_han)
    _has_latin = kept(re.compile("[A-Za-z]").search)
    _folded = kept(fold_text)
    _persons = kept(persons_of)
    _initials = kept(initials_of)
    _sounds = kept(lambda string: frozenset(sounds_of_text(string)))
    sounds = kept(lambda string: frozenset(sounds_of_names(string)))
    _readings = kept(lambda string: frozenset(map(reading, fold_text(string))))
    _transliterations = kept(transliterations_of)
    _capitalised = kept(capitalised_consonants)

    @cached_property
    def _places(self) -> frozenset[str]:
        return frozenset(word for name in self.names for word in _translations(name))

    @cached_property
    def words(self) -> frozenset[str]:
        """Its terms, each once."""
        return frozenset(self.terms)

    @cached_property
    def shingles(self) -> frozenset[tuple[str, ...]]:
        """Overlapping runs of three of its terms, which are the same in simplified and traditional characters."""
        words = self.terms
        if len(words) < 3:
            return frozenset([tuple(words) or (self.string.strip(),)])
        return frozenset(zip(words, words[1:], words[2:], strict=False))

    def content_words(self, *, translated: bool = False, names: bool = True) -> tuple[ContentWord, ...]:
        """Return its content words; see the function of this name."""
        return self.once(content_words, translated=translated, names=names)

    def without_notes(self, start: int = 0, end: int | None = None) -> str:
        """Return a part of the text without the notes in it."""
        end = len(self.string) if end is None else end
        pieces, at = [], start
        for begin, stop in self.notes:
            if begin < end and at < stop:
                pieces.append(self.string[at : max(at, begin)])
                at = max(at, stop)
        return "".join([*pieces, self.string[at:end]]) if at < end else "".join(pieces)

    def has_name(self, name: str) -> bool:
        """Return whether the text has a name, or any word of it."""
        return self._has_han_name(name) if has_han(name[:1]) else len(self.lacking(name)) < len(name.split())

    def lacking(self, name: str) -> list[str]:
        """Return the words of a name that the text does not have."""
        if has_han(name[:1]):
            return [] if self._has_han_name(name) else [name]
        words = [word for word in name.split() if terms(word) and not self._has_word(word)]
        words = [word for word in words if not self._has_home(word)]
        if not words or not self._has_han:
            return words
        return [word for word in words if not self._hears(word, alone=" " not in name)]

    def _has_word(self, word: str) -> bool:
        if self.words.issuperset(terms(word)):
            return True
        plain = fold_accents(word)
        base = _OF_PLACE.sub("", plain)
        if len(base) > 2 and any(t.startswith(base) and len(t) <= len(base) + 2 for t in self.words):
            return True
        letters = plain.replace(".", "")
        return word.isupper() and 1 < len(letters) < 6 and letters in self._initials

    def _has_home(self, word: str) -> bool:
        """Find the country of a people or a language: Americans are 美国人, United States 美国 in the dictionary."""
        countries = (_COUNTRY.search(meaning) for meaning in _translations(word))
        return any(found and found[1] in self._places for found in countries)

    def _hears(self, word: str, *, alone: bool) -> bool:
        """Find a Latin word in Han characters."""
        if any(fold_text(meaning) in self._folded for meaning in _translations(word)):
            return True
        sounds = list(sounds_of_names(word))
        if sounds and any(sound in self._sounds for sound in sounds):
            return True
        own = consonants(word)
        spoken = syllables(word)
        if alone and len(spoken) == 1:  # Shu is 蜀; a surname alone proves nothing
            return spoken[0] in self._readings
        return any(sounds_within(own, other) for other in self._transliterations)

    def _has_han_name(self, name: str) -> bool:
        folded = fold_text(name)
        if any(form in self._folded for form in forms_of_name(folded)) or folded[:-1] in self._persons:
            return True
        if not self._has_latin:
            return False
        meanings = [meaning for _, some in dictionary_words(name, translated=False) for meaning in some]
        if any(self.words.issuperset(terms(meaning)) for meaning in meanings if meaning[:1].isupper()):
            return True
        sounds = list(sounds_of_text(name))
        if sounds and self.sounds.issuperset(sounds[-1:]):
            return True
        own = consonants_of_han(name) if TRANSLITERATED.issuperset(folded) else ""
        fewest = sum(map(str.isupper, own)) - 1
        return bool(own) and any(sounds_within(other, own) for other in self._capitalised if len(other) >= fewest)


def _translations(name: str) -> set[str]:
    """Return the Chinese words of a Latin name."""
    return {meaning for _, some in dictionary_words(name, translated=True) for meaning in some}


Kind = TypeVar("Kind", bound=Text)
_LEAST: Final = 50


class Memory:
    """
    The texts read last, for all threads: at most so many characters, each text as at least 50.

    Of a longer text than `longest` only its holder keeps what was worked out: a hostile one does not make others go.
    """

    def __init__(self, most: int, longest: int) -> None:
        self._most, self._longest = most, longest
        self._texts: OrderedDict[str, Text] = OrderedDict()
        self.size = 0
        self._lock = Lock()

    def read(self, kind: type[Kind], string: str) -> Kind:
        """Return the text with this string, and make it if it is not there, or there as another kind."""
        with self._lock:
            known = self._texts.get(string)
            if isinstance(known, kind):
                self._texts.move_to_end(string)
                return known
            made = kind(string)
            if len(string) > self._longest:
                return made
            if known is not None:
                vars(made).update(vars(known))  # what is known of it does not depend on the kind
            else:
                self.size += max(len(string), _LEAST)
            self._texts[string] = made
            self._texts.move_to_end(string)
            while self.size > self._most:
                self.size -= max(len(self._texts.popitem(last=False)[0]), _LEAST)
        return made


# All that answers and checks can keep of a text takes 1,000 bytes for each Chinese character and 300 for a Latin one;
# mostly it is a third.
memory = Memory(most=300_000, longest=100_000)


read_text = partial(memory.read, Text)
"""Return a text, with what was worked out of it before."""
