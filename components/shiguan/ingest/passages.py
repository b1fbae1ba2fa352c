"""Cuts texts into parents and their children: the places to cut, the cost of each, and the best choice among them."""

import re
import unicodedata
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from shiguan.models.token_counter import TokenCounter
from shiguan.text.sentences import sentence_spans


class PassageSizes(NamedTuple):
    """The allowed sizes, in tokens."""

    parent_min: int
    parent_max: int
    child_min: int
    child_max: int


class Passage(NamedTuple):
    """One parent: its span in the text, its tokens, and its children's spans in the text."""

    start: int
    end: int
    tokens: int
    children: list[tuple[int, int]]


class _Atom(NamedTuple):
    start: int
    end: int
    tokens: int
    boundary: int


# What ends an atom, from the best place to end a passage to the worst. The costs are for `partition`: an ordinary
# boundary costs less than a passage out of its range; a boundary inside a sentence, which exists only where the
# sentence alone is too large, costs more, so that sentences are cut as seldom as possible.
_PARAGRAPH, _LINE, _SENTENCE, _HEADING, _CLAUSE, _WORD, _TOKEN = range(7)
_PARENT_COSTS = (0.0, 0.4, 1.0, 15.0, 60.0, 90.0, 150.0)
_CHILD_COSTS = (0.0, 0.1, 0.2, 15.0, 60.0, 90.0, 150.0)
# The preferred size, as a share of the way from the smallest to the largest: about 500 and 85 tokens by default.
_PARENT_TARGET = 0.4
_CHILD_TARGET = 0.35

_BREAK = re.compile(r"\r\n?|[\n\x85\u2028]")
_PAGE_OR_PARAGRAPH = re.compile(r"[\x0b\x0c\x1c-\x1e\u2029]")
_FINISHED = re.compile(r"[.!?…。！？؟।]")
_HEADING_LINE = re.compile(r"#{1,6}[ \t]")
_CLAUSE_END = re.compile(r"[，、；：,;:、،؛—–…）】」』”)\]][”’」』）\"')\]]*\s*|\s[–—-]\s|\n+")
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
_JOINERS = frozenset("\u200d\ufe0e\ufe0f\u20e3")
# A clause that is too large is cut into pieces of this share of the largest child, which the partition can balance.
_PIECES_PER_CHILD = 8


def cut_passages(texts: Sequence[str], counter: TokenCounter, sizes: PassageSizes) -> list[list[Passage]]:
    """
    Cut every text into parents, and every parent into children.

    Each level is an optimal partition: sizes are in their ranges where the sentences allow it, and cuts at paragraphs
    rather than within them. A sentence is divided only if it alone exceeds the largest size, at clause marks if
    possible, else between words, else between tokens; never inside a combining sequence.
    """
    sentences = [sentence_spans(text) for text in texts]
    counts = iter(
        counter.counts([text[start:end] for text, spans in zip(texts, sentences, strict=True) for start, end in spans])
    )
    return [
        _cut(text, _atoms(text, spans, counts, counter, sizes.child_max), counter, sizes)
        for text, spans in zip(texts, sentences, strict=True)
    ]


def _cut(text: str, sentences: list[list[_Atom]], counter: TokenCounter, sizes: PassageSizes) -> list[Passage]:
    """Choose parents among sentences, then children among the atoms of each parent."""
    coarse: list[list[_Atom]] = []
    for atoms in sentences:
        if len(atoms) > 1 and sum(atom.tokens for atom in atoms) > sizes.parent_max:
            coarse.extend([atom] for atom in atoms)
        else:
            coarse.append(atoms)
    totals = [sum(atom.tokens for atom in atoms) for atoms in coarse]
    parent_ends = partition(
        totals,
        [_PARENT_COSTS[atoms[-1].boundary] for atoms in coarse],
        low=sizes.parent_min,
        high=sizes.parent_max,
        target=round(sizes.parent_min + _PARENT_TARGET * (sizes.parent_max - sizes.parent_min)),
    )
    passages = []
    first = 0
    for last in parent_ends:
        atoms = [atom for group in coarse[first:last] for atom in group]
        children = _children(text, atoms, counter, sizes, sizes.child_max)
        passages.append(Passage(atoms[0].start, atoms[-1].end, sum(totals[first:last]), children))
        first = last
    return passages


