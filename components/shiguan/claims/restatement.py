"""Finds a claim in a passage as it stands there, or changed in ways that change nothing that it says."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise

from shiguan.claims.clauses import JOINS, Clauses, read_clauses
from shiguan.claims.matching import IN_LIST, NO_NAMES, Matcher, Pieces
from shiguan.claims.predicates import of_subject
from shiguan.claims.tokens import (
    WORDS,
    Span,
    Token,
    count_verbs,
    has_one_verb,
    is_enough,
    is_finite,
    joins_names,
    says_any,
)
from shiguan.reading.text import read_text
from shiguan.text.name_forms import han_names

Places = list[Span]
"""Where a text says something, in code points: more than one where something between is left out."""
_UNREAL, _BE = (WORDS[name] for name in ("unreal", "be"))
_SINCE = frozenset({"since", "from", "to", "until", "between", "自"})
_PARTS_OF_DATE = (WORDS["units_of_date"] | WORDS["dated"] | {"of"}) - _SINCE
_ALL, _WHERE = frozenset("并皆俱咸悉都均"), frozenset("于在")
_BEHIND_DOER = WORDS["after"] - WORDS["relative"] - {"and"}
_LEADS = WORDS["adverbial"] - {"having", "being", "without"}
_OF_DEED = frozenset("of for about over after before since against".split())
_OF, _IS = frozenset({"of"}), frozenset({"is", "was"})
_PRONOUNS = [frozenset(kind.split()) for kind in ("he his him 他 其", "she her 她", "it its 它", "they their them")]
_WHOSE = frozenset("his her its their".split())
_SUBJECTS = frozenset("he she it they 他 她 它 其".split())
# What a text strikes out it does not state.
_STRUCK = re.compile(r"~~(?=\S)[^~\n]+~~|<(del|s|strike)>[^<\n]*</\1>", re.IGNORECASE)
# What has fewer tokens, one more in Chinese, is found between signs and joining words alone.
_SHORT = 3
# A date stands so near to its clause, in tokens.
_NEAR = 10
# A longer clause is not turned round, nor one with a longer doer that is no name; so long a name may be.
_LONGEST_CLAUSE, _LONGEST_DOER, _LONGEST_NAME = 80, 4, 4
# Nor is a longer opening moved.
_LONGEST_LEAD = 12


def places(claim: str, passage: str) -> Iterator[Places]:
    """
    Yield where a passage has what a claim says: the same words in the same order.

    Case, width, script, punctuation, articles, tense and the spelling of numbers may differ. Inserted notes, a phrase
    of a sentence, and what stands between a subject and a later predicate may be left out. A name may be as the passage
    has it elsewhere (子仪 for 郭子仪) or a pronoun, a date may stand at the other end, a clause may be active or
    passive. No place begins or ends inside a number, a word or a name, or behind what denies it. Whether the passage
    states what stands there is not looked at.
    """
    wanted = read_text(claim).once(read_clauses).tokens
    if len(wanted) > 1 and wanted[0].key in WORDS["replies"] and wanted[1].breaks:  # Yes, he rose in 755.
        wanted = wanted[1:]
    if not is_enough(wanted):
        return
    passage = _STRUCK.sub(lambda struck: " " * len(struck[0]), passage)
    for text in dict.fromkeys((passage, _blank_notes(passage))):
        there = read_text(text).once(read_clauses)
        for form in _FORMS if there.tokens else ():
            for found in form(wanted, there):
                yield [(there.tokens[start].start, there.tokens[end - 1].end) for start, end in found]


def _blank_notes(passage: str) -> str:
    """Put spaces in the place of inserted notes, so that a claim that runs across one is found."""
    pieces, at = list[str](), 0
    for start, end in read_text(passage).notes:
        pieces += [passage[at:start], " " * (end - start)]
        at = end
    return "".join([*pieces, passage[at:]])


def _whole(wanted: Sequence[Token], there: Clauses, *, in_pieces: bool = False) -> Iterator[Pieces]:
    for pieces in Matcher(wanted, there).matches(in_pieces=in_pieces):
        start, end = pieces[0][0], pieces[-1][1]
        is_part = len(wanted) < _SHORT + wanted[0].is_han and not (there.is_joint(start) and there.is_joint(end))
        if not is_part and there.can_begin(start) and there.can_end(end):
            yield pieces


def _in_pieces(wanted: Sequence[Token], there: Clauses) -> Iterator[Pieces]:
    return _whole(wanted, there, in_pieces=True)


def _by_name(wanted: Sequence[Token], there: Clauses) -> Iterator[Pieces]:
    """Yield where a passage says `he` for the name that a claim begins with, if it names nobody else before."""
    size = next((at for at, token in enumerate(wanted) if not token.is_capital), len(wanted))
    if wanted[0].is_han:
        names = dict(read_text("".join(token.key for token in wanted[:_LONGEST_NAME])).once(han_names))
        size = names.get(0, 0)
    if not 0 < size <= _LONGEST_NAME or size == len(wanted):
        return
    name = {token.key for token in wanted[:size]}
    for pronoun in {token.key: token for token in there.tokens if token.key in _SUBJECTS}.values():
        said, certain = [replace(pronoun, breaks=wanted[0].breaks), *wanted[size:]], _meant(there, name, pronoun.key)
        forms = (_whole, _with_date, _in_pieces) if certain else ()
        for pieces in chain.from_iterable(form(said, there) for form in forms):
            at = next((at for span in pieces for at in range(*span) if there.tokens[at].key == pronoun.key), 0)
            if at in certain and there.is_joint(at):
                yield pieces


def _meant(there: Clauses, name: set[str], pronoun: str) -> range:
    """Return where a pronoun certainly means a name: behind it, up to another one or another kind of pronoun."""
    tokens, kind = there.tokens, next(kind for kind in _PRONOUNS if pronoun in kind)
    other_kinds = frozenset().union(*(other for other in _PRONOUNS if other != kind))
    spans = read_text(there.text).once(han_names) if tokens[0].is_han else ()
    other_names = {start for start, end in spans if not name & {*there.text[start:end]}}
    missing, first = set(name), len(tokens)
    for at, (before, one) in enumerate(zip([None, *tokens], tokens, strict=False)):
        is_other = one.key in other_kinds or (one.key in kind and missing == name)
        if tokens[0].is_han:
            is_other = is_other or one.start in other_names
        else:
            # In `Peter feared the captain. He …` it may be the captain, but in `Price was a smith. He …` it is Price.
            is_told = before is not None and before.key not in _IS and (bool(one.article) or one.key in _WHOSE)
            is_other = is_other or is_told or (one.is_capital and one.key not in name | NO_NAMES)
        if is_other:
            return range(first, at + 1)
        if one.key in missing:
            missing.discard(one.key)
            first = at + 1 if not missing else first
    return range(first, len(tokens))


def _with_date(wanted: Sequence[Token], there: Clauses) -> Iterator[Pieces]:
    """Yield where a claim's dates stand elsewhere in the clause: in 1778 they seized it, they seized it in 1778."""
    dates, known = Clauses(wanted, "").dates, there.dates
    rest, kept = [wanted[at] for at in _undated(wanted, dates)], _undated(there.tokens, known)
    if not dates or not known or not is_enough(rest) or any(_is_duration(wanted, date) for date in dates):
        return
    starts = [start for start, _ in known]
    for ((start, end),) in Matcher(rest, Clauses([there.tokens[place] for place in kept], there.text)).matches():
        span, taken, left_out = (kept[start], kept[end - 1] + 1), list[Span](), 0
        near = known[bisect_left(starts, span[0] - _NEAR) : bisect_right(starts, span[1])]
        for first, last in dates:
            at, left_out = first - left_out, left_out + last - first
            place = span[0] if not at else span[1] if at == len(rest) else kept[min(start + at, end - 1)]
            taken += [
                date
                for date in near
                if date not in taken
                and there.tokens[date[0]].breaks[:1] != "("
                and not there.cuts_word(date[0])
                and _same_date(wanted[first:last], there.tokens[slice(*date)])
                and not _is_duration(there.tokens, date)
                and _belongs(date, span, there)
                and not _crosses_clause(there, span, date, place)
            ][:1]
        # What else is dated there may be what the claim dates so.
        is_all = len(taken) == len(dates) and taken == sorted(taken)
        if not is_all or any(_belongs(other, span, there) for other in near if other not in taken):
            continue
        whole = min(span[0], *(first for first, _ in taken)), max(span[1], *(last for _, last in taken))
        if there.can_begin(whole[0]) and there.can_begin(span[0]) and there.can_end(whole[1]):
            yield [whole]


