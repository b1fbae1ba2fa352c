"""Finds where quotations of different passages give different numbers, dates or names for the same thing."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Literal

from shiguan.claims.statements import TABLE, Amount, Span, Statement, statement_of
from shiguan.claims.word_differences import are_opposites
from shiguan.text.content_words import content_words
from shiguan.text.dictionary import dictionary_words
from shiguan.text.name_forms import named_text
from shiguan.text.names import sounds_of_names, sounds_of_text
from shiguan.text.sentences import sentence_spans
from shiguan.text.terms import fold_text, terms

DisagreementKind = Literal["number", "date", "name"]

# From these shares of what the shorter and the longer of two sentences say on, they speak of the same matter.
_SAME, _SAME_LONGER = 0.6, 0.35
# Longer sentences hold many statements, and more quotations than an answer shows would take long.
_LONGEST, _MOST = 400, 200
_GIVEN, _LETTER = 2, 2
# What a character in common counts for of a word in Han characters.
_BY_CHARACTERS = 0.5
# How far apart two amounts may be, as a share of the larger: in two units, of which old ones were never exact; with a
# word such as about or nearly; with more than or up to; and where one has two digits at most that are not nought.
_CONVERTED, _HEDGED, _HALF, _ROUNDED, _ROUND_DIGITS, _LARGE = 0.12, 0.15, 0.5, 0.05, 2, 100


@dataclass(frozen=True)
class Account:
    """What one quotation says: which quotation, the sentence's place in it, and the place of what differs."""

    quotation: int
    sentence: Span
    value: Span


@dataclass(frozen=True)
class Disagreement:
    """Two quotations that give different numbers, dates or names for the same thing; perhaps, where it is not sure."""

    kind: DisagreementKind
    values: tuple[str, str]
    accounts: tuple[Account, Account]
    sure: bool = True


def disagreements(
    quotations: Sequence[str], titles: Sequence[str] = (), *, doubtful: bool = False
) -> list[Disagreement]:
    """
    Find what quotations of different passages say differently; at most one difference for two sentences.

    The titles of their sources, where they are given, tell what an entry of an encyclopedia is about. With `doubtful`,
    differences that may be about two things are found as well, behind the others.
    """
    subjects = [
        fold_text(title) if fold_text(title) in fold_text(text) else ""
        for title, text in zip(titles, quotations, strict=False)
    ] or [""] * len(quotations)
    sentences = [
        (number, span, statement)
        for number, text in enumerate(quotations)
        for span in sentence_spans(text)
        if span[1] - span[0] <= _LONGEST and (statement := statement_of(text[slice(*span)])).tells
    ][:_MOST]
    found: list[Disagreement] = []
    for (number, span, one), (at, place, other) in combinations(sentences, 2):
        if number == at or one.text == other.text or not one.may_match(other):
            continue
        if subjects[number] not in other.plain or subjects[at] not in one.plain:
            continue
        for kind, mine, theirs, sure in _differences(one, other):
            values = one.text[slice(*mine)], other.text[slice(*theirs)]
            sides = (number, span, mine), (at, place, theirs)
            accounts = tuple(Account(which, of, (of[0] + start, of[0] + end)) for which, of, (start, end) in sides)
            if sure or doubtful:
                found.append(Disagreement(kind, values, accounts, sure))  # type: ignore[arg-type]
    return sorted(found, key=lambda one: not one.sure)


def _differences(one: Statement, other: Statement) -> Iterator[tuple[DisagreementKind, Span, Span, bool]]:
    """Say what two sentences give differently, and whether it is sure that they speak of one thing, at one time."""
    conflicts = _conflicts(one, other)
    cues = one.cues.keys() & other.cues.keys()
    if not (conflicts or cues):
        return
    strange = _strange_names(one, other)
    # The title of a work or the name of a county says what a sentence is about.
    about = [[set(TABLE[kind].findall(of.folded)) for of in (one, other)] for kind in ("work", "county")]
    apart = any(a and b and a != b for a, b in about) or not _common_names(one, other)
    if not conflicts and len(strange[0]) == len(strange[1]) == 1 and _same_matter(one, other):
        mine, theirs = strange[0][0], strange[1][0]
        opposed = any(are_opposites(a.key, b.key) for a in one.words for b in other.words if a.key != b.key)
        yield "name", mine, theirs, not (apart or opposed) and _fill_one_place(one, mine, other, theirs)
    paired = [c for c in conflicts if sum(c[1] is d[1] or c[2] is d[2] for d in conflicts) == 1]
    if not paired or len({kind for kind, _, _ in conflicts}) != 1:
        return
    kind, a, b = min(paired, key=lambda conflict: conflict[1].sort != "year")
    sure = not (apart or all(strange)) and one.bound == other.bound
    # Where several things differ, it is not the same thing; but a date has several parts.
    sure = sure and (len(conflicts) == 1 or bool(cues and kind == "date"))
    sure = sure and not _may_be_twice(one, other, a.sort, cues=bool(cues))
    across, counted = one.wide != other.wide, kind == "number" and bool(a.thing) and not a.measure
    if _same_matter(one, other, counted=counted):
        yield kind, a.span, b.span, sure and (across or not _both_say_more(one, a.span, other, b.span))


