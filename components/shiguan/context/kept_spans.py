"""Chooses which sentences of a passage to keep when it is read in part, and writes them with their gaps marked."""

import math
from collections import Counter
from collections.abc import Callable, Sequence

from shiguan.context.passage_cut import cut_span
from shiguan.text.sentences import sentence_spans
from shiguan.text.terms import terms

Span = tuple[int, int]
Count = Callable[[Sequence[str]], list[int]]

GAP = "\n…\n"
"""What stands where text was left out: a line of its own, so that no sentence runs across it."""

# A sentence is near the query with this share of the query's words, weighted by rarity in the passage, and at least
# half as near as the nearest one.
_NEAR, _OF_BEST = 0.15, 0.5


def window_spans(text: str, matches: Sequence[Span], budget: int, counts: Count) -> list[Span]:
    """
    Grow windows around the matched places of a passage until the budget is used.

    Starts from the sentences of the best match and adds those of the others while they fit. Then every window grows by
    its neighbouring sentences, in turn, the best match's first; windows that meet become one.
    """
    sentences = sentence_spans(text)
    seeds = [found for match in matches if (found := _touched(sentences, match))] or [[0]][: len(sentences)]
    room = _Room(text, sentences, budget, counts)
    windows: list[list[int]] = []
    for seed in seeds:
        added = [at for at in seed if room.take(at)]
        if added:
            windows.append([min(added), max(added)])
    growing = True
    while growing:
        growing = False
        for window in windows:
            for side, at in ((1, window[1] + 1), (0, window[0] - 1)):
                if at in room.taken:
                    # Another window's sentence: this one goes on behind it in the next turn.
                    window[side] = at
                    growing = True
                elif room.take(at):
                    window[side] = at
                    growing = True
    if not room.taken:
        return _hard_cut(text, matches, budget, counts)
    return _joined(sentences, room.taken)


def sentence_selection(text: str, matches: Sequence[Span], query: str, budget: int, counts: Count) -> list[Span]:
    """
    Keep the sentences of the matched places and those near the query; drop the rest even where there is room.

    When the budget is short, the best match's sentences come first, then the other matches', then the others by
    nearness. A passage with neither keeps its beginning.
    """
    sentences = sentence_spans(text)
    wanted = [at for match in matches for at in _touched(sentences, match)]
    wanted.extend(_near_query([text[start:end] for start, end in sentences], query))
    room = _Room(text, sentences, budget, counts)
    for at in dict.fromkeys(wanted):
        room.take(at)
    if not room.taken:
        return _hard_cut(text, matches, budget, counts)
    return _joined(sentences, room.taken)


def with_gaps(text: str, spans: Sequence[Span]) -> str:
    """Write the kept parts of a passage."""
    if not spans:
        return ""
    before = GAP.lstrip() if text[: spans[0][0]].strip() else ""
    after = GAP.rstrip() if text[spans[-1][1] :].strip() else ""
    return before + GAP.join(text[start:end] for start, end in spans) + after


class _Room:
    """The sentences taken so far and what they and their gaps cost."""

    def __init__(self, text: str, sentences: Sequence[Span], budget: int, counts: Count) -> None:
        self.taken: set[int] = set()
        gap, *self._costs = counts([GAP, *(text[start:end] for start, end in sentences)])
        # The mark of a gap, and its line for a tokenizer that counts line breaks.
        self._gap = gap + 1
        self._left = budget

    def take(self, at: int) -> bool:
        """Take a sentence if it is there, is not taken and fits."""
        if at in self.taken or not 0 <= at < len(self._costs):
            return False
        cost = self._costs[at] + self._gap * (self._gaps({*self.taken, at}) - self._gaps(self.taken))
        if cost > self._left:
            return False
        self.taken.add(at)
        self._left -= cost
        return True

    def _gaps(self, taken: set[int]) -> int:
        if not taken:
            return 0
        inner = sum(1 for at in taken if at - 1 not in taken and at != min(taken))
        return inner + (min(taken) > 0) + (max(taken) < len(self._costs) - 1)


def _hard_cut(text: str, matches: Sequence[Span], budget: int, counts: Count) -> list[Span]:
    # Not even one whole sentence fits, or none was wanted.
    start, end = cut_span(text, matches, budget, lambda part: counts([part])[0])
    return [(start, end)] if end > start else []


def _joined(sentences: Sequence[Span], taken: set[int]) -> list[Span]:
    spans: list[Span] = []
    last = -2
    for at in sorted(taken):
        start, end = sentences[at]
        if at == last + 1:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
        last = at
    return spans


def _touched(sentences: Sequence[Span], span: Span) -> list[int]:
    return [at for at, (start, end) in enumerate(sentences) if start < span[1] and span[0] < end]


def _near_query(sentences: Sequence[str], query: str) -> list[int]:
    words = [frozenset(terms(sentence)) for sentence in sentences]
    frequency = Counter(word for found in words for word in found)
    weights = {word: math.log((len(words) + 1) / (frequency[word] + 0.5)) for word in set(terms(query))}
    total = sum(weights.values())
    # Summed in a fixed order: floating-point sums over a set may differ from run to run.
    near = [sum(weights[word] for word in sorted(found & weights.keys())) / total if total else 0.0 for found in words]
    least = max(_NEAR, _OF_BEST * max(near, default=0.0))
    found = [at for at, value in enumerate(near) if value >= least]
    return sorted(found, key=lambda at: (-near[at], at))
