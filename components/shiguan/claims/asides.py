"""Finds where a sentence goes on behind an aside: `The king, who had returned from the north, gave them land`."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from shiguan.claims.clauses import DOUBTS, SETS_OFF, Clauses
from shiguan.claims.phrases import BE, JOINS
from shiguan.claims.tokens import PARTICIPLES, WORDS, Span, Token, is_finite, is_past, says_any
from shiguan.reading.text import read_text

_JOINS = WORDS["limits"] | {"and"}
_RANKS = frozenset("most first last second third fourth fifth sole largest".split())
# How long an aside may be, in tokens, and how far in it the word stands that makes it a relative clause.
_LONGEST, _LEAD = 40, 3


def behind_aside(wanted: Sequence[Token], at: int, there: Clauses, found: Span) -> int:
    """
    Return where a passage goes on as a claim does from `at` on, behind an aside in commas or dashes.

    :param found: Where the passage has the beginning of the claim; there the aside begins.
    :returns: 0 if there is no aside, or if it may deny, doubt or limit what stands around it.
    """
    (start, place), tokens = found, there.tokens
    sign = tokens[place].breaks
    if sign not in SETS_OFF:
        return 0
    for end in range(place + 1, min(len(tokens), place + _LONGEST)):
        token = tokens[end]
        if token.stops or (token.breaks and token.breaks not in SETS_OFF):
            return 0
        if token.breaks == sign and wanted[at].same(token):
            return end if _changes_nothing(wanted, there, start, (place, end)) else 0
    return 0


def _changes_nothing(wanted: Sequence[Token], there: Clauses, start: int, span: tuple[int, int]) -> bool:
    head, aside, after = there.tokens[start : span[0]], there.tokens[slice(*span)], there.tokens[span[1]]
    if says_any(aside, DOUBTS | WORDS["limits"]) or says_any(head, WORDS["quantifiers"]) or says_any([after], _JOINS):
        return False
    if any(token.is_han for token in head):
        name = there.behind_date(start)
        is_name = name < span[0] == there.end_of_han_name(name)
        return is_name and all(map(_describes_in_han, _pieces(aside)))
    # Behind a clause, only another phrase of it may follow: the aside may have brought in another subject.
    is_clause, opens = any(map(is_finite, head)), aside[0].key
    goes_on = after.key in WORDS["after"] - WORDS["relative"] if is_clause else is_finite(after)
    if any(token.key in WORDS["relative"] for token in aside[:_LEAD]):
        tells_past = goes_on and after.key not in WORDS["present"]
        return goes_on if is_clause else tells_past or _is_definite(there, start, span[0])
    if opens in WORDS["adverbial"] or ((opens.endswith(("ing", "ed")) or opens in PARTICIPLES) and not is_clause):
        ranks = any(token.key in _RANKS or token.key.endswith("est") for token in wanted)
        # In `Otto, the heir, resigned, and his son, Karl, took over` it was the son.
        is_clause = is_clause or any(token.breaks and (token.key in JOINS or is_finite(token)) for token in aside[1:])
        # The workers, on average, earned more.
        tells = is_past(after) or is_clause
        is_where = opens not in WORDS["after"] or any(one.is_capital or one.number for one in aside)
        return goes_on and tells and is_where and not ranks and not (is_clause and any(map(is_finite, aside)))
    named = there.behind_date(start)
    is_subject = named < span[0] and there.tokens[named].key not in WORDS["adverbial"]
    if is_clause or not (is_subject and is_finite(after)) or opens in WORDS["subjects"]:
        return False
    if there.is_described(span[0]):
        return not any(token.key in BE for token in aside)
    return (aside[0].is_capital or bool(aside[0].number)) and not any(map(is_finite, aside))


def _is_definite(there: Clauses, start: int, end: int) -> bool:
    """Return whether a phrase is about somebody or something in particular, not about any man who does this."""
    head = there.tokens[start:end]
    is_name = any(token.is_capital and not token.stops for token in head)
    if is_name or there.is_definite(start) or head[0].key in WORDS["pronouns"]:
        return True
    names = read_text(there.text).once(_words_of_names)
    return any(there.text[token.start : token.end] in names for token in head)


def _words_of_names(text: str) -> frozenset[str]:
    return frozenset(word for name in read_text(text).names for word in name.split())


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
