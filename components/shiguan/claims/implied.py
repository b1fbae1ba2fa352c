"""Reads what a passage implies by its grammar: `Otto, who was ill, fled and died. He was old.` tells four things."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from shiguan.claims.clauses import SETS_OFF, Clauses
from shiguan.claims.phrases import CUTS, DENIES, JOINS, REPORTS
from shiguan.claims.tokens import PARTICIPLES, WORDS, Span, Token, is_finite, is_participle, joins_names, says_any

_IS, _HE = frozenset({"is", "was"}), frozenset({"he", "she", "it"})
_PERSONS, _IN = _HE - {"it"} | {"his", "her", "him", "who"}, frozenset({"in", "at", "from", "near", "on"})
_PRONOUNS = _PERSONS | WORDS["pronouns"] | {"them"}
_LINKS = WORDS["after"] | WORDS["adverbial"] | {"of", "as", "or", "'s"}
# Between them and a name it is not told as a fact of that one: it shows how Karl, Otto rather than Karl.
_OF_OTHERS = WORDS["known"] | WORDS["limits"] | REPORTS | frozenset({"how", "than"})
_WAS, _WERE, _HAD, _OF = (Token(word, "", 0, 0, None, "", False, False) for word in ("was", "were", "had", "of"))
_THEN = frozenset("后曾并又")
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
        who = tokens[at:verb]
        names_other = any(_may_be_meant(tokens, other) for other in range(verb + 1, end))
        # Ivanhoe is a novel by a lawyer: he died.
        names_other = names_other or sum(map(there.is_described, range(verb + 1, end))) > 1
        says_what = at == 0 < verb and tokens[verb].key in _IS and there.is_described(verb + 1)
        # A pronoun certainly means whom or what the text begins with, if it names no other; it, no person.
        leads_to_other = any(_may_be_meant(tokens, other) for other in range(start + 1, at))
        if topic and key in _HE and meant in ("", key) and not leads_to_other and not (key == "it" and has_persons):
            name = [replace(topic[0], breaks=tokens[at].breaks), *topic[1:]]
            read.append(([*tokens[start:at], *name], (at + 1, end)))
            who = name if verb == at + 1 else who
            topic, meant = [] if names_other else topic, key
        else:
            topic = list(tokens[: verb if says_what and not names_other else 0])
            topic = topic if all(token.is_capital for token in topic) else []
        read += [*_led(there, (start, at), verb, who), *_joined(there, at, verb, end), *_each(there, start, end)]
        read += [*_turned(there, at, verb), *_beside(there, start, at, end), *_in_han(there, start, end)]
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


def _led(there: Clauses, lead: Span, verb: int, who: Sequence[Token]) -> Implied:
    """Yield what the phrase in front of a clause says of its subject: Born in Acre, Otto fled."""
    tokens, (start, at) = there.tokens, lead
    is_one = tokens[at].is_capital or tokens[at].key in _HE or there.is_definite(at)
    tells_past = all(token.is_capital for token in who) or tokens[verb].key not in WORDS["present"]
    if start < at < verb and is_one and tells_past and not says_any(tokens[start : verb + 1], DENIES | REPORTS):
        yield from _described(who, tokens[verb], there, lead)


def _described(who: Sequence[Token], verb: Token, there: Clauses, said: Span) -> Implied:
    """Yield what a phrase beside a name says of it, if it begins with a participle, or tells how much it had."""
    words, several = there.tokens[slice(*said)], any(token.key in ("and", "were", "are") for token in [*who, verb])
    is_bound = is_participle(words) and len(words) > 1 and words[0].key not in WORDS["unbound"]
    if is_bound and (words[1].number or words[1].key in _LINKS):
        yield [*who, _WERE if several else _WAS], said
    # With 4,000 men, with a population of 4,000.
    near = range(1, min(5, len(words)))
    number = next((at for at in near if words[at - 1].key in ("with", "of") and words[at].number), 0)
    # With 300 men against him, or in pursuit, they are not his.
    if words[0].key == "with" and number and not says_any(words[number:], (_LINKS - {"of"}) | _PRONOUNS):
        yield [*who, _HAD], (said[0] + 1, said[1])


def _joined(there: Clauses, start: int, verb: int, end: int) -> Implied:
    """Yield the further predicates of a sentence that tells of the past: Otto fled, came to Acre, and died."""
    tokens = there.tokens
    if verb == start or tokens[start].key in CUTS or tokens[verb].key in WORDS["present"]:
        return
    name = next((at for at in range(verb, start, -1) if not tokens[at - 1].is_capital), start)
    is_other = says_any(tokens[start:name], _LINKS | JOINS | _OF_OTHERS) or tokens[name - 1].key in WORDS["of_another"]
    if start < name < verb and not is_other:
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
        # He refused to enter Acre and set it on fire: which form it is, they do not show.
        if (token.breaks or joined) and token.key not in WORDS["present"] | WORDS["unchanged"]:
            # Of sailors and wounded men it is no verb, nor in the church, called the mother.
            is_past = not token.key.endswith("ed") and token.key not in PARTICIPLES
            if is_past or (joined and there.is_described(at + 1)):
                yield tokens[start:verb], (at, end)
        elif not there.has_article(at):
            return


def _each(there: Clauses, start: int, end: int) -> Implied:
    """Yield what is said of each of several names: Karl, Otto and Hale took Acre."""
    tokens = there.tokens
    for members, verb in there.lists:
        first, *others = [begin for begin, _ in members]
        # In `Paris, France, and Acre fell` France is where it lies.
        is_certain = len(members) > 3 or not tokens[others[-1] - 1].breaks
        if not start <= first < end or not there.begins_alone(first) or there.is_of_all(verb):
            continue
        if says_any(tokens[verb:end], DENIES) or tokens[verb].key in WORDS["present"] - {"are", "have"}:
            continue
        one = {"were": _WAS, "are": _WAS, "have": _HAD}.get(tokens[verb].key)
        for member in members if is_certain else (members[0], members[-1]):
            who = tokens[slice(*member)]
            yield ([*who, one], (verb + 1, end)) if one else (who, (verb, end))


def _beside(there: Clauses, start: int, main: int, end: int) -> Implied:
    """Yield what a sentence says beside itself: Karl met Otto, who died; Y, governor of Z, rebelled; X's son Y fled."""
    tokens, is_told = there.tokens, False
    for at in range(start + 1, end - 1):
        is_told = is_told or (at > main and tokens[at - 1].key in REPORTS)
        if tokens[at].key == "'s":
            yield from _owned(there, at, end)
        elif tokens[at].breaks not in SETS_OFF:
            continue
        elif tokens[at].key not in ("who", "which"):
            yield from _aside(there, (start, main), at, end)
        elif at > main and not is_told:
            yield from _relative(there, main, at, end)


