"""Reads passages for checking claims: which window has most of a claim, and what no passage has."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shiguan.claims.stated import find_stated
from shiguan.claims.verbatim import cut_denial, cut_number, find_verbatim
from shiguan.claims.word_differences import (
    NOT_COMPARED,
    Comparison,
    Difference,
    DifferenceKind,
    compare,
    leaves_room,
    may_repeat,
    unit_of,
)
from shiguan.reading.edges import only_limits
from shiguan.reading.text import ContentWord, read_text
from shiguan.text.languages import character_weight, is_classical
from shiguan.text.quantities import Quantity, numerals, quantities
from shiguan.text.sentences import sentence_spans
from shiguan.text.terms import covered, fold_text, is_wide, rarity, terms
from shiguan.text.times import DAY

_WIDEST = 3
# A wider window must gain this much per sentence to be preferred; one aligned word by word, this much.
_LENGTH_COST = 0.04
_LINED_UP_COST = 0.05
# How many windows are kept, and how many are lined up with the claim.
_KEPT, _LINED_UP = 8, 6
# Classical books name a day by its place in a cycle of sixty, so that no number of a day can be missing: 丁巳.
_DAY = re.compile(DAY)
# The share of a term's weight that is its rarity among these passages; the rest is its rarity in general.
_LOCAL = 0.3
_NUMBER_WEIGHT = 0.9
_BEFORE_YEAR = re.compile(
    r"\b(?:in|year|since|by|until|till|before|after|from|to|of|ad|ce|winter|spring|summer|autumn)\s+$", re.IGNORECASE
)
_SEASONS = {"春": "spring", "夏": "summer", "秋": "autumn", "冬": "winter"}
_SEASON = re.compile(
    r"\b(winter|spring|summer|autumn)\b(?=\s+(?:of|in|\d)|[.,;]|$)|(?<=[年月载載岁歲是])([春夏秋冬])|([春夏秋冬])(?=[季天，]|[正一二三四五六七八九十]+月)",
    re.IGNORECASE,
)
# With at least these shares of a claim's words a window is about the same matter, so that another number contradicts
# the claim: the higher share is for a number that occurs elsewhere in the passages.
_SAME_MATTER, _SAME_SENTENCE = 0.6, 0.85
_NAME_WEIGHT = 1.5
# What the characters of a Chinese word count for where the word itself is missing: in a modern, in a classical text.
_BY_CHARACTERS = 0.6, 1.0
# A claim with at most this many single characters and no words is compared with its names, and its share is scaled.
_FEW_CHARACTERS, _WITH_NAMES = 2, 0.6
_NAMED = 10
# This share of a claim's words must occur near each of its numbers.
_LEAST_NEAR = 0.2
# A sentence of more characters is none; it is not looked for, so that nothing supports it.
LONGEST_CLAIM = 2000


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
    weight: float = 0.0
    sentence: float = 0.0
    window: float = 0.0
    passages: float = 0.0
    windows: tuple[Window, ...] = ()
    foreign_numbers: tuple[str, ...] = ()
    foreign_names: tuple[str, ...] = ()
    rival: str = ""
    rival_of: str = ""
    comparison: Comparison = NOT_COMPARED
    content: float = 1.0
    """The largest share of its words, names and numbers aside, in neighbouring sentences where its names are."""
    stray_numbers: tuple[str, ...] = ()
    """Its numbers that the passages have, but not near the rest of the claim."""
    classical: bool = False
    verbatim: bool = False
    word_for_word: bool = False
    """Whether what is verbatim has no other order, form of a word or number, and nothing left out."""
    doubted: bool = False
    """Whether a passage has its words, but seems to report, suppose or deny them."""


@dataclass(frozen=True)
class _Sentence:
    start: int
    end: int
    words: frozenset[str]
    numbers: tuple[Quantity, ...]


@dataclass(frozen=True)
class _Passage:
    sentences: tuple[_Sentence, ...]
    words: frozenset[str]
    language: str
    classical: bool


class Evidence:
    """Some passages, with which any number of claims can be compared."""

    def __init__(self, passages: Sequence[str], *, within: "Evidence | None" = None) -> None:
        """Read some passages; `within` is the evidence that they are part of, whose search need not be repeated."""
        self._within = within
        self._restated: dict[str, Window | None] = {}
        self._doubted: set[str] = within._doubted if within else set()
        self.texts = tuple(passages)
        self._passages = [read_text(text).once(_split) for text in self.texts]
        self._sentences = [passage.sentences for passage in self._passages]
        sentences = [sentence for passage in self._sentences for sentence in passage]
        self._words = [sentence.words for sentence in sentences]
        self._numbers = [number for sentence in sentences for number in sentence.numbers]
        self._all = "\n".join(self.texts)
        self.language_of = [passage.language for passage in self._passages]
        self.languages = frozenset(self.language_of)
        chinese = [passage.classical for passage in self._passages if passage.language == "zh"]
        self.classical = 2 * sum(chinese) > len(chinese)
        self._readings: dict[tuple[str, str], Reading] = {}

    def read(self, claim: str, question: str = "") -> Reading:
        """Find what the passages have of a claim."""
        known = self._readings.get((claim, question))
        if known is None:
            known = self._readings[claim, question] = self._compared(claim, question)
        return known

    def _compared(self, claim: str, question: str) -> Reading:
        if len(claim) > LONGEST_CLAIM:
            return Reading(claim)
        claimed = quantities(claim)
        # Numbers are compared by value and not by spelling, so they are left out of the terms.
        asked = list(dict.fromkeys(terms(_without(claim, claimed))))
        if not self._words or not (asked or claimed):
            return Reading(claim)
        found = self._verbatim(claim)
        if found is not None:
            exactly = find_verbatim(claim, self.texts[found.passage]) is not None
            return Reading(claim, 1.0, 1.0, 1.0, 1.0, (found,), verbatim=True, word_for_word=exactly)
        text = read_text(self._all)
        names = tuple(word for name in read_text(claim).names for word in text.lacking(name) if self._is_foreign(word))
        weights = self._weights(asked, names)
        total = sum(weights.values()) + _NUMBER_WEIGHT * len(claimed)
        if not total:  # only function words such as 什么, which have no weight in a classical passage
            return Reading(claim)
        shares, windows = self._windows(weights, claimed, total)
        # One text may have a number as part of a word: 百人 for 一百人.
        read = zip(self._passages, self.texts, strict=True)
        by_cycle = any(passage.classical and _DAY.search(text) for passage, text in read)
        named = numerals(self._all) if any(n.values for n in claimed if max(n.values) >= _NAMED) else frozenset()
        held = [
            (by_cycle and number.kind == "day")
            or _has(self._numbers, number)
            or any(value >= _NAMED and value in named for value in number.values)
            for number in claimed
        ]
        passages = sum(weight for word, weight in weights.items() if self._occurs(word))
        return Reading(
            claim,
            total,
            shares[0],
            max(shares),
            (passages + _NUMBER_WEIGHT * sum(held)) / total,
            tuple(windows[:_KEPT]),
            tuple(claim[n.start : n.end].strip() for n, there in zip(claimed, held, strict=True) if not there),
            names,
            *self._rival(claim, weights, claimed, windows),
            self._cut(claim) or self._lined_up(claim, windows),
            *self.content(claim, claimed, question),
            classical=self.classical,
            doubted=claim in self._doubted,
        )

    def content(self, claim: str, claimed: Sequence[Quantity], question: str) -> tuple[float, tuple[str, ...]]:
        """Find the share of a claim's words that occur together, and its numbers that are not near them."""
        translated = read_text(claim).language not in self.languages
        words = read_text(claim).content_words(translated=translated, names=False)
        scale = 1.0
        if not sum(len(word.text) > 1 for word in words) and len(words) <= _FEW_CHARACTERS:
            words, scale = read_text(claim).content_words(translated=translated), _WITH_NAMES
        words = words or read_text(question).content_words(translated=True)
        named = [any(map(read_text(text).has_name, read_text(claim).names)) for text in self.texts]
        total = sum(word.weight for word in words)
        near_number = [0.0] * len(claimed)
        best, by_characters = 0.0, _BY_CHARACTERS[self.classical]
        for read, is_named in zip(self._passages, named, strict=True):
            if not total or (any(named) and not is_named):
                continue
            passage, there = read.sentences, [w for w in words if w.said_by(read.words, by_characters=by_characters)]
            found = [[word.said_by(s.words, by_characters=by_characters) for word in there] for s in passage]
            for first in range(len(passage)):
                near = passage[first : first + _WIDEST]
                shares = map(max, zip(*found[first : first + _WIDEST], strict=True))
                share = sum(word.weight * part for word, part in zip(there, shares, strict=True)) / total
                best = max(best, share)
                for at, number in enumerate(claimed):
                    if share > near_number[at] and any(_has(sentence.numbers, number) for sentence in near):
                        near_number[at] = share
        strays = [
            claim[number.start : number.end].strip()
            for number, share in zip(claimed, near_number, strict=True)
            if share < _LEAST_NEAR and _has(self._numbers, number)
        ]
        return best * scale, tuple(strays)

    def has_together(self, words: Sequence[ContentWord], numbers: Sequence[Quantity]) -> bool:
        """Return whether neighbouring sentences have all these words or, with numbers, one sentence has everything."""
        width = 1 if numbers else _WIDEST
        return not (words or numbers) or any(
            all(any(word.said_by(sentence.words) for sentence in near) for word in words)
            and all(any(_has(sentence.numbers, number) for sentence in near) for number in numbers)
            for passage in self._sentences
            for near in (passage[first : first + width] for first in range(len(passage)))
        )

    def admits(self, gap: str) -> bool:
        """Return whether a passage admits a gap in the same words."""
        return bool(gap) and fold_text(gap) in read_text(self._all).once(fold_text)

    def has_half(self, claim: str) -> bool:
        """Return whether half of a claim's words occur somewhere in the passages."""
        words = set(terms(claim))
        return 2 * sum(map(self._occurs, words)) >= len(words)

    def contains(self, text: str) -> bool:
        """Return whether a passage contains a text word for word."""
        return self._verbatim(text) is not None

    def _verbatim(self, claim: str) -> Window | None:
        if claim not in self._restated:
            nowhere = self._within is not None and self._within._verbatim(claim) is None
            self._restated[claim] = None if nowhere else self._found(claim)
        return self._restated[claim]

    def _found(self, claim: str) -> Window | None:
        for index, text in enumerate(self.texts):
            found, doubted = find_stated(claim, text)
            if doubted:
                self._doubted.add(claim)
            if found:
                touched = [s for s in self._sentences[index] if s.start < found[1] and found[0] < s.end]
                return Window(index, touched[0].start, touched[-1].end, 1.0)
        return None

    def _is_foreign(self, name: str) -> bool:
        if not self.classical:
            return len(name) > 1
        # A retelling has many words that look new; a name is missing for certain only if none of its characters occurs.
        return not any(self._occurs(character) for character in terms(name) if len(character) == 1)

    def _occurs(self, word: str) -> bool:
        return any(word in passage.words for passage in self._passages)

    def _weights(self, asked: Sequence[str], names: Sequence[str]) -> dict[str, float]:
        named = {word for name in names for word in terms(name)}
        most = math.log((len(self._words) + 2) / 0.5)
        weights = {}
        for word in asked:
            if self.classical and is_wide(word[0]):
                weights[word] = character_weight(word) if len(word) == 1 else 0.0
                continue
            general = rarity(word)
            frequency = sum(word in words for words in self._words)
            here = math.log((len(self._words) + 2) / (frequency + 0.5)) / most
            # The table knows only the shape of Han characters, so their local rarity is scaled by it.
            local = here * min(general, 1.0) if is_wide(word[0]) else here
            weight = _LOCAL * local + (1 - _LOCAL) * general
            weights[word] = weight * (_NAME_WEIGHT if word in named else 1.0)
        return weights

    def _windows(
        self, weights: dict[str, float], claimed: Sequence[Quantity], total: float
    ) -> tuple[list[float], list[Window]]:
        """Return the best share for one, two and three sentences, and the windows, best first."""
        asked = frozenset(weights)
        shares = [0.0] * _WIDEST
        ranked: list[tuple[float, Window]] = []
        for index, passage in enumerate(self._sentences):
            shared = [asked & sentence.words for sentence in passage]
            agreeing = [
                {at for at, number in enumerate(claimed) if _has(sentence.numbers, number)} for sentence in passage
            ]
            for first in range(len(passage)):
                words: set[str] = set()
                held: set[int] = set()
                covered = 0.0
                for width in range(min(_WIDEST, len(passage) - first)):
                    place = first + width
                    if not (shared[place] <= words and agreeing[place] <= held):
                        words |= shared[place]
                        held |= agreeing[place]
                        covered = (sum(weights[word] for word in words) + _NUMBER_WEIGHT * len(held)) / total
                    shares[width] = max(shares[width], covered)
                    window = Window(index, passage[first].start, passage[place].end, covered)
                    ranked.append((covered - _LENGTH_COST * width, window))
        ranked.sort(key=lambda item: item[0], reverse=True)
        return shares, [window for _, window in ranked]

    def _rival(
        self, claim: str, weights: dict[str, float], claimed: Sequence[Quantity], windows: Sequence[Window]
    ) -> tuple[str, str]:
        """Find another number or season in the best window, if it is about the same matter, and the claim's number."""
        if not windows:
            return "", ""
        window = windows[0]
        text = self.texts[window.passage][window.start : window.end]
        near = quantities(text)
        words = frozenset(terms(text))
        matter = covered(weights, words)
        found, stated = _seasons(text), _seasons(claim)
        if matter >= _SAME_MATTER and found and stated and not found.keys() & stated.keys():
            return f"another season: {next(iter(found.values()))}", ""
        others = [other for other in near if not _has(claimed, other)]
        for number in claimed:
            if _has(near, number) or matter < (_SAME_SENTENCE if _has(self._numbers, number) else _SAME_MATTER):
                continue
            for other in others:
                if _are_rivals((claim, number), (text, other)) and not leaves_room((claim, number), (text, other)):
                    return f"another number: {text[other.start : other.end]}", claim[number.start : number.end]
        return "", ""

    def _cut(self, claim: str) -> Comparison | None:
        """Compare a claim that is cut out of a number or from behind a denial with what the passage has whole."""
        for text in self.texts:
            if cut := cut_number(claim, text):
                return Comparison(1.0, (Difference("number", *cut),))
            if denial := cut_denial(claim, text):
                kind: DifferenceKind = "limit" if only_limits(denial) else "negation"
                return Comparison(1.0, (Difference(kind, claim, denial),))
        return None

    def _lined_up(self, claim: str, windows: Sequence[Window]) -> Comparison:
        texts = [(self.texts[w.passage][w.start : w.end], self.texts[w.passage]) for w in windows[:_LINED_UP]]
        if not any(may_repeat(claim, text) for text, _ in texts):
            return NOT_COMPARED
        found = [(NOT_COMPARED, 0.0)]
        for text, passage in texts:
            comparison = compare(claim, text, passage)
            found.append((comparison, comparison.repeated - _LINED_UP_COST * (len(sentence_spans(text)) - 1)))
        return max(found, key=lambda pair: pair[1])[0]


