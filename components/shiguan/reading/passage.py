"""A passage as the stages read it: its text, and what stands in the meta of its document."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from haystack import Document

from shiguan.reading.text import Text, read_text
from shiguan.text.passages import cut_span

MOST_QUOTED = 3
"""How many quotations there are at most; as many passages are read to estimate whether they answer."""


@dataclass(frozen=True)
class Passage:
    """A view of a document, which may be a part of a stored passage, with the places that the retrieval matched."""

    document: Document

    @property
    def text(self) -> Text:
        return read_text(self.document.content or "")

    @property
    def language(self) -> str:
        return str(self.document.meta.get("language") or self.text.language)

    @property
    def section(self) -> list[str]:
        """The headings that it stands under, the highest first."""
        section = self.document.meta.get("section") or []
        return [section] if isinstance(section, str) else list(section)

    @property
    def headings(self) -> str:
        """Its title and its headings."""
        return f"{self.document.meta.get('title') or ''} {' '.join(map(str, self.section))}"

    @property
    def words(self) -> frozenset[str]:
        """The terms of its text, title and headings."""
        return read_text(self.headings).words | self.text.words

    @property
    def parent_id(self) -> str:
        """The id of the parent: its own, if it is one."""
        return str(self.document.meta.get("parent_id") or self.document.id)

    @property
    def offset(self) -> int:
        """Where its text begins in the stored passage."""
        return int((self.document.meta.get("cut") or [0])[0])

    @property
    def spans(self) -> list[tuple[int, int]]:
        """The places that the retrieval matched, without their scores."""
        return [(start, end) for start, end, _ in self.matches]

    @property
    def matches(self) -> list[tuple[int, int, float]]:
        """The places that the retrieval matched, in its text or beside it: start, end and score."""
        offset = self.offset
        return [
            (match["start"] - offset, match["end"] - offset, float(match.get("score") or 0.0))
            for match in self.document.meta.get("matches") or []
            if isinstance(match, dict) and {"start", "end"} <= match.keys()
        ]

    def stretch(self, start: int, end: int) -> Document:
        """Cut one stretch out of it, with its place in the stored parent."""
        meta = {**self.document.meta, "cut": [self.offset + start, self.offset + end]}
        return replace(self.document, content=(self.document.content or "")[start:end], meta=meta)

    def shortened(self, budget: int, count: Callable[[str], int]) -> Document:
        """Cut it to a number of tokens, at sentences around what matched."""
        return self.stretch(*cut_span(self.document.content or "", self.spans, budget, count))


def highest_cosines(children: Iterable[Document]) -> dict[tuple[str, str], float]:
    """Return the highest cosine of children with the question, at least 0, by the id of their parent and language."""
    highest: dict[tuple[str, str], float] = {}
    for child in children:
        meta = child.meta
        found = str(meta.get("parent_id") or child.id), str(meta.get("language"))
        highest[found] = max(highest.get(found, 0.0), meta.get("raw_score", child.score) or 0.0)
    return highest


def words_of(documents: Iterable[Document]) -> set[str]:
    """Return the terms that passages, their titles and their headings have together."""
    passages = map(Passage, documents)
    texts = [text for passage in passages for text in (passage.headings, passage.document.content or "")]
    return set[str]().union(*(read_text(text).words for text in texts))
