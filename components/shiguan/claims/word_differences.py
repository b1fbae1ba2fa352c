"""Compares a claim with a span that says nearly the same, and finds what one has in place of the other's words."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import dropwhile
from typing import Literal

from shiguan.claims.opposites import are_opposites, negations
from shiguan.claims.tokens import ABBREVIATION, IRREGULAR, NOBODY, spelled, words_of
from shiguan.reading.text import read_text
from shiguan.text.dictionary import dictionary_words
from shiguan.text.languages import HAN
from shiguan.text.name_forms import Span, han_names
from shiguan.text.quantities import FULL_MONTHS, Quantity, quantities
from shiguan.text.terms import STOP_WORDS, is_wide, terms

DifferenceKind = Literal["number", "name", "opposite", "negation", "limit", "word"]

# A claim repeats a span if at least this share of its words is found there in order; others cannot be aligned.
REPEATED = 0.6
# From this share on, another name means another matter, not another wording; in a short claim, the share of the rest.
_NEARLY_VERBATIM, _REST_VERBATIM = 0.75, 0.9
# From this share on, a denial on one side only makes the opposite statement, not a different one.
_SAME_STATEMENT = 0.8
# The words of shorter claims are found in order by chance.
_FEWEST = 4
# A replacement is about as long as what it replaces; a longer stretch on the other side is only something left out.
_LONGER_BY = 3
# A span that is longer than the claim by this factor, denying words (did not) aside, may deny something else.
_SAME_LENGTH, _DENIAL = 1.25, 2
_LONGEST = 1200
# In so many words before those that both have stands what denies them.
_LEAD = 4
# The characters around a number that show what it counts.
_NEAR = 16
# Smaller numbers are no years; a number that is only about right may be off by this share.
_FIRST_YEAR, _ROUGHLY = 100, 0.1
_BOUND = re.compile(
    r"(?:(?P<least>\b(?:more than|over|at least|above)|超[过過]|[多高]于|至少|逾)"
    r"|(?P<most>\b(?:(?:less|fewer) than|under|up to|at most|below)|不足|不到|至多|[少低]于)"
    r"|\b(?:about|around|some|roughly|approximately|nearly|almost)|[约約近])\s*$",
    re.IGNORECASE,
)
_DIFFERENCE = re.compile(r"\s*(?:\w+\s+)?(?:\w+er|more|less)\b[^.]{0,40}\bthan\b")
_TOKEN = re.compile(rf"{NOBODY}|{ABBREVIATION}|\d[\d,]*(?:\.\d+)?|[{HAN}]|[^\W\d_]+(?:['’][^\W\d_]+)*")
_HAN_RUN = re.compile(f"[{HAN}]+")
_OPENS = re.compile(r"(?:^|[.!?:;*#\n\"“(])[\s*#\"“(]*$")
_NO_NAMES = frozenset("I Yes No However Additionally Also Moreover Furthermore Therefore Thus Overall Note".split())
_ASIDE = re.compile(r"\s*[,(（，—–].*[,)），—–]\s*", re.DOTALL)
_BREAK = re.compile(r"[.!?]\s|[。！？\n]")
_LIST = re.compile(r"[,，、;；/]|\b(?:and|or)\b|和|与|與|及|或")
# Han characters that carry only grammar; a run of these alone is not a difference.
_PARTICLES = frozenset(
    "的是了在于於与與和及而之其也者为為以有这這那被把将將由从從到个個所就都又并並则則乃地得着著过過曾等来來他她它们們此该該"
)


@dataclass(frozen=True)
class Difference:
    """One place where a claim departs from the span that it repeats."""

    kind: DifferenceKind
    claimed: str
    found: str


@dataclass(frozen=True)
class Comparison:
    """A claim aligned with a span: the share of its words that the span repeats, and the differences."""

    repeated: float
    differences: tuple[Difference, ...]


NOT_COMPARED = Comparison(0.0, ())


@dataclass(frozen=True, slots=True)
class _Token:
    key: str
    start: int
    end: int

    @property
    def is_han(self) -> bool:
        return len(self.key) == 1 and is_wide(self.key)


def may_repeat(claim: str, span: str) -> bool:
    """Return whether a span has so many words of a claim that it may repeat it: quicker than to align them."""
    first, second = read_text(claim).once(_tokens), {token.key for token in read_text(span).once(_tokens)}
    return len(first) >= _FEWEST and sum(token.key in second for token in first) / len(first) >= REPEATED


def compare(claim: str, span: str, passage: str = "") -> Comparison:
    """Align a claim with a span; words left out or added are not differences, replaced words are."""
    first, second = read_text(claim).once(_tokens), read_text(span).once(_tokens)
    if len(first) < _FEWEST or not second or max(len(claim), len(span)) > _LONGEST:
        return NOT_COMPARED
    matcher = SequenceMatcher(None, [t.key for t in first], [t.key for t in second], autojunk=False)
    blocks = [block for block in matcher.get_matching_blocks() if block.size]
    same = sum(block.size for block in blocks)
    repeated = same / len(first)
    if repeated < REPEATED:
        return Comparison(repeated, ())
    found: list[Difference] = []
    for tag, *place in matcher.get_opcodes():
        if tag == "replace":
            left, right = _replacing(claim, span, first, second, place)
            # A part of a compound (Season-on-the-Line) is no word in place of another.
            alike = bool(right) and _is_bound(claim, left[0]) == _is_bound(span, right[0])
            if alike and len(right) <= len(left) + _LONGER_BY:
                nearly = repeated >= _NEARLY_VERBATIM or same >= _REST_VERBATIM * (len(first) - len(left))
                otherwise = _denied_otherwise((claim, left), (span, right))
                difference = otherwise or _replaced((claim, left), (span, right), passage, repeated, verbatim=nearly)
                if difference and difference.kind == "name" and _stands_elsewhere(first, left, second):
                    difference = replace(difference, kind="word")
                found += [difference] if difference else []
    aligned = {at for block in blocks for at in range(block.a, block.a + block.size)}
    there = {token.key for token in second}
    moved = any(t.key in there and _has_content([t]) for at, t in enumerate(first) if at not in aligned)
    begin, end = blocks[0].b, blocks[-1].b + blocks[-1].size
    inside = span[second[begin].start : second[end - 1].end]
    claimed, stated = negations(claim), negations(inside)
    for tag, _, _, first_in, last_in in matcher.get_opcodes():
        if tag == "insert" and begin < first_in < last_in < end:
            # What another clause denies: Schubert, who never married, died in 1828.
            aside = span[second[first_in - 1].end : second[last_in].start]
            own = _BREAK.split(aside)[-1] if _BREAK.search(aside) else "" if _ASIDE.fullmatch(aside) else aside
            stated -= negations(aside) - negations(own)
    if claimed % 2 != stated % 2 and claimed:
        # What denies may stand before the words that both have: never has it been, it has never been.
        lead = _BREAK.split(span[second[max(0, begin - _LEAD)].start : second[begin].start])[-1]
        stated += negations(lead)
    # Denying words on one side only make that side longer.
    room = _DENIAL if not claimed or not stated else 0
    denies = claimed % 2 != stated % 2
    # To deny one thing does not contradict another (two did not sink, three sank), nor does an opposite the other way
    # round: A lies east of B, B lies west of A.
    found = [replace(one, kind="word") if denies or (moved and one.kind == "opposite") else one for one in found]
    if (
        denies
        and not found
        and same >= _SAME_STATEMENT * (len(first) - (room if claimed else 0))
        and end - begin <= _SAME_LENGTH * len(first) + room
    ):
        found.append(Difference("negation", claim, inside))
    order = ("number", "name", "opposite", "negation", "word")
    return Comparison(repeated, tuple(sorted(found, key=lambda difference: order.index(difference.kind))))


def _is_bound(text: str, token: _Token) -> bool:
    """Return whether a hyphen binds a word to the one before it."""
    return token.start > 0 and text[token.start - 1] in "-‐‑"


def _stands_elsewhere(first: Sequence[_Token], left: Sequence[_Token], second: Sequence[_Token]) -> bool:
    """Return whether a span has a part of a claim behind the same word, in another place: in the course of the war."""
    at = first.index(left[0])
    begin = next((place for place in range(at - 1, -1, -1) if _has_content([first[place]])), at)
    keys = [" ".join(["", *(token.key for token in part), ""]) for part in (first[begin : at + len(left)], second)]
    return begin < at and keys[0] in keys[1]


def _replacing(
    claim: str, span: str, first: Sequence[_Token], second: Sequence[_Token], place: Sequence[int]
) -> tuple[Sequence[_Token], Sequence[_Token]]:
    """Return the tokens of the claim (left) and of the span (right) that replace each other."""
    start, end, begin, stop = place
    if end - start == stop - begin == 1 and first[start].is_han and second[begin].is_han:
        # Where only one of the two is in a name, that may have taken a verb for its last character: 陶雅回 and 陶雅归.
        named = _in_name(claim, first[start]), _in_name(span, second[begin])
        before, after = named[0] if named[0] and named[1] else (0, 0)
        before, after = min(before, start, begin), min(after, len(first) - end, len(second) - stop)
        # 河南 and 河北 differ as words, so a single character takes along the rest of its name, or a shared neighbour.
        if not before and not after:
            before = int(bool(start and begin) and _is_part(claim, first[start - 1]))
            after = int(not before and end < len(first) and stop < len(second) and _is_part(claim, first[end]))
        start, begin, end, stop = start - before, begin - before, end + after, stop + after
    left, right = first[start:end], second[begin:stop]
    # Where the claim begins or ends, the rest of the span is on the other side: only its nearest tokens count.
    if end == len(first):
        if _BREAK.search(span[second[begin - 1].end if begin else 0 : right[0].start]):
            return left, ()
        right = right[: len(left) + 1]
    elif start == 0:
        right = right[-len(left) - 1 :]
    return left, right


def _in_name(text: str, token: _Token) -> Span | None:
    """Return how many characters of a name stand before and behind one of it; None if it is in none."""
    names = read_text(text).once(han_names)
    return next(((token.start - at, end - token.end) for at, end in names if at <= token.start < end), None)


def _is_part(text: str, token: _Token) -> bool:
    """Return whether a character may be a part of a word with the next one."""
    return token.is_han and token.key not in _PARTICLES and _in_name(text, token) is None


def _tokens(text: str) -> tuple[_Token, ...]:
    words = ((word, match.span()) for match in _TOKEN.finditer(text) for word in words_of(match[0]))
    return tuple(_Token(_key(word), *span) for word, span in words)


@lru_cache(maxsize=8192)
def _key(word: str) -> str:
    words = terms(FULL_MONTHS.get(word) or spelled(IRREGULAR.get(word, word.lower())))
    return words[0] if words else word.lower()


_Part = tuple[str, Sequence[_Token]]
"""A text and some of its neighbouring tokens."""


def _replaced(claimed: _Part, found: _Part, passage: str, repeated: float, *, verbatim: bool) -> Difference | None:
    """Return what a part of the span says differently than the part of the claim in its place."""
    (claim, left), (span, right) = claimed, found
    words = claim[left[0].start : left[-1].end], span[right[0].start : right[-1].end]
    number = _other_number(claim, span, left, right)
    if number:
        return number
    opposite = are_opposites(*words) or _opposite_cores(left, right)
    words = _in_whole_words(claimed, found)
    if opposite:
        return Difference("opposite", *words)
    if not _has_content(left) or not _has_content(right) or _moved(claim, span, left, right):
        return None
    if _has_name(claim, left, claim + passage) and _has_name(span, right, span + passage):
        # 安禄山 and 禄山, or a name with a title and without, name the same person.
        same = _shares_word(left, right) or any(_is_short_for(*pair) for pair in (words, words[::-1]))
        return None if same else Difference("name" if verbatim else "word", *words)
    if all(token.is_han for token in (*left, *right)):
        other = len(left) > 1 and not _shares_word(left, right)
    else:
        # In a sentence repeated nearly word for word, another word is hardly chance; it may still be a synonym.
        other = repeated >= _SAME_STATEMENT and len(left) == len(right) == 1
    return Difference("word", *words) if other else None


def _is_short_for(short: str, full: str) -> bool:
    """Return whether a name is made of the first letters of another one: UK or U.K., United Kingdom."""
    letters = "".join(word[0] for word in full.split() if word[0].isupper())
    return short.isupper() and short.replace(".", "") == letters != full


def _denied_otherwise(claimed: _Part, found: _Part) -> Difference | None:
    """Return what one of two replaced parts denies where the other one has another word: not open, closed."""
    parts = [(text, tokens, text[tokens[0].start : tokens[-1].end]) for text, tokens in (claimed, found)]
    if negations(parts[0][2]) % 2 == negations(parts[1][2]) % 2:
        return None
    rest = ([token for token in tokens if not negations(text[token.start : token.end])] for text, tokens, _ in parts)
    return Difference("word", parts[0][2], parts[1][2]) if all(map(_has_content, rest)) else None


def _in_whole_words(claimed: _Part, found: _Part) -> tuple[str, str]:
    """Return the words, and in Chinese whole ones, that differ: without those with which both begin or end."""
    first, second = (_whole_words(*part) for part in (claimed, found))
    while len(first) > 1 < len(second) and first[0] == second[0]:
        first, second = first[1:], second[1:]
    while len(first) > 1 < len(second) and first[-1] == second[-1]:
        first, second = first[:-1], second[:-1]
    return "".join(first), "".join(second)


def _whole_words(text: str, tokens: Sequence[_Token]) -> list[str]:
    """Return the words and names that some Han characters are parts of, up to the end of their clause."""
    start, end = tokens[0].start, tokens[-1].end
    run = _HAN_RUN.match(text, start, end)
    if run is None or not all(token.is_han for token in tokens):
        return [text[start:end]]
    words = [text[at:to] for at, to in read_text(text).once(_han_words) if at < run.end() and to > start]
    kept = list(dropwhile(_PARTICLES.__contains__, words))
    while kept and kept[-1] in _PARTICLES:
        kept.pop()
    return kept or words


def _han_words(text: str) -> tuple[Span, ...]:
    """Cut the Han characters of a text into names and words of the dictionary."""
    names = {at: name for name in read_text(text).once(han_names) for at in range(*name)}
    found: list[Span] = []
    for run in _HAN_RUN.finditer(text):
        at = run.start()
        for parts, _ in dictionary_words(run[0], translated=False):
            found.append(names.get(at, (at, at + len(parts))))
            at += len(parts)
    return tuple(dict.fromkeys(found))


def _opposite_cores(left: Sequence[_Token], right: Sequence[_Token]) -> bool:
    """Return whether two runs of Han characters differ only in characters that are opposites: 之后 and 之前."""
    pairs = [(a.key, b.key) for a, b in zip(left, right, strict=False) if a.key != b.key]
    return len(left) == len(right) and len(pairs) == 1 and are_opposites(*pairs[0])


def _other_number(claim: str, span: str, left: Sequence[_Token], right: Sequence[_Token]) -> Difference | None:
    """Find a number in the claim's part that replaces a different one in the span's."""
    claimed = [q for q in quantities(claim) if left[0].start < q.end and q.start < left[-1].end]
    found = [q for q in quantities(span) if right[0].start < q.end and q.start < right[-1].end]
    for number in claimed:
        rivals = [r for r in found if number.comparable_with(r) and _count_alike((claim, number), (span, r))]
        rivals = [rival for rival in rivals if not leaves_room((claim, number), (span, rival))]
        if rivals and not any(number.agrees_with(rival) for rival in rivals):
            return Difference("number", claim[number.start : number.end], span[rivals[0].start : rivals[0].end])
    return None


def _count_alike(first: tuple[str, Quantity], second: tuple[str, Quantity]) -> bool:
    """Return whether two numbers count the same: dates do, but for decades, and numbers next to the same word."""
    if len({text[number.start : number.end].endswith("年代") for text, number in (first, second)}) > 1:
        return False
    kinds = {first[1].kind, second[1].kind}
    if kinds == {"number", "year"}:
        return all(value >= _FIRST_YEAR for _, one in (first, second) for value in one.values)
    if kinds != {"number"} or unit_of(*first) == unit_of(*second):
        return True
    before = [_tokens(text[max(0, number.start - _NEAR) : number.start])[-1:] for text, number in (first, second)]
    return [token.key for token in before[0]] == [token.key for token in before[1]]


def leaves_room(first: tuple[str, Quantity], second: tuple[str, Quantity]) -> bool:
    """Return whether a claim's number is a bound that another one keeps, or a difference where that is none."""
    (claim, number), (span, other) = first, second
    bound = _BOUND.search(claim[max(0, number.start - _NEAR) : number.start])
    value, found = max(number.values), max(other.values)
    if bound and (found >= value if bound["least"] else found <= value if bound["most"] else _is_near(value, found)):
        return True
    return bool(_DIFFERENCE.match(claim, number.end) and not _DIFFERENCE.match(span, other.end))


