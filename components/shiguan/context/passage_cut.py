"""Cuts a passage to a budget around the places that matter, at the edges of sentences."""

from collections.abc import Callable, Sequence

from shiguan.text.sentences import sentence_spans


def cut_span(
    text: str, matches: Sequence[tuple[int, int]], budget: int, count: Callable[[str], int]
) -> tuple[int, int]:
    """
    Choose the one stretch of a passage to keep.

    Starts from the sentences of the best match and grows, sentence by sentence, towards the other matches and then
    evenly to both sides, as long as the budget holds. A first sentence that is too long by itself is cut hard.
    """
    sentences = sentence_spans(text)
    if not sentences:
        return (0, 0)
    first, last = _sentences_of(sentences, matches[0]) if matches else (0, 0)

    def fits(a: int, b: int) -> bool:
        return count(text[sentences[a][0] : sentences[b][1]]) <= budget

    while last > first and not fits(first, last):
        last -= 1
    if not fits(first, last):
        return _cut_hard(text, sentences[first], budget, count)
    for match in matches[1:]:
        a, b = _sentences_of(sentences, match)
        if fits(min(a, first), max(b, last)):
            first, last = min(a, first), max(b, last)
    growing = True
    while growing:
        growing = False
        if last + 1 < len(sentences) and fits(first, last + 1):
            last, growing = last + 1, True
        if first > 0 and fits(first - 1, last):
            first, growing = first - 1, True
    return sentences[first][0], sentences[last][1]


def _sentences_of(sentences: Sequence[tuple[int, int]], span: tuple[int, int]) -> tuple[int, int]:
    touched = [at for at, (start, end) in enumerate(sentences) if start < span[1] and span[0] < end]
    return (touched[0], touched[-1]) if touched else (0, 0)


def _cut_hard(text: str, span: tuple[int, int], budget: int, count: Callable[[str], int]) -> tuple[int, int]:
    # No tokenizer makes tokens this long on average, and counting the rest of a huge line would be slow.
    start, low, high = span[0], span[0] + 1, min(span[1], span[0] + 20 * budget)
    while low < high:
        middle = (low + high + 1) // 2
        if count(text[start:middle]) <= budget:
            low = middle
        else:
            high = middle - 1
    return start, low