def _undated(tokens: Sequence[Token], dates: Sequence[Span]) -> list[int]:
    """Return the places of the tokens that are in no date."""
    inside = {place for start, end in dates for place in range(start, end)}
    return [place for place in range(len(tokens)) if place not in inside]


def _belongs(date: Span, span: Span, there: Clauses) -> bool:
    """Return whether a date stands in a clause, right before it as its opening, or right behind it."""
    opens = bool(there.tokens[date[0]].breaks) or (date[0] > 0 and there.tokens[date[0] - 1].key in WORDS["before"])
    leads = (date[1] == span[0] and opens) or (date[1] + 1 == span[0] and there.tokens[date[1]].key == "when")
    follows = date[0] == span[1] and not there.tokens[date[0]].breaks
    return leads or follows or (span[0] < date[0] and date[1] < span[1])


def _crosses_clause(there: Clauses, span: Span, date: Span, place: int) -> bool:
    """Return whether a date would go to another deed: he won in 1970 and died; rebuilt after its fall in 1879."""
    if place in date:
        return False
    between = range(date[1], place) if place >= date[1] else range(max(place, span[0]) + 1, date[0])
    verbs = [at for at in range(*span) if is_finite(there.tokens[at]) or there.tokens[at].is_han]
    joins = (at for at in between if there.tokens[at].breaks or there.tokens[at].key in JOINS)
    if any(verbs[0] < at <= verbs[-1] for at in joins if verbs):
        return True
    said, last = there.tokens[slice(*span)], there.tokens[max(span[0], date[0] - 3) : date[0]]
    is_nested = not said[0].is_han and count_verbs(said) > 1
    is_deed = date[0] > span[0] and says_any(last[:-1], _OF_DEED) and not any(one.article == "a" for one in last)
    is_of_noun = is_deed and not (last[-1].is_capital or last[-1].number)
    return is_nested or there.has_article(date[0]) or is_of_noun


