"""Passages on their way to a prompt: passed on without copies, compared, and cut where they do not fit."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any, Self, TypeVar

from haystack import Document

from shiguan.text.sentences import sentence_spans

ENGINE_META = frozenset(
    "tenant_id source_id file_id source file_path file_name source_key title section kind language anchor notes "
    "record_id line start end position tokens blocks parent_id units number matches cut kept summed_up ranked_by "
    "relevance summary encoding raw_score all_embedded pages cfi paragraph work left_out when when_from when_to".split()
)
"""The keys of a document's meta that the engine itself writes or reads; no other values may use them."""

ALL_EMBEDDED = "all_embedded"
"""What the nearest child has in its meta where every passage has its vector, so that others are farther."""

Span = tuple[int, int]

GAP = "\n…\n"
"""The mark of left-out text: a line of its own, so that no sentence runs across it."""


class SharedDocument(Document):
    """
    A document whose deep copies share its content, embedding and nested meta, which no component changes in place.

    Haystack deep-copies every component's inputs; for the passages of a book that takes longer than reading it.
    """

    def __init__(self, **fields: Any) -> None:
        if fields.keys() == _EMPTY.keys():  # of `dataclasses.replace`, by which joiners change a score
            self.__dict__.update(fields)
        else:
            super().__init__(**fields)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return changed([self], [{}])[0]


_EMPTY = vars(Document(id="empty"))
AnyDocument = TypeVar("AnyDocument", bound=Document)


def without_text(rows: Iterable[tuple[str, float, dict[str, Any]]]) -> list[Document]:
    """Make documents of ids, scores and meta, without text."""
    return changed(repeat(_HIT), ({"id": name, "score": score, "meta": meta} for name, score, meta in rows))


def rescored(documents: Iterable[Document], scores: Iterable[float]) -> list[Document]:
    """Copy documents with other scores."""
    return changed(documents, ({"score": score} for score in scores))


def changed(documents: Iterable[AnyDocument], changes: Iterable[dict[str, Any]]) -> list[AnyDocument]:
    """Copy documents, each with its own meta, ten times as fast as `dataclasses.replace`: a question has hundreds."""
    twins = []
    for change, document in zip(changes, documents, strict=False):
        twin = object.__new__(type(document))
        twin.__dict__.update(document.__dict__, **change)
        twin.__dict__["meta"] = dict(twin.meta)
        twins.append(twin)
    return twins


_HIT = SharedDocument(id="hit")


def similarity(first: frozenset[tuple[str, ...]], second: frozenset[tuple[str, ...]]) -> float:
    """Compare two sets of shingles (Jaccard)."""
    common = len(first & second)
    together = len(first) + len(second) - common
    return common / together if together else 1.0


def with_gaps(text: str, spans: Sequence[Span]) -> str:
    """Write the kept parts of a passage."""
    before = GAP.lstrip() if text[: spans[0][0]].strip() else ""
    after = GAP.rstrip() if text[spans[-1][1] :].strip() else ""
    return before + GAP.join(text[start:end] for start, end in spans) + after


def touched_by(sentences: Sequence[Span], span: Span) -> list[int]:
    """Return the places in a list of the sentences that a span reaches into."""
    return [at for at, (start, end) in enumerate(sentences) if start < span[1] and span[0] < end]


def cut_span(text: str, matches: Sequence[Span], budget: int, count: Callable[[str], int]) -> Span:
    """Choose the stretch of a passage to keep: the best match, then towards the others, then to both sides."""
    sentences = sentence_spans(text)
    if not sentences:
        return (0, 0)
    places = [touched_by(sentences, match) or [0] for match in matches]
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
    before = (-1, -1)
    while before != (first, last):
        before = first, last
        last += last + 1 < len(sentences) and fits(first, last + 1)
        first -= first > 0 and fits(first - 1, last)
    return sentences[first][0], sentences[last][1]


def _cut_hard(text: str, span: Span, budget: int, count: Callable[[str], int]) -> Span:
    # No tokenizer makes tokens this long on average, and counting the rest of a huge line would be slow.
    start = span[0]
    ends = range(start + 1, max(start + 1, min(span[1], start + 20 * budget)) + 1)
    fitting = bisect_right(ends, budget, key=lambda end: count(text[start:end]))
    return start, ends[max(fitting - 1, 0)]
