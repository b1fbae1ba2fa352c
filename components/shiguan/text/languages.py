"""Detects the language of a text by script and function words, and weights its Han characters."""

import re
from collections import Counter
from pathlib import Path

from shiguan.resources import read_patterns, read_table
from shiguan.text.terms import is_wide, terms

_TABLE = read_table(Path(__file__).with_name("languages.yaml"))
HAN: str = _TABLE["scripts"]["zh"]
"""The Han characters, with the sign that repeats one and the round zero, for the brackets of a regular expression."""

HAN_RUN = re.compile(f"[{HAN}]+")
_HAN_CHARACTER = re.compile(f"[{HAN}]")
_SCRIPTS: list[tuple[str, re.Pattern[str]]] = [
    (code, re.compile(f"[{characters}]")) for code, characters in _TABLE["scripts"].items()
]
_LATIN_LETTER = re.compile(r"[A-Za-z\u00c0-\u024f]")
_LATIN_WORD = re.compile(r"[a-z\u00df-\u024f]+")
_FUNCTION_WORDS: dict[str, frozenset[str]] = {
    code: frozenset(words.split()) for code, words in _TABLE["function_words"].items()
}
_WRITTEN_IN: dict[str, str] = {code: script for script, codes in _TABLE["written_in"].items() for code in codes.split()}

DETECTED = frozenset(code for code, _ in _SCRIPTS) | _FUNCTION_WORDS.keys()
"""The languages that can be detected."""

# A text counts as written in a script that has at least this share of its letters; the rest may be names or quotations.
_SHARE = 0.3
# This share of kana among kana and Han makes a text Japanese: terse Japanese has more, Chinese that quotes a name less.
_KANA_SHARE = 0.18
_SAMPLE = 4000
# Titles, quotations and names in brackets, whose language is not that of a question.
_QUOTED = re.compile(
    r"""《[^《》]*》|〈[^〈〉]*〉|“[^“”]*”|「[^「」]*」|『[^『』]*』|（[^（）]*）|\([^()]*\)|"[^"]*\""""
)
_LONGEST_QUESTION = 300


def detect_language(text: str) -> str:
    """Detect the language of a question or passage by its script, in the Latin one by function words, else `en`."""
    own = _QUOTED.sub(" ", text) if len(text) <= _LONGEST_QUESTION else ""
    sample = own if any(map(str.isalpha, own)) else text[:_SAMPLE]
    counts = {code: 0 if sample.isascii() else len(pattern.findall(sample)) for code, pattern in _SCRIPTS}
    latin = len(_LATIN_LETTER.findall(sample))
    # A Latin word has several letters, while a Han character is a word by itself.
    letters = sum(counts.values()) + latin / 4
    if letters == 0:
        return "und"
    if counts["ja"] > _KANA_SHARE * (counts["ja"] + counts["zh"]) and counts["ja"] + counts["zh"] >= _SHARE * letters:
        return "ja"
    code = max(counts, key=lambda c: counts[c])
    words = Counter(_LATIN_WORD.findall(sample.lower()))
    votes = {own: sum(words[word] for word in table & words.keys()) for own, table in _FUNCTION_WORDS.items()}
    # "Who was 郭子仪?" is English, "什么是 machine learning" is not: function words show the language of the text
    # itself, and two characters make about one word.
    quotes = any(votes.values()) and words.total() >= counts[code] / 2
    if code != "ja" and not quotes and counts[code] >= _SHARE * letters:
        return code
    best = max(votes, key=lambda own: votes[own])
    return best if votes[best] > votes["en"] else "en"


def function_word_share(text: str) -> float:
    """Return the share of function words, of any language that is known, among the words in Latin letters."""
    words = _LATIN_WORD.findall(text.lower())
    known = frozenset().union(*_FUNCTION_WORDS.values())
    return sum(word in known for word in words) / max(len(words), 1)


_MODERN, _CLASSICAL = frozenset(_TABLE["modern"]), frozenset(_TABLE["classical"])
_MODERN_WORDS = re.compile(_TABLE["modern_words"])
_CLASSICAL_SAMPLE = 2000
_FEWEST = 12
_MODERN_SHARE = 0.012
_CLASSICAL_SHARE = 0.03
_GRAMMAR = frozenset("".join(_TABLE["grammar"].split()))
# The weights of a pair, whose characters are searched too, and of a term with modern grammar (docs/decisions/0012).
_PAIR, _GRAMMAR_TERM = 0.5, 0.3
_HAN_PAIR = re.compile(f"[{HAN}]{{2}}")
_CLASSICAL_WORDS = Path(__file__).with_name("classical_words.yaml")
# A character outside the commonest 3,755 (level one of GB 2312) is mostly a name or an informative word.
_RARE, _COMMON = 1.6, 1.0


def same_script(language: str, other: str) -> bool:
    """Return whether two languages are written in the same script."""
    return _WRITTEN_IN.get(language) == _WRITTEN_IN.get(other)


class _Folding(dict[int, str]):
    """Maps a wide character to its search term, where that is one character."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        found = terms(character) if is_wide(character) else []
        self[code] = found[0] if len(found) == 1 and len(found[0]) == 1 else character
        return self[code]


_FOLDING = _Folding()


def has_han(text: str) -> bool:
    return bool(_HAN_CHARACTER.search(text))


def fold_han(text: str) -> str:
    """Fold traditional Han characters to simplified ones like search terms, one for one, so that offsets stay valid."""
    return text if text.isascii() else text.translate(_FOLDING)


def is_classical(text: str) -> bool:
    letters = _HAN_CHARACTER.findall(_MODERN_WORDS.sub("", fold_han(text[:_CLASSICAL_SAMPLE])))
    count = len(letters)
    if count < _FEWEST or sum(letter in _MODERN for letter in letters) >= _MODERN_SHARE * count:
        return False
    return sum(letter in _CLASSICAL for letter in letters) >= _CLASSICAL_SHARE * count


def character_weight(character: str) -> float:
    """Weight a character of a modern sentence, of which a classical one often has just one of two (勤 for 勤奋)."""
    if character in _GRAMMAR:
        return 0.0
    encoded = character.encode("gb2312", "ignore")
    # Level one ends with row 55.
    return _COMMON if encoded and encoded[0] < 0xD8 else _RARE


def search_weights(question: str) -> dict[str, float]:
    """
    Weight the search terms of a question, each once however often it occurs.

    Pairs count less, since their characters are searched too; modern grammar, which is rare in classical texts, least.
    """
    return _classical_words(question) | {term: _search_weight(term) for term in terms(question)}


def _classical_words(question: str) -> dict[str, float]:
    if not has_han(question):
        return {}
    text = fold_han(question)
    found = (classical for classical, modern in read_patterns(_CLASSICAL_WORDS).items() if modern.search(text))
    return {term: _search_weight(term) for classical in found for term in terms(classical)}


def _search_weight(term: str) -> float:
    weight = _PAIR if _HAN_PAIR.fullmatch(term) else 1.0
    return weight if _MODERN.isdisjoint(term) else weight * _GRAMMAR_TERM
