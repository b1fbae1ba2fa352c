"""Finds the place of a passage nearest in meaning to a claim, by the stored vectors of the passage's children."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

from haystack import Document
from haystack.components.embedders.types.protocol import TextEmbedder
from haystack.components.retrievers.types import EmbeddingRetriever
from haystack.document_stores.types import DocumentStore

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

    tenant_readers = ("embedding_retriever",)

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
        parents = [document.id for document in documents]
        search = _ChildSearch(self, require_filters(filters, type(self).__name__), parents)
        compared: list[Document] = []
        for document in documents:
            compared.append(object.__new__(ComparedDocument))
            compared[-1].__dict__.update(document.__dict__, search=search)
        return compared


class ComparedDocument(SharedDocument):
    """A passage whose stored vectors a claim in another language can be compared with."""

    search: "_ChildSearch | None" = None

    def nearest(self, claim: str) -> Nearest | None:
        """Find the child nearest to a claim that lies, at least in part, in the part of the passage that was read."""
        if self.search is None:
            return None
        cut, length = (self.meta.get("cut") or [0])[0], len(self.content or "")
        for child in self.search.children(claim):
            start, end = max(0, child.meta["start"] - cut), min(length, child.meta["end"] - cut)
            if child.meta.get("parent_id") == self.id and start < end:
                cosine = child.meta.get("raw_score", child.score) or 0.0
                return Nearest(start, end, cosine, self.search.matcher.near)
        return None


class _ChildSearch:
    """Searches for a claim among the children of some passages, once for each claim."""

    def __init__(self, matcher: ClaimMatcher, filters: dict[str, Any], parents: Sequence[str]) -> None:
        self.matcher = matcher
        self._filters = all_of(where("meta.parent_id", "in", list(parents)), filters)
        self.children = lru_cache(_MOST_CLAIMS)(self._children)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the same object, because it holds a store and a model."""
        return self

    def _children(self, claim: str) -> list[Document]:
        embedding = self.matcher.text_embedder.run(text=claim)["embedding"]
        if not embedding:
            return []
        searched = {"query_embedding": embedding, "filters": self._filters, "top_k": _MOST_CHILDREN}
        return list(self.matcher.embedding_retriever.run(**searched)["documents"])