def _children(
    text: str, atoms: list[_Atom], counter: TokenCounter, sizes: PassageSizes, largest: int
) -> list[tuple[int, int]]:
    """Choose children among a parent's atoms; one that the sum of its atoms made too large is cut once more."""
    ends = partition(
        [atom.tokens for atom in atoms],
        [_CHILD_COSTS[atom.boundary] for atom in atoms],
        low=sizes.child_min,
        high=largest,
        target=round(sizes.child_min + _CHILD_TARGET * (sizes.child_max - sizes.child_min)),
    )
    children = []
    for first, last in zip([0, *ends[:-1]], ends, strict=True):
        start, end = atoms[first].start, atoms[last - 1].end
        tokens = sum(atom.tokens for atom in atoms[first:last])
        # The space between two atoms may be a token of its own, which the sum lacks. Only children that are near enough
        # to the limit for this to matter are counted again.
        near = last - first > 1 and tokens + last - first - 1 > sizes.child_max
        if near and counter.counts([text[start:end]])[0] > sizes.child_max:
            children.extend(_children(text, atoms[first:last], counter, sizes, tokens - 1))
        else:
            children.append((start, end))
    return children


def _atoms(
    text: str, spans: list[tuple[int, int]], counts: Iterable[int], counter: TokenCounter, largest: int
) -> list[list[_Atom]]:
    """Return every sentence as one atom, or as several if it is larger than a child may be."""
    found = []
    for index, ((start, end), tokens) in enumerate(zip(spans, counts, strict=False)):
        boundary = _boundary(text, start, end, spans[index + 1][0] if index + 1 < len(spans) else end)
        if tokens <= largest:
            found.append([_Atom(start, end, tokens, boundary)])
        else:
            pieces = _divide(text, start, end, counter, largest)
            pieces[-1] = pieces[-1]._replace(boundary=boundary)
            found.append(pieces)
    return found


def _boundary(text: str, start: int, end: int, following: int) -> int:
    gap = text[end:following]
    # The usual single space needs no further check.
    if not gap or (len(gap) == 1 and gap not in "\n\x0b\x0c\u2029"):
        return _SENTENCE
    breaks = len(_BREAK.findall(gap))
    if breaks >= 2:
        boundary = _PARAGRAPH
    elif _PAGE_OR_PARAGRAPH.search(gap):
        # A sentence that continues on the next page is better kept whole.
        boundary = _PARAGRAPH if _FINISHED.search(text, max(start, end - 4), end) else _SENTENCE
    elif breaks or "\u3000" in gap:
        boundary = _LINE
    else:
        boundary = _SENTENCE
    # A heading belongs to the text below it.
    return _HEADING if breaks and _HEADING_LINE.match(text, start) else boundary


def _divide(text: str, start: int, end: int, counter: TokenCounter, largest: int) -> list[_Atom]:
    """Divide one sentence at clause marks, and a clause that is still too large between words or tokens."""
    offsets = [(start + a, start + b) for a, b in counter.offsets(text[start:end])]
    starts = [a for a, _ in offsets]
    ends = [match.end() for match in _CLAUSE_END.finditer(text, start, end) if match.end() < end]
    atoms: list[_Atom] = []
    at, token = start, 0
    for clause_end in [*ends, end]:
        next_token = bisect_left(starts, clause_end)
        if next_token == token and clause_end < end:
            continue  # marks that are not tokens of their own
        if next_token - token <= largest:
            _append(atoms, text, (at, clause_end), next_token - token, _CLAUSE)
        else:
            _divide_clause(atoms, text, (at, clause_end), starts[token:next_token], largest)
        at, token = clause_end, next_token
    return atoms or [_Atom(start, end, len(offsets), _CLAUSE)]


