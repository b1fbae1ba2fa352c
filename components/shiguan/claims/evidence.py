"""Holds passages ready for checking claims: which window has most of a claim, and what none of them has."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from shiguan.claims.word_differences import Comparison, compare, unit_of
from shiguan.text.content_words import ContentWord, content_words
from shiguan.text.languages import HAN, character_weight, detect_language, is_classical
from shiguan.text.name_forms import named_text, names_of
from shiguan.text.quantities import Quantity, numerals, quantities
from shiguan.text.sentences import sentence_spans
from shiguan.text.terms import covered, is_wide, rarity, terms

_WIDEST = 3
# A wider window must gain this much per sentence to be taken for the span; one lined up word by word, this much.
_LENGTH_COST = 0.04
_LINED_UP_COST = 0.05
# How many windows are kept for the embedder, and how many are lined up with the claim.
_KEPT, _LINED_UP = 8, 6
# A term's weight: how rare it is among these passages, and how rare in writing at large.
_LOCAL = 0.3
_NUMBER_WEIGHT = 0.9
_BEFORE_YEAR = re.compile(
    r"\b(?:in|year|since|by|until|till|before|after|from|to|of|ad|ce|winter|spring|summer|autumn)\s+$", re.IGNORECASE
)
# Shorter claims are found word for word by chance.
_SHORTEST = 8
_HAN_PAIR = re.compile(f"[{HAN}]{{2}}")
_SEASONS = {"春": "spring", "夏": "summer", "秋": "autumn", "冬": "winter"}
_SEASON = re.compile(
    r"\b(winter|spring|summer|autumn)\b(?=\s+(?:of|in|\d)|[.,;]|$)|(?<=[年月载載岁歲是])([春夏秋冬])|([春夏秋冬])(?=[季天，]|[正一二三四五六七八九十]+月)",
    re.IGNORECASE,
)
# From these shares of a claim's words on, a window speaks of the same matter, so that another number is another
# account: the higher one for a number that stands elsewhere in the passages.
_SAME_MATTER, _SAME_SENTENCE = 0.6, 0.85
_NAME_WEIGHT = 1.5
# What characters of a word in Han characters count for where the word is not said: of a modern and of a classical text.
_BY_CHARACTERS = 0.2, 1.0
# A claim that says no more than this in single characters is taken with its names, of which more must be there then.
_FEW_CHARACTERS, _WITH_NAMES = 2, 0.6
_NAMED = 10
# This share of what a claim says must stand beside each of its numbers.
_BESIDE = 0.2


@dataclass(frozen=True)
class Window:
    """One to three neighbouring sentences of a passage."""

    passage: int
    start: int
    end: int
    covered: float


@dataclass(frozen=True)
class Reading:
    """What the passages have of a claim."""

    claim: str
    weight: float
    sentence: float
    window: float
    passages: float
    windows: tuple[Window, ...]
    foreign_numbers: tuple[str, ...]
    foreign_names: tuple[str, ...]
    rival: str
    comparison: Comparison
    told: float = 1.0
    """The share of what it says beside names and numbers that some neighbouring sentences have, where its names are."""
    apart: tuple[str, ...] = ()
    """Its numbers that stand in the passages, but beside nothing else that it says."""
    classical: bool = False
    verbatim: bool = False


@dataclass(frozen=True)
class _Sentence:
    start: int
    end: int
    words: frozenset[str]
    numbers: tuple[Quantity, ...]


class Evidence:
    """Some passages, split and counted once, against which any number of claims can be read."""

    def __init__(self, passages: Sequence[str], *, widest: int = _WIDEST) -> None:
        """Split the passages into sentences and count their words."""
        self.texts = list(passages)
        self._widest = widest
        self._sentences = [_split(text) for text in self.texts]
        self._frequency = Counter(word for passage in self._sentences for one in passage for word in one.words)
        self._total = sum(len(passage) for passage in self._sentences)
        self._numbers = [number for passage in self._sentences for one in passage for number in one.numbers]
        self._all = "\n".join(self.texts)
        self.language_of = [detect_language(text) for text in self.texts]
        self.languages = frozenset(self.language_of)
        read = zip(self.texts, self.language_of, strict=True)
        chinese = [is_classical(text) for text, language in read if language == "zh"]
        self._classical = 2 * sum(chinese) > len(chinese)

    def read(self, claim: str, question: str = "") -> Reading:
        """Find what the passages have of a claim."""
        claimed = quantities(claim)
        # Numbers are compared by value and not by spelling, so they are no terms here.
        asked = list(dict.fromkeys(terms(_without(claim, claimed))))
        nothing = Reading(claim, 0.0, 0.0, 0.0, 0.0, (), (), (), "", Comparison(0.0, ()))
        if not self._total or not (asked or claimed):
            return nothing
        found = self._verbatim(claim)
        if found is not None:
            return Reading(claim, 1.0, 1.0, 1.0, 1.0, (found,), (), (), "", Comparison(1.0, ()), verbatim=True)
        text = named_text(self._all)
        names = tuple(word for name in names_of(claim) for word in text.lacking(name) if self._is_foreign(word))
        weights = self._weights(asked, names)
        total = sum(weights.values()) + _NUMBER_WEIGHT * len(claimed)
        if not total:  # 什么: words of grammar alone, which say nothing of a classical passage
            return nothing
        shares, windows = self._windows(weights, claimed, total)
        # What one text counts, another may have as part of a word: 百人 for 一百人.
        named = numerals(self._all) if any(n.values for n in claimed if max(n.values) >= _NAMED) else frozenset()
        held = [
            any(number.agrees_with(other) for other in self._numbers)
            or any(value >= _NAMED and value in named for value in number.values)
            for number in claimed
        ]
        passages = sum(weight for word, weight in weights.items() if word in self._frequency)
        return Reading(
            claim,
            total,
            shares[0],
            max(shares),
            (passages + _NUMBER_WEIGHT * sum(held)) / total,
            tuple(windows[:_KEPT]),
            tuple(claim[n.start : n.end].strip() for n, there in zip(claimed, held, strict=True) if not there),
            names,
            self._rival(claim, weights, claimed, windows),
            self._lined_up(claim, windows),
            *self._told(claim, claimed, question),
            classical=self._classical,
        )

    def _told(self, claim: str, claimed: Sequence[Quantity], question: str) -> tuple[float, tuple[str, ...]]:
        """Find how much of what a claim says beside names and numbers stands together, and its numbers elsewhere."""
        translated = detect_language(claim) not in self.languages
        words = content_words(claim, translated=translated, names=False)
        enough = 1.0
        if not sum(len(word.text) > 1 for word in words) and len(words) <= _FEW_CHARACTERS:
            words, enough = content_words(claim, translated=translated), _WITH_NAMES
        words = words or content_words(question, translated=True)
        names = [name for name in names_of(claim) if any(named_text(text).has(name) for text in self.texts)]
        places = [
            place
            for place, text in enumerate(self.texts)
            if not names or any(named_text(text).has(name) for name in names)
        ]
        total = sum(word.weight for word in words)
        beside = [0.0] * len(claimed)
        best, by_characters = 0.0, _BY_CHARACTERS[self._classical]
        for place in places if total else ():
            passage = self._sentences[place]
            said = [[word.said_by(one.words, by_characters=by_characters) for word in words] for one in passage]
            for first in range(len(passage)):
                near = passage[first : first + self._widest]
                shares = map(max, zip(*said[first : first + self._widest], strict=True))
                share = sum(word.weight * part for word, part in zip(words, shares, strict=True)) / total
                best = max(best, share)
                for at, number in enumerate(claimed):
                    if share > beside[at] and any(number.agrees_with(n) for one in near for n in one.numbers):
                        beside[at] = share
        apart = [
            claim[number.start : number.end].strip()
            for number, share in zip(claimed, beside, strict=True)
            if share < _BESIDE and any(number.agrees_with(other) for other in self._numbers)
        ]
        return best * enough, tuple(apart)

    def has_together(self, words: Sequence[ContentWord], numbers: Sequence[Quantity]) -> bool:
        """Tell whether neighbouring sentences have all of some words, or one alone has them and some numbers."""
        width = 1 if numbers else self._widest
        return not (words or numbers) or any(
            all(any(word.said_by(one.words) for one in near) for word in words)
            and all(any(number.agrees_with(other) for one in near for other in one.numbers) for number in numbers)
            for passage in self._sentences
            for near in (passage[first : first + width] for first in range(len(passage)))
        )

    def says(self, text: str) -> bool:
        """Tell whether a passage has a text word for word."""
        return self._verbatim(text) is not None

    def _verbatim(self, claim: str) -> Window | None:
        for index, text in enumerate(self.texts):
            found = find_verbatim(claim, text)
            if found:
                touched = [s for s in self._sentences[index] if s.start < found[1] and found[0] < s.end]
                return Window(index, touched[0].start, touched[-1].end, 1.0)
        return None

    def _is_foreign(self, name: str) -> bool:
        if not self._classical:
            return len(name) > 1
        # A retelling has many words that look new; only a name none of whose characters is there is certainly one.
        return not any(character in self._frequency for character in terms(name) if len(character) == 1)

    def _weights(self, asked: Sequence[str], names: Sequence[str]) -> dict[str, float]:
        named = {word for name in names for word in terms(name)}
        most = math.log((self._total + 2) / 0.5)
        weights = {}
        for word in asked:
            if self._classical and is_wide(word[0]):
                weights[word] = character_weight(word) if len(word) == 1 else 0.0
                continue
            general = rarity(word)
            here = math.log((self._total + 2) / (self._frequency[word] + 0.5)) / most
            # Han characters have no place in the table beyond their shape, so what is local to them is scaled by it.
            local = here * min(general, 1.0) if is_wide(word[0]) else here
            weight = _LOCAL * local + (1 - _LOCAL) * general
            weights[word] = weight * (_NAME_WEIGHT if word in named else 1.0)
        return weights

    def _windows(
        self, weights: dict[str, float], claimed: Sequence[Quantity], total: float
    ) -> tuple[list[float], list[Window]]:
        """Give the best share for one, two and three sentences, and the windows in the order of their worth."""
        shares = [0.0] * self._widest
        valued: list[tuple[float, int, Window]] = []
        for index, passage in enumerate(self._sentences):
            shared = [weights.keys() & one.words for one in passage]
            agreeing = [
                {at for at, number in enumerate(claimed) if any(number.agrees_with(other) for other in one.numbers)}
                for one in passage
            ]
            for first in range(len(passage)):
                words: set[str] = set()
                held: set[int] = set()
                covered = 0.0
                for width in range(min(self._widest, len(passage) - first)):
                    place = first + width
                    if not (shared[place] <= words and agreeing[place] <= held):
                        words |= shared[place]
                        held |= agreeing[place]
                        covered = (sum(weights[word] for word in words) + _NUMBER_WEIGHT * len(held)) / total
                    shares[width] = max(shares[width], covered)
                    window = Window(index, passage[first].start, passage[place].end, covered)
                    valued.append((covered - _LENGTH_COST * width, -len(valued), window))
        valued.sort(key=lambda item: (item[0], item[1]), reverse=True)
        return shares, [window for _, _, window in valued]

    def _rival(
        self, claim: str, weights: dict[str, float], claimed: Sequence[Quantity], windows: Sequence[Window]
    ) -> str:
        """Find another number or season in the best window, where that speaks of the same matter as the claim."""
        if not windows:
            return ""
        window = windows[0]
        text = self.texts[window.passage][window.start : window.end]
        near = quantities(text)
        words = frozenset(terms(text))
        matter = covered(weights, words)
        seasons, told = _seasons(text), _seasons(claim)
        if matter >= _SAME_MATTER and seasons and told and not seasons.keys() & told.keys():
            return f"another season: {next(iter(seasons.values()))}"
        for number in claimed:
            if any(number.agrees_with(other) for other in near):
                continue
            known = any(number.agrees_with(other) for other in self._numbers)
            if matter < (_SAME_SENTENCE if known else _SAME_MATTER):
                continue
            spare = [other for other in near if not any(other.agrees_with(one) for one in claimed)]
            rivals = [other for other in spare if _are_rivals((claim, number), (text, other))]
            if rivals:
                return f"another number: {text[rivals[0].start : rivals[0].end]}"
        return ""

    def _lined_up(self, claim: str, windows: Sequence[Window]) -> Comparison:
        best, best_value = Comparison(0.0, ()), 0.0
        for window in windows[:_LINED_UP]:
            text = self.texts[window.passage][window.start : window.end]
            comparison = compare(claim, text, self.texts[window.passage])
            value = comparison.repeated - _LINED_UP_COST * (len(sentence_spans(text)) - 1)
            if value > best_value:
                best, best_value = comparison, value
        return best


def find_verbatim(claim: str, passage: str) -> tuple[int, int] | None:
    """Find a claim in a passage, ignoring case, width, punctuation and white space."""
    wanted, _ = _bare(claim)
    if len(wanted) < _SHORTEST and not (len(wanted) >= _SHORTEST // 2 and _HAN_PAIR.search(wanted)):
        return None
    said, places = _bare_passage(passage)
    at = said.find(wanted)
    if at < 0:
        return None
    start, end = places[at], places[at + len(wanted) - 1] + 1
    # `11 men` is not said where `111 men` is.
    if _splits_word(passage, start) or _splits_word(passage, end):
        return None
    return start, end


@lru_cache(maxsize=256)
def _split(text: str) -> tuple[_Sentence, ...]:
    """Split a passage; the same ones are read for the whole answer and mark by mark, sentence after sentence."""
    return tuple(
        _Sentence(start, end, frozenset(terms(text[start:end])), tuple(quantities(text[start:end])))
        for start, end in sentence_spans(text)
    )


def _seasons(text: str) -> dict[str, str]:
    """Find the seasons that date something, under one name in both languages."""
    found = [match[0] for match in _SEASON.finditer(text)]
    return {_SEASONS.get(season, season.lower()): season for season in found}


def _without(claim: str, numbers: Sequence[Quantity]) -> str:
    pieces = list(claim)
    for number in numbers:
        pieces[number.start : number.end] = " " * (number.end - number.start)
    return "".join(pieces)


def _are_rivals(one: tuple[str, Quantity], other: tuple[str, Quantity]) -> bool:
    """40 miles and 30 years are no rivals: dates are, and what is followed by the same word."""
    if _is_year(*one) or _is_year(*other):
        return _is_year(*one) and _is_year(*other)
    if one[1].kind != other[1].kind:
        return False
    unit = unit_of(*one)
    return one[1].kind != "number" or bool(unit and unit == unit_of(*other))


def _is_year(text: str, number: Quantity) -> bool:
    if number.kind == "year":
        return True
    likely = number.kind == "number" and any(100 <= value <= 2100 and value.is_integer() for value in number.values)
    return likely and bool(_BEFORE_YEAR.search(text[max(0, number.start - 12) : number.start]))


def _bare(text: str) -> tuple[str, list[int]]:
    """Fold a text to its letters and digits, with the place of each in the text."""
    letters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        if character.isspace():
            continue
        for folded in unicodedata.normalize("NFKC", character).lower():
            if folded.isalnum() or (folded in ".%+-" and letters and letters[-1].isdigit()):
                letters.append(folded)
                places.append(place)
    while letters and letters[-1] in ".-":
        letters.pop()
        places.pop()
    return "".join(letters), places


# Every claim of an answer is looked for in the same passages.
_bare_passage = lru_cache(maxsize=64)(_bare)


def _splits_word(text: str, at: int) -> bool:
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    return not is_wide(before) and not is_wide(after) and before.isalnum() and after.isalnum()
