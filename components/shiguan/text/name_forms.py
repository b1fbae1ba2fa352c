"""Finds names in a sentence."""

import re
from collections.abc import Iterator

from shiguan.text.dictionary import dictionary_words
from shiguan.text.languages import HAN, fold_han
from shiguan.text.names import (
    LONG_SURNAMES,
    NEVER_GIVEN,
    SURNAMES,
    TRANSLITERATED,
    capitalised_words,
)

_HAN_RUN = re.compile(f"[{HAN}]+")
_IS_NAME = re.compile(r"(?:[A-Z][\w'’.-]*(?: (?:of|the|and|de|von) | |$))+")
# All surnames but those that begin more words than names.
CLEAR_SURNAMES = frozenset(SURNAMES) - frozenset("于安常任从方高时何全应解管会金马水江白石毛黄路车花包和向成连明门国平")
_VERBS = frozenset("于任从全应会成连和向")
_TITLES = frozenset("陛下 殿下 阁下 上帝 皇上 大人".split())
_SHORTEST_FOREIGN, _MOST_GIVEN = 3, 2
Span = tuple[int, int]


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
