"""Compares a claim with a span that says nearly the same, and names what one has in place of the other's."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal

from shiguan.resources import read_patterns, read_table
from shiguan.text.languages import HAN
from shiguan.text.names import looks_like_name
from shiguan.text.quantities import FULL_MONTHS, Quantity, quantities
from shiguan.text.terms import STOP_WORDS, is_wide, terms

DifferenceKind = Literal["number", "name", "opposite", "negation", "word"]

# From this share of a claim's words found in order on, the claim repeats the span; below, nothing can be lined up.
REPEATED = 0.6
# From this share on, another name is another matter and not another way to say it; in a short claim, of the rest.
_NEARLY_VERBATIM, _REST_VERBATIM = 0.75, 0.9
# From this share on, a denial on one side only is no other statement but the opposite one.
_SAME_STATEMENT = 0.8
# Shorter claims agree in order by chance.
_FEWEST = 4
# What stands in another's place is about as long; a long stretch on the other side is only something left out.
_LONGER_BY = 3
# A span this much longer than the claim, the words that deny (did not) aside, may deny something else.
_SAME_LENGTH, _DENIAL = 1.25, 2
_LONGEST = 1200
# So many characters around a number tell what it counts.
_NEAR = 16
_TOKEN = re.compile(rf"\d[\d,]*(?:\.\d+)?|[{HAN}]|[^\W\d_]+(?:['’][^\W\d_]+)*")
_OPENS = re.compile(r"(?:^|[.!?:;*#\n\"“(])[\s*#\"“(]*$")
_NO_NAMES = frozenset("I Yes No However Additionally Also Moreover Furthermore Therefore Thus Overall Note".split())
_BREAK = re.compile(r"[.!?]\s|[。！？\n]")
_LIST = re.compile(r"[,，、;；/]|\b(?:and|or)\b|和|与|與|及|或")
# Han characters that carry grammar and no matter; a run of these alone is no difference.
_PARTICLES = frozenset(
    "的是了在于於与與和及而之其也者为為以有这這那被把将將由从從到个個所就都又并並则則乃地得着著过過曾等来來他她它们們此该該"
)

_WORDS = Path(__file__).with_name("word_differences.yaml")


@dataclass(frozen=True)
class Difference:
    """One place where a claim departs from the span that it repeats."""

    kind: DifferenceKind
    claimed: str
    said: str


@dataclass(frozen=True)
class Comparison:
    """A claim lined up with a span."""

    repeated: float
    differences: tuple[Difference, ...]


@dataclass(frozen=True)
class _Token:
    key: str
    start: int
    end: int

    @property
    def is_han(self) -> bool:
        return len(self.key) == 1 and is_wide(self.key)


@dataclass(frozen=True)
class _Aligned:
    """A claim and a span with their tokens."""

    claim: str
    span: str
    passage: str
    first: Sequence[_Token]
    second: Sequence[_Token]

    def parts(
        self, start: int, end: int, other_start: int, other_end: int
    ) -> tuple[Sequence[_Token], Sequence[_Token]]:
        """Give the tokens of both sides that stand in each other's place."""
        first, second = self.first, self.second
        if end - start == other_end - other_start == 1 and first[start].is_han and second[other_start].is_han:
            # 河南 and 河北 differ as wholes, so a single character takes a shared neighbour along.
            if start and other_start and first[start - 1].is_han and first[start - 1].key not in _PARTICLES:
                start, other_start = start - 1, other_start - 1
            elif end < len(first) and other_end < len(second) and first[end].is_han:
                end, other_end = end + 1, other_end + 1
        mine, theirs = first[start:end], second[other_start:other_end]
        # Where the claim begins or ends, the rest of the span stands on the other side: only what is next counts.
        if end == len(first):
            before = second[other_start - 1].end if other_start else 0
            if _BREAK.search(self.span[before : theirs[0].start]):
                return mine, ()
            theirs = theirs[: len(mine) + 1]
        elif start == 0:
            theirs = theirs[-len(mine) - 1 :]
        return mine, theirs


