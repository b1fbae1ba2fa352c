"""Reads what a passage implies by its grammar: `Otto, who was ill, fled and died. He was old.` tells four things."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from shiguan.claims.clauses import CUTS, JOINS, REPORTS, Clauses
from shiguan.claims.tokens import PARTICIPLES, WORDS, Span, Token, is_finite, joins_names, says_any

_ARTICLES, _OWN = frozenset({"the", "a", "an"}), frozenset({"his", "her", "its", "their"})
_IS, _HE = frozenset({"is", "was"}), frozenset({"he", "she", "it"})
_PERSONS, _IN = _HE - {"it"} | {"his", "her", "him", "who"}, frozenset({"in", "at", "from", "near", "on"})
_PRONOUNS = _PERSONS | _HE | WORDS["pronouns"] | {"them"}
_LINKS = WORDS["after"] | WORDS["adverbial"] | {"of", "as", "or", "'s"}
_SETS_OFF = frozenset({",", "),", "—", "–"})
_WAS, _OF = (Token(word, "", 0, 0, None, "", False, False) for word in ("was", "of"))
# How long what is said in passing, and what is said of somebody, may be, in tokens.
_LONGEST_ASIDE, _LONGEST = 13, 80

Implied = Iterator[tuple[Sequence[Token], Span]]
"""What is implied, and the rest of a sentence before which it stands."""


def implied(there: Clauses) -> Clauses:
    """Return the sentences that a text implies: what it says of somebody whom it names elsewhere."""
    found, tokens, topic, meant = list[Token](), there.tokens, list[Token](), ""
    has_persons = any(token.key in _PERSONS for token in tokens)
    for start, end in there.sentences:
        at = there.main_clause(start)
        if not (there.begins_alone(at) and there.ends_alone(end)):
            topic = []
            continue
        verb, key, read = there.verb(at, end), tokens[at].key, list[tuple[Sequence[Token], Span]]()
        names_other = any(_may_be_meant(tokens, other) for other in range(verb + 1, end))
        says_what = at == 0 < verb and tokens[verb].key in _IS and _ARTICLES & there.left_out(verb + 1)
        # A pronoun certainly means whom or what the text begins with, if it names no other; it, no person.
        if topic and key in _HE and meant in ("", key) and not (key == "it" and has_persons):
            name = [replace(topic[0], breaks=tokens[at].breaks), *topic[1:]]
            read.append(([*tokens[start:at], *name], (at + 1, end)))
            topic, meant = [] if names_other else topic, key
        else:
            topic = list(tokens[: verb if says_what and not names_other else 0])
            topic = topic if all(token.is_capital for token in topic) else []
        read += [*_joined(there, at, verb, end), *_relatives(there, at, end)]
        read += [*_turned(there, at, verb), *_in_passing(there, start, end)]
        for said, rest in read:
            found += _sentence(there, said, rest)
    return Clauses(found, there.text)


def _sentence(there: Clauses, said: Sequence[Token], rest: Span) -> Iterator[Token]:
    """Put what is implied before the rest of a sentence, at its place."""
    start, end = rest
    if start >= end or end - start > _LONGEST or there.is_supposed(start):
        return
    place, stop = there.tokens[start].start, there.tokens[start].end
    yield replace(said[0], start=min(said[0].start, place), end=stop, breaks=".", stops=True)
    yield from (replace(token, start=place, end=stop, stops=False) for token in said[1:])
    yield replace(there.tokens[start], breaks="", stops=False)
    yield from there.tokens[start + 1 : end]


def _may_be_meant(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a name begins there that is not where something is, nor says of what kind: a German singer."""
    before, after = tokens[max(0, at - 1)], tokens[at + 1 : at + 2]
    is_kind = before.key != "of" and any(not (one.breaks or one.is_capital or is_finite(one)) for one in after)
    goes_on = at > 0 and not tokens[at].stops and (before.is_capital or before.key in _IN)
    return tokens[at].is_capital and not is_kind and not goes_on


def _joined(there: Clauses, start: int, verb: int, end: int) -> Implied:
    """Yield the further predicates of a sentence that tells of the past: Otto fled, came to Acre, and died."""
    tokens = there.tokens
    if verb == start or tokens[start].key in CUTS or tokens[verb].key in WORDS["present"]:
        return
    name = next((at for at in range(verb, start, -1) if not tokens[at - 1].is_capital), start)
    if start < name < verb and not says_any(tokens[start:name], _LINKS | JOINS):
        start = name
        yield tokens[start:verb], (verb, end)
    has_other = False
    for at in range(verb + 1, end):
        token, behind = tokens[at], there.left_out(at)
        joined = tokens[at - 1].key in JOINS
        # In `Otto fled, and his heir, Karl, took Acre` it may be another one's.
        if token.key in CUTS or "that" in behind or (has_other and token.breaks and not joined and is_finite(token)):
            return
        has_other = has_other or bool((token.breaks or joined) and token.key not in JOINS and not is_finite(token))
        if not is_finite(token) or says_any(tokens[max(verb, at - 2) : at], WORDS["be"] | {"had"}):
            continue
        if (token.breaks or joined) and token.key not in WORDS["present"]:
            # Of sailors and wounded men it is no verb, nor in the church, called the mother.
            is_past = not token.key.endswith("ed") and token.key not in PARTICIPLES
            is_active = _ARTICLES & there.left_out(at + 1) or says_any(tokens[at + 1 : at + 2], _OWN)
            if is_past or (is_active and joined):
                yield tokens[start:verb], (at, end)
        elif not _ARTICLES & behind:
            return