def _may_be_twice(one: Statement, other: Statement, sort: str, *, cues: bool) -> bool:
    """Tell whether it may have been so at one time, and otherwise at another."""
    dated = sort in ("year", "month", "day")
    again = [bool(TABLE["again_and_again" if dated else "many_times"].search(of.folded)) for of in (one, other)]
    if dated:
        return any(again) or (sort != "year" and not _in_one_year(one, other, once=cues))
    years = [any(amount.years for amount in of.amounts) for of in (one, other)]
    return years[0] != years[1] or all(again)  # one says when it was so


def _in_one_year(one: Statement, other: Statement, *, once: bool) -> bool:
    """Tell whether two sentences speak of the same year: both name it, or none does and it was so only once."""
    mine, theirs = (frozenset[float]().union(*(a.years for a in of.amounts)) for of in (one, other))
    if mine or theirs:
        return not mine.isdisjoint(theirs)
    return once and not any(TABLE["reign"].search(of.folded) for of in (one, other))


def _same_matter(one: Statement, other: Statement, *, counted: bool = False) -> bool:
    """Tell whether two sentences share most of what the shorter and a part of what the longer says."""
    across = one.wide != other.wide
    found = [(_said_across if across else _said)(mine, theirs) for mine, theirs in ((one, other), (other, one))]
    # What was done and, across languages, the thing that both count are known as well as a name.
    cues = len(one.cues.keys() & other.cues.keys())
    shared = len(_common_names(one, other)) + cues + (across and counted)
    shares = sorted((said + shared) / (total + shared or 1) for said, total in found)
    return (counted or cues > 0 or any(said for said, _ in found)) and shares[0] >= _SAME_LONGER and shares[1] >= _SAME


def _said(one: Statement, other: Statement) -> tuple[float, float]:
    """Give the weight of what a sentence says beside names that another one says, too, and of all of it."""
    return sum(word.weight * other.says(word) for word in one.words), sum(word.weight for word in one.words)


def _said_across(one: Statement, other: Statement) -> tuple[float, float]:
    words = [w for w in content_words(one.text, translated=True, names=False) if not TABLE["light"].fullmatch(w.text)]
    named = frozenset() if other.wide else frozenset(t for name in other.names for t in terms(other.text[slice(*name)]))
    said = sum(word.weight * word.said_by(other.terms - named, by_characters=_BY_CHARACTERS) for word in words)
    return said, sum(word.weight for word in words)


def _both_say_more(one: Statement, mine: Span, other: Statement, theirs: Span) -> bool:
    """Tell whether both say something beside what differs that the other does not: built here, destroyed there."""
    own = [word.key for word in one.near(mine) if not other.says(word)]
    others = [word.key for word in other.near(theirs) if not one.says(word)]
    unlike = (
        any(not any(_mean_the_same(a, b) for b in some) for a in words)
        for words, some in ((own, others), (others, own))
    )
    return bool(own and others) and all(unlike)


@lru_cache(4096)
def _mean_the_same(one: str, other: str) -> bool:
    """Tell whether two words have a translation in common."""
    if are_opposites(one, other):
        return False
    mine, theirs = ({m for _, some in dictionary_words(w, translated=True) for m in some} for w in (one, other))
    return bool(mine & theirs)