def _is_duration(tokens: Sequence[Token], date: Span) -> bool:
    """Return whether a Chinese number of years or months ends its clause, where no date stands: 守潼关三年."""
    first, last = date
    ends = last == len(tokens) or tokens[last].breaks
    return bool(ends and tokens[first].number and not tokens[first].breaks and tokens[last - 1].is_han)


def _same_date(claimed: Sequence[Token], found: Sequence[Token]) -> bool:
    """Return whether a date says all that another one says: 755 and the winter of 755, but not the other way round."""
    since = any(token.key in _SINCE for token in found) and not any(token.key in _SINCE for token in claimed)
    # From 1966 to 1976 is not in 1976.
    spans = any(token.number and token.breaks in ("—", "–", "～") for token in found[1:])
    if claimed[0].key in ("between", "from"):
        ends = iter([token for token in found if token.number])
        if not all(any(token.same(one) for one in ends) for token in claimed if token.number):
            return False
    longer = spans and sum(bool(token.number) for token in found) > sum(bool(token.number) for token in claimed)
    return not since and not longer and all(t.key in _PARTS_OF_DATE or any(map(t.same, found)) for t in claimed)


def _lead_moved(wanted: Sequence[Token], there: Clauses) -> Iterator[Pieces]:
    """Yield where a claim of one verb ends with what a sentence opens with, or the reverse: in Acre, he sold it."""
    cut = next((at for at, token in enumerate(wanted) if at and token.breaks), 0)
    # With the gun, he shot the man is not all that he shot the man with the gun may say.
    is_of_noun = any(token.article for token in wanted[-2:]) and not wanted[-1].is_capital
    if cut and wanted[0].key in _LEADS and has_one_verb(wanted[cut:]) and not is_of_noun:
        yield from _whole([*wanted[cut:], *wanted[:cut]], there)
    shortest = max(1, len(wanted) - _LONGEST_LEAD)
    for start, _ in there.sentences:
        for cut in range(shortest, len(wanted)) if there.tokens[start].key in _LEADS else ():
            begins = start + len(wanted) - cut
            if begins < len(there.tokens) and all(map(Token.same, wanted[cut:], there.tokens[start:begins])):
                rest = wanted[:cut]
                # In court, he described the sinking of the ship: behind a phrase with `of`, where belongs to that.
                is_moved = has_one_verb(rest) and not says_any(rest, _OF)
                pieces = Matcher(rest, there).at(begins) if is_moved else ()
                if pieces and there.can_begin(start) and there.can_end(pieces[-1][1]):
                    yield [(start, pieces[-1][1])]


def _other_voice(wanted: Sequence[Token], there: Clauses) -> Iterator[Pieces]:
    """Yield a claim in the other voice: A killed B, B was killed by A; 甲杀乙, 乙为甲所杀."""
    turned = list(_actives(wanted))
    for span, active in there.once(_turned_round):
        if any(len(active) == len(form) and all(map(Token.same, form, active)) for form in (wanted, *turned)):
            yield [span]
    for active in turned:
        yield from _whole(active, there)
    at = next((at for at, token in enumerate(wanted[:-1]) if token.key in _BE), 0)
    # B was killed, where A killed B.
    if at > 0 and all(token.is_capital for token in wanted[:at]):
        yield from _whole([wanted[at + 1], *wanted[:at], *wanted[at + 2 :]], there)


