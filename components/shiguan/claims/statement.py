"""A text as the words that matter to what it states: those that may be added or left out anywhere are not in it."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from shiguan.reading.folded import SIGNS
from shiguan.reading.text import Result, read_text
from shiguan.resources import read_table
from shiguan.text.languages import HAN
from shiguan.text.name_forms import han_names
from shiguan.text.quantities import Quantity
from shiguan.text.terms import UNSPACED, fold_text, is_wide

_TABLE = read_table(Path(__file__).with_name("restatement.yaml"))
WORDS = {name: frozenset(fold_text(words).split()) for name, words in _TABLE.items()}
"""The lists of words of `restatement.yaml`."""
_FORMS = [verb.split() for verb in _TABLE["irregular"].split(",")]
_IRREGULAR = {form: verb for verb, *forms in _FORMS for form in forms}
WORDS["finite"] |= {past for _, past, _ in _FORMS}
PARTICIPLES = frozenset(form for _, _, form in _FORMS)
"""Those that do not end in -ed."""
_TENSES = frozenset(frozenset(pair.split()) for pair in _TABLE["tenses"].split(","))
_LIMITS, _LONGEST_LEAD = WORDS["limits"] - {"first"}, 12
_DENIES = frozenset({"not", "never", "no", "neither", "none", "nobody", "few"})
_LEAVES_OPEN = (WORDS["unreal"] - {"to"}) | {"only", "even"}
_OF_TIME_OR_CAUSE = frozenset({"when", "where", "while", "because", "since", "as"})
_REPORTS, _INVERTED = WORDS["reported"] | WORDS["doubts"], frozenset({"had", "were", "should"})
OPENS_QUOTE = re.compile(r"[“「『«\"]")
_IN_DATE, _OPENS_DATE = WORDS["units_of_date"] | WORDS["when"] | {"of"}, WORDS["dated"] | WORDS["when"]
_BEFORE = WORDS["before"] | WORDS["units_of_date"] | WORDS["when"]
_LETTERS = f"[^\\W_{UNSPACED}]+"
_TOKEN = re.compile(
    rf"[公西]元(?=[\d〇一二三四五六七八九十])|[{HAN}]|(?:(?![{HAN}])[{UNSPACED}])+|{_LETTERS}(?:['’](?!s\b){_LETTERS})*"
    r"|['’]s\b|[$€£+−-](?=\d)|(?<=\d)[%‰°]|(?<=[A-Za-z])\+\+(?!\w)|[≤≥≠±]"
    rf"|{SIGNS}"
)
_POSSESSIVE, _PERCENT = "'s", frozenset({"%", "percent", "per", "cent"})
# A hyphen or an apostrophe between two words is no break; the end of a sentence is a hard one.
_BREAK, _STOP = re.compile(r"[^\w\s'’\-‐‑·•]|\n"), re.compile(r"[。！？；\n]")
# 十余万 is more than 十万, 二三万 and 十五六 are no certain number.
_ABOUT = re.compile(r"[余馀餘]|[一二两三四五六七八九]{2}(?=[十百千万亿])|(?<=十)[一二两三四五六七八九]{2}\Z")
_ENDINGS = ("ies", "ied", "es", "ed", "s", "d")
_SHORTEST_WORD = 3
# A claim of fewer words stands anywhere by chance; a Han character tells three quarters of a word.
_FEWEST, _HAN_SHARE = 3, 0.75
_LONGEST_DATE = 10
# What somebody says: in quotation marks behind a verb of saying, or there and a sentence.
_SAYS = r"\b(?:sa(?:id|ys)|wrote|writes|replied|answered|asked|cried|added|told\s\w+)\b|[曰云言道说說称稱谓謂问問答]"
_SPEECH = re.compile(
    rf"(?:(?:{_SAYS})(?:\sthat)?[\s:：,，]*[“「『\"]|[“「『](?=[^“”「」『』\n]{{9,}}[,.!?，。！？…][”」』]))[^”」』\"\n]*",
    re.IGNORECASE,
)
# What somebody does upon it begins so, and says within so many characters that he does not.
_THEN, _LONGEST_REPLY = re.compile("[乃遂]"), 4
# So many words behind a comma may only say who says so: he claimed.
_LONGEST_REMARK = 5

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a Han character or a number of a text."""

    key: str
    base: str
    """The word without its ending, if it is one that may have one."""
    start: int
    end: int
    number: Quantity | None
    breaks: str
    """The punctuation between it and the token before it; a stop where it is the first."""
    stops: bool
    """Whether it begins a sentence."""
    is_capital: bool

    def same(self, other: "Token") -> bool:
        if self.number and other.number:
            alike = self.number.comparable_with(other.number) and self.key == other.key
            # That it was the second year of an era is more than that it was the second.
            shared, mine = self.number.values & other.number.values, self.number.values
            names_era = len(mine) > 1 and shared == {min(mine)}
            return alike and not names_era and self.number.agrees_with(other.number)
        if self.number or other.number:
            return False
        if self.key == other.key or frozenset((self.key, other.key)) in _TENSES:
            return True
        short, long = sorted((self.key, other.key), key=len)
        is_plural = long in (short + "s", short + "es", short.removesuffix("y") + "ies")
        return bool(self.base) and self.base == other.base and not is_plural


