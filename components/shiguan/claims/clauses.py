"""The clauses of a text, read once: where each begins and ends, what leads it, whose verb it has, and who says so."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

from shiguan.claims.dates import dates_in
from shiguan.claims.tokens import (
    PARTICIPLES,
    WORDS,
    Span,
    Token,
    is_finite,
    is_participle,
    joins_names,
    read_tokens,
    says_any,
)
from shiguan.reading.edges import barred_spans, spoken_spans
from shiguan.reading.text import Result, read_text
from shiguan.text.name_forms import han_names

OPENS_QUOTE = re.compile(r"[“「『«\"]")
JOINS = frozenset({"and", "but"})
"""What joins two clauses or predicates, of which each is so."""
BE = WORDS["be"] | {"have", "has", "had"}
"""Behind these a verb is a participle."""
DENIES = WORDS["quantifiers"] | (WORDS["unreal"] - {"to"})
"""What makes of a clause less than that it is so of somebody."""
REPORTS = WORDS["reported"] | WORDS["doubts"]
"""What says that others say so, and whether rightly."""
DOUBTS = REPORTS | WORDS["supposed"] | (WORDS["unreal"] - {"to"})
"""What says that something may not be so."""
SETS_OFF = frozenset({",", "，", "),", "—", "–"})
"""What sets an aside off."""
OF_ALL = (WORDS["quantifiers"] - {"only", "most", "those"}) | WORDS["of_all"]
"""With one of these a sentence is about all, or none."""
LEADS = (WORDS["adverbial"] - {"having", "being", "apart", "without"}) | {"as", "according"}
"""What a phrase in front of a clause opens with: in Acre, he sold the town."""
CUTS = (WORDS["before"] - JOINS - {"as"}) | WORDS["subjects"] | REPORTS | DENIES
"""What another subject, or what somebody says, begins with."""
_LIMITS, _LONGEST_LEAD = WORDS["limits"] - {"first"}, 12
_NEGATIVES = frozenset({"not", "never", "no", "neither", "none", "nobody", "few"})
# What these say is so only with all that follows, up to a further predicate: no one may sell wine on Sundays.
_BOUNDED, _GOES_ON = _NEGATIVES | set("only may cannot nothing 不 未 无 莫 勿".split()), JOINS | set("而及并且")
_AMONG = frozenset("in among amongst of within across 在 于".split())
_CASES = frozenset({"where", "when", "whenever", "wherever", "once"})
_IN_GENERAL = frozenset({"is", "are", "has", "have"})
_LEAVES_OPEN = (WORDS["unreal"] - {"to"}) | {"only", "even"}
_IF = WORDS["takes_back"] - {"or", "before", "until", "till"}
_UNKNOWN = _LEAVES_OPEN | _NEGATIVES | REPORTS | {"to"}
_OF_TIME_OR_CAUSE = frozenset({"when", "where", "while", "because", "since", "as"})
_PREPOSITIONS = (WORDS["after"] | WORDS["adverbial"] | {"of"}) - WORDS["before"] - {"before", "after"}
_ARE = WORDS["be"] | {"become", "became"}
_INVERTED = frozenset({"had", "were", "should"})
_BEFORE = WORDS["before"] | WORDS["units_of_date"] | WORDS["when"]
# What somebody does upon a wish begins so, and says within so many characters that he does not.
_THEN, _LONGEST_REPLY = re.compile("[乃遂]"), 4
# So many words behind a comma may only say who says so: he claimed.
_LONGEST_REMARK = 5
# The longest remark that takes back all that was said, in tokens, and the signs of a question and of an error.
_LONGEST_DENIAL, _ASKS = 8, re.compile(r"^\s*[?？]|[(（][×✗✘❌]")
# How many tokens of a subject may stand before its verb.
_LONGEST_SUBJECT = 8


class Clauses:
    """
    The tokens of a text, and how they make clauses.

    Places are those of tokens. A phrase goes from one sign of punctuation to the next, a sentence from one stop to the
    next; the main clause of a sentence begins behind what is put in front of it.
    """

    def __init__(self, tokens: Sequence[Token], text: str) -> None:
        self.tokens, self.text = tokens, text
        self._spoken, self._barred = (read_text(text).once(find) for find in (spoken_spans, barred_spans))
        self._kept: dict[Callable[[Any], Any], Any] = {}

    def once(self, function: "Callable[[Clauses], Result]") -> Result:
        """Return what a function makes of the clauses: it is called once."""
        if function not in self._kept:
            self._kept[function] = function(self)
        found: Result = self._kept[function]
        return found

    @cached_property
    def runs(self) -> dict[tuple[str, ...], int]:
        """Where all runs of up to three tokens without a break, among which are its names, stand first."""
        found: dict[tuple[str, ...], int] = {}
        for at in range(len(self.tokens)):
            run: tuple[str, ...] = ()
            for token in self.tokens[at : at + 3]:
                if run and token.breaks:
                    break
                run = (*run, token.key)
                found.setdefault(run, at)
        return found

    @cached_property
    def sentences(self) -> list[Span]:
        starts = [at for at, token in enumerate(self.tokens) if token.stops]
        return list(pairwise([*starts, len(self.tokens)]))

    @cached_property
    def _signs(self) -> list[int]:
        return [at for at, token in enumerate(self.tokens) if token.breaks]

    def lead(self, at: int) -> Sequence[Token]:
        """Return what of its phrase stands before a place; the phrase before it, where one begins there."""
        before = bisect_left(self._signs, at)
        return self.tokens[self._signs[before - 1] if before else 0 : at]

    def end_of_phrase(self, at: int) -> int:
        after = bisect_right(self._signs, at)
        return self._signs[after] if after < len(self._signs) else len(self.tokens)

    def main_clause(self, start: int) -> int:
        """Return where the main clause of a sentence begins: behind `In 755,`."""
        leads = self.tokens[start].key in LEADS or is_participle(self.tokens[start : start + 1])
        end = self.end_of_phrase(start) if leads else start
        return end if end < len(self.tokens) and not self.tokens[end].stops else start

    def behind_date(self, at: int) -> int:
        return self._ends_of_dates.get(at, at)

    def verb(self, start: int, end: int) -> int:
        """Return where the verb behind a subject stands, or where the subject begins if there is none near."""
        for at in range(start + 1, min(end, start + _LONGEST_SUBJECT)):
            if self.tokens[at].breaks or self.tokens[at].key in CUTS:
                break
            if is_finite(self.tokens[at]) and self.text[self.tokens[at].start - 1] != "-":
                return at
        return start

    @cached_property
    def lists(self) -> list[tuple[list[Span], int]]:
        """The lists of names that are the subject of a verb, with its place: Karl, Otto and Hale fled."""
        tokens, found = self.tokens, list[tuple[list[Span], int]]()
        for at in (at for at, token in enumerate(tokens) if token.key == "and" and joins_names(tokens, at)):
            verb = self._end_of_name(at + 1)
            members, start = [(at + 1, verb)], at
            while start and tokens[start - 1].is_capital:
                end, start = start, self.start_of_name(start)
                members.insert(0, (start, end))
                if tokens[start].breaks != ",":
                    break
            # In `he beat Karl, and Otto fled` another clause begins.
            is_list = len(members) > 2 or not tokens[at].breaks
            if is_list and verb < len(tokens) and not tokens[verb].breaks and is_finite(tokens[verb]):
                found.append((members, verb))
        return found

    def _end_of_name(self, at: int) -> int:
        return next((to for to in range(at + 1, len(self.tokens)) if not self._is_in_name(to)), len(self.tokens))

    def start_of_name(self, end: int) -> int:
        """Return where a name begins that ends there."""
        return next(at for at in range(end - 1, -1, -1) if not (at and self._is_in_name(at)))

    def _is_in_name(self, at: int) -> bool:
        """Return whether a word goes on with a name: Lushan in An Lushan, of and Acre in Otto of Acre."""
        of = at if self.tokens[at].key == "of" else at - 1
        joins = self.tokens[of].key == "of" and joins_names(self.tokens, of)
        named = all(token.is_capital for token in self.tokens[at - 1 : at + 1])
        return self.tokens[at].breaks in ("", "(") and (joins or named)

    def end_of_han_name(self, at: int) -> int:
        """Return where a name in Han characters ends that begins there; the place itself if none does."""
        stop = self._names.get(self.tokens[at].start, 0)
        return next((to for to in range(at, len(self.tokens)) if self.tokens[to].start >= stop), len(self.tokens))

    def is_of_all(self, verb: int) -> bool:
        """Return whether what several do or are may be so only of all together: were brothers, met, had 300 men."""
        phrase = range(verb, self.end_of_phrase(verb))
        counts = any(self.tokens[at].number and at not in self._dated for at in phrase)
        # In `Karl and Hale was founded` it is the name of one.
        is_what = self.tokens[verb].key in _ARE and not is_participle(self.tokens[verb + 1 : verb + 2])
        is_one = self.tokens[verb].key in ("is", "was", "has")
        return counts or is_what or is_one or says_any(self.tokens[phrase.start : phrase.stop], WORDS["together"])

    @cached_property
    def _of_several(self) -> frozenset[int]:
        """Where a member of a list begins of which alone it is not said, nor in `the wives of Karl and Otto fled`."""
        found = set[int]()
        for ((first, _), *others), verb in self.lists:
            is_led = not self.tokens[first].breaks and says_any(self.tokens[max(0, first - 1) : first], _PREPOSITIONS)
            found.update(start for start, _ in others if is_led or self.is_of_all(verb))
        return frozenset(found)

    def left_out(self, at: int) -> frozenset[str]:
        """Return the words before a place that are no tokens: articles, and `that`."""
        start = self.tokens[at - 1].end if at else 0
        return frozenset(self.text[start : self.tokens[at].start if at < len(self.tokens) else None].lower().split())

    def has_article(self, at: int) -> bool:
        return not WORDS["described"].isdisjoint(self.left_out(at))

    def is_described(self, at: int) -> bool:
        """Return whether a phrase begins there with an article, or with whose it is."""
        return self.has_article(at) or says_any(self.tokens[at : at + 1], WORDS["described"])

    @cached_property
    def dates(self) -> list[Span]:
        """The phrases that say when: in 1778, 天宝十四载十一月."""
        return dates_in(self.tokens)

    @cached_property
    def _dated(self) -> frozenset[int]:
        return frozenset(at for date in self.dates for at in range(*date))

    @cached_property
    def _ends_of_dates(self) -> dict[int, int]:
        return dict(self.dates)

    @cached_property
    def _names(self) -> dict[int, int]:
        return dict(read_text(self.text).once(han_names))

    @cached_property
    def _supposed(self) -> list[bool]:
        """For each place and the end: whether a condition, a doubt or who says so stands before it in its sentence."""
        found, before = list[bool](), Token("", "", 0, 0, None, "", True, False)
        is_supposed = is_wish = False
        for at, token in enumerate(self.tokens):
            is_that = "that" in (between := self.text[before.end : token.start])
            leads = is_that or (token.breaks not in ("", "、") and token.key not in ("and", "but"))
            said = before.key in REPORTS | WORDS["agreed"] and leads
            # In `a raid that overthrew Karl` it tells of the raid.
            is_relative = token.key in WORDS["finite"] and token.key not in PARTICIPLES
            said = said or (is_that and before.key not in WORDS["known"] and not is_relative)
            said = said or (before.key in WORDS["sources"] and "《" in token.breaks)
            said = said or (before.key in WORDS["quoting"] and token.start in self._names)
            if token.stops:
                is_supposed, is_wish = token.key in _INVERTED, False
            elif said and not OPENS_QUOTE.search(token.breaks):
                is_supposed = True
            elif is_wish and token.breaks:
                start = self.tokens[at : at + _LONGEST_REPLY]
                pairs = {token.key, *(a.key + b.key for a, b in pairwise(start))}
                is_wish = WORDS["answers"].isdisjoint(pairs) and not _THEN.search(between)
            found.append(is_supposed or is_wish)
            # A Han character is a token: 如果 is two, of 即便 and 就算 one may be left out.
            lead = "" if token.stops else before.key
            keys = (token.key, lead + token.key, lead + between, between + token.key)
            opens_condition = bool(token.breaks) and token.key in WORDS["conditions"]
            is_supposed = is_supposed or opens_condition or not WORDS["supposed"].isdisjoint(keys)
            is_wish = is_wish or not WORDS["wished"].isdisjoint(keys)
            before = token
        return [*found, is_supposed or is_wish]

    @cached_property
    def _open(self) -> list[bool]:
        """For each place and the end: whether the sentence that goes on or ends there is asked, or taken back."""
        tokens, found = self.tokens, [bool(_ASKS.search(self.text[self.tokens[-1].end :] if self.tokens else ""))]
        for at in range(len(tokens) - 1, -1, -1):
            token, is_open = tokens[at], found[-1] and not tokens[at].stops
            if token.breaks and not is_open:  # in an address, a question mark stands before a small letter
                is_asked = (token.stops or token.is_capital) and bool(_ASKS.search(token.breaks))
                is_open = is_asked or self._takes_back(at, is_open=found[-1])
            found.append(is_open)
        return found[::-1]

    def _takes_back(self, at: int, *, is_open: bool) -> bool:
        """Return whether a remark says that what stands before it is untrue, or not so of all: Mondays excepted."""
        end, is_sentence = self.end_of_phrase(at), self.tokens[at].stops
        remark = self.tokens[at : end if end - at <= _LONGEST_DENIAL else at + 2]
        if {token.key for token in remark} <= WORDS["of_denials"]:
            return len(remark) == end - at and (is_open or says_any(remark, WORDS["untrue"]))
        # Behind a stop it must say no more: Except for Otto, all fled.
        ends = end == len(self.tokens) or self.tokens[end].stops or self.tokens[end].breaks[0] in ":："
        return says_any(remark, WORDS["excepts"]) and not (is_sentence and (len(remark) < end - at or not ends))

    def _is_in(self, spans: Sequence[Span], at: int) -> bool:
        place = self.tokens[at].start if at < len(self.tokens) else len(self.text)
        before = bisect_right(spans, (place, len(self.text)))
        return before > 0 and place < spans[before - 1][1]

    def is_supposed(self, at: int, *, quoted: bool = False) -> bool:
        if self._is_in(self._barred, at):
            return True
        return not quoted if self._is_in(self._spoken, at) else self._supposed[at]

    def begins_alone(self, at: int, *, quoted: bool = False) -> bool:
        """Return whether what begins there can be cut out of what stands before it; speech only in quotation marks."""
        if self.is_supposed(at, quoted=quoted) or self._is_led_by_limit(at) or at in self._of_several:
            return False
        while at and not self.tokens[at].breaks and self.tokens[at - 1].key in WORDS["harmless"]:
            at -= 1
        if self.tokens[at].breaks or not at:
            return True
        before = self.tokens[at - 1]
        if before.key == "后" and self.tokens[at].key in WORDS["later"]:
            return False
        if before.key == "中" and says_any(self.lead(at), _LIMITS):  # 小说中
            return False
        lead = "".join(token.key for token in self.lead(at))
        is_left_out = before.key in _BEFORE or lead in WORDS["leads"] or self._is_known(at)
        return (is_left_out and not self._is_bound(at)) or at in self._ends_of_dates.values()

    def _is_known(self, at: int) -> bool:
        """Return whether what begins there is said to be known or shown: they saw that Karl fled."""
        return self.tokens[at - 1].key in WORDS["known"] and "that" in self.left_out(at)

    def _is_bound(self, at: int) -> bool:
        """Return whether what stands before it may take from it: no captain and sailor, not because, will go when."""
        token, joint = self.tokens[at], self.tokens[at - 1].key
        if joint in _OF_TIME_OR_CAUSE:
            return says_any(self.lead(at), _LEAVES_OPEN)
        if self._is_known(at):
            return says_any(self.lead(at), _UNKNOWN)
        if joint != "and" or token.is_capital or token.key in WORDS["subjects"]:
            return False
        is_range = bool(token.number and at > 1 and self.tokens[at - 2].number)
        return is_range or says_any(self.lead(at), _NEGATIVES)

    def _is_led_by_limit(self, at: int) -> bool:
        """Return whether a phrase before a comma limits what follows: apart from Otto, in a dream, 除王渊外."""
        if at == len(self.tokens) or not self.tokens[at].breaks or self.tokens[at].stops:
            return False
        lead, is_within = self.lead(at), self.lead(at)[-1].key in WORDS["within"]
        # In Acre, Otto was the richest man: in 1310, or in fact, he was so anywhere.
        is_place = (lead[0].key in _AMONG or is_within) and self.behind_date(at - len(lead)) < at
        is_place = is_place and (len(lead) > 2 or lead[-1].is_capital or lead[-1].is_han or self.has_article(at - 1))
        limits = says_any(lead, _LIMITS) and (lead[0].key in WORDS["adverbial"] or is_within)
        # Where the tenant is absent, the landlord may enter.
        is_case = lead[0].key in _CASES and says_any(self.tokens[at : self.end_of_phrase(at)], WORDS["of_rules"])
        limits = limits or is_case
        return len(lead) <= _LONGEST_LEAD and (limits or (is_place and self._ranks(at, self.end_of_phrase(at))))

    def _ranks(self, start: int, end: int) -> bool:
        """Return whether some words end with what is the most or first of some: is the longest river."""
        at = next((at for at in range(end - 1, start - 1, -1) if self.tokens[at].key in WORDS["ranks"]), end)
        is_one = at < end and (self.tokens[at].is_han or "the" in self.left_out(at) | self.left_out(max(0, at - 1)))
        # Behind a verb, another at the end is a participle: is the largest ship built.
        has_verb = any(token.key in BE for token in self.tokens[start:at])
        return is_one and not any(map(is_finite, self.tokens[at : end - has_verb]))

    def ends_alone(self, end: int) -> bool:
        """Return whether what ends there can be cut out of what stands behind it."""
        if end == len(self.tokens) or self.tokens[end].stops or self._open[end]:
            return not self._open[end]
        after = self.tokens[end]
        if not after.breaks and (after.key not in WORDS["after"] or self._is_limited(end)):
            return False
        if after.key == "后" and self.tokens[end - 1].key in WORDS["royal"]:  # 王后 is no 王
            return False
        if after.breaks:
            return not self._is_taken_back(end)
        behind = self.end_of_phrase(end)
        if after.key in _CASES and says_any(self.tokens[end:behind], _IN_GENERAL):  # raises it when the list is empty
            return False
        return behind == len(self.tokens) or self.tokens[behind].stops or self.tokens[behind].key not in _IF

    def _is_limited(self, end: int) -> bool:
        """Return whether the words behind a phrase change it: all but two, king in name only, none in May."""
        tokens, lead = self.tokens, self.lead(end)
        following = [token.key for token in tokens[end : end + 3]]
        counts = says_any([*lead, *tokens[end : end + 3]], WORDS["amounts"])
        but = "but" in following and ("for" in following or counts)
        is_range = following[0] == "to" and all(token.number for token in tokens[end - 1 : end + 2 : 2])
        is_bounded = self._ranks(end - len(lead), end) and self.behind_date(end) == end
        is_bounded = is_bounded or any(one.key in _BOUNDED or "n't" in one.key for one in lead)
        is_unreal = says_any(tokens[end : end + 3], WORDS["unreal_places"])
        is_unreal = is_unreal or (following[0] in ("in", "among") and says_any(tokens[end : end + 3], WORDS["studied"]))
        is_unreal = is_unreal or (is_bounded and following[0] not in _GOES_ON)
        return but or is_range or is_unreal or following[:2] == ["and", "half"]

    def _is_taken_back(self, end: int) -> bool:
        """Return whether a remark behind a comma makes what was said before it a condition or somebody's opinion."""
        remark = self.tokens[end : min(self.end_of_phrase(end), end + 1 + _LONGEST_REMARK)]
        if (
            self._excepts_some(end)
            or says_any(remark[:2], WORDS["takes_back"])
            or says_any(remark, WORDS["doubts"] | WORDS["undone"])
        ):
            return True
        # In Chinese the same characters tell what somebody is called; a verb in front is one more deed of the subject.
        joined = remark[0].key in WORDS["before"] or len(remark) > _LONGEST_REMARK or remark[0].is_han
        return not joined and (remark[0].key in ("said", "says") or says_any(remark[1:], WORDS["reported"]))

    def _excepts_some(self, end: int) -> bool:
        """Return whether a remark says of whom what is said of all is not so: open daily (closed Mondays)."""
        remark, said = self.tokens[end : self.end_of_phrase(end)], self.lead(end)
        is_aside = remark[0].breaks in ("(", "（")
        bars = says_any(remark[: None if is_aside else 2], WORDS["excepts_some"])
        return says_any(said, OF_ALL) and (bars or remark[-1].key in WORDS["excepts_if_last"])


def read_clauses(text: str) -> Clauses:
    """Read the clauses of a text."""
    return Clauses(read_tokens(text), text)
