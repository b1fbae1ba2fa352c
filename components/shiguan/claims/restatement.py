"""Finds a claim in a passage as it stands there, or changed in ways that change nothing that it says."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from shiguan.reading.text import read_text
from shiguan.resources import read_table
from shiguan.text.languages import HAN
from shiguan.text.names import SURNAMES
from shiguan.text.quantities import Quantity
from shiguan.text.terms import UNSPACED, fold_text, is_wide

_TABLE = read_table(Path(__file__).with_name("restatement.yaml"))
_HARMLESS, _BEFORE, _AFTER, _SUPPOSED, _UNREAL, _DATED, _UNITS, _WHEN, _BE, _PRONOUNS, _REPLIES, _REPORTED = (
    frozenset(fold_text(_TABLE[name]).split())
    for name in (
        "harmless", "before", "after", "supposed", "unreal", "dated", "units_of_date", "when", "be", "pronouns",
        "replies", "reported",
    )
)  # fmt: skip
_TENSES = frozenset(frozenset(pair.split()) for pair in _TABLE["tenses"].split(","))
_LETTERS = f"[^\\W_{UNSPACED}]+"
_TOKEN = re.compile(
    rf"[{HAN}]|(?:(?![{HAN}])[{UNSPACED}])+|{_LETTERS}(?:['’](?!s\b){_LETTERS})*|['’]s\b|[$€£+-](?=\d)|(?<=\d)[%‰°]"
)
_POSSESSIVE = "'s"
# What stands in brackets, but not behind a number: 5 (thousand).
_ASIDE = re.compile(r"(?<![\d零〇一二三四五六七八九十百千万亿])(?<!\d )[(（]([^()（）\n]{1,200})[)）]")
# A hyphen or an apostrophe between two words is no break; the end of a sentence is a hard one.
_BREAK, _STOP = re.compile(r"[^\w\s'’\-‐‑·•]|\n"), re.compile(r"[.!?](?=\s|$)|[。！？；\n]")
_ENDINGS = ("ing", "ies", "ied", "es", "ed", "s", "d")
_SHORTEST_WORD = 3
# A claim of fewer words stands anywhere by chance; a Han character tells three quarters of a word.
_FEWEST, _HAN_SHARE = 3, 0.75
_LONGEST_DATE, _OF = 10, frozenset({"of"})
# A place is compared until it differs; places that differ late are given up after this many lengths of both texts.
_MOST_PASSES = 32
# A longer clause is not turned round.
_LONGEST_CLAUSE = 80

_Span = tuple[int, int]


def restates(claim: str, passage: str) -> tuple[int, int] | None:
    """
    Find where a passage says what a claim says, with the same words in the same order.

    Case, width, script, punctuation, articles, tense and the spelling of numbers may differ, inserted notes and
    what stands in brackets may be left out, a name may be as the passage has it elsewhere (子仪 for 郭子仪), a date
    may stand at the other end, a clause may be active or passive, and clauses with subjects of their own may stand
    apart. A stretch of a sentence counts only if it can stand alone: not cut inside a name, a number or a phrase,
    nor out of a denial or a condition.
    """
    wanted = read_text(claim).once(_read).tokens
    if len(wanted) > 1 and wanted[0].key in _REPLIES and wanted[1].breaks:  # Yes, he rose in 755.
        wanted = wanted[1:]
    if not _is_enough(wanted):
        return None
    plain = _blank_notes(passage)
    for text in dict.fromkeys((passage, plain, _blank_asides(plain))):
        there = read_text(text).once(_read)
        for form in (_stretch, _with_date, _other_voice, _clause_by_clause):
            found = form(wanted, there)
            if found is not None:
                return there.tokens[found[0]].start, there.tokens[found[1] - 1].end
    return None


def _blank_notes(passage: str) -> str:
    """Put spaces in the place of inserted notes, so that a claim that runs across one is found."""
    pieces, at = list[str](), 0
    for start, end in read_text(passage).notes:
        pieces += [passage[at:start], " " * (end - start)]
        at = end
    return "".join([*pieces, passage[at:]])


def _blank_asides(passage: str) -> str:
    """Put spaces in the place of what stands in brackets, unless it doubts or denies what it stands in."""
    return _ASIDE.sub(lambda match: match[0] if _doubts(match[1]) else " " * len(match[0]), passage)


def _doubts(aside: str) -> bool:
    keys = _keys(_TOKEN.findall(aside))
    return not (_SUPPOSED | _UNREAL | _REPORTED).isdisjoint([*keys, *map("".join, pairwise(keys))])


def _keys(words: Sequence[str]) -> list[str]:
    """Fold words, all at once, each as if it stood alone."""
    return fold_text("\n".join(words)).split("\n")


@dataclass(frozen=True, slots=True)
class _Token:
    key: str
    base: str
    """The word without its ending, if it is one that may have one."""
    start: int
    end: int
    number: Quantity | None
    breaks: bool
    """Whether punctuation stands between it and the token before it."""
    stops: bool
    """Whether it begins a sentence."""
    is_capital: bool

    def same(self, other: "_Token") -> bool:
        if self.number or other.number:
            return bool(self.number and other.number and self.number.agrees_with(other.number))
        if self.key == other.key or (self.base and self.base == other.base):
            return True
        return frozenset((self.key, other.key)) in _TENSES


class _Text:
    """The tokens of a text but for those that change nothing; a number is one token."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self.tokens = tokens

    @cached_property
    def runs(self) -> frozenset[tuple[str, ...]]:
        """All runs of two and three tokens, among which are its names."""
        keys = [token.key for token in self.tokens]
        return frozenset([*pairwise(keys), *zip(keys, keys[1:], keys[2:], strict=False)])

    @cached_property
    def dates(self) -> list[_Span]:
        """The phrases that say when: in 1778, 天宝十四载十一月."""
        found: list[_Span] = []
        at = 0
        while at < len(self.tokens):
            end = self._end_of_date(at)
            if end:
                found.append((at, end))
            at = end or at + 1
        return found

    def _end_of_date(self, at: int) -> int:
        end, is_date, tokens = at, False, self.tokens
        while end < min(len(tokens), at + _LONGEST_DATE):
            token = tokens[end]
            if token.breaks and end > at and not token.number:
                break
            if token.number is None and token.key not in (_UNITS | _WHEN | _OF if end > at else _DATED | _WHEN):
                break
            is_date = is_date or self._is_date(end)
            end += 1
        return end if is_date else 0

    def _is_date(self, at: int) -> bool:
        number = self.tokens[at].number
        if number is None:
            return False
        counted = at + 1 < len(self.tokens) and self.tokens[at + 1].key in _UNITS
        likely = number.kind == "number" and any(100 <= value <= 2100 for value in number.values)
        led = at > 0 and self.tokens[at - 1].key in _DATED | _WHEN | _OF
        return counted or number.kind in ("year", "month", "day") or (likely and led)

    @cached_property
    def _supposed(self) -> list[bool]:
        """For each place and the end: whether a condition or a doubt stands before it in its sentence."""
        found, before = [False], ""
        for at, token in enumerate(self.tokens):
            if token.stops:
                found[at], before = False, ""
            # A Han character is a token: 如果 is two.
            found.append(found[at] or not _SUPPOSED.isdisjoint((token.key, before + token.key)))
            before = token.key
        return found

    def is_supposed(self, at: int) -> bool:
        return self._supposed[at]

    def begins_alone(self, at: int) -> bool:
        if self.is_supposed(at):
            return False
        while at and not self.tokens[at].breaks and self.tokens[at - 1].key in _HARMLESS:
            at -= 1
        if self.tokens[at].breaks or not at:
            return True
        before = self.tokens[at - 1]
        return before.key in _BEFORE | _UNITS | _WHEN or before.number is not None

    def ends_alone(self, end: int) -> bool:
        if end == len(self.tokens):
            return True
        after = self.tokens[end]
        return after.breaks or after.key in _AFTER