def compare(claim: str, span: str, passage: str = "") -> Comparison:
    """Line a claim up with a span; what is left out or added is no difference, what takes another's place is."""
    first, second = _tokens(claim), _tokens(span)
    if len(first) < _FEWEST or not second or max(len(claim), len(span)) > _LONGEST:
        return Comparison(0.0, ())
    matcher = SequenceMatcher(None, [t.key for t in first], [t.key for t in second], autojunk=False)
    blocks = [block for block in matcher.get_matching_blocks() if block.size]
    same = sum(block.size for block in blocks)
    repeated = same / len(first)
    if repeated < REPEATED:
        return Comparison(repeated, ())
    found: list[Difference] = []
    aligned = _Aligned(claim, span, passage, first, second)
    for tag, *place in matcher.get_opcodes():
        if tag == "replace":
            mine, theirs = aligned.parts(*place)
            if theirs and len(theirs) <= len(mine) + _LONGER_BY:
                nearly = repeated >= _NEARLY_VERBATIM or same >= _REST_VERBATIM * (len(first) - len(mine))
                found.extend(_replaced(aligned, mine, theirs, repeated, verbatim=nearly))
    from_, to = blocks[0].b, blocks[-1].b + blocks[-1].size
    inside = span[second[from_].start : second[to - 1].end]
    denied, said = negations(claim), negations(inside)
    # The words that deny on one side only take room there.
    room = _DENIAL if not denied or not said else 0
    if (
        denied % 2 != said % 2
        and same >= _SAME_STATEMENT * (len(first) - (room if denied else 0))
        and to - from_ <= _SAME_LENGTH * len(first) + room
    ):
        found.append(Difference("negation", claim, inside))
    order = ("number", "name", "opposite", "negation", "word")
    return Comparison(repeated, tuple(sorted(found, key=lambda one: order.index(one.kind))))


@lru_cache(maxsize=1024)
def _tokens(text: str) -> tuple[_Token, ...]:
    found = []
    for match in _TOKEN.finditer(text):
        words = terms(FULL_MONTHS.get(match[0], match[0]))
        found.append(_Token(words[0] if words else match[0].lower(), match.start(), match.end()))
    return tuple(found)


def _replaced(
    aligned: _Aligned, mine: Sequence[_Token], theirs: Sequence[_Token], repeated: float, *, verbatim: bool
) -> list[Difference]:
    claim, span = aligned.claim, aligned.span
    claimed, said = claim[mine[0].start : mine[-1].end], span[theirs[0].start : theirs[-1].end]
    numbers = _other_number(claim, span, mine, theirs)
    if numbers:
        return [numbers]
    if are_opposites(claimed, said) or _opposite_cores(mine, theirs):
        return [Difference("opposite", claimed, said)]
    if not _says_something(mine) or not _says_something(theirs):
        return []
    if _moved(claim, span, mine, theirs):
        return []
    if _has_name(claim, mine, claim + aligned.passage) and _has_name(span, theirs, span + aligned.passage):
        # 安禄山 for 禄山, or a title put before a name, names the same.
        if _shares_word(mine, theirs):
            return []
        return [Difference("name" if verbatim else "word", claimed, said)]
    if all(token.is_han for token in (*mine, *theirs)):
        return [Difference("word", claimed, said)] if len(mine) > 1 and not _shares_word(mine, theirs) else []
    # In a sentence told nearly word for word, another word is hardly chance; it may still be a synonym.
    if repeated >= _SAME_STATEMENT and len(mine) == len(theirs) == 1:
        return [Difference("word", claimed, said)]
    return []


def _opposite_cores(mine: Sequence[_Token], theirs: Sequence[_Token]) -> bool:
    """Compare what is left of two runs of Han characters without what they share: 之后 and 之前."""
    pairs = [(one.key, other.key) for one, other in zip(mine, theirs, strict=False) if one.key != other.key]
    return len(mine) == len(theirs) and len(pairs) == 1 and are_opposites(*pairs[0])


