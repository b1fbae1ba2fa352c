"""The phrases of a text, read once: where each begins and ends, what leads it, whose verb it has, which are names."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

from shiguan.claims.dates import dates_in
from shiguan.claims.tokens import WORDS, Span, Token, is_finite, is_participle, joins_names, says_any
from shiguan.reading.text import Result, read_text
from shiguan.text.name_forms import han_names

JOINS = frozenset({"and", "but"})
"""What joins two clauses or predicates, of which each is so."""
BE = WORDS["be"] | {"have", "has", "had"}
"""Behind these a verb is a participle."""
ARE = WORDS["be"] | {"become", "became"}
"""Behind these it says what somebody is."""
DENIES = WORDS["quantifiers"] | (WORDS["unreal"] - {"to"})
"""What makes of a clause less than that it is so of somebody."""
REPORTS = WORDS["reported"] | WORDS["doubts"]
"""What says that others say so, and whether rightly."""
LEADS = (WORDS["adverbial"] - {"having", "being", "apart", "without"}) | {"as", "according"}
"""What a phrase in front of a clause opens with: in Acre, he sold the town."""
CUTS = (WORDS["before"] - JOINS - {"as"}) | WORDS["subjects"] | REPORTS | DENIES
"""What another subject, or what somebody says, begins with."""
_PREPOSITIONS = (WORDS["after"] | WORDS["adverbial"] | {"of"}) - WORDS["before"] - {"before", "after"}
# How many tokens of a subject may stand before its verb.
_LONGEST_SUBJECT = 8
_HYPHENS, _RANGES = frozenset("-‐‑"), frozenset(["-", "–", "—", "～", "~", "/", "&", "：", ":", "、", "+", "＋"])


class Phrases:
    """
    The tokens of a text, and how they make phrases, sentences, names and dates.

    Places are those of tokens. A phrase goes from one sign of punctuation to the next, a sentence from one stop to the
    next; the main clause of a sentence begins behind what is put in front of it.
    """

    def __init__(self, tokens: Sequence[Token], text: str) -> None:
        self.tokens, self.text = tokens, text
        self._kept: dict[Callable[[Any], Any], Any] = {}

    def once(self, function: "Callable[[Self], Result]") -> Result:
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
    def signs(self) -> list[int]:
        return [at for at, token in enumerate(self.tokens) if token.breaks]

    def lead(self, at: int) -> Sequence[Token]:
        """Return what of its phrase stands before a place; the phrase before it, where one begins there."""
        before = bisect_left(self.signs, at)
        return self.tokens[self.signs[before - 1] if before else 0 : at]

    def end_of_phrase(self, at: int) -> int:
        after = bisect_right(self.signs, at)
        return self.signs[after] if after < len(self.signs) else len(self.tokens)

    def end_of_sentence(self, at: int) -> int:
        return next((to for to in range(at + 1, len(self.tokens)) if self.tokens[to].stops), len(self.tokens))

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
        behind = self.tokens[phrase.stop : phrase.stop + 1]
        if any(self.tokens[at].key == "and" for at in phrase) or says_any(behind, WORDS["together"]):
            return True
        counts = any(self.tokens[at].number and at not in self._dated for at in phrase)
        # In `Karl and Hale was founded` it is the name of one.
        is_what = self.tokens[verb].key in ARE and not is_participle(self.tokens[verb + 1 : verb + 2])
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
        """Return the words before a place that are no tokens, such as `that`."""
        start = self.tokens[at - 1].end if at else 0
        return frozenset(self.text[start : self.tokens[at].start if at < len(self.tokens) else None].lower().split())

    def has_article(self, at: int) -> bool:
        return at < len(self.tokens) and bool(self.tokens[at].article)

    def is_definite(self, at: int) -> bool:
        return at < len(self.tokens) and self.tokens[at].article == "the"

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
    def _starts_of_dates(self) -> dict[int, int]:
        return {end: start for start, end in self.dates}

    @cached_property
    def _names(self) -> dict[int, int]:
        return dict(read_text(self.text).once(han_names))

    @cached_property
    def _begins(self) -> list[int]:
        return [0, *(at for at, token in enumerate(self.tokens) if at and (token.stops or ";" in token.breaks))]

    def begin(self, at: int) -> int:
        """Return where a sentence begins, or what stands behind its last semicolon."""
        return self._begins[bisect_right(self._begins, at) - 1]

    def cuts_word(self, at: int) -> bool:
        """Return whether what stands before and behind a place is one: sister|-in-law, 5|–10, 北京|—上海."""
        if not 0 < at < len(self.tokens):
            return False
        sign, token = self.text[self.tokens[at - 1].end : self.tokens[at].start], self.tokens[at]
        near = any(one.number for one in self.tokens[max(0, at - 2) : at])
        is_range = bool(token.number) and near and sign.strip() in _RANGES
        return sign in _HYPHENS or is_range or (token.is_han and sign in _RANGES - {"、", "：", ":"})