def _relative(there: Clauses, main: int, at: int, end: int) -> Implied:
    """Yield what is said of the phrase before a comma: Karl met Otto, who died."""
    word, after, first = there.tokens[at], there.tokens[at + 1], _phrase(there, main, at)
    # In `he opened the chest, which was a mistake` it is what he did.
    is_certain = word.key == "who" or first == main or after.key in ("are", "were", "have")
    goes_on = after.is_capital or after.key in WORDS["subjects"] | WORDS["pronouns"]
    if first < at and is_certain and not goes_on:
        yield there.tokens[first:at], (at + 1, end)


def _aside(there: Clauses, clause: Span, at: int, end: int) -> Implied:
    """Yield who somebody is, what was done to him, and how much he had, where it is said in passing."""
    tokens, (start, main) = there.tokens, clause
    last = min(there.end_of_phrase(at), end, at + _LONGEST_ASIDE)
    goes_on = last < end and tokens[last].breaks == tokens[at].breaks and is_finite(tokens[last])
    if goes_on and main < at and there.verb(main, at) == main == _phrase(there, main, at):
        yield from _described(tokens[main:at], tokens[last], there, (at, last))
    said, first = tokens[at:last], there.start_of_name(at)
    is_what = tokens[at - 1].is_capital and not (said[0].is_capital or said[0].number)
    if is_what and not any(map(is_finite, said)) and not says_any(said, _LINKS - {"of"}):
        # In `the wife of Otto, a singer` it may say who she is.
        ends = last == end and _phrase(there, start, first + 1) <= first
        if ends or (goes_on and there.begins_alone(first)):
            yield [*tokens[first:at], _WAS], (at, last)