def _other_number(claim: str, span: str, mine: Sequence[_Token], theirs: Sequence[_Token]) -> Difference | None:
    """Find a number in the claim's part that stands for another one in the span's."""
    ours = [q for q in quantities(claim) if mine[0].start < q.end and q.start < mine[-1].end]
    others = [q for q in quantities(span) if theirs[0].start < q.end and q.start < theirs[-1].end]
    for one in ours:
        rivals = [other for other in others if one.comparable_with(other) and _count_alike((claim, one), (span, other))]
        if rivals and not any(one.agrees_with(other) for other in rivals):
            return Difference("number", claim[one.start : one.end], span[rivals[0].start : rivals[0].end])
    return None


def _count_alike(one: tuple[str, Quantity], other: tuple[str, Quantity]) -> bool:
    """Tell whether two numbers count the same: dates do, and what stands beside the same words."""
    if {one[1].kind, other[1].kind} != {"number"} or unit_of(*one) == unit_of(*other):
        return True
    before = [_tokens(text[max(0, number.start - _NEAR) : number.start])[-1:] for text, number in (one, other)]
    return [token.key for token in before[0]] == [token.key for token in before[1]]


def unit_of(text: str, number: Quantity) -> str:
    """Give the term behind a number: what it counts."""
    following = terms(text[number.end : number.end + _NEAR])
    return following[0] if following else ""


def _says_something(tokens: Sequence[_Token]) -> bool:
    return any(token.key not in STOP_WORDS and token.key not in _PARTICLES for token in tokens)


def _shares_word(mine: Sequence[_Token], theirs: Sequence[_Token]) -> bool:
    shared = {token.key for token in mine} & {token.key for token in theirs}
    # One Han character in common is enough only for short runs: 起兵 and 举兵, but not 河南 and 河北.
    return any(not (len(key) == 1 and is_wide(key)) and key not in STOP_WORDS for key in shared)


def _moved(claim: str, span: str, mine: Sequence[_Token], theirs: Sequence[_Token]) -> bool:
    """Tell whether the two only stand in another order, as the members of a list may."""
    ours, others = {t.key for t in _tokens(claim)}, {t.key for t in _tokens(span)}
    both = all(t.key in others for t in mine) and all(t.key in ours for t in theirs)
    return both and bool(_LIST.search(claim))


def _has_name(text: str, tokens: Sequence[_Token], context: str) -> bool:
    run = text[tokens[0].start : tokens[-1].end]
    if any(token.is_han for token in tokens):
        around = text[max(0, tokens[0].start - 1) : tokens[-1].end + 1]
        return looks_like_name(run) or around[:1] in "《「“『" or around[-1:] in "》」”』"
    telling = [token for token in tokens if token.key not in STOP_WORDS]
    # A stretch that also holds verbs or common nouns is not a name in another's place.
    if not all(text[token.start].isupper() for token in telling):
        return False
    for token in telling:
        word = text[token.start : token.end]
        if word in _NO_NAMES:
            return False
        # What opens a sentence has its capital for that alone, unless it is written so elsewhere too.
        if not _OPENS.search(text[: token.start]) or re.search(rf"(?<=[a-z,] ){re.escape(word)}\b", context):
            return True
    return False


@cache
def _pairs() -> frozenset[tuple[str, str]]:
    pairs = [pair.split() for pair in read_table(_WORDS)["opposites"].split(",")]
    folded = [(" ".join(terms(one)) or one, " ".join(terms(other)) or other) for one, other in pairs]
    return frozenset([*folded, *((other, one) for one, other in folded)])


def are_opposites(one: str, other: str) -> bool:
    """Tell whether two short runs of words are opposites, whatever their inflection."""
    first, second = " ".join(terms(one)), " ".join(terms(other))
    if (first, second) in _pairs():
        return True
    ours, others = set(first.split()), set(second.split())
    mine, theirs = ours - others, others - ours
    return len(mine) == len(theirs) == 1 and (mine.pop(), theirs.pop()) in _pairs()


@cache
def _denials() -> dict[str, Any]:
    table = read_patterns(_WORDS)
    return {name: table[name] for name in ("denies", "denies_nothing")}


def negations(sentence: str) -> int:
    """Count the words by which a sentence denies."""
    return len(_denials()["denies"].findall(_denials()["denies_nothing"].sub(" ", sentence)))
