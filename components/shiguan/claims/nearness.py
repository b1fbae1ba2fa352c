"""Finds the place of a passage nearest in meaning to a claim, by the stored vectors of the passage's children."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from haystack import Document
from haystack.components.embedders.types.protocol import TextEmbedder
from haystack.components.retrievers.types import EmbeddingRetriever
from haystack.document_stores.types import DocumentStore

from shiguan.reading.passage import Passage
from shiguan.serialization import Serializable
from shiguan.tenants import all_of, require_filters, where
from shiguan.text.passages import SharedDocument

# A dozen parents of at most 800 tokens have fewer children than this.
_MOST_CHILDREN = 200
_MOST_CLAIMS = 256


@dataclass(frozen=True)
class Nearest:
    """The place of a passage that is nearest to a claim, its cosine, and the cosine at which it counts as near."""

    start: int
    end: int
    cosine: float
    near: float | None


class ClaimMatcher(Serializable):
    """
    Lets the check of an answer compare a claim with passages in another language.

    An argument of `CitationExtractor` and of `HallucinationGrader`, so that an English answer on Chinese passages is
    checked by more than its numbers. A claim in a language that none of the passages has is embedded and searched for
    among their children, under the caller's filters; no passage is embedded again. Without a vector for the claim or
    the children the check relies on numbers and names.
    """

    def __init__(
        self, embedding_retriever: EmbeddingRetriever, *, text_embedder: TextEmbedder, near: float | None = None
    ) -> None:
        """
        Set what searches the children and what embeds a claim.

        :param embedding_retriever: Finds children by vectors; cosines are their score or, where that is scaled, their
            `meta.raw_score`.
        :param text_embedder: Embeds a claim as it embeds a question.
        :param near: The cosine at which a claim is near enough in meaning to be supported in part; below it, it is
            not supported. It depends on the embedder (`python -m bench.quality.groundedness --fit` measures it);
            None leaves the verdict to numbers and names.
        :raises ValueError: If `near` is not between -1 and 1.
        """
        if near is not None and not -1 <= near <= 1:
            raise ValueError(f"`near` must be a cosine, -1 to 1, or None, got {near}.")
        self.embedding_retriever = embedding_retriever
        self.text_embedder = text_embedder
        self.near = near

    @property
    def document_store(self) -> DocumentStore | None:
        """The store of the children, where the retriever has it as an attribute."""
        return getattr(self.embedding_retriever, "document_store", None)

    def compared(self, documents: Sequence[Document], filters: dict[str, Any] | None) -> list[Document]:
        """
        Prepare the comparison of claims with passages; nothing is searched yet.

        :param documents: The passages that an answer is written from.
        :param filters: The filters under which they were found, from `TenantFilter`.
        :returns: Copies that can find the place in them that is nearest to a claim.
        :raises RefusedError: If there are no filters.
        """
        within = require_filters(filters, type(self).__name__)
        within = all_of(where("meta.parent_id", "in", [document.id for document in documents]), within)
        children = lru_cache(_MOST_CLAIMS)(partial(self._children, within))
        compared: list[Document] = []
        for document in documents:
            compared.append(object.__new__(ComparedDocument))
            compared[-1].__dict__.update(document.__dict__, children=children, near=self.near)
        return compared

    def _children(self, filters: dict[str, Any], claim: str) -> list[Document]:
        embedding = self.text_embedder.run(text=claim)["embedding"]
        if not embedding:
            return []
        searched = {"query_embedding": embedding, "filters": filters, "top_k": _MOST_CHILDREN}
        return list(self.embedding_retriever.run(**searched)["documents"])


class ComparedDocument(SharedDocument):
    """A passage whose stored vectors a claim in another language can be compared with."""

    children: Callable[[str], list[Document]] | None = None
    near: float | None = None

    def nearest(self, claim: str) -> Nearest | None:
        """Find the child nearest to a claim that lies, at least in part, in the part of the passage that was read."""
        cut, length = Passage(self).offset, len(self.content or "")
        for child in self.children(claim) if self.children is not None else ():
            start, end = max(0, child.meta["start"] - cut), min(length, child.meta["end"] - cut)
            if Passage(child).parent_id == self.id and start < end:
                return Nearest(start, end, Passage(child).cosine, self.near)
        return None