def _has(statement: Statement, of: Statement, name: Span) -> bool:
    """Tell whether a sentence has a name of another one: its last word, or in Han characters it or most of it."""
    if of.wide and statement.wide:
        text = of.folded[slice(*name)]
        parts = (statement.folded[slice(*span)] for span in statement.names)
        return text in statement.folded or any(part in text and 2 * len(part) > len(text) for part in parts)
    text = of.text[slice(*name)]
    if of.wide:
        # A surname may have taken one character too many: 武阳古桥 is the bridge at Wuyang.
        own, heard = set(sounds_of_text(text)), [_heard(statement.text[slice(*one)])[0] for one in statement.names]
        return named_text(statement.text).has(text) or any(one and one <= own for one in heard)
    if statement.wide:
        sounds, meanings = _heard(text)
        return (bool(sounds) and sounds <= statement.sounds) or any(meaning in statement.plain for meaning in meanings)
    last = terms(re.split(r"[\s.]", text)[-1])
    names = [statement.text[slice(*span)] for span in statement.names]
    if last and len(last[0]) > 2 and any(last[0] in terms(name) for name in names):
        return True
    return any(_sound(name) == _sound(text) for name in names)


@lru_cache(4096)
def _heard(name: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Give how a Latin name sounds in Han characters, and what the dictionary has for it as a whole."""
    words = list(dictionary_words(name, translated=True))
    return frozenset(sounds_of_names(name)), tuple(map(fold_text, words[0][1])) if len(words) == 1 else ()


def _common_names(one: Statement, other: Statement) -> list[Span]:
    """
    Give the names by which both speak of the same thing, as the first or, across languages, the Latin one has them.

    From where and to where something leads, and in what office somebody is, tells not what it is.
    """
    if one.wide and not other.wide:
        one, other = other, one
    return [name for name in one.names if (not one.wide or _may_be_subject(one, name)) and _has(other, one, name)]


def _may_be_subject(statement: Statement, name: Span) -> bool:
    before, text, behind = (statement.folded[slice(*at)] for at in ((0, name[0]), name, (name[1], None)))
    if TABLE["no_name"].fullmatch(text) or TABLE["leads"].search(before) or TABLE["office"].match(behind):
        return False
    return len(list(dictionary_words(text, translated=False))) == 1 or bool(TABLE["opens_name"].search(before))


def _strange_names(one: Statement, other: Statement) -> tuple[list[Span], list[Span]]:
    """Give the names of each that the other does not have."""
    mine = [name for name in one.names if not _has(other, one, name)]
    theirs = [name for name in other.names if not _has(one, other, name)]
    if one.wide and other.wide and len(mine) + len(theirs) == 1:
        # What the dictionary does not have as a name stands in single characters.
        return mine or _unknown(one, other), theirs or _unknown(other, one)
    return mine, theirs


def _unknown(one: Statement, other: Statement) -> list[Span]:
    """Give runs of two or three characters that are no words and that the other sentence does not have."""
    runs: list[Span] = []
    for word in one.words:
        if len(word.key) == 1 and not other.says(word):
            if runs and runs[-1][1] == word.span[0]:
                runs[-1] = (runs[-1][0], word.span[1])
            else:
                runs.append(word.span)
    return [run for run in runs if 2 <= run[1] - run[0] <= 1 + _GIVEN]


_SOUNDS = [(re.compile(a), b) for a, b in (
    ("hs|sh|x", "s"), ("tch|zh|ch|ts|tz|[jqzcr]", "c"), ("[bp]", "p"), ("[dt]", "t"), ("[gk]", "k"),
    ("[^csptklmnfh]", ""),
)]  # fmt: skip


def _sound(name: str) -> str:
    """Give what the spellings of a name have in common: Hsu Chao-hsien is Xu Zhaoxian."""
    sound = name.lower()
    for spelled, heard in _SOUNDS:
        sound = spelled.sub(heard, sound)
    return sound or name


def _fill_one_place(one: Statement, mine: Span, other: Statement, theirs: Span) -> bool:
    """Tell whether two names stand where only one can: both did what only one did, or both follow the same word."""
    common, named = _common_names(one, other), other if one.wide and not other.wide else one
    for cue in one.cues.keys() & other.cues.keys():
        role = "doer" if cue in TABLE["doer"] else "place"
        if any(not s.wide and n[1] - n[0] <= _LETTER for s, n in ((one, mine), (other, theirs))):
            return False
        roles = {_role(one, mine, one.cues[cue]), _role(other, theirs, other.cues[cue])}
        if roles == {role} and any(_suffers(named, name, named.cues[cue], role) for name in common):
            return True
    return False


def _role(statement: Statement, name: Span, cue: Span) -> str:
    """Tell whether a name is that of who does what a word says, of the place that follows the word, or neither."""
    text, way = statement.folded, TABLE["role"]["han" if statement.wide else "latin"]
    if name[0] >= cue[1]:
        between = text[cue[1] : name[0]]
        return next((role for role in ("doer", "place") if way[f"{role}_behind"].search(between)), "")
    if statement.wide and text[: name[0]].endswith(("于", "在")):
        return "place"
    between = text[name[1] : cue[0]]
    return "doer" if way["doer_before"].fullmatch(between) and not way["passive"].search(between) else ""


def _suffers(statement: Statement, name: Span, cue: Span, role: str) -> bool:
    """Tell whether a name is that of what something was done to, or of who was at a place."""
    passive = TABLE["role"]["han" if statement.wide else "latin"]["passive"]
    is_before = name[1] <= cue[0] and (role == "place" or passive.search(statement.folded[name[1] : cue[0]]))
    return bool(is_before) or (role == "doer" and not re.search(r"^$|[,，;；]", statement.text[cue[0] : name[0]]))


_Conflict = tuple[DisagreementKind, Amount, Amount]


def _conflicts(one: Statement, other: Statement) -> list[_Conflict]:
    """Pair the numbers and dates of two sentences that the other does not have and that stand for each other."""
    mine = [a for a in one.amounts if not any(_agree(a, b) for b in other.amounts)]
    theirs = [b for b in other.amounts if not any(_agree(a, b) for a in one.amounts)] if mine else []
    # An ordinal tells which of several things is meant: the first and the second battle.
    if any(a.sort == b.sort == "ordinal" for a in mine for b in theirs):
        return []
    across = one.wide != other.wide
    return [(kind, a, b) for a in mine for b in theirs if (kind := _stand_for_each_other(a, b, across=across))]


def _agree(a: Amount, b: Amount) -> bool:
    """Tell whether two numbers may be the same: as years, in other units, or one of them rounded."""
    if a.years and b.years:
        return not a.years.isdisjoint(b.years)
    if a.sort != b.sort or a.sort != "number":
        # Months and days of the two calendars cannot be compared.
        other_calendar = a.sort == b.sort and a.sort in ("month", "day") and a.lunar != b.lunar
        return other_calendar or a.number.agrees_with(b.number)
    if a.measure != b.measure:
        return not (a.measure and b.measure) and not a.number.values.isdisjoint(b.number.values)
    exactly = a.size == b.size
    values = ((x * a.size, y * b.size) for x in a.number.values for y in b.number.values)
    return any(_close(x, y, a.hedges, b.hedges, exactly=exactly) for x, y in values)


def _close(x: float, y: float, mine: frozenset[str], theirs: frozenset[str], *, exactly: bool) -> bool:
    """Tell whether two amounts may be the same: converted, or rounded, as their words or their noughts show."""
    apart = abs(x - y) / max(abs(x), abs(y), 1e-9)
    if apart == 0 or (not exactly and apart <= _CONVERTED):
        return True
    if mine | theirs and apart <= _HEDGED:
        return True
    if (
        ("above" in mine and y >= x)
        or ("above" in theirs and x >= y)
        or ("below" in mine and y <= x)
        or ("below" in theirs and x <= y)
    ):
        return apart <= _HALF
    digits = [len(f"{value:.6g}".replace(".", "").rstrip("0")) for value in (x, y)]
    return apart <= _ROUNDED and min(digits) <= _ROUND_DIGITS and digits[0] != digits[1] and max(x, y) >= _LARGE


def _stand_for_each_other(a: Amount, b: Amount, *, across: bool) -> DisagreementKind | None:
    """Tell as what two numbers are alike: as dates, or as amounts of the same thing."""
    if a.sort != b.sort or a.sort == "ordinal":
        return None
    if a.sort in ("year", "month", "day"):
        return "date"
    if a.sort == "percent" or a.measure or b.measure:
        return "number" if a.measure == b.measure else None
    return "number" if _count_the_same(a.thing, b.thing, across=across) else None


@lru_cache(4096)
def _count_the_same(mine: str, theirs: str, *, across: bool) -> bool:
    classes = [{name for name, one in TABLE["counted"].items() if one.search(text)} for text in (mine, theirs)]
    words = [content_words(text, translated=across) for text in (mine, theirs)]
    own, others = frozenset(terms(mine)), frozenset(terms(theirs))
    said = [(word, others) for word in words[0]] + [(word, own) for word in words[1]]
    shared = any(word.said_by(of, by_characters=_BY_CHARACTERS) for word, of in said)
    if classes[0] and classes[1]:
        # 名学生 and 位老师 are people both, and not the same.
        shared = shared or across or not all(words) or len(mine) == len(theirs) == 1
        return shared and not classes[0].isdisjoint(classes[1])
    return shared or (not own and not others)
