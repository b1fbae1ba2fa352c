"""Finds a claim in a passage as it stands there, or changed in ways that change nothing that it says."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise, product

from shiguan.claims.clauses import DOUBTS, OF_ALL, Clauses, limits_aside, read_clauses
from shiguan.claims.facts import OPENS_QUOTE
from shiguan.claims.implied import implied
from shiguan.claims.matching import IN_LIST, compared_from, is_first_name, matches
from shiguan.claims.phrases import DENIES, JOINS, LEADS, REPORTS
from shiguan.claims.tokens import (
    WORDS,
    Span,
    Token,
    count_verbs,
    has_one_verb,
    is_enough,
    is_finite,
    is_participle,
    joins_names,
    read_tokens,
    says_any,
)
from shiguan.reading.text import read_text

_BEFORE, _UNREAL, _BE = (WORDS[name] for name in ("before", "unreal", "be"))
_SINCE = frozenset({"since", "from", "to", "until", "between", "自"})
_PARTS_OF_DATE = (WORDS["units_of_date"] | WORDS["dated"] | {"of"}) - _SINCE
_ADDS = frozenset({"and", "but", "while", "而", "但", "且", "却"})
_ALL, _WHERE = frozenset("并皆俱咸悉都均"), frozenset("于在")
_BEHIND_DOER = WORDS["after"] - WORDS["relative"] - {"and"}
_THINKS = frozenset("say think believe let make see hear want".split())
_OF_DEED = frozenset("of for about over after before since against".split())
_OF, _OF_DOING = frozenset({"of"}), frozenset("of for from by with in without at about".split())
_NO_DOER = _UNREAL | _BE | WORDS["after"] | {"have", "having"}
# What stands in brackets, but not behind a number: 5 (thousand).
_ASIDE = re.compile(r"(?<![\d零〇一二三四五六七八九十百千万亿])(?<!\d )[(（]([^()（）\n]{1,200})[)）]")
# In so many characters before them stands what they say it of.
_BEFORE_ASIDE = 80
# What a text strikes out it does not state.
_STRUCK = re.compile(r"~~(?=\S)[^~\n]+~~|<(del|s|strike)>[^<\n]*</\1>", re.IGNORECASE)
# A date stands so near to its clause, in tokens.
_NEAR = 10
_OPENS_LEAD = WORDS["adverbial"] | {"as", "when", "while"}
# A longer clause is not turned round, nor one with a longer doer that is no name.
_LONGEST_CLAUSE, _LONGEST_DOER = 80, 4
# 他于1990年在上海创办了公司: a year inside a sentence may be missing, but not where something is denied or bounded.
_YEAR_INSIDE = re.compile(
    r"(?<=[\u4e00-\u9fff])(?<![自从從至到以前后後])[于於在]?\d{3,4}年(?:\d\d?月(?:\d\d?日)?)?(?=[\u4e00-\u9fff])(?![代前后後以之起至到间間底初末的春夏秋冬度])"
)
_BOUNDS = re.compile("[不未无無没沒非只仅僅最首第才再]")


def restates(claim: str, passage: str) -> tuple[int, int] | None:
    """
    Find where a passage says what a claim says, with the same words in the same order.

    Case, width, script, punctuation, articles, tense and the spelling of numbers may differ, inserted notes, asides and
    what stands in brackets may be left out, a name may be as the passage has it elsewhere (子仪 for 郭子仪), a date
    may stand at the other end, a clause may be active or passive, its subject may be named before it (`implied.py`),
    and clauses with subjects of their own may stand apart. A stretch of a sentence counts only if it can stand alone:
    not cut inside a name, a number or a phrase, nor out of a denial or a condition.
    """
    wanted = read_text(claim).once(read_clauses).tokens
    if len(wanted) > 1 and wanted[0].key in WORDS["replies"] and wanted[1].breaks:  # Yes, he rose in 755.
        wanted = wanted[1:]
    if not is_enough(wanted):
        return None
    passage = _STRUCK.sub(lambda struck: " " * len(struck[0]), passage)
    plain = _blank_notes(passage)
    blank = _blank_asides(plain)
    for text in dict.fromkeys((passage, plain, blank, _blank_years(blank))):
        said = read_text(text).once(read_clauses)
        for there, form in product((said, said.once(implied)), _FORMS):
            found = form(wanted, there) if there.tokens else None
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
    """Put spaces in the place of what stands in brackets, unless it doubts, denies or limits what it stands in."""

    def blank(aside: re.Match[str]) -> str:
        tokens = read_tokens(aside[1])
        doubts = says_any(tokens, DOUBTS | WORDS["corrects"]) or says_any(tokens[:1], WORDS["limits"])
        doubts = (
            doubts or limits_aside(tokens) or any(one.is_han and says_any([one], WORDS["doubts"]) for one in tokens)
        )
        if says_any(tokens, WORDS["excepts_some"]) and tokens[0].key not in WORDS["relative"]:
            before = passage[max(0, aside.start() - _BEFORE_ASIDE) : aside.start()]
            doubts = doubts or says_any(read_tokens(before), OF_ALL)
        return aside[0] if doubts or not tokens else " " * len(aside[0])

    return _ASIDE.sub(blank, passage)


def _blank_years(passage: str) -> str:
    """Put spaces in the place of years within Chinese sentences, unless something is denied or bounded there."""
    return "。".join(
        sentence if _BOUNDS.search(sentence) else _YEAR_INSIDE.sub(lambda year: " " * len(year[0]), sentence)
        for sentence in passage.split("。")
    )


def _stretch(wanted: Sequence[Token], there: Clauses) -> Span | None:
    quoted = bool(OPENS_QUOTE.search(wanted[0].breaks))
    for start, end in matches(wanted, there):
        if len(wanted) < 3 and not _opens(there, start):
            continue
        if not _is_member(there, start, end) and there.begins_alone(start, quoted=quoted) and there.ends_alone(end):
            return start, end
    return None


def _opens(there: Clauses, at: int) -> bool:
    """Return whether a sentence or its second half begins there: in `Boris, led by Otto, fled` Otto did not."""
    return there.tokens[at].stops or there.tokens[at - 1].key in JOINS


def _is_member(there: Clauses, start: int, end: int) -> bool:
    """Return whether a stretch begins within a list that may not be its subject: 破甲、乙，杀丙; 非甲、乙杀丙."""
    if there.tokens[start].breaks != "、":
        return False
    heads = (at for at in range(start, max(-1, start - _LONGEST_CLAUSE), -1) if there.tokens[at].breaks not in IN_LIST)
    head = there.tokens[next(heads, start) : start]
    said = there.tokens[start + 1 : end]
    is_of_all = any(one.breaks or one.number for one in said) or says_any(said, WORDS["together"])
    return is_of_all or says_any(head, _UNREAL | WORDS["limits"])


def _with_date(wanted: Sequence[Token], there: Clauses) -> Span | None:
    """Find a claim whose dates stand elsewhere in their clauses: in 1778 they seized it, they seized it in 1778."""
    dates, known = Clauses(wanted, "").dates, there.dates
    rest, kept = [wanted[at] for at in _undated(wanted, dates)], _undated(there.tokens, known)
    if not dates or not known or not is_enough(rest) or any(_is_duration(wanted, date) for date in dates):
        return None
    starts = [start for start, _ in known]
    for start, end in matches(rest, Clauses([there.tokens[place] for place in kept], there.text)):
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
        # What happened in 1962, when it did, happened then whatever stands before: until 1962, when he left.
        is_when = there.tokens[max(0, span[0] - 1)].key == "when"
        edges = {span[0] if is_when else whole[0], *(span[:1] if there.tokens[span[0]].breaks else ())}
        if all(map(there.begins_alone, edges)) and there.ends_alone(whole[1]):
            return whole
    return None


def _undated(tokens: Sequence[Token], dates: Sequence[Span]) -> list[int]:
    """Return the places of the tokens that are in no date."""
    inside = {place for start, end in dates for place in range(start, end)}
    return [place for place in range(len(tokens)) if place not in inside]


def _lead_moved(wanted: Sequence[Token], there: Clauses) -> Span | None:
    """Find a claim of one verb that ends with what a sentence opens with, or the reverse: in Acre, he sold the town."""
    cut = next((at for at, token in enumerate(wanted) if at and token.breaks), 0)
    # With the gun, he shot the man is not all that he shot the man with the gun may say.
    is_of_noun = any(token.article for token in wanted[-2:]) and not wanted[-1].is_capital
    if cut and wanted[0].key in LEADS and has_one_verb(wanted[cut:]) and not is_of_noun:
        return _stretch([*wanted[cut:], *wanted[:cut]], there)
    for start, _ in there.sentences:
        cut = there.main_clause(start)
        rest, lead = wanted[: start - cut], wanted[start - cut :]
        is_lead = start < cut < start + len(wanted) and there.tokens[cut].breaks == ","
        # In court, he described the sinking of the ship: behind a phrase with `of`, where belongs to that.
        is_lead = (
            is_lead
            and not is_participle(there.tokens[start : start + 1])
            and (says_any(rest, _BE) or not says_any(rest, _OF))
        )
        if is_lead and all(map(Token.same, lead, there.tokens[start:cut])):
            end = compared_from(rest, there, cut)[1] if rest else 0
            if end and there.begins_alone(start) and there.ends_alone(end) and has_one_verb(rest):
                return start, end
    return None


def _belongs(date: Span, span: Span, there: Clauses) -> bool:
    """Return whether a date stands in a clause, right before it as its opening, or right behind it."""
    opens = bool(there.tokens[date[0]].breaks) or (date[0] > 0 and there.tokens[date[0] - 1].key in _BEFORE)
    leads = (date[1] == span[0] and opens) or (date[1] + 1 == span[0] and there.tokens[date[1]].key == "when")
    # In 1949, as troops advanced, they moved it.
    lead = there.tokens[date[1] : span[0]]
    is_first = there.tokens[date[0]].stops and bool(there.tokens[span[0]].breaks) and 0 < len(lead) <= _NEAR
    opens_on = is_first and lead[0].key in _OPENS_LEAD and not any(token.breaks for token in lead[1:])
    follows = date[0] == span[1] and not there.tokens[date[0]].breaks
    return leads or opens_on or follows or (span[0] < date[0] and date[1] < span[1])


def _crosses_clause(there: Clauses, span: Span, date: Span, place: int) -> bool:
    """Return whether a date inside two joined clauses would go to the other one: he won in 1970 and died in Rome."""
    verbs = [at for at in range(*span) if is_finite(there.tokens[at]) or there.tokens[at].is_han]
    near = (date[1], place) if place >= date[1] else (place, date[1])
    between = range(max(span[0], near[0]), min(span[1], near[1])) if verbs else ()
    joins = (at for at in between if there.tokens[at].breaks or there.tokens[at].key in ("and", "but"))
    if date[1] > span[0] and any(verbs[0] < at <= verbs[-1] for at in joins):
        return True
    if place == span[0] and _dates_deed_told_of(there, span, date[0]):
        return True
    # In `he saw that she died` it may be either; of what somebody does in May, and of the May edition, it is a part.
    said = there.tokens[slice(*span)]
    is_nested = place >= span[1] > date[1] and not said[0].is_han and count_verbs(said) > 1
    is_of_noun = span[0] < date[0] != place and not any(map(is_finite, there.tokens[span[0] : date[0]]))
    first, before = there.tokens[date[0]], there.tokens[date[0] - 1]
    is_of_noun = is_of_noun and not (first.is_han or first.breaks or before.is_capital)
    return is_nested or is_of_noun or (date[0] != place and there.has_article(date[0]))


def _dates_deed_told_of(there: Clauses, span: Span, end: int) -> bool:
    """Return whether a date may be that of what a clause tells of: rebuilt after its collapse in 1879."""
    pairs = pairwise(there.tokens[span[0] : end])  # honoured for rescuing sailors in 1911
    if any(of.key in _OF_DOING and done.key.endswith("ing") and not done.article for of, done in pairs):
        return True
    last = there.tokens[max(span[0], end - 3) : end]
    if not last or last[-1].is_capital or last[-1].number:
        return False
    is_deed = says_any(last[:-1], _OF_DEED) and not any(token.article == "a" for token in last)
    return is_deed or says_any(there.tokens[slice(*span)], WORDS["announces"])


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


def _other_voice(wanted: Sequence[Token], there: Clauses) -> Span | None:
    """Find a claim in the other voice: A killed B, B was killed by A; 甲杀乙, 乙为甲所杀."""
    turned = list(_actives(wanted))
    for span, active in there.once(_turned_round):
        if any(len(active) == len(form) and all(map(Token.same, form, active)) for form in (wanted, *turned)):
            return span
    for active in turned:
        if (found := _stretch(active, there)) is not None:
            return found
    return _without_doer(wanted, there)


def _turned_round(there: Clauses) -> list[tuple[Span, list[Token]]]:
    """Return the passive clauses of a text with their places, turned round."""
    found = list[tuple[Span, list[Token]]]()
    for start, end in _own_clauses(there):
        # A cell of a table may leave out `was`; in a sentence without it, Karl stopped by Acre.
        in_cell = there.text[(stop := there.tokens[end - 1].end) : stop + 2].strip()[:1] == "|"
        found += [((start, end), active) for active in _actives(there.tokens[start:end], in_cell=in_cell)]
    return found


def _own_clauses(there: Clauses) -> Iterator[Span]:
    """Cut a text into clauses that stand alone, without the date that leads one."""
    tokens = there.tokens
    opens = (at for at, token in enumerate(tokens) if token.breaks not in IN_LIST or token.key in _BEFORE)
    starts = [at for at in opens if not joins_names(tokens, at)]
    for start, end in pairwise([*starts, len(tokens)]):
        begin = start if tokens[start].breaks else start + 1
        begin = there.behind_date(begin)
        if begin < end and there.begins_alone(begin) and there.ends_alone(end):
            yield begin, end


def _actives(clause: Sequence[Token], *, in_cell: bool = False) -> Iterator[list[Token]]:
    """Turn a passive clause round, so that its doer comes first."""
    if len(clause) > _LONGEST_CLAUSE:
        return
    for at, token in enumerate(clause[1:-1], start=1):
        is_bare = in_cell and is_finite(token) and clause[at + 1].key == "by" and _is_name(clause[:at])
        done, rest = clause[:at], clause[at + (not is_bare) :]
        is_passive = is_bare or token.key in _BE
        by = next((by for by, word in enumerate(rest[:-1]) if word.key == "by"), 0) if is_passive else 0
        end = _end_of_doer(rest, by)
        # Behind `and` there may be another one who did it.
        goes_on = end == len(rest) or (not rest[end].breaks and rest[end].key in _BEHIND_DOER)
        if 0 < by < end - 1 and goes_on and _is_certain(done) and not says_any(rest[1:by], DENIES | _BE | {"be"}):
            yield [*rest[by + 1 : end], rest[0], *done, *rest[1:by], *rest[end:]]
        if (
            token.key in ("被", "由") or (token.key == "为" and any(word.key == "所" for word in rest))
        ) and _is_certain(done):
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


def _without_doer(wanted: Sequence[Token], there: Clauses) -> Span | None:
    """Find a passive claim that names no doer in an active clause that does: B was killed, A killed B."""
    at = next((at for at, token in enumerate(wanted[:-1]) if token.key in _BE), 0)
    is_named = at > 0 and _is_name(wanted[:at])
    for start, end in matches([wanted[at + 1], *wanted[:at], *wanted[at + 2 :]], there) if is_named else ():
        clause = there.lead(start)
        is_active = clause and not there.tokens[start].breaks and clause[-1].key not in _NO_DOER
        is_active = is_active and not any(is_finite(token) or "n't" in token.key for token in clause)
        is_active = is_active and not says_any(clause, REPORTS | _THINKS)
        certain = is_active and not says_any(clause, DENIES | WORDS["limits"]) and not there.is_supposed(start)
        if certain and there.ends_alone(end):
            return start, end
    return None


def _is_certain(done: Sequence[Token]) -> bool:
    return not any(word.key in _UNREAL or word.number for word in done)


def _is_name(words: Sequence[Token]) -> bool:
    """Return whether some words are a name alone, so that where it ends is certain."""
    return all(word.is_capital for word in words)


def _clause_by_clause(wanted: Sequence[Token], there: Clauses) -> Span | None:
    """Find a claim of several clauses, each of which names its own subject and opens a sentence of the passage."""
    cuts = [0, *(at for at, token in enumerate(wanted) if at and token.breaks), len(wanted)]
    # Not because, so or when: that one thing made or met the other is a claim of its own.
    clauses = [wanted[start + (wanted[start].key in _ADDS) : end] for start, end in pairwise(cuts)]
    if len(clauses) < 2 or not all(map(is_enough, clauses)):
        return None
    found: list[Span] = []
    for clause in clauses:
        if (span := _stretch(clause, there) or _with_date(clause, there)) is None:
            return None
        found.append(span)
    # In Chinese a clause need not begin with what it is about: there has to be a name.
    named = (
        there.tokens[start].stops and clause[0].key not in WORDS["pronouns"]
        and (not clause[0].is_han or is_first_name(clause, 0, there))
        for (start, _), clause in zip(found[1:], clauses[1:], strict=True)
    )  # fmt: skip
    return found[0] if all(named) else None


_FORMS = (_stretch, _with_date, _lead_moved, _other_voice, _clause_by_clause)
