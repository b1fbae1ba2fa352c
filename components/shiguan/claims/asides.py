"""Finds where a sentence goes on behind an aside: `The king, who had returned from the north, gave them land`."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from shiguan.claims.statement import PARTICIPLES, WORDS, Span, Statement, Token, is_enough, says_any
from shiguan.reading.text import read_text
from shiguan.text.terms import is_wide

_SIGNS, _JOINS = frozenset(",，—–"), frozenset({"and", "or", "nor", "but"})
_CHANGES = WORDS["limits"] | WORDS["doubts"] | WORDS["reported"] | WORDS["supposed"] | (WORDS["unreal"] - {"to"})
_BE = WORDS["be"] | {"have", "has", "had"}
LEADS = (WORDS["adverbial"] - {"having", "being", "apart", "without"}) | {"as", "according"}
_RANKS = frozenset("most first last second third fourth fifth sole largest".split())
# How long an aside may be, in tokens, and how far in it the word stands that makes it a relative clause.
_LONGEST, _LEAD = 40, 3


def behind_aside(wanted: Sequence[Token], at: int, there: Statement, found: Span) -> int:
    """
    Return where a passage goes on as a claim does from `at` on, behind an aside in commas or dashes.

    :param found: Where the passage has the beginning of the claim; there the aside begins.
    :returns: 0 if there is no aside, or if it may deny, doubt or limit what stands around it.
    """
    (start, place), tokens = found, there.tokens
    sign = tokens[place].breaks
    if sign not in _SIGNS:
        return 0
    for end in range(place + 1, min(len(tokens), place + _LONGEST)):
        token = tokens[end]
        if token.stops or (token.breaks and token.breaks not in _SIGNS):
            return 0
        if token.breaks == sign and wanted[at].same(token):
            return end if _changes_nothing(wanted, there, start, (place, end)) else 0
    return 0


def _changes_nothing(wanted: Sequence[Token], there: Statement, start: int, span: tuple[int, int]) -> bool:
    head, aside, after = there.tokens[start : span[0]], there.tokens[slice(*span)], there.tokens[span[1]]
    if says_any(aside, _CHANGES) or any(token.key in WORDS["quantifiers"] for token in head) or after.key in _JOINS:
        return False
    if any(is_wide(token.key[:1] or "0") for token in head):
        return _is_han_name(there, start, span[0]) and all(map(_describes_in_han, _pieces(aside)))
    # Behind a clause, only another phrase of it may follow: the aside may have brought in another subject.
    is_clause, opens = any(map(is_finite, head)), aside[0].key
    goes_on = after.key in WORDS["after"] - WORDS["relative"] if is_clause else is_finite(after)
    if any(token.key in WORDS["relative"] for token in aside[:_LEAD]):
        tells_past = goes_on and after.key not in WORDS["present"]
        return goes_on if is_clause else tells_past or _is_definite(there, start, span[0])
    if opens in WORDS["adverbial"] or ((opens.endswith(("ing", "ed")) or opens in PARTICIPLES) and not is_clause):
        ranks = any(token.key in _RANKS or token.key.endswith("est") for token in wanted)
        # In `Otto, the heir, resigned, and his son, Karl, took over` it was the son.
        is_clause = is_clause or any(token.breaks and (token.key in _JOINS or is_finite(token)) for token in aside[1:])
        return goes_on and not ranks and not (is_clause and any(map(is_finite, aside)))
    named = dict(there.dates).get(start, start)
    is_subject = named < span[0] and there.tokens[named].key not in WORDS["adverbial"]
    if is_clause or not (is_subject and is_finite(after)) or opens in WORDS["subjects"]:
        return False
    lead = there.text[there.tokens[span[0] - 1].end : aside[0].start].lower().split()
    if not WORDS["described"].isdisjoint((opens, *lead)):
        return not any(token.key in _BE for token in aside)
    return (aside[0].is_capital or bool(aside[0].number)) and not any(map(is_finite, aside))


def is_finite(token: Token) -> bool:
    """Return whether a word may be the verb of an English clause, and no name: United."""
    is_past = len(token.key) > 4 and token.key.endswith("ed") and (token.stops or not token.is_capital)
    return is_past or token.key in WORDS["finite"]


def has_one_verb(words: Sequence[Token]) -> bool:
    """Return whether a clause is long enough and has no second verb to which a phrase might belong."""
    active = [
        token
        for at, token in enumerate(words)
        if token.key in WORDS["be"] or not says_any(words[max(0, at - 2) : at], WORDS["be"])
    ]
    return is_enough(words) and sum(map(is_finite, active)) <= 1 and not says_any(words, WORDS["reported"])


def _is_definite(there: Statement, start: int, end: int) -> bool:
    """Return whether a phrase is about somebody or something in particular, not about any man who does this."""
    head = there.tokens[start:end]
    lead = there.text[there.tokens[start - 1].end if start else 0 : head[0].start].lower().split()
    if "the" in lead or head[0].key in WORDS["pronouns"] or any(token.is_capital and not token.stops for token in head):
        return True
    names = read_text(there.text).once(_words_of_names)
    return any(there.text[token.start : token.end] in names for token in head)


def _words_of_names(text: str) -> frozenset[str]:
    return frozenset(word for name in read_text(text).names for word in name.split())


def _is_han_name(there: Statement, start: int, end: int) -> bool:
    """Return whether a phrase is a Chinese name alone, behind a date or not."""
    start = dict(there.dates).get(start, start)
    return (
        start < end and there.text[there.tokens[start].start : there.tokens[end - 1].end] in read_text(there.text).names
    )


def _describes_in_han(piece: Sequence[Token]) -> bool:
    """Return whether a phrase says who somebody is, or when something was: 字元直, 洮州临潭人, 晟之子也."""
    keys = [token.key for token in piece if token.key not in ("也", "者")]
    if len(keys) < 2:
        return False
    kin = keys[-1] in WORDS["kin"] and keys[-2] == "之"
    return kin or keys[0] in WORDS["called"] or keys[-1] in WORDS["ends_aside"]


def _pieces(aside: Sequence[Token]) -> Iterator[Sequence[Token]]:
    cuts = [0, *(at for at, token in enumerate(aside) if at and token.breaks), len(aside)]
    return (aside[start:end] for start, end in pairwise(cuts))