def _divide_clause(atoms: list[_Atom], text: str, span: tuple[int, int], starts: list[int], largest: int) -> None:
    step = max(largest // _PIECES_PER_CHILD, 1)
    at, end = span
    token = 0
    while len(starts) - token > step:
        # The last word edge of the step, else the last token before which a cut is allowed.
        options = range(token + step, token, -1)
        cut = next((index for index in options if _is_word_edge(text, starts[index])), 0)
        boundary = _WORD
        if not cut:
            cut = next((index for index in options if not _is_joined(text, starts[index])), 0)
            boundary = _TOKEN
        if not cut:
            break
        _append(atoms, text, (at, starts[cut]), cut - token, boundary)
        at, token = starts[cut], cut
    _append(atoms, text, (at, end), len(starts) - token, _CLAUSE)


def _append(atoms: list[_Atom], text: str, span: tuple[int, int], tokens: int, boundary: int) -> None:
    start, end = span
    piece = text[start:end]
    stripped = piece.strip()
    if stripped:
        start += len(piece) - len(piece.lstrip())
        atoms.append(_Atom(start, start + len(stripped), tokens, boundary))


def _is_word_edge(text: str, at: int) -> bool:
    before, after = text[at - 1], text[at]
    if before.isspace():
        return True
    return not _is_joined(text, at) and bool(_WIDE.match(before) or _WIDE.match(after))


def _is_joined(text: str, at: int) -> bool:
    """Return whether a cut here would separate a character from its marks."""
    after = text[at]
    return (
        unicodedata.combining(after) != 0
        or after in _JOINERS
        or text[at - 1] == "\u200d"
        or "\U0001f3fb" <= after <= "\U0001f3ff"
    )


# Costs, in units in which a distance from the target of one width of the range costs 1.
OUT_OF_RANGE = 20.0
"""The least cost of a passage below the range, which is added once more in proportion to what it lacks."""


def partition(sizes: Sequence[int], cuts: Sequence[float], *, low: int, high: int, target: int) -> list[int]:
    """
    Group neighbouring pieces so that the groups' sizes are in a range and the cuts are at the best boundaries.

    Minimises the sum, over all groups, of the distance of the size from `target` (in widths of the range), of
    `OUT_OF_RANGE` and more where the size is below `low`, and of the cost of the cut after the group. No group is
    larger than `high` unless it is a single piece. Each part of that penalty is linear in the size, so the best start
    of a group is the minimum over a sliding window, and the whole takes linear time for any sizes.
    """
    count = len(sizes)
    total = list(accumulate(sizes, initial=0))
    width = max(high - low, 1)
    # A group of size s in a window costs offset + slope * s.
    windows = [
        _Window(0, low - 1, 2 * OUT_OF_RANGE, -OUT_OF_RANGE / max(low, 1), total),
        _Window(low, target, target / width, -1 / width, total),
        _Window(target + 1, high, -target / width, 1 / width, total),
    ]
    best = [0.0] * (count + 1)
    origin = [0] * (count + 1)
    for end in range(1, count + 1):
        # An oversized piece is a group by itself.
        cost, start = (best[end - 1] + 2 * OUT_OF_RANGE, end - 1) if sizes[end - 1] > high else (float("inf"), -1)
        for window in windows:
            candidate, index = window.best_start(end, best)
            if candidate < cost:
                cost, start = candidate, index
        best[end] = cost + (cuts[end - 1] if end < count else 0.0)
        origin[end] = start
    ends = []
    at = count
    while at:
        ends.append(at)
        at = origin[at]
    return ends[::-1]


@dataclass
class _Window:
    """Finds the best start of a group whose size is in one part of the range, as the end moves to the right."""

    smallest: int
    largest: int
    offset: float
    slope: float
    total: list[int]
    start: int = 0
    queue: deque[tuple[float, int]] = field(default_factory=deque)

    def best_start(self, end: int, best: list[float]) -> tuple[float, int]:
        total, queue = self.total, self.queue
        here = total[end]
        while self.start < end and here - total[self.start] >= self.smallest:
            value = best[self.start] - self.slope * total[self.start]
            while queue and queue[-1][0] >= value:
                queue.pop()
            queue.append((value, self.start))
            self.start += 1
        while queue and here - total[queue[0][1]] > self.largest:
            queue.popleft()
        if not queue:
            return float("inf"), -1
        value, start = queue[0]
        return value + self.offset + self.slope * here, start
