"""Lets the check of an answer compare a claim with passages in another language."""

from typing import Any

from haystack import Document, component
from haystack.components.embedders.types.protocol import TextEmbedder
from haystack.components.retrievers.types import EmbeddingRetriever

from shiguan.claims.nearness import ChildSearch
from shiguan.llm.calls import NestingComponent
from shiguan.tenants import require_filters


@component
class ClaimMatcher(NestingComponent):
    """
    Lets the check of an answer find the sentences of a passage that are nearest in meaning to a claim.

    Stands behind the parent fetcher; the context builder gives what it makes to the passages, so that an English answer
    on Chinese passages is checked by more than its numbers. A claim is embedded and searched for among the children of
    the passages, under the caller's filters: their vectors are those that are stored, no passage is embedded again.
    Nothing is searched until the check meets a claim in a language that none of the passages has. Without a vector for
    the claim or the children the check goes on by numbers and names.

    Example:
    ```python
    children = ClaimMatcher(retriever, text_embedder=embedder, near=0.78).run(documents, filters)["children"]
    document = ContextBuilder().run(documents, children=children)["documents"][0]
    document.nearest("An Lushan rose in Fanyang.")   # Nearest(start=0, end=20, cosine=0.86, near=0.78)
    ```
    """

    tenant_readers = ("embedding_retriever",)

    def __init__(
        self, embedding_retriever: EmbeddingRetriever, *, text_embedder: TextEmbedder, near: float | None = None
    ) -> None:
        """
        Name what searches the children.

        :param embedding_retriever: Finds children by vectors; their scores are cosines.
        :param text_embedder: Embeds a claim as it embeds a question.
        :param near: The cosine from which on a claim is near enough in meaning to be supported in part; below it is
            not supported. It depends on the embedder (`python -m bench.quality.groundedness --fit` measures it);
            None leaves the verdict to numbers and names.
        :raises ValueError: If `near` is not between -1 and 1.
        """
        if near is not None and not -1 <= near <= 1:
            raise ValueError(f"`near` must be a cosine, -1 to 1, or None, got {near}.")
        self.embedding_retriever = embedding_retriever
        self.text_embedder = text_embedder
        self.near = near

    @component.output_types(documents=list[Document], children=ChildSearch)
    def run(self, documents: list[Document], filters: dict[str, Any] | None = None) -> dict[str, Any]:
        """
        Prepare the search; nothing is searched yet.

        :param documents: The parents that were found.
        :param filters: The filters that they were found under, from `TenantFilter`.
        :returns: `documents`, as they came, and `children`, for `ContextBuilder`, whose passages then know what in them
            is nearest to a claim.
        """
        allowed = require_filters(filters, type(self).__name__)
        children = ChildSearch(self.embedding_retriever, self.text_embedder, allowed, self.near)
        return {"documents": documents, "children": children}