def _read(text: str) -> _Text:
    numbers = {number.start: number for number in read_text(text).quantities}
    found: list[tuple[str, int, int, Quantity | None]] = []
    at = end = 0
    while (match := _TOKEN.search(text, at)) is not None:
        number = next((numbers[place] for place in range(match.start(), match.end()) if place in numbers), None)
        at = max(match.end(), number.end if number else 0)
        found.append((match[0], match.start(), at, number))
    tokens: list[_Token] = []
    breaks = stops = True
    for (word, start, at, number), folded in zip(found, _keys([one[0] for one in found]), strict=False):
        between = text[end:start]
        breaks, stops, end = breaks or bool(_BREAK.search(between)), stops or bool(_STOP.search(between)), at
        key = "" if number else folded.replace("’", "'")
        capital = word[0].isupper()
        # The An of An Lushan is no article.
        if key not in _HARMLESS or (capital and key in ("a", "an") and text[at + 1 : at + 2].isupper()):
            # Not so the 's of a word that was left out: That's what he said.
            owns = key == _POSSESSIVE and not (between == "" and tokens and tokens[-1].end < start)
            tokens.append(_Token(key, _base(key), start, at, number, breaks and not owns, stops, capital))
            breaks = stops = False
    return _Text(tokens)


def _is_enough(tokens: Sequence[_Token]) -> bool:
    return sum(_HAN_SHARE if is_wide(token.key[:1] or "0") else 1 for token in tokens) >= _FEWEST


