"""Finds where the words of a claim stand in a passage: one after the other, or in pieces of one sentence."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from shiguan.claims.clauses import Clauses
from shiguan.claims.tokens import WORDS, Span, Token, is_finite, says_any
from shiguan.reading.text import read_text
from shiguan.text.name_forms import han_names
from shiguan.text.names import SURNAMES
from shiguan.text.terms import fold_text, is_wide

IN_LIST = frozenset({"", "、"})
"""The signs between the members of a list."""
Pieces = list[Span]
"""Where a claim stands, in tokens: more than one where something between is left out."""
# A passage may have them, but a claim that has `then` or 又 says that something else came before.
_LEFT_OUT = WORDS["harmless"] | WORDS["between"]
NO_NAMES = WORDS["adverbial"] | WORDS["before"] | WORDS["subjects"] | WORDS["pronouns"]
"""What is no name, though a sentence begins with it."""
_ENDS = re.compile("[。！？；.!?;]")
# A place is compared until it differs; places that differ late are given up after this many lengths of both texts.
_MOST_PASSES = 32
# What begins so is no aside: all the boats but one, the king or his son.
_EXCEPTS = frozenset("but except save or nor not 或 除".split())
_EXCEPTS_ASIDE = _EXCEPTS - {"but", "not"}
# A longer phrase is not left out, in tokens.
_LONGEST_GAP = 40
# In Chinese so many characters may be left out without a sign, 在会上 or 一致, but none of these.
_ADVERBIAL, _NOT_ADVERBIAL = range(2, 9), WORDS["unreal"] | {"的", "之"}
# The letters of a unit in brackets: km, ha, °C.
_UNIT = 3


class Matcher:
    """Compares a claim with a passage; the work grows with the length of both."""

    def __init__(self, wanted: Sequence[Token], there: Clauses) -> None:
        self._wanted, self._there = wanted, there
        self._left = _MOST_PASSES * (len(wanted) + len(there.tokens))

    def matches(self, *, in_pieces: bool = False) -> Iterator[Pieces]:
        """Yield where the claim stands; `in_pieces`: whether a phrase may be left out."""
        for start in self._starts():
            if pieces := self.at(start, in_pieces=in_pieces):
                yield pieces

    def mentions(self) -> Iterator[tuple[int, int, int]]:
        """Yield where the claim begins: a place, up to where it stands there, and how many tokens of it these are."""
        for start in self._starts():
            at, end = self._run(0, start)
            if at:
                yield start, end, min(at, len(self._wanted) - 1)

    def rest(self, at: int, place: int) -> int:
        """Return where the claim ends, of which a token stands at a place; 0 where not all that follows it does."""
        done, stop = self._run(at, place)
        return stop if done == len(self._wanted) else 0

    def _starts(self) -> Iterator[int]:
        tokens, wanted = self._there.tokens, self._wanted
        for start, token in enumerate(tokens):
            named = len(wanted) > 1 and wanted[1].same(token) and _is_name_part(wanted, 0, self._there, start)
            if self._left >= 0 and (wanted[0].same(token) or named):
                yield start

    def at(self, start: int, *, in_pieces: bool = False) -> Pieces:
        """Return where the claim stands that begins at a place; no pieces where it does not stand there."""
        at, end = self._run(0, start)
        if at == len(self._wanted):
            return [(start, end)]
        # What is left out may begin with a word that the claim goes on with: 他于1990年在上海 for 他在上海.
        ends = [(at, end), (at - 1, end - 1)] if at == end - start else [(at, end)]
        for at, end in ends if in_pieces else ():
            if start < end and self._there.can_end(end) and (rest := self._behind(at, end)):
                return [(start, end), rest]
        return []

    def _behind(self, at: int, end: int) -> Span | None:
        """Return where the rest of the claim stands, behind a phrase that is left out and begins at a place."""
        tokens = self._there.tokens
        # What a sign opens another one closes, or a joining word; but for the rest of a list.
        opens = end < len(tokens) and bool(tokens[end].breaks)
        if end < len(tokens) and tokens[end].key in (_EXCEPTS_ASIDE if opens else _EXCEPTS):
            return None
        for to in range(end + 1, min(len(tokens), end + _LONGEST_GAP)):
            if self._left < 0 or tokens[to].stops or _ENDS.search(tokens[to].breaks) or tokens[end].stops:
                return None
            if self._wanted[at].same(tokens[to]) and self._is_left_out((end, to), opens=opens):
                done, stop = self._run(at, to)
                if done == len(self._wanted):
                    return to, stop
            if tokens[to].breaks not in IN_LIST:
                return None
        return None

    def _is_left_out(self, span: Span, *, opens: bool) -> bool:
        """Return whether a phrase may be missing: it ends or begins at a joint, and no number of the claim is its."""
        there, (end, to) = self._there, span
        phrase = there.tokens[end:to]
        counts, is_han = any(one.number for one in phrase), phrase[0].is_han
        # In Chinese, a phrase between signs is a clause of its own, and its number is not of the next one.
        is_clause = is_han and all(one.breaks in IN_LIST for one in phrase[1:])
        if not there.can_begin(to):
            return False
        if counts and not is_clause and any(one.number for one in self._wanted):
            return there.ends_of_dates.get(end) == to
        are_names = all(token.is_capital or token.key == "and" for token in phrase)
        is_cut = there.is_joint(to) or (are_names if opens else there.is_joint(end))
        is_adverbial = is_han and not counts and len(phrase) in _ADVERBIAL and not says_any(phrase, _NOT_ADVERBIAL)
        return is_cut or is_adverbial

    def _run(self, at: int, start: int) -> Span:
        """Return up to where the claim and the passage go on alike from a place of each."""
        wanted, there, place, tokens = self._wanted, self._there, start, self._there.tokens
        begun = at
        while at < len(wanted) and place < len(tokens):
            if wanted[at].same(tokens[place]):
                if place > start and _runs_on(wanted[at], tokens[place]):
                    break
                at, place = at + 1, place + 1
            elif _may_add(wanted, at, there, (start, place)):
                at += 1
            elif place > start and (behind := _behind_unit(wanted[at], tokens, place)):
                place = behind
            elif place > start and place + 1 < len(tokens) and wanted[at].same(tokens[place + 1]):
                if not _may_leave_out(there, place):
                    break
                place += 1
            else:
                break
        self._left -= 1 + at - begun
        return at, place


_OF_WHOM = frozenset("之人者也")


def _may_leave_out(there: Clauses, place: int) -> bool:
    """Return whether a token may be missing: an article, the first name of somebody, 之 before whose son one is."""
    one, after = there.tokens[place : place + 2]
    if one.key in _LEFT_OUT:
        return True
    is_name = _is_first_name(there.tokens, place, there) and not _is_first_name(there.tokens, place + 1, there)
    is_name = is_name and (one.is_han or _is_subject(there, place))
    is_of_another = one.key in WORDS["of_another"] or after.key in WORDS["no_surnames"]
    # 敬业之叔父 is 敬业的叔父; else 之 may be whom something is done to, or of a name: 诛之, 李之芳.
    is_of = one.key == "之" and not after.breaks and after.key in WORDS["kin"]
    return is_of or (is_name and not is_of_another)


def _may_add(wanted: Sequence[Token], at: int, there: Clauses, found: Span) -> bool:
    """Return whether a claim adds what the passage implies: a first name, or 是, as 思文，敬业之叔父也 does."""
    start, place = found
    if start < place and wanted[at].key == "是" and there.tokens[place].breaks:
        # Not so in 京剧，昆曲，越剧，各有特色.
        end = there.end_of_phrase(place)
        says_who = any(one.key in _OF_WHOM for one in there.tokens[place:end])
        return says_who or end == len(there.tokens) or there.tokens[end].stops
    named = at + 1 < len(wanted) and wanted[at + 1].same(there.tokens[place])
    return named and _is_name_part(wanted, at, there, place)


def _is_subject(there: Clauses, at: int) -> bool:
    """Return whether a name of two words does something: elsewhere it may be a place, a team, a firm."""
    opens = bool(there.tokens[at].breaks) or (at > 0 and there.tokens[at - 1].key in WORDS["before"])
    behind = there.tokens[at + 2 : at + 3]
    acts = not behind or bool(behind[0].breaks) or is_finite(behind[0])
    return not there.has_article(at) and (opens or acts)


def _runs_on(claimed: Token, found: Token) -> bool:
    """Return whether a claim goes on without a sign where a sentence ends."""
    if claimed.breaks not in IN_LIST:
        return False
    if claimed.breaks == "、" and found.breaks == "，":
        return True
    ends = found.stops and (claimed.is_capital or found.is_capital or bool(_ENDS.search(found.breaks)))
    return ends or ";" in found.breaks


def _behind_unit(claimed: Token, tokens: Sequence[Token], place: int) -> int:
    """Return where a passage goes on behind a number in or behind its other unit: 170 miles (270 km)."""
    near = tokens[place : place + 5]
    unit = 2 * (near[0].breaks != "(")
    in_brackets = [token.breaks[:1] for token in near[unit : unit + 3]] == ["(", "", ")"]
    is_unit = in_brackets and near[0].number and near[unit].number and len(near[unit + 1].key) <= _UNIT
    return place + 2 if is_unit and claimed.same(near[2]) else 0


def _is_name_part(wanted: Sequence[Token], at: int, there: Clauses, place: int) -> bool:
    """Return whether a token and the next one are a name that the passage has in full before: 郭 of 郭子仪."""
    if not _is_first_name(wanted, at, there) or wanted[at + 1].key in there.once(_namesakes) | WORDS["no_surnames"]:
        return False
    size = 3 if wanted[at].key in SURNAMES and len(wanted) > at + 2 and not wanted[at + 2].breaks else 2
    if wanted[at].key in WORDS["of_another"]:
        return False
    full = there.runs.get(tuple(token.key for token in wanted[at : at + size]), place)
    # Who has been named before by his last name alone is another one.
    return full < place and (wanted[at].is_han or there.runs[(wanted[at + 1].key,)] > full)


def _is_first_name(tokens: Sequence[Token], at: int, there: Clauses) -> bool:
    """Return whether a token may be the first word of a name, in Chinese the surname of one that the passage has."""
    if at + 1 >= len(tokens) or tokens[at + 1].breaks or tokens[at].number:
        return False
    if tokens[at].key and tokens[at].key in SURNAMES:
        return tokens[at].key + tokens[at + 1].key in read_text(there.text).once(_surnamed)
    return tokens[at].is_capital and tokens[at + 1].is_capital and tokens[at].key not in WORDS["eras"]


def _surnamed(text: str) -> frozenset[str]:
    """Return the first two characters of the names of a text: most surnames are words too, as 应 and 全 are."""
    return frozenset(fold_text(text[start : start + 2]) for start, _ in han_names(text))


def _namesakes(there: Clauses) -> frozenset[str]:
    """Return the names before which two different ones stand: Joe Bryant and Kobe Bryant; 光 for 李光进 and 朱光进."""
    named = (pair for pair in pairwise(there.tokens) if all(one.is_capital for one in pair) and not pair[1].breaks)
    counts = Counter(second for _, second in {(a.key, b.key) for a, b in named if a.key not in NO_NAMES})
    whole = {fold_text(name) for name in read_text(there.text).names}
    counts.update(name[1:] for name in whole if is_wide(name[1:2]))
    return frozenset(name[0] if is_wide(name[:1]) else name for name, count in counts.items() if count > 1)
