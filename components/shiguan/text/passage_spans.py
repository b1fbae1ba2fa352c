"""Chooses which stretches of a passage are read when not all of it fits, and writes them with their gaps marked."""

from collections.abc import Callable, Sequence

from shiguan.text.sentences import sentence_spans

Span = tuple[int, int]
Count = Callable[[Sequence[str]], list[int]]

GAP = "\n…\n"
"""What stands where text was left out: a line of its own, so that no sentence runs across it."""


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
    if room.taken:
        return _joined(sentences, room.taken)
    # Not even one whole sentence fits, or none was wanted.
    start, end = cut_span(text, matches, budget, lambda part: counts([part])[0])
    return [(start, end)] if end > start else []


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


def cut_span(text: str, matches: Sequence[Span], budget: int, count: Callable[[str], int]) -> Span:
    """
    Choose the one stretch of a passage to keep.

    Starts from the sentences of the best match and grows, sentence by sentence, towards the other matches and then
    evenly to both sides, as long as the budget holds. A first sentence that is too long by itself is cut hard.
    """
    sentences = sentence_spans(text)
    if not sentences:
        return (0, 0)
    places = [_touched(sentences, match) or [0] for match in matches]
    first, last = (places[0][0], places[0][-1]) if places else (0, 0)

    def fits(a: int, b: int) -> bool:
        return count(text[sentences[a][0] : sentences[b][1]]) <= budget

    while last > first and not fits(first, last):
        last -= 1
    if not fits(first, last):
        return _cut_hard(text, sentences[first], budget, count)
    for touched in places[1:]:
        if fits(min(touched[0], first), max(touched[-1], last)):
            first, last = min(touched[0], first), max(touched[-1], last)
    growing = True
    while growing:
        growing = False
        if last + 1 < len(sentences) and fits(first, last + 1):
            last, growing = last + 1, True
        if first > 0 and fits(first - 1, last):
            first, growing = first - 1, True
    return sentences[first][0], sentences[last][1]


def _cut_hard(text: str, span: Span, budget: int, count: Callable[[str], int]) -> Span:
    # No tokenizer makes tokens this long on average, and counting the rest of a huge line would be slow.
    start, low, high = span[0], span[0] + 1, min(span[1], span[0] + 20 * budget)
    while low < high:
        middle = (low + high + 1) // 2
        if count(text[start:middle]) <= budget:
            low = middle
        else:
            high = middle - 1
    return start, low
