"""Consecutive passages as one text, in which a quotation may cross a passage's edge or run down a table's column."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any

from haystack import Document

from shiguan.claims.citations import cited_place
from shiguan.reading.folded import Folded, fold, joined

# What an ingest puts between two cells of a row.
_BETWEEN = " | "


@dataclass(frozen=True)
class Stretch:
    """Consecutive passages of one source, as one text: all of it, what is compared without notes, or a column."""

    documents: Sequence[Document]
    noted: bool = True
    column: Folded | None = None

    @cached_property
    def starts(self) -> list[int]:
        """Where in the text each passage begins; a line break separates two."""
        starts = [0]
        for document in self.documents[:-1]:
            starts.append(starts[-1] + len(document.content or "") + 1)
        return starts

    @cached_property
    def folded(self) -> Folded:
        if self.column is not None:
            return self.column
        parts = [fold(document.content or "", noted=self.noted) for document in self.documents]
        return parts[0] if len(parts) == 1 else joined(parts, self.starts)

    @cached_property
    def text(self) -> str:
        return "\n".join(document.content or "" for document in self.documents)

    @cached_property
    def without_notes(self) -> "Stretch | None":
        """The same without its notes; None if it has none."""
        bare = Stretch(self.documents, noted=False)
        return bare if len(bare.folded.key) < len(self.folded.key) else None

    @cached_property
    def columns(self) -> "list[Stretch]":
        """The columns of its tables, each as if it were the whole text."""
        found: list[Folded] = []
        for document, start in zip(self.documents, self.starts, strict=True):
            for block in document.meta.get("blocks") or ():
                if block.get("kind") == "table":
                    found += _columns(document.content or "", block["start"], block["end"], start)
        return [Stretch(self.documents, column=column) for column in found]

    def section(self, at: int) -> Any:
        return self.documents[bisect_right(self.starts, self.folded.places[at]) - 1].meta.get("section")

    def place(self, start: int, end: int) -> dict[str, Any]:
        """Describe a stretch of its characters as citations do, by the passage that it begins in."""
        first, last = self.folded.span(start, end)
        at = bisect_right(self.starts, first) - 1
        document, begins = self.documents[at], self.starts[at]
        within = cited_place(document, (first - begins, min(last - begins, len(document.content or ""))))
        return {**within, "quote": self.text[first:last], "author": document.meta.get("author")}


Span = tuple[Stretch, int, int]


def stretches_of(read: Mapping[str, Document], families: Iterable[str]) -> list[Stretch]:
    """Group consecutive passages into stretches, the likeliest first."""
    order = {name: rank for rank, name in enumerate(families)}
    runs: list[list[Document]] = []
    for parent in sorted(read.values(), key=lambda parent: (parent.meta["source_id"], position_of(parent))):
        last = runs[-1][-1] if runs else None
        follows = last is not None and last.meta["source_id"] == parent.meta["source_id"]
        if last is not None and follows and position_of(last) + 1 == position_of(parent):
            runs[-1].append(parent)
        else:
            runs.append([parent])
    runs.sort(key=lambda run: min(order.get(passage.id, len(order)) for passage in run))
    return [Stretch(run) for run in runs]


def position_of(passage: Document) -> int:
    return int(passage.meta.get("position", 0))


def bare_of(stretches: Iterable[Stretch]) -> list[Stretch]:
    return [stretch.without_notes for stretch in stretches if stretch.without_notes is not None]


def _columns(text: str, at: int, end: int, start: int) -> Iterator[Folded]:
    """Yield each column of two rows or more; its places are those in a text in which this one begins at `start`."""
    rows: list[list[tuple[Folded, int]]] = []
    for line in text[at:end].split("\n"):
        cells, place = [], at
        for cell in line.split(_BETWEEN):
            cells.append((fold(cell), start + place))
            place += len(cell) + len(_BETWEEN)
        rows.append(cells)
        at += len(line) + 1
    for column in zip_longest(*rows):
        filled = [cell for cell in column if cell is not None and cell[0].key]
        if len(filled) > 1:
            yield joined([cell for cell, _ in filled], [place for _, place in filled])
