"""Reads the columns of tables, so that cells that are below each other can be quoted like one text."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from haystack import Document

from shiguan.verify.folded import Folded, fold, joined

# What an ingest puts between two cells of a row.
_BETWEEN = " | "


def table_columns(documents: Sequence[Document], starts: Sequence[int]) -> Iterator[Folded]:
    """Yield each column of two rows or more; its places are those in the joined text of consecutive passages."""
    for document, start in zip(documents, starts, strict=True):
        blocks: Any = document.meta.get("blocks") or ()
        for block in blocks:
            if block.get("kind") == "table":
                yield from _columns(document.content or "", block["start"], block["end"], start)


def _columns(text: str, at: int, end: int, start: int) -> Iterator[Folded]:
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