def _other_way_round(wanted: Sequence[Token], there: Clauses) -> Iterator[Pieces]:
    """Yield where a passage says who somebody is the other way round: the mate was Starbuck, Starbuck was the mate."""
    at = next((at for at, token in enumerate(wanted) if token.key in _IS), 0)
    first, second = wanted[:at], wanted[at + 1 :]
    if first and second and not any(token.breaks for token in wanted[1:]):
        are_names = [all(token.is_capital for token in part) for part in (first, second)]
        described = second if are_names[0] else first
        if sum(are_names) == 1 and described[0].article == "the" and not any(map(is_finite, described)):
            yield from _whole([*second, wanted[at], *first], there)


def _turned_round(there: Clauses) -> list[tuple[Span, list[Token]]]:
    """Return the passive clauses of a text with their places, turned round."""
    tokens, found = there.tokens, list[tuple[Span, list[Token]]]()
    opens = (at for at, token in enumerate(tokens) if token.breaks not in IN_LIST or token.key in WORDS["before"])
    starts = [at for at in opens if not joins_names(tokens, at)]
    for start, end in pairwise([*starts, len(tokens)]):
        begin = start if tokens[start].breaks else start + 1
        begin = there.ends_of_dates.get(begin, begin)
        if begin < end and there.can_begin(begin) and there.can_end(end):
            # A cell of a table may leave out `was`; in a sentence without it, Karl stopped by Acre.
            in_cell = there.text[(stop := tokens[end - 1].end) : stop + 2].strip()[:1] == "|"
            found += [((begin, end), active) for active in _actives(tokens[begin:end], in_cell=in_cell)]
    return found


def _actives(clause: Sequence[Token], *, in_cell: bool = False) -> Iterator[list[Token]]:
    """Turn a passive clause round, so that its doer comes first."""
    if len(clause) > _LONGEST_CLAUSE:
        return
    for at, token in enumerate(clause[1:-1], start=1):
        is_named = all(word.is_capital for word in clause[:at])
        is_bare = in_cell and is_finite(token) and clause[at + 1].key == "by" and is_named
        done, rest = clause[:at], clause[at + (not is_bare) :]
        is_certain = not any(word.key in _UNREAL or word.number for word in done)
        is_passive = is_bare or token.key in _BE
        by = next((by for by, word in enumerate(rest[:-1]) if word.key == "by"), 0) if is_passive else 0
        end = _end_of_doer(rest, by)
        # Behind `and` there may be another one who did it.
        goes_on = end == len(rest) or (not rest[end].breaks and rest[end].key in _BEHIND_DOER)
        if 0 < by < end - 1 and goes_on and is_certain and not says_any(rest[1:by], _UNREAL | _BE):
            yield [*rest[by + 1 : end], rest[0], *done, *rest[1:by], *rest[end:]]
        is_of_doer = token.key in ("被", "由") or (token.key == "为" and any(word.key == "所" for word in rest))
        if is_of_doer and is_certain:
            # What is done may stand before where: 斩裴炎于都亭.
            lead = next((to for to in range(at - 1, 0, -1) if done[to].breaks not in IN_LIST), 0)
            who = done[lead:-1] if done[-1].key in _ALL else done[lead:]
            doing = [word for word in rest if word.key != "所"]
            where = next((to for to, word in enumerate(doing) if to and word.key in _WHERE), len(doing))
            yield [*doing, *done]
            yield [*done[:lead], *doing[:where], *who, *doing[where:]]


def _end_of_doer(rest: Sequence[Token], by: int) -> int:
    """Return where those end who did it: by Otto and Hale, by a flood; behind `by` where that is not certain."""
    behind = range(by + 1, len(rest))
    if any(rest[at].is_capital for at in behind[:1]):
        return next((at for at in behind if not (rest[at].is_capital or joins_names(rest, at))), len(rest))
    end = next((at for at in behind if _ends_doer(rest[at])), len(rest))
    return end if end - by <= _LONGEST_DOER else by + 1


def _ends_doer(word: Token) -> bool:
    return bool(word.breaks or word.number or word.key in WORDS["after"] or is_finite(word))


_FORMS = (_whole, _with_date, _lead_moved, _other_voice, _other_way_round, _in_pieces, _by_name, of_subject)