def _owned(there: Clauses, at: int, end: int) -> Implied:
    """Yield who somebody is by whose he is: X's son Y."""
    tokens, first = there.tokens, there.start_of_name(at)
    near = range(at + 1, min(end, at + _LONGEST_ASIDE))
    name = next((to for to in near if tokens[to].breaks or tokens[to].is_capital), end)
    said = tokens[at + 1 : name]
    says_who = said and not any(map(is_finite, said)) and not says_any(said, _LINKS - {"of"})
    if says_who and tokens[at - 1].is_capital and at - first < 3 and name < end and not tokens[name].breaks:
        last = next((to for to in range(name, end) if not tokens[to].is_capital or tokens[to].breaks), end)
        yield [*tokens[name:last], _WAS, *said, _OF], (first, at)


def _phrase(there: Clauses, start: int, end: int) -> int:
    """Return where the phrase begins that ends before a relative clause; its end if it may be a longer one."""
    tokens, first = there.tokens, end - 1
    while first > start and not tokens[first].breaks and not there.has_article(first):
        joins = joins_names(tokens, first - 1)
        if not joins and (tokens[first - 1].key in _LINKS | JOINS or is_finite(tokens[first - 1])):
            break
        first -= 1 + joins
    before, verb = tokens[max(start, first - 1)], tokens[max(start, first - 2)]
    if first == start and not says_any(tokens[first:end], WORDS["quantifiers"]):
        return first
    # Behind a comma it may be where the place before it lies; with a sign in it, it is the second half of a name.
    cut = tokens[first].breaks not in ("", ")", "),") and not there.has_article(first)
    if cut or before.key == "and" or says_any([before, *tokens[first:end]], WORDS["quantifiers"]):
        return end
    # In `the wife of the king, who died` it may be either; of whom something is done by, or goes to, it is the last.
    is_passive = is_finite(verb) and says_any(tokens[max(start, first - 3) : first - 2], WORDS["be"] | {"be"})
    moves = is_finite(verb) and not verb.key.endswith("ed") and verb.key not in PARTICIPLES
    is_last = before.key not in _LINKS or (before.key != "of" and (is_passive or moves))
    return first if tokens[first].breaks or is_last else end


def _in_han(there: Clauses, start: int, end: int) -> Implied:
    """Yield the further predicates of a Chinese sentence without their subject: 李明生于北京，毕业于清华大学."""
    tokens, name = there.tokens, there.end_of_han_name(start)
    first = _verb_in_han(there, name)[1]
    kind = next((WORDS[one] for one in ("of_persons", "of_places") if first in WORDS[one]), frozenset[str]())
    at = there.end_of_phrase(name)
    while start < name and at < end and tokens[at].breaks in SETS_OFF:
        verb, word = _verb_in_han(there, at)
        if word not in kind:
            return
        yield from ((tokens[start:name], (begin, end)) for begin in sorted({at, verb}))
        at = there.end_of_phrase(at)


def _verb_in_han(there: Clauses, at: int) -> tuple[int, str]:
    """Return where the verb of a Chinese predicate stands that begins there, behind a date and 后, and the verb."""
    at = there.behind_date(at)
    at += says_any(there.tokens[at : at + 1], _THEN)
    return at, "".join(token.key for token in there.tokens[at : at + 2])


def _turned(there: Clauses, start: int, verb: int) -> Implied:
    """Yield a sentence that says who one is the other way round: the mate was Starbuck, Starbuck was the mate."""
    tokens, last = there.tokens, there.end_of_phrase(verb)
    second = tokens[verb + 1 : last]
    says_who = start < verb and second and tokens[verb].key in _IS and not any(map(is_finite, second))
    if says_who and there.ends_alone(last):
        names = [
            all(token.is_capital and token.key not in _PRONOUNS for token in part)
            for part in (tokens[start:verb], second)
        ]
        if (names == [True, False] and there.is_definite(verb + 1)) or (
            names == [False, True] and there.is_definite(start)
        ):
            yield [*second, tokens[verb]], (start, verb)
