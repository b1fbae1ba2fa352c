"""A passage that was found or read, reduced to where it stands: all that a judgement needs."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from haystack import Document


@dataclass(frozen=True)
class Passage:
    """One passage of a record."""

    record_id: str | None
    pieces: list[tuple[int, int]]
    parent_id: str = ""

    @classmethod
    def of(cls, document: "Document") -> "Passage":
        """Reduce a parent, whole or cut by the context, to its place."""
        meta = document.meta
        start, end = int(meta.get("start") or 0), int(meta.get("end") or 0)
        read = meta.get("kept") or ([meta["cut"]] if meta.get("cut") else [[0, end - start]])
        pieces = [(start + begin, start + to) for begin, to in read]
        return cls(meta.get("record_id"), pieces, meta.get("parent_id") or document.id)

    def to_json(self) -> list[Any]:
        """Write the passage short, for a file with many of them."""
        return [self.record_id, [list(piece) for piece in self.pieces], self.parent_id]

    @classmethod
    def from_json(cls, value: list[Any]) -> "Passage":
        """Read what `to_json` wrote."""
        record_id, pieces, parent_id = value
        return cls(record_id, [(start, end) for start, end in pieces], parent_id)


def passages_of(documents: "Iterable[Document]") -> list[Passage]:
    """Reduce documents to their places, in their order."""
    return [Passage.of(document) for document in documents]
