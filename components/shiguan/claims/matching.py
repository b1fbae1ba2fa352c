"""Finds where the words of a claim stand in a passage one after the other, but for what may be left out anywhere."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from shiguan.claims.asides import behind_aside
from shiguan.claims.clauses import Clauses
from shiguan.claims.phrases import REPORTS
from shiguan.claims.tokens import WORDS, Span, Token, is_finite, says_any
from shiguan.reading.text import read_text
from shiguan.text.name_forms import han_names
from shiguan.text.names import SURNAMES
from shiguan.text.terms import fold_text, is_wide

IN_LIST = frozenset({"", "、"})
"""The signs between the members of a list."""
# A passage may have them, but a claim that has `then` or 又 says that something else came before.
_LEFT_OUT = WORDS["harmless"] | {"then", "又"}
_NO_FIRST_NAMES = WORDS["adverbial"] | WORDS["before"] | WORDS["subjects"] | WORDS["pronouns"]
_ENDS = re.compile("[。！？；.!?;]")
# A place is compared until it differs; places that differ late are given up after this many lengths of both texts.
_MOST_PASSES = 32
# The letters of a unit in brackets: km, ha, °C.
_UNIT = 3


def matches(wanted: Sequence[Token], there: Clauses) -> Iterator[Span]:
    """Yield where the tokens of a claim stand one after the other; work grows with the length of both."""
    left = _MOST_PASSES * (len(wanted) + len(there.tokens))
    for start, token in enumerate(there.tokens):
        named = len(wanted) > 1 and wanted[1].same(token) and _is_name_part(wanted, 0, there, start)
        if wanted[0].same(token) or named:
            compared, end = compared_from(wanted, there, start)
            if end:
                yield start, end
            left -= compared
            if left < 0:
                return


def compared_from(wanted: Sequence[Token], there: Clauses, start: int) -> tuple[int, int]:
    """Return how many tokens of a claim stand at a place, and where they end if all do, else 0."""
    at, place, tokens = 0, start, there.tokens
    while at < len(wanted) and place < len(tokens):
        if wanted[at].same(tokens[place]):
            if place > start and _runs_on(wanted[at - 1], wanted[at], tokens[place]):
                break
            at, place = at + 1, place + 1
        elif _may_add(wanted, at, there, (start, place)):
            at += 1
        elif place > start and (behind := _behind(wanted, at, there, (start, place))):
            place = behind
        elif place > start and place + 1 < len(tokens) and wanted[at].same(tokens[place + 1]):
            is_name = is_first_name(tokens, place, there) and not is_first_name(tokens, place + 1, there)
            is_name = is_name and (tokens[place].is_han or _is_subject(there, place))
            is_of_another = tokens[place].key in WORDS["of_another"] or tokens[place + 1].key in WORDS["no_surnames"]
            # 敬业之叔父 is 敬业的叔父; else 之 may be whom something is done to, or of a name: 诛之, 李之芳.
            is_of = tokens[place].key == "之" and not tokens[place + 1].breaks and tokens[place + 1].key in WORDS["kin"]
            if tokens[place].key not in _LEFT_OUT and not is_of and (is_of_another or not is_name):
                break
            place += 1
        else:
            break
    return at, place if at == len(wanted) else 0


_OF_WHOM = frozenset("之人者也")


def _may_add(wanted: Sequence[Token], at: int, there: Clauses, found: Span) -> bool:
    """Return whether a claim adds what the passage implies: a first name, or 是, as 思文，敬业之叔父也 does."""
    start, place = found
    if start < place and wanted[at].key == "是" and there.tokens[place].breaks:
        # Not so in 京剧，昆曲，越剧，各有特色.
        end = there.end_of_phrase(place)
        return says_any(there.tokens[place:end], _OF_WHOM) or there.ends_sentence(end)
    named = at + 1 < len(wanted) and wanted[at + 1].same(there.tokens[place])
    return named and _is_name_part(wanted, at, there, place)


def _is_subject(there: Clauses, at: int) -> bool:
    """Return whether a name of two words does something: elsewhere it may be a place, a team, a firm."""
    opens = bool(there.tokens[at].breaks) or (at > 0 and there.tokens[at - 1].key in WORDS["before"])
    behind = there.tokens[at + 2 : at + 3]
    acts = not behind or bool(behind[0].breaks) or is_finite(behind[0])
    return not there.has_article(at) and (opens or acts)


def _runs_on(before: Token, claimed: Token, found: Token) -> bool:
    """Return whether a claim goes on without a sign where a sentence ends, or somebody speaks: Otto, said Karl."""
    if claimed.breaks not in IN_LIST:
        return False
    if claimed.breaks == "、" and found.breaks == "，":
        return True
    ends = found.stops and (claimed.is_capital or found.is_capital or bool(_ENDS.search(found.breaks)))
    ends = ends or ";" in found.breaks
    is_said = found.key in REPORTS and found.key != "according" and not found.is_han
    return ends or (bool(found.breaks) and not claimed.breaks and (is_said or before.key in WORDS["replies"]))


def _behind(wanted: Sequence[Token], at: int, there: Clauses, found: Span) -> int:
    """Return where a passage goes on behind an aside, or a number in or behind its other unit: 170 miles (270 km)."""
    near = there.tokens[found[1] : found[1] + 5]
    unit = 2 * (near[0].breaks != "(")
    in_brackets = [token.breaks[:1] for token in near[unit : unit + 3]] == ["(", "", ")"]
    if in_brackets and near[0].number and near[unit].number and len(near[unit + 1].key) <= _UNIT:
        return found[1] + 2 if wanted[at].same(near[2]) else 0
    return behind_aside(wanted, at, there, found)


def _is_name_part(wanted: Sequence[Token], at: int, there: Clauses, place: int) -> bool:
    """Return whether a token and the next one are a name that the passage has in full before: 郭 of 郭子仪."""
    if not is_first_name(wanted, at, there) or wanted[at + 1].key in there.once(_namesakes) | WORDS["no_surnames"]:
        return False
    size = 3 if wanted[at].key in SURNAMES and len(wanted) > at + 2 and not wanted[at + 2].breaks else 2
    if wanted[at].key in WORDS["of_another"]:
        return False
    full = there.runs.get(tuple(token.key for token in wanted[at : at + size]), place)
    # Who has been named before by his last name alone is another one.
    return full < place and (wanted[at].is_han or there.runs[(wanted[at + 1].key,)] > full)


def is_first_name(tokens: Sequence[Token], at: int, there: Clauses) -> bool:
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
    counts = Counter(second for _, second in {(a.key, b.key) for a, b in named if a.key not in _NO_FIRST_NAMES})
    whole = {fold_text(name) for name in read_text(there.text).names}
    counts.update(name[1:] for name in whole if is_wide(name[1:2]))
    return frozenset(name[0] if is_wide(name[:1]) else name for name, count in counts.items() if count > 1)
