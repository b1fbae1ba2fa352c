"""What of a text says the same when it stands alone: it is told as a fact, and nothing around it takes from it."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from shiguan.claims.facts import LONGEST_REMARK, Facts
from shiguan.claims.phrases import ARE, BE, JOINS, LEADS, REPORTS
from shiguan.claims.tokens import (
    OPENINGS,
    WORDS,
    Token,
    is_finite,
    is_participle,
    is_past,
    read_tokens,
    says_any,
)
from shiguan.reading.text import read_text
from shiguan.text.languages import is_classical

JOINS_IN_HAN = frozenset("而但却且并")
DOUBTS = REPORTS | WORDS["supposed"] | (WORDS["unreal"] - {"to"})
"""What says that something may not be so."""
SETS_OFF = frozenset({",", "，", "),", "—", "–"})
"""What sets an aside off."""
OF_ALL = (WORDS["quantifiers"] - {"only", "most", "those"}) | WORDS["of_all"]
"""With one of these a sentence is about all, or none."""
_LONGEST_BRACKET = 4
_LIMITS = WORDS["limits"] - {"first"}
_NEGATIVES = frozenset({"not", "never", "no", "neither", "none", "nobody", "few"})
# What these say is so only with all that follows, up to a further predicate: no one may sell wine on Sundays.
_BOUNDED, _GOES_ON = _NEGATIVES | set("only may cannot nothing 不 未 无 莫 勿".split()), JOINS | set("而及并且")
_IF_IN_HAN = frozenset("要若不凡如可于但就只非的")
_BOUNDS_TIME = frozenset("前后後起間间內内")
_CASES = frozenset({"where", "when", "whenever", "wherever", "once"})
_OPENS_PHRASE = WORDS["adverbial"] & WORDS["after"] - {"during", "after", "before"} | {"to", "into", "for", "as"}
_ADDS_NONE = frozenset({"no", "well"})  # with no losses, as well as memory
_LED = WORDS["before"] | WORDS["adverbial"] | {"due", "to", "for"}
_VIEWS, _LISTS = frozenset({"to", "for", "as"}), frozenset("是为有")
_ASKED = frozenset(
    "asked ask wondered wanted ordered allowed forced expected considered persuaded tried failed agreed planned vowed "
    "promised due intended hoped refused".split()
)
_IN_GENERAL = frozenset({"is", "are", "has", "have"})
_LEAVES_OPEN = (WORDS["unreal"] - {"to"}) | {"only", "even"}
_IF = WORDS["takes_back"] - {"or", "before", "until", "till"}
_UNKNOWN = _LEAVES_OPEN | _NEGATIVES | REPORTS | {"to"}
# Behind a comma they begin what adds to what was said.
_ADDING = JOINS | WORDS["relative"] | (WORDS["before"] - {"as"}) | WORDS["adding"]
# With these, and without a comma, what follows `and` may belong to them.
_JOINED_IN = REPORTS | WORDS["supposed"] | WORDS["relative"] | _CASES | set("that how until before though".split())
_OF_TIME_OR_CAUSE = frozenset({"when", "where", "while", "because", "since", "as"})
_BEFORE = WORDS["before"] | WORDS["units_of_date"] | WORDS["when"]


def limits_aside(aside: Sequence[Token]) -> bool:
    """Return whether what stands in brackets makes of what stands around it another thing."""
    is_bound = says_any(aside[:1], WORDS["bounds"]) and not any(one.is_capital for one in aside)
    is_other = len(aside) < _LONGEST_BRACKET and says_any(aside, WORDS["bracketed"])
    return is_bound or is_other or says_any(aside, WORDS["statements"])


class Clauses(Facts):
    """The phrases of a text, and whether what begins or ends at a place can be cut out of its sentence."""

    def begins_alone(self, at: int, *, quoted: bool = False) -> bool:
        """Return whether what begins there can be cut out of what stands before it; speech only in quotation marks."""
        if self.is_supposed(at, quoted=quoted) or at in self._of_several or self.cuts_word(at):
            return False
        while at and not self.tokens[at].breaks and self.tokens[at - 1].key in WORDS["harmless"]:
            at -= 1
        if not at or self.tokens[at].stops or (quoted and self.tokens[at].breaks):
            return True
        if self.tokens[at].breaks:
            return self._follows_fact(at)
        before = self.tokens[at - 1]
        if before.key == "后" and self.tokens[at].key in WORDS["later"]:
            return False
        if before.key == "中" and says_any(self.lead(at), _LIMITS):  # 小说中
            return False
        lead = " ".join(token.key for token in self.lead(at))
        # In Chinese these end words too: 三号嫌疑人.
        may_end_word = before.is_han and before.key not in JOINS_IN_HAN and self.end_of_han_name(at) == at
        is_left_out = (before.key in _BEFORE and not may_end_word) or lead in OPENINGS or self._is_known(at)
        return (is_left_out and not self._is_bound(at)) or self._is_behind_date(at)

    def _is_behind_date(self, at: int) -> bool:
        """Return whether a date stands before a place with which a clause opens: he feared 2030 machines would rule."""
        start = self._starts_of_dates.get(at, at)
        opens = start < at and (not start or self.tokens[start].breaks or self.tokens[start - 1].key in WORDS["before"])
        # 三号嫌疑人 is nobody whom a day leads to.
        is_day = self.tokens[at - 1].key == "号" and at - start < 4
        return bool(opens) and not is_day and self.begins_alone(start)

    def _follows_fact(self, at: int) -> bool:
        """Return whether what stands before a sign is told as a fact, or says when: only then what follows is one."""
        sign, start = self.tokens[at].breaks, self.begin(at)
        lead = self.tokens[start:at]
        opening = " ".join(token.key for token in lead)
        is_number = len(lead) == 1 and lead[0].number and sign[0] in ")）.、"  # 1) Open the valve.
        if start == at or "|" in sign or is_number or opening in OPENINGS | WORDS["replies"]:
            return True
        # Before 1950, women had no vote.
        if lead[-1].key in _BOUNDS_TIME and says_any(self.tokens[at : self.end_of_phrase(at)], _BOUNDED):
            return False
        if self.behind_date(start) == at:
            return True
        if ":" in sign or "：" in sign:
            return False
        return self._is_told_in_han(start, at) if lead[-1].is_han else self._is_told(start, at)

    def _is_told(self, start: int, end: int) -> bool:
        """Return whether a lead tells of the past, or only where that was which somebody did: in Acre, Otto died."""
        lead = self.tokens[start:end]
        verb = next((at for at in range(end, self.end_of_sentence(end)) if is_finite(self.tokens[at])), end)
        doubtful = [one for one in lead if one.key != "may" or not one.is_capital]
        tells = any(map(is_past, lead)) or is_participle(lead[:1]) or self.behind_date(start) > start
        if tells and lead[0].key not in _VIEWS:
            return lead[0].key not in WORDS["adverbial"] or not says_any(doubtful, _LIMITS)
        # In the opera, Karl kills Otto; to Otto, Karl was a traitor: of a deed of the past it is where, when or why.
        is_be = self.tokens[verb].key in ARE and not is_participle(self.tokens[verb + 1 : verb + 2])
        is_deed = verb > end and is_past(self.tokens[verb]) and not is_be
        doubts = says_any(doubtful, _LIMITS | DOUBTS | WORDS["statements"])
        return is_deed and not doubts and (tells or lead[0].key not in _VIEWS)

    def _is_told_in_han(self, start: int, end: int) -> bool:
        """Return whether a lead tells of a day, of somebody, or that something was so, and not who says so, or when."""
        lead, last = self.tokens[start:end], self.signs[bisect_left(self.signs, end) - 1]
        is_dated = any(at in self._dated for at in range(start, end))
        if says_any(lead[:2], WORDS["not_yet"]):
            return False
        if not WORDS["ends_case"].isdisjoint((lead[-1].key, "".join(one.key for one in lead[-2:]))):
            return is_dated and lead[-1].key in ("时", "后")
        told = is_dated or says_any(lead, WORDS["told"]) or "了" in self.text[lead[0].end : self.tokens[end].start]
        told = told or any(one.key == "是" and before.key not in _IF_IN_HAN for before, one in pairwise(lead[:-1]))
        told = told or self.end_of_han_name(start) > start or says_any(lead[:2], WORDS["days"])
        is_chronicle = read_text(self.text).once(is_classical)
        return told or (is_chronicle and not says_any(self.tokens[last:end], _NEGATIVES | _BOUNDED))

    def _is_known(self, at: int) -> bool:
        """Return whether what begins there is said to be known or shown: they saw that Karl fled."""
        return self.tokens[at - 1].key in WORDS["known"] and "that" in self.left_out(at)

    def _is_bound(self, at: int) -> bool:
        """Return whether what stands before it may take from it: no captain and sailor, not because, will go when."""
        token, joint = self.tokens[at], self.tokens[at - 1].key
        if joint in _OF_TIME_OR_CAUSE:
            # The valve opens when the pressure is too high.
            is_rule = joint in _CASES and not (self.tokens[at - 1].breaks or any(map(is_past, self.lead(at))))
            return is_rule or says_any(self.lead(at), _LEAVES_OPEN | REPORTS | _ASKED)
        if self._is_known(at):
            return says_any(self.lead(at), _UNKNOWN)
        if joint not in JOINS or self.tokens[at - 1].stops:
            return False
        # The tax on salt and tea, the man who sold the horse and the cart, he thought Karl was dead and the war won.
        apart = bool(self.tokens[at - 1].breaks)
        lead = self.lead(at - 1) if apart else self.lead(at)[:-1]
        # In the film they won and he fled.
        if lead and lead[0].key in LEADS and says_any(lead[1:4], _LIMITS | WORDS["statements"]):
            return True
        is_clause = any(is_finite(one) or one.key in REPORTS for one in lead) and (
            apart or not says_any(lead, _JOINED_IN)
        )
        is_range = bool(token.number and at > 1 and self.tokens[at - 2].number)
        return is_range or not is_clause or says_any(lead, _NEGATIVES)

    def _ranks(self, start: int, end: int) -> bool:
        """Return whether some words end with what is the most or first of some: is the longest river."""
        at = next((at for at in range(end - 1, start - 1, -1) if self.tokens[at].key in WORDS["ranks"]), end)
        is_one = at < end and (self.tokens[at].is_han or self.is_definite(at) or self.is_definite(max(0, at - 1)))
        # Behind a verb, another at the end is a participle: is the largest ship built.
        has_verb = any(token.key in BE for token in self.tokens[start:at])
        return is_one and not any(map(is_finite, self.tokens[at : end - has_verb]))

    def ends_alone(self, end: int) -> bool:
        """Return whether what ends there can be cut out of what stands behind it."""
        if self.cuts_word(end):
            return False
        if end == len(self.tokens) or self.tokens[end].stops or self.open[end]:
            return not self.open[end]
        after = self.tokens[end]
        if not after.breaks and (after.key not in WORDS["after"] or self._is_limited(end)):
            return False
        if not after.breaks and not after.is_han and not self._is_done(end):
            return after.key in JOINS and any(map(is_finite, self.tokens[end : self.end_of_sentence(end)]))
        if after.breaks:
            if after.breaks == "、" and says_any(self.lead(end), _LIMITS | _LISTS):
                return False
            return ";" in after.breaks or (self._adds(end) and not self._is_taken_back(end))
        behind = self.end_of_phrase(end)
        if after.key in _CASES and says_any(self.tokens[end:behind], _IN_GENERAL):  # raises it when the list is empty
            return False
        return behind == len(self.tokens) or self.tokens[behind].stops or self.tokens[behind].key not in _IF

    def _adds(self, at: int) -> bool:
        """Return whether a remark adds what happened then, why, where, to whom, or who that is, and no opinion."""
        end, first = self.end_of_phrase(at), self.tokens[at]
        remark = self.tokens[at:end]
        # Joked Otto.
        is_turned = is_finite(first) and bool(remark[1:2]) and remark[1].is_capital
        if first.breaks in ("(", "（") and (limits_aside(remark) or (first.is_han and len(remark) < 3)):
            return len(remark) == 2 and first.key == "一"  # 一说: there is another account, which may be right
        if first.is_han or first.key in _ADDING or (first.key == "not" and len(remark) > 1):
            return True
        if (first.key.endswith("ing") or is_participle(remark)) and not is_turned:
            return True
        if first.breaks == "(" and len(remark) > 2 and first.key not in WORDS["after"]:
            return True
        if any(map(is_finite, remark)):
            # A judge ruled; Otto confessed to Anna.
            is_who = self.is_described(at) or (first.is_capital and first.key not in WORDS["after"])
            is_relative = any("that" in self.left_out(one) for one in range(at + 1, end))
            is_bare = is_who and not is_finite(first) and not is_relative
            is_last = self.ends_sentence(end) and self.tokens[self.begin(at)].key not in _LED
            is_said = is_turned or (is_bare and is_last)
            return not (is_said or says_any(remark[1:], REPORTS | WORDS["believed"] | WORDS["statements"]))
        if first.key == "as" or (first.breaks[:1] in ("–", "—") and first.key not in WORDS["after"] | WORDS["limits"]):
            return not says_any(remark, REPORTS | WORDS["statements"])
        if self.behind_date(at) > at or " ".join(token.key for token in remark) in OPENINGS:
            return True
        names = first.is_capital or bool(first.number) or self.is_described(at)
        is_place = first.key in WORDS["after"] and (remark[-1].is_capital or any(one.number for one in remark))
        names = names or is_place or says_any(remark[1:2], WORDS["relative"])
        return names and not says_any(remark, REPORTS | WORDS["believed"] | WORDS["statements"])

    def _is_done(self, end: int) -> bool:
        """Return whether a phrase tells what was done or what one is, not how it is: is free on Sundays."""
        if self._changes_deed(end) or self._goes_on_elsewhere(end):
            return False
        key, lead, is_dated = self.tokens[end].key, self.lead(end), self.behind_date(end) > end
        if not any(map(is_finite, lead)):  # on 3 May, 1888
            lead = self.tokens[self.begin(end - 1) : end]
        start = end - len(lead)
        verb = next((at for at in range(start, end) if is_finite(self.tokens[at])), end)
        # 52 percent voted for Otto.
        if not is_dated and any(self.tokens[at].number and at not in self._dated for at in range(start, verb)):
            return False
        if verb == end or self.tokens[verb].key not in ARE:
            is_reason = key in _OF_TIME_OR_CAUSE and any(map(is_past, self.tokens[end : self.end_of_phrase(end)]))
            # Verbs that are not listed are old ones or rare, of the past mostly.
            return is_reason or (is_past(self.tokens[verb]) if verb < end else is_dated)
        is_deed = self.tokens[verb].key in ("was", "were") and is_participle(self.tokens[verb + 1 : end])
        is_what = verb + 1 < end and (self.is_described(verb + 1) or self.tokens[verb + 1].is_capital)
        return is_deed or (is_what and (is_dated or key in _OF_TIME_OR_CAUSE | JOINS))

    def _goes_on_elsewhere(self, end: int) -> bool:
        """Return whether it was otherwise at another place: fell in the villages and rose in the towns."""
        phrase = self.tokens[end : self.end_of_phrase(end)]
        turn = next(
            (at for at, (one, after) in enumerate(pairwise(phrase)) if one.key in JOINS and is_finite(after)), 0
        )
        return turn > 0 and any(one.key == phrase[0].key for one in phrase[turn:])

    def _changes_deed(self, end: int) -> bool:
        """Return whether the next words make another thing of what was done: by cheating, in part, on a map."""
        key, lead, rest = self.tokens[end].key, self.lead(end), self.tokens[end + 1 : self.end_of_phrase(end)]
        if key in WORDS["relative"]:  # all men who drank; not: the mate who had come from Acre
            return not any(one.article for one in lead[-4:]) or says_any(lead, WORDS["quantifiers"])
        if key not in _OPENS_PHRASE:
            return False
        if says_any(lead, WORDS["restricting"]) or (key == "to" and says_any(lead, REPORTS | _ASKED)):
            return True
        if rest and self._is_done_to_some(end):
            return True
        is_known = rest and (self.is_definite(end + 1) or says_any(rest[:1], WORDS["described"]))
        is_named = is_known or any(one.is_capital or one.number for one in rest)
        is_purpose = key == "to" and bool(rest) and not self.is_described(end + 1)
        return not (is_named or is_purpose or says_any(rest[:1], _ADDS_NONE))

    def _is_done_to_some(self, end: int) -> bool:
        """Return whether the next words say for or against whom something was done: the ban was lifted for beef."""
        key, first = self.tokens[end].key, self.tokens[end + 1]
        is_passive = any(one.key in BE and is_participle([after]) for one, after in pairwise(self.lead(end)))
        if not is_passive or first.number or self.behind_date(end) > end or says_any([first], WORDS["described"]):
            return False
        return key in ("for", "against") or (key in ("to", "from") and not first.is_capital)

    def _is_limited(self, end: int) -> bool:
        """Return whether the words behind a phrase change it: all but two, king in name only, none in May."""
        tokens, lead = self.tokens, self.lead(end)
        following = [token.key for token in tokens[end : end + 3]]
        counts = says_any([*lead, *tokens[end : end + 3]], WORDS["amounts"])
        but = "but" in following and ("for" in following or counts)
        is_range = following[0] == "to" and all(token.number for token in tokens[end - 1 : end + 2 : 2])
        is_bounded = self._ranks(end - len(lead), end) and self.behind_date(end) == end
        is_bounded = is_bounded or any(one.key in _BOUNDED or "n't" in one.key for one in lead)
        is_unreal = says_any(tokens[end : min(self.end_of_phrase(end), end + 5)], WORDS["unreal_places"])
        # All schools within ten miles were closed; not: in 1920.
        is_bounded = is_bounded or (says_any(lead, OF_ALL) and self.behind_date(end) == end)
        is_unreal = is_unreal or (following[0] in ("in", "among") and says_any(tokens[end : end + 3], WORDS["studied"]))
        is_unreal = is_unreal or (is_bounded and following[0] not in _GOES_ON)
        return but or is_range or is_unreal or following[:2] == ["and", "half"]

    def _is_taken_back(self, end: int) -> bool:
        """Return whether a remark behind a comma makes what was said before it a condition or somebody's opinion."""
        longest = 14 if self.tokens[end].is_han else 1 + LONGEST_REMARK
        remark = self.tokens[end : min(self.end_of_phrase(end), end + longest)]
        if len(remark) > 2 and says_any(remark[:3], WORDS["or_else"]):
            return True
        speaks = len(remark) > 2 and says_any(remark[-2:], WORDS["supposed"]) and self.ends_sentence(end + len(remark))
        if remark[0].is_han and (remark[0].key == "或" or speaks or "《" in remark[0].breaks):
            return True
        if (
            self._excepts_some(end)
            or says_any(remark[:2], WORDS["takes_back"])
            or says_any(remark, WORDS["doubts"] | WORDS["undone"])
            or (remark[0].breaks in ("(", "（") and says_any(remark, WORDS["corrects"]))
        ):
            return True
        # In Chinese the same characters tell what somebody is called; a verb in front is one more deed of the subject.
        if remark[0].key == "as" and says_any(remark, REPORTS | WORDS["statements"]):
            return True
        joined = remark[0].key in WORDS["before"] or len(remark) > LONGEST_REMARK or remark[0].is_han
        return not joined and (remark[0].key in ("said", "says") or says_any(remark[1:], WORDS["reported"]))

    def _excepts_some(self, end: int) -> bool:
        """Return whether a remark says of whom what is said of all is not so: open daily (closed Mondays)."""
        remark, said = self.tokens[end : self.end_of_phrase(end)], self.lead(end)
        is_aside = remark[0].breaks in ("(", "（")
        bars = says_any(remark[: None if is_aside or remark[0].is_han else 2], WORDS["excepts_some"])
        bars = bars or remark[0].key == "但"
        if says_any(said, _BOUNDED) and says_any(remark[-2:], WORDS["allowed"]):
            return True
        return says_any(said, OF_ALL) and (bars or remark[-1].key in WORDS["excepts_if_last"])


def read_clauses(text: str) -> Clauses:
    """Read the clauses of a text."""
    return Clauses(read_tokens(text), text)
