"""Whether what stands in a text is told as a fact: no condition, doubt or speaker before it, no denial behind it."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

from shiguan.claims.phrases import REPORTS, Phrases
from shiguan.claims.tokens import PARTICIPLES, WORDS, Span, Token, says_any
from shiguan.reading.edges import barred_spans, spoken_spans
from shiguan.reading.text import read_text

OPENS_QUOTE = re.compile(r"[“「『«\"]")
LONGEST_REMARK = 5
"""So many words behind a comma may only say who says so: he claimed."""
_INVERTED = frozenset({"had", "were", "should"})
# What somebody does upon a wish begins so, and says within so many characters that he does not.
_THEN, _LONGEST_REPLY = re.compile("[乃遂]"), 4
# The longest remark that takes back all that was said, in tokens, and the signs of a question and of an error.
_LONGEST_DENIAL, _ASKS = 8, re.compile(r"^\s*[?？]|[(（][×✗✘❌]")
_LONGEST_REJECTION, _THIS_IN_HAN = 10, frozenset("这這此该該其以上但然")


class Facts(Phrases):
    """The phrases of a text, and whether what stands at a place is told as a fact, and not taken back behind it."""

    @cached_property
    def _spoken(self) -> list[Span]:
        return read_text(self.text).once(spoken_spans)

    @cached_property
    def _barred(self) -> list[Span]:
        return read_text(self.text).once(barred_spans)

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
    def open(self) -> list[bool]:
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
        if is_sentence and self._denies(self.tokens[at : min(self.end_of_sentence(at), at + _LONGEST_REJECTION)]):
            return True
        # Behind a stop it must say no more: Except for Otto, all fled.
        ends = self.ends_sentence(end) or self.tokens[end].breaks[0] in ":："
        return says_any(remark, WORDS["excepts"]) and not (is_sentence and (len(remark) < end - at or not ends))

    @staticmethod
    def _denies(sentence: Sequence[Token]) -> bool:
        """Return whether a sentence says that what was told before it is untrue, undone, or only told by somebody."""
        first, last, size = sentence[0], sentence[-1], len(sentence)
        # No, he was not; none of this happened.
        if first.key in ("nobody", "nothing") and says_any(sentence[1:3], frozenset({"this", "that", "kind"})):
            return True
        if first.key == "no" and size > 1 and sentence[1].breaks:
            return True
        openings = (sentence[at : at + 2] for at, one in enumerate(sentence) if one.breaks)
        if first.key in WORDS["admits"] or any(says_any(opening, WORDS["corrects"]) for opening in openings):
            return True
        # That was the view; or so she claims.
        is_view = first.key in ("this", "that", "such") and says_any(sentence[1:2], WORDS["be"])
        is_view = is_view and says_any(sentence, WORDS["believed"])
        is_so = (first.key in ("so", "or") or last.key == "so") and size <= LONGEST_REMARK + 1
        # Scholars reject this story; he was wrong; the news was false.
        of_it = first.key in ("it", "this", "that") or last.key == "this" or says_any(sentence, WORDS["statements"])
        of_it = of_it or (size < 6 and (first.article == "the" or first.key in WORDS["pronouns"]))
        of_it = of_it or first.key in _THIS_IN_HAN
        if first.is_han and size <= _LONGEST_DENIAL and says_any(sentence, WORDS["retracts"]):
            return True
        rejects = of_it and size < _LONGEST_REJECTION and says_any(sentence, WORDS["rejects"])
        return rejects or is_view or (is_so and says_any(sentence, REPORTS - WORDS["seeming"]))

    def _is_in(self, spans: Sequence[Span], at: int) -> bool:
        place = self.tokens[at].start if at < len(self.tokens) else len(self.text)
        before = bisect_right(spans, (place, len(self.text)))
        return before > 0 and place < spans[before - 1][1]

    def is_supposed(self, at: int, *, quoted: bool = False) -> bool:
        if self._is_in(self._barred, at):
            return True
        return not quoted if self._is_in(self._spoken, at) else self._supposed[at]

    def ends_sentence(self, end: int) -> bool:
        return end == len(self.tokens) or self.tokens[end].stops
