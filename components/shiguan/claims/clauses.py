"""The tokens of a text as sentences, names and dates, and whether it can be cut at a place."""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

from shiguan.claims.tokens import WORDS, Span, Token, read_tokens
from shiguan.reading.edges import barred_spans, hidden_denial, splits_number
from shiguan.reading.text import Result, read_text

JOINS = frozenset({"and", "but", "而", "但", "且", "却", "并"})
"""What joins two clauses or predicates, of which each is so."""
_JOINTS = JOINS | WORDS["relative"]
_HYPHENS, _RANGES = frozenset("-‐‑"), frozenset(["-", "–", "—", "～", "~", "/", "&", "：", ":", "、", "+", "＋"])
# What right before it leaves open whether it is so, in so many characters.
_HEDGES = re.compile(
    r"(?:\b(?:possibly|probably|perhaps|maybe|allegedly|reportedly|supposedly),? ?"
    r"|可能|或许|或許|也许|也許|似乎|据说|據說|相传|相傳)(?:the |an? )?[*_“\"]?\Z",
    re.IGNORECASE,
)
_HEDGE = 24
# What belongs to a number and is no token.
_UNITS = frozenset("%％‰°")
# What right behind it limits or asks what stands before, or calls it an error.
_LIMITED = re.compile(
    r"\s*[”\"’』」]?\s*[?？]|\s*[(（][×✗✘❌]"
    r"|[\s,;(（，；—–]*(?:except|unless|if|apart from|other than|but not|save for|provided|barring)\b"
    r"|[\s，；(（]*(?:除非|[^，。；,.]{0,8}(?:例外|除外))",
    re.IGNORECASE,
)

_IN_DATE = WORDS["units_of_date"] | WORDS["when"] | {"of"}
_OPENS_DATE = WORDS["dated"] | WORDS["when"] | {"between"}
_LONGEST_DATE, _SPANS = 10, {("from", "to"), ("from", "until"), ("between", "and")}


class Clauses:
    """The tokens of a text, by whose places it is read: those of sentences, phrases, names and dates."""

    def __init__(self, tokens: Sequence[Token], text: str) -> None:
        self.tokens, self.text = tokens, text
        self._kept: dict[Callable[[Any], Any], Any] = {}

    def once(self, function: "Callable[[Self], Result]") -> Result:
        """Return what a function makes of the clauses: it is called once."""
        if function not in self._kept:
            self._kept[function] = function(self)
        found: Result = self._kept[function]
        return found

    @cached_property
    def runs(self) -> dict[tuple[str, ...], int]:
        """Where all runs of up to three tokens without a break, among which are its names, stand first."""
        found: dict[tuple[str, ...], int] = {}
        for at in range(len(self.tokens)):
            run: tuple[str, ...] = ()
            for token in self.tokens[at : at + 3]:
                if run and token.breaks:
                    break
                run = (*run, token.key)
                found.setdefault(run, at)
        return found

    @cached_property
    def sentences(self) -> list[Span]:
        starts = [at for at, token in enumerate(self.tokens) if token.stops]
        return list(pairwise([*starts, len(self.tokens)]))

    def end_of_phrase(self, at: int) -> int:
        return next((to for to in range(at + 1, len(self.tokens)) if self.tokens[to].breaks), len(self.tokens))

    @cached_property
    def dates(self) -> list[Span]:
        """The phrases that say when: in 1778, 天宝十四载十一月."""
        return _dates_in(self.tokens)

    @cached_property
    def ends_of_dates(self) -> dict[int, int]:
        """Where those phrases end, by where they begin."""
        return dict(self.dates)

    @cached_property
    def _edges_of_dates(self) -> frozenset[int]:
        return frozenset(at for date in self.dates for at in date)

    @cached_property
    def _barred(self) -> list[Span]:
        return read_text(self.text).once(barred_spans)

    def has_article(self, at: int) -> bool:
        return at < len(self.tokens) and bool(self.tokens[at].article)

    def can_begin(self, at: int) -> bool:
        """Return whether nothing right before a place is of the same word or denies it, and no heading bars it."""
        before = self.tokens[at - 1 : at] if not self.tokens[at].breaks else ()
        is_unreal = any(one.key in WORDS["unreal"] and not one.is_capital for one in before)
        if is_unreal or self.cuts_word(at) or hidden_denial(self.text, self.tokens[at].start):
            return False
        place = self.tokens[at].start
        if _HEDGES.search(self.text[max(0, place - _HEDGE) : place]) or splits_number(self.text, place):
            return False
        barred = bisect_right(self._barred, (place, len(self.text)))
        return not barred or place >= self._barred[barred - 1][1]

    def can_end(self, at: int) -> bool:
        """Return whether nothing right behind a place is of the same word, or limits or asks what stands before it."""
        place = self.tokens[at - 1].end
        place += self.text[place : place + 1] in _UNITS
        return not (self.cuts_word(at) or _LIMITED.match(self.text, place) or splits_number(self.text, place))

    def is_joint(self, at: int) -> bool:
        """Return whether one phrase ends and another begins there."""
        if at >= len(self.tokens) or self.tokens[at].breaks:
            return True
        return at in self._edges_of_dates or self.tokens[at - 1].key in _JOINTS or self.tokens[at].key in _JOINTS

    def cuts_word(self, at: int) -> bool:
        """Return whether what stands before and behind a place is one: sister|-in-law, 5|–10, 北京|—上海."""
        if not 0 < at < len(self.tokens):
            return False
        sign, token = self.text[self.tokens[at - 1].end : self.tokens[at].start], self.tokens[at]
        near = any(one.number for one in self.tokens[max(0, at - 2) : at])
        is_range = bool(token.number) and near and sign.strip() in _RANGES
        return sign in _HYPHENS or is_range or (token.is_han and sign in _RANGES - {"、", "：", ":"})


def _dates_in(tokens: Sequence[Token]) -> list[Span]:
    found: list[Span] = []
    at = 0
    while at < len(tokens):
        end = _end_of_date(tokens, at)
        if end:
            found.append((at, end))
        at = end or at + 1
    return found


def _end_of_date(tokens: Sequence[Token], at: int) -> int:
    end, is_date = at, False
    while end < min(len(tokens), at + _LONGEST_DATE):
        token = tokens[end]
        if end > at and (token.stops or "(" in token.breaks or (token.breaks and not token.number)):
            break
        is_span = (tokens[at].key, token.key) in _SPANS
        if token.number is None and not is_span and token.key not in (_IN_DATE if end > at else _OPENS_DATE):
            break
        is_date = is_date or _is_date(tokens, end)
        end += 1
    return end if is_date else 0


def _is_date(tokens: Sequence[Token], at: int) -> bool:
    number = tokens[at].number
    if number is None or number.kind == "percent":
        return False
    counted = at + 1 < len(tokens) and tokens[at + 1].key in WORDS["units_of_date"]
    likely = number.kind == "number" and any(100 <= value <= 2100 for value in number.values)
    led = at > 0 and tokens[at - 1].key in _OPENS_DATE | {"of"}
    return counted or number.kind in ("year", "month", "day") or (likely and led)


def read_clauses(text: str) -> Clauses:
    """Read the clauses of a text."""
    return Clauses(read_tokens(text), text)