class Statement:
    """The tokens of a text but for those that change nothing; a number is one token."""

    def __init__(self, tokens: Sequence[Token], text: str) -> None:
        self.tokens, self.text = tokens, text
        self._kept: dict[Callable[[Any], Any], Any] = {}

    def once(self, function: "Callable[[Statement], Result]") -> Result:
        """Return what a function makes of the statement: it is called once."""
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
    def namesakes(self) -> frozenset[str]:
        """The names before which two different ones stand: Joe Bryant and Kobe Bryant; 光 for 李光进 and 朱光进."""
        opens = WORDS["adverbial"] | WORDS["before"] | WORDS["subjects"] | WORDS["pronouns"]
        named = (pair for pair in pairwise(self.tokens) if all(one.is_capital for one in pair) and not pair[1].breaks)
        counts = Counter(second for _, second in {(a.key, b.key) for a, b in named if a.key not in opens})
        whole = {fold_text(name) for name in read_text(self.text).names}
        counts.update(name[1:] for name in whole if is_wide(name[1:2]))
        return frozenset(name[0] if is_wide(name[:1]) else name for name, count in counts.items() if count > 1)

    @cached_property
    def dates(self) -> list[Span]:
        """The phrases that say when: in 1778, 天宝十四载十一月."""
        found: list[Span] = []
        at = 0
        while at < len(self.tokens):
            end = self._end_of_date(at)
            if end:
                found.append((at, end))
            at = end or at + 1
        return found

    @cached_property
    def _ends_of_dates(self) -> frozenset[int]:
        return frozenset(end for _, end in self.dates)

    def _end_of_date(self, at: int) -> int:
        end, is_date, tokens = at, False, self.tokens
        while end < min(len(tokens), at + _LONGEST_DATE):
            token = tokens[end]
            if token.breaks and end > at and not token.number:
                break
            is_span = token.key in ("to", "until") and tokens[at].key == "from"
            if token.number is None and not is_span and token.key not in (_IN_DATE if end > at else _OPENS_DATE):
                break
            is_date = is_date or self._is_date(end)
            end += 1
        return end if is_date else 0

    def _is_date(self, at: int) -> bool:
        number = self.tokens[at].number
        if number is None:
            return False
        counted = at + 1 < len(self.tokens) and self.tokens[at + 1].key in WORDS["units_of_date"]
        likely = number.kind == "number" and any(100 <= value <= 2100 for value in number.values)
        led = at > 0 and self.tokens[at - 1].key in _OPENS_DATE | {"of"}
        return counted or number.kind in ("year", "month", "day") or (likely and led)

    @cached_property
    def _names(self) -> frozenset[int]:
        return frozenset(start for start, _ in read_text(self.text).once(han_names))

    @cached_property
    def _supposed(self) -> list[bool]:
        """For each place and the end: whether a condition, a doubt or who says so stands before it in its sentence."""
        found, before = list[bool](), Token("", "", 0, 0, None, "", True, False)
        is_supposed = is_wish = False
        for at, token in enumerate(self.tokens):
            is_that = "that" in (between := self.text[before.end : token.start])
            leads = is_that or (token.breaks not in ("", "、") and token.key not in ("and", "but"))
            said = before.key in _REPORTS | WORDS["agreed"] and leads
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
    def _asks(self) -> list[bool]:
        """For each place and the end: whether the sentence that goes on or ends there is a question."""
        found = [bool(self.tokens) and self.text[self.tokens[-1].end :].strip()[:1] in ("?", "？")]
        for token in reversed(self.tokens):
            found.append(token.breaks[:1] in ("?", "？") if token.stops else found[-1])
        return found[::-1]

    @cached_property
    def _spoken(self) -> list[Span]:
        return [match.span() for match in _SPEECH.finditer(self.text)]

    def _is_spoken(self, at: int) -> bool:
        """Return whether a token stands in what somebody says."""
        place = self.tokens[at].start if at < len(self.tokens) else len(self.text)
        before = bisect_right(self._spoken, (place, len(self.text)))
        return before > 0 and place < self._spoken[before - 1][1]

    def is_supposed(self, at: int) -> bool:
        return self._supposed[at] or self._is_spoken(at)

    def begins_alone(self, at: int, *, quoted: bool = False) -> bool:
        """Return whether what begins there can be cut out of what stands before it; speech only in quotation marks."""
        if (self.is_supposed(at) and not (quoted and self._is_spoken(at))) or self._is_led_by_limit(at):
            return False
        while at and not self.tokens[at].breaks and self.tokens[at - 1].key in WORDS["harmless"]:
            at -= 1
        if self.tokens[at].breaks or not at:
            return True
        before = self.tokens[at - 1]
        opening = next((back for back in (at - 1, at - 2) if back >= 0 and self.tokens[back].breaks), at)
        if before.key == "后" and self.tokens[at].key in WORDS["later"]:
            return False
        lead = "".join(token.key for token in self.tokens[opening:at])
        is_left_out = before.key in _BEFORE or lead in WORDS["leads"] or self._is_known(at)
        return (is_left_out and not self._is_bound(at)) or at in self._ends_of_dates

    def _is_known(self, at: int) -> bool:
        """Return whether what begins there is said to be known or shown: they saw that Karl fled."""
        before = self.tokens[at - 1]
        return before.key in WORDS["known"] and "that" in self.text[before.end : self.tokens[at].start].split()

    def _is_bound(self, at: int) -> bool:
        """Return whether what stands before it may take from it: no captain and sailor, not because, will go when."""
        token, joint = self.tokens[at], self.tokens[at - 1].key
        clause = next((to for to in range(at - 1, max(-1, at - _LONGEST_LEAD), -1) if self.tokens[to].breaks), at)
        if joint in _OF_TIME_OR_CAUSE:
            return says_any(self.tokens[clause:at], _LEAVES_OPEN)
        if self._is_known(at):
            return says_any(self.tokens[clause:at], _LEAVES_OPEN | _DENIES | _REPORTS | {"to"})
        if joint != "and" or token.is_capital or token.key in WORDS["subjects"]:
            return False
        is_range = bool(token.number and at > 1 and self.tokens[at - 2].number)
        return is_range or says_any(self.tokens[clause:at], _DENIES)

    def _is_led_by_limit(self, at: int) -> bool:
        """Return whether a phrase before a comma limits what follows: apart from Otto, in a dream, 除王渊外."""
        if at == len(self.tokens) or not self.tokens[at].breaks or self.tokens[at].stops:
            return False
        first = next((to for to in range(at - 1, max(-1, at - 1 - _LONGEST_LEAD), -1) if self.tokens[to].breaks), at)
        leads = self.tokens[first].key in WORDS["adverbial"] or self.tokens[at - 1].key in WORDS["within"]
        return first < at and leads and says_any(self.tokens[first:at], _LIMITS)

    def ends_alone(self, end: int) -> bool:
        """Return whether what ends there can be cut out of what stands behind it."""
        if end == len(self.tokens) or self.tokens[end].stops or self._asks[end]:
            return not self._asks[end]
        after = self.tokens[end]
        if not after.breaks and (after.key not in WORDS["after"] or self._is_limited(end)):
            return False
        if after.key == "后" and self.tokens[end - 1].key in WORDS["royal"]:  # 王后 is no 王
            return False
        return not (after.breaks and self._is_taken_back(end))

    def _is_limited(self, end: int) -> bool:
        """Return whether the words behind a phrase change it: all sank but two, king in name only, 5 to 10."""
        tokens = self.tokens
        following = [token.key for token in tokens[end : end + 3]]
        clause = next((to for to in range(end - 1, max(-1, end - _LONGEST_LEAD), -1) if tokens[to].breaks), end - 1)
        but = "but" in following and ("for" in following or says_any(tokens[clause : end + 3], WORDS["amounts"]))
        is_range = following[0] == "to" and all(token.number for token in tokens[end - 1 : end + 2 : 2])
        is_unreal = says_any(tokens[end : end + 3], WORDS["unreal_places"])
        return but or is_range or is_unreal or following[:2] == ["and", "half"]

    def _is_taken_back(self, end: int) -> bool:
        """Return whether a remark behind a comma makes what was said before it a condition or somebody's opinion."""
        remark = [self.tokens[end]]
        for token in self.tokens[end + 1 : end + 1 + _LONGEST_REMARK]:
            if token.breaks:
                break
            remark.append(token)
        if says_any(remark[:2], WORDS["takes_back"]) or says_any(remark, WORDS["doubts"] | WORDS["undone"]):
            return True
        # In Chinese the same characters tell what somebody is called; a verb in front is one more deed of the subject.
        joined = remark[0].key in WORDS["before"] or len(remark) > _LONGEST_REMARK or is_wide(remark[0].key[:1] or "0")
        return not joined and (remark[0].key in ("said", "says") or says_any(remark[1:], WORDS["reported"]))