def _base(word: str) -> str:
    if len(word) < _SHORTEST_WORD or not word.isascii():
        return ""
    endings = (ending for ending in _ENDINGS if word.endswith(ending))
    ending = next((ending for ending in endings if len(word) - len(ending) >= _SHORTEST_WORD), "")
    base = word.removesuffix(ending)
    base = base + "y" if ending in ("ies", "ied") else base.removesuffix("e")
    doubled = len(base) > _SHORTEST_WORD and base[-1] == base[-2] and base[-1] not in "ls"
    return base[:-1] if doubled and ending in ("ing", "ed") else base


def _stretch(wanted: Sequence[_Token], there: _Text) -> _Span | None:
    spans = _matches(wanted, there)
    return next((span for span in spans if there.begins_alone(span[0]) and there.ends_alone(span[1])), None)


def _matches(wanted: Sequence[_Token], there: _Text) -> Iterator[_Span]:
    """Yield where the tokens of a claim stand one after the other; work grows with the length of both."""
    left = _MOST_PASSES * (len(wanted) + len(there.tokens))
    for start, token in enumerate(there.tokens):
        if wanted[0].same(token) or (len(wanted) > 1 and wanted[1].same(token) and _is_name_part(wanted, 0, there)):
            compared, end = _compared(wanted, there, start)
            if end:
                yield start, end
            left -= compared
            if left < 0:
                return


def _compared(wanted: Sequence[_Token], there: _Text, start: int) -> tuple[int, int]:
    """Return how many tokens of a claim stand at a place, and where they end if all do, else 0."""
    at, place, tokens = 0, start, there.tokens
    while at < len(wanted) and place < len(tokens):
        if wanted[at].same(tokens[place]):
            at, place = at + 1, place + 1
        elif at + 1 < len(wanted) and wanted[at + 1].same(tokens[place]) and _is_name_part(wanted, at, there):
            at += 1
        elif place > start and place + 1 < len(tokens) and wanted[at].same(tokens[place + 1]):
            if tokens[place].key not in _HARMLESS and not _is_first_name(tokens, place):
                break
            place += 1
        else:
            break
    return at, place if at == len(wanted) else 0


def _is_name_part(wanted: Sequence[_Token], at: int, there: _Text) -> bool:
    """Return whether a token and the next one are a name that the passage has in full elsewhere: 郭 of 郭子仪."""
    if not _is_first_name(wanted, at):
        return False
    size = 3 if wanted[at].key in SURNAMES and len(wanted) > at + 2 else 2
    return tuple(token.key for token in wanted[at : at + size]) in there.runs


def _is_first_name(tokens: Sequence[_Token], at: int) -> bool:
    """Return whether a token may be the first word of a name, a surname in Chinese."""
    if at + 1 >= len(tokens) or tokens[at + 1].breaks or tokens[at].number:
        return False
    return (tokens[at].is_capital and tokens[at + 1].is_capital) or (
        bool(tokens[at].key) and tokens[at].key in SURNAMES
    )


def _with_date(wanted: Sequence[_Token], there: _Text) -> _Span | None:
    """Find a claim whose date stands elsewhere in its clause: in 1778 the British seized it, they seized it in 1778."""
    dates = _Text(wanted).dates
    if len(dates) != 1:
        return None
    (first, last), known = dates[0], there.dates
    rest = [*wanted[:first], *wanted[last:]]
    if not _is_enough(rest) or not known:
        return None
    inside = {place for start, end in known for place in range(start, end)}
    kept = [place for place in range(len(there.tokens)) if place not in inside]
    starts = [start for start, _ in known]
    for start, end in _matches(rest, _Text([there.tokens[place] for place in kept])):
        span = kept[start], kept[end - 1] + 1
        near = known[bisect_left(starts, span[0] - _LONGEST_DATE) : bisect_right(starts, span[1])]
        for date in near:
            whole = min(span[0], date[0]), max(span[1], date[1])
            said = _same_date(wanted[first:last], there.tokens[slice(*date)])
            if said and _belongs(date, span, there) and there.begins_alone(whole[0]) and there.ends_alone(whole[1]):
                return whole
    return None