def _split(text: str) -> _Passage:
    sentences = [
        _Sentence(start, end, frozenset(terms(text[start:end])), tuple(quantities(text[start:end])))
        for start, end in read_text(text).sentences
    ]
    words = frozenset[str]().union(*(sentence.words for sentence in sentences))
    language = read_text(text).language
    return _Passage(tuple(sentences), words, language, language == "zh" and is_classical(text))


def _has(numbers: Iterable[Quantity], wanted: Quantity) -> bool:
    return any(wanted.agrees_with(number) for number in numbers)


def _seasons(text: str) -> dict[str, str]:
    """Find the seasons that date something, under their English names."""
    found = [match[0] for match in _SEASON.finditer(text)]
    return {_SEASONS.get(season, season.lower()): season for season in found}


def _without(claim: str, numbers: Sequence[Quantity]) -> str:
    pieces = list(claim)
    for number in numbers:
        pieces[number.start : number.end] = " " * (number.end - number.start)
    return "".join(pieces)


def _are_rivals(first: tuple[str, Quantity], second: tuple[str, Quantity]) -> bool:
    """Return whether two numbers can replace each other: dates, and numbers with the same unit."""
    if _is_year(*first) or _is_year(*second):
        return _is_year(*first) and _is_year(*second)
    if first[1].kind != second[1].kind:
        return False
    unit = unit_of(*first)
    return first[1].kind != "number" or bool(unit and unit == unit_of(*second))


def _is_year(text: str, number: Quantity) -> bool:
    if number.kind == "year":
        return True
    likely = number.kind == "number" and any(100 <= value <= 2100 and value.is_integer() for value in number.values)
    return likely and bool(_BEFORE_YEAR.search(text[max(0, number.start - 12) : number.start]))