def _is_near(value: float, found: float) -> bool:
    return abs(value - found) <= _ROUGHLY * value


def unit_of(text: str, number: Quantity) -> str:
    """Return the term after a number: what it counts."""
    following = terms(text[number.end : number.end + _NEAR])
    return following[0] if following else ""


def _has_content(tokens: Sequence[_Token]) -> bool:
    return any(token.key not in STOP_WORDS and token.key not in _PARTICLES for token in tokens)


def _shares_word(left: Sequence[_Token], right: Sequence[_Token]) -> bool:
    shared = {token.key for token in left} & {token.key for token in right}
    # One shared Han character does not make two words the same: 河南 and 河北.
    return any(not (len(key) == 1 and is_wide(key)) and key not in STOP_WORDS for key in shared)


def _moved(claim: str, span: str, left: Sequence[_Token], right: Sequence[_Token]) -> bool:
    """Return whether the two are only in another order, as the members of a list may be."""
    claimed, found = ({token.key for token in read_text(text).once(_tokens)} for text in (claim, span))
    both = all(t.key in found for t in left) and all(t.key in claimed for t in right)
    return both and bool(_LIST.search(claim))


def _has_name(text: str, tokens: Sequence[_Token], context: str) -> bool:
    if any(token.is_han for token in tokens):
        around = text[max(0, tokens[0].start - 1) : tokens[-1].end + 1]
        return any(_in_name(text, token) for token in tokens) or around[:1] in "《「“『" or around[-1:] in "》」”』"
    content = [token for token in tokens if token.key not in STOP_WORDS]
    # A stretch that also holds verbs or common nouns does not replace a name.
    if not all(text[token.start].isupper() for token in content):
        return False
    for token in content:
        word = text[token.start : token.end]
        if word in _NO_NAMES:
            return False
        # The first word of a sentence is capitalised anyway; it counts only if it is capitalised elsewhere too.
        if not _OPENS.search(text[: token.start]) or re.search(rf"(?<=[a-z,] ){re.escape(word)}\b", context):
            return True
    return False
