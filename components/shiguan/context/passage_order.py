"""Puts passages in order: by rank whatever their arrival, and as they are to stand in a context."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

from haystack import Document

Order = Literal["rank", "stable", "edges"]
Item = TypeVar("Item")


def ranked(documents: Sequence[Document]) -> list[Document]:
    """Order passages best first, in the same way in whatever order they arrive."""
    readable = [document for document in documents if (document.content or "").strip()]
    if all(document.score is not None for document in readable):
        readable.sort(key=lambda document: (-(document.score or 0.0), document.id, str(matched_spans(document))))
    first: dict[str, Document] = {}
    for document in readable:
        first.setdefault(document.id, document)
    return list(first.values())


def arranged(items: Sequence[Item], order: Order, key: Callable[[Item], Any]) -> list[Item]:
    """Arrange what was chosen for reading."""
    if order == "stable":
        return sorted(items, key=key)
    return [*items[::2], *items[1::2][::-1]] if order == "edges" else list(items)


def matched_spans(document: Document) -> list[tuple[int, int]]:
    """Give the places of a parent that retrieval matched."""
    return [
        (match["start"], match["end"])
        for match in document.meta.get("matches") or []
        if isinstance(match, dict) and {"start", "end"} <= match.keys()
    ]