def _belongs(date: _Span, span: _Span, there: _Text) -> bool:
    """Return whether a date stands in a clause, right before it as its opening, or right behind it."""
    opens = there.tokens[date[0]].breaks or (date[0] > 0 and there.tokens[date[0] - 1].key in _BEFORE)
    leads = date[1] == span[0] and opens
    follows = date[0] == span[1] and not there.tokens[date[0]].breaks
    return leads or follows or (span[0] < date[0] and date[1] < span[1])


def _same_date(claimed: Sequence[_Token], found: Sequence[_Token]) -> bool:
    """Return whether a date says all that another one says: 755 and the winter of 755, but not the other way round."""
    units = _UNITS | _DATED | _OF
    return all(token.key in units or any(token.same(other) for other in found) for token in claimed)


def _other_voice(wanted: Sequence[_Token], there: _Text) -> _Span | None:
    """Find a claim in the other voice: A killed B, B was killed by A; 甲杀乙, 乙为甲所杀."""
    for start, end in _own_clauses(there):
        for active in _actives(there.tokens[start:end]):
            if len(active) == len(wanted) and all(map(_Token.same, wanted, active)):
                return start, end
    for active in _actives(wanted):
        if (found := _stretch(active, there)) is not None:
            return found
    return _without_doer(wanted, there)


def _own_clauses(there: _Text) -> Iterator[_Span]:
    """Cut a text into clauses that stand alone, without the date that leads one."""
    dates, tokens = dict(there.dates), there.tokens
    starts = [at for at, token in enumerate(tokens) if token.breaks or token.key in _BEFORE]
    for start, end in pairwise([*starts, len(tokens)]):
        begin = start if tokens[start].breaks else start + 1
        begin = dates.get(begin, begin)
        if begin < end and there.begins_alone(begin):
            yield begin, end


def _actives(clause: Sequence[_Token]) -> Iterator[list[_Token]]:
    """Turn a passive clause round, so that its doer comes first."""
    if len(clause) > _LONGEST_CLAUSE:
        return
    for at, token in enumerate(clause[1:-1], start=1):
        done, rest = clause[:at], clause[at + 1 :]
        if token.key in _BE and len(rest) > 2 and rest[1].key == "by" and _is_certain(done) and _is_name(rest[2:]):
            yield [*rest[2:], rest[0], *done]
        if (token.key == "被" or (token.key == "为" and any(word.key == "所" for word in rest))) and _is_certain(done):
            yield [*(word for word in rest if word.key != "所"), *done]


def _without_doer(wanted: Sequence[_Token], there: _Text) -> _Span | None:
    """Find a passive claim that names no doer in an active clause that does: B was killed, A killed B."""
    at = next((at for at, token in enumerate(wanted[:-1]) if token.key in _BE), 0)
    if not at or not _is_name(wanted[:at]):
        return None
    for start, end in _matches([wanted[at + 1], *wanted[:at], *wanted[at + 2 :]], there):
        if not start or there.tokens[start].breaks or there.tokens[start - 1].key in _UNREAL | _BE | _AFTER:
            continue
        if there.ends_alone(end) and not there.is_supposed(start):
            return start, end
    return None


def _is_certain(done: Sequence[_Token]) -> bool:
    return not any(word.key in _UNREAL or word.number for word in done)


def _is_name(words: Sequence[_Token]) -> bool:
    """Return whether some words are a name alone, so that where it ends is certain."""
    return all(word.is_capital for word in words)


def _clause_by_clause(wanted: Sequence[_Token], there: _Text) -> _Span | None:
    """Find a claim of several clauses, each of which names its own subject and opens a sentence of the passage."""
    cuts = [0, *(at for at, token in enumerate(wanted) if at and token.breaks), len(wanted)]
    clauses = [wanted[start:end] for start, end in pairwise(cuts)]
    clauses = [clause[1:] if clause[0].key in _BEFORE else clause for clause in clauses]
    if len(clauses) < 2 or not all(map(_is_enough, clauses)):
        return None
    found: list[_Span] = []
    for clause in clauses:
        span = _stretch(clause, there) or _with_date(clause, there)
        if span is None or (found and not _names_subject(clause, there.tokens[span[0]])):
            return None
        found.append(span)
    return found[0]


def _names_subject(clause: Sequence[_Token], there: _Token) -> bool:
    """Return whether a clause begins with what it is about, as Chinese need not: with a surname there."""
    return there.stops and clause[0].key not in _PRONOUNS and (not is_wide(clause[0].key) or clause[0].key in SURNAMES)
