"""Which place of a passage is nearest in meaning to a claim, by the stored vectors of the passage's children."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Self

from haystack import Document
from haystack.components.embedders.types.protocol import TextEmbedder
from haystack.components.retrievers.types import EmbeddingRetriever

from shiguan.tenants import all_of
from shiguan.text.passages import SharedDocument

# A dozen parents of at most 800 tokens have fewer children than this.
_MOST_CHILDREN = 200
_MOST_CLAIMS = 256


@dataclass(frozen=True)
class Nearest:
    """The place of a passage that is nearest to a claim, its cosine, and the one from which on it counts as near."""

    start: int
    end: int
    cosine: float
    near: float | None


class ComparedDocument(SharedDocument):
    """A passage whose stored vectors a claim in another language can be compared with."""

    search: "ChildSearch | None" = None
    family: tuple[str, ...] = ()

    def nearest(self, claim: str) -> Nearest | None:
        """Find the child nearest to a claim that stands, at least in part, in what was read of the passage."""
        if self.search is None:
            return None
        cut, length = (self.meta.get("cut") or [0])[0], len(self.content or "")
        for child in self.search.children(claim, self.family):
            start, end = max(0, child.meta["start"] - cut), min(length, child.meta["end"] - cut)
            if child.meta.get("parent_id") == self.id and start < end:
                return Nearest(start, end, child.score or 0.0, self.search.near)
        return None


class ChildSearch:
    """Searches for a claim among the children of some passages, under one tenant's filters; once for each claim."""

    def __init__(
        self,
        retriever: EmbeddingRetriever,
        embedder: TextEmbedder,
        filters: dict[str, Any],
        near: float | None,
    ) -> None:
        """Take what embeds and what searches."""
        self.near = near
        self.children = lru_cache(_MOST_CLAIMS)(partial(_children, retriever, embedder, filters))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Go from component to component as one: it holds a store and a model."""
        return self

    def compared(self, documents: Sequence[Document]) -> list[Document]:
        """Give the passages that an answer is written from, each able to say what is nearest to a claim."""
        family = tuple(document.id for document in documents)
        return [_compared(document, self, family) for document in documents]


def _compared(document: Document, search: ChildSearch, family: tuple[str, ...]) -> ComparedDocument:
    compared = object.__new__(ComparedDocument)
    compared.__dict__.update(document.__dict__, search=search, family=family)
    return compared


def _children(
    retriever: EmbeddingRetriever, embedder: TextEmbedder, filters: dict[str, Any], claim: str, family: tuple[str, ...]
) -> list[Document]:
    embedding = embedder.run(text=claim)["embedding"]
    if not embedding:
        return []
    of_family = {"field": "meta.parent_id", "operator": "in", "value": list(family)}
    both = all_of(of_family, filters)
    found = retriever.run(query_embedding=embedding, filters=both, top_k=_MOST_CHILDREN)
    return list(found["documents"])