def _relatives(there: Clauses, start: int, end: int) -> Implied:
    """Yield what is said of the phrase before a comma: Karl met Otto, who died."""
    tokens = there.tokens
    for at in range(start + 1, next((at for at in range(start, end - 1) if tokens[at].key in REPORTS), end - 1)):
        word, after = tokens[at], tokens[at + 1]
        if word.key not in ("who", "which") or word.breaks not in _SETS_OFF or after.is_capital:
            continue
        first = _phrase(there, start, at)
        # In `he opened the chest, which was a mistake` it is what he did.
        is_certain = word.key == "who" or first == start or after.key in ("are", "were", "have")
        if first < at and is_certain and after.key not in WORDS["subjects"] | WORDS["pronouns"]:
            yield tokens[first:at], (at + 1, end)


def _phrase(there: Clauses, start: int, end: int) -> int:
    """Return where the phrase begins that ends before a relative clause; its end if it may be a longer one."""
    tokens, first = there.tokens, end - 1
    while first > start and not tokens[first].breaks and not _ARTICLES & there.left_out(first):
        joins = joins_names(tokens, first - 1)
        if not joins and (tokens[first - 1].key in _LINKS | JOINS or is_finite(tokens[first - 1])):
            break
        first -= 1 + joins
    before, verb = tokens[max(start, first - 1)], tokens[max(start, first - 2)]
    if first == start and not says_any(tokens[first:end], WORDS["quantifiers"]):
        return first
    # Behind a comma it may be where the place before it lies; with a sign in it, it is the second half of a name.
    cut = tokens[first].breaks not in ("", ")", "),") and not _ARTICLES & there.left_out(first)
    if cut or before.key == "and" or says_any([before, *tokens[first:end]], WORDS["quantifiers"]):
        return end
    # In `the wife of the king, who died` it may be either; of whom something is done by, or goes to, it is the last.
    is_passive = is_finite(verb) and says_any(tokens[max(start, first - 3) : first - 2], WORDS["be"] | {"be"})
    moves = is_finite(verb) and not verb.key.endswith("ed") and verb.key not in PARTICIPLES
    is_last = before.key not in _LINKS or (before.key != "of" and (is_passive or moves))
    return first if tokens[first].breaks or is_last else end


def _turned(there: Clauses, start: int, verb: int) -> Implied:
    """Yield a sentence that says who one is the other way round: the mate was Starbuck, Starbuck was the mate."""
    tokens = there.tokens
    last = there.end_of_phrase(verb)
    second = tokens[verb + 1 : last]
    says_who = start < verb and second and tokens[verb].key in _IS and not any(map(is_finite, second))
    if says_who and there.ends_alone(last):
        names = [
            all(token.is_capital and token.key not in _PRONOUNS for token in part)
            for part in (tokens[start:verb], second)
        ]
        if (names == [True, False] and "the" in there.left_out(verb + 1)) or (
            names == [False, True] and "the" in there.left_out(start)
        ):
            yield [*second, tokens[verb]], (start, verb)


def _in_passing(there: Clauses, start: int, end: int) -> Implied:
    """Yield who somebody is where it is said in passing: Y, governor of Z, rebelled; X's son Y."""
    tokens = there.tokens
    for at in range(start + 1, end):
        sign, owns = tokens[at].breaks, tokens[at].key == "'s"
        if not tokens[at - 1].is_capital or not (owns or sign in (",", "，", "),")):
            continue
        first = at - 1
        while first > start and tokens[first - 1].is_capital and tokens[first].breaks in ("", "("):
            first -= 1
        near = range(at + 1, min(end, at + _LONGEST_ASIDE))
        last = next((to for to in near if tokens[to].breaks or (owns and tokens[to].is_capital)), near.stop)
        said = tokens[at + owns : last]
        if not said or any(map(is_finite, said)) or says_any(said, _LINKS - {"of"}):
            continue
        if owns and last < end and not tokens[last].breaks and at - first < 3:
            name = next((to for to in range(last, end) if not tokens[to].is_capital or tokens[to].breaks), end)
            yield [*tokens[last:name], _WAS, *said, _OF], (first, at)
        elif not (owns or tokens[at].is_capital or tokens[at].number):
            # In `the wife of Otto, a singer` it may say who she is.
            ends = last == end and _phrase(there, start, first + 1) <= first
            goes_on = last < end and tokens[last].breaks == sign and is_finite(tokens[last])
            if ends or (goes_on and there.begins_alone(first)):
                yield [*tokens[first:at], _WAS], (at, last)