def joins_names(words: Sequence[Token], at: int) -> bool:
    """Return whether the word there joins two names: by Otto and Hale, by Otto of Parma."""
    joins = words[at].key in ("and", "of")
    return joins and 0 < at < len(words) - 1 and words[at - 1].is_capital and words[at + 1].is_capital


def says_any(tokens: Sequence[Token], words: frozenset[str]) -> bool:
    """Return whether one of some words is among tokens; a Chinese word may be two of them."""
    keys = [token.key for token in tokens]
    return not words.isdisjoint([*keys, *map("".join, pairwise(keys))])


def read_statement(text: str) -> Statement:
    """Read the tokens of a text that matter."""
    numbers = {number.start: number for number in read_text(text).quantities}
    found: list[tuple[str, int, int, Quantity | None]] = []
    at = end = 0
    while (match := _TOKEN.search(text, at)) is not None:
        number = next((numbers[place] for place in range(match.start(), match.end()) if place in numbers), None)
        at = max(match.end(), number.end if number else 0)
        found.append((match[0], match.start(), at, number))
    tokens: list[Token] = []
    breaks, stops, begun = ".", True, 0
    sentences = [start for start, _ in read_text(text).sentences]
    # All words are folded at once, each as if it stood alone.
    keys = fold_text("\n".join(one[0].strip() for one in found)).split("\n")
    for (word, start, at, number), folded in zip(found, keys, strict=False):
        between = text[end:start]
        before, begun, end = begun, bisect_right(sentences, start), at
        breaks += "".join(_BREAK.findall(between))
        stops = stops or begun > before or bool(_STOP.search(between))
        # The 1960s are more than 1960.
        about = _ABOUT.search(text, start, at) if number else None
        more = re.sub("[馀餘]", "余", about[0]) if about else "s" if word.endswith("0s") else ""
        key = more if number else folded.replace("’", "'").replace("−", "-")
        capital = word[0].isupper()
        if tokens and tokens[-1].number and tokens[-1].number.kind == "percent" and key in _PERCENT:
            continue
        # The An of An Lushan is no article.
        if key not in WORDS["harmless"] or (capital and key in ("a", "an") and text[at + 1 : at + 2].isupper()):
            # Not so the 's of a word that was left out: That's what he said.
            owns = key == _POSSESSIVE and not (between == "" and tokens and tokens[-1].end < start)
            tokens.append(Token(key, _base(key), start, at, number, "" if owns else breaks, stops, capital))
            breaks, stops = "", False
    return Statement(tokens, text)


def is_enough(tokens: Sequence[Token]) -> bool:
    """Return whether tokens are too many to stand anywhere by chance."""
    return sum(_HAN_SHARE if is_wide(token.key[:1] or "0") else 1 for token in tokens) >= _FEWEST


def _base(word: str) -> str:
    word = _IRREGULAR.get(word, word)
    if len(word) < _SHORTEST_WORD or not word.isascii():
        return ""
    endings = (ending for ending in _ENDINGS if word.endswith(ending))
    ending = next((ending for ending in endings if len(word) - len(ending) >= _SHORTEST_WORD), "")
    base = word.removesuffix(ending)
    base = base + "y" if ending in ("ies", "ied") else base.removesuffix("e")
    doubled = len(base) > _SHORTEST_WORD and base[-1] == base[-2] and base[-1] not in "ls"
    return base[:-1] if doubled and ending == "ed" else base
