"""What the embedded document store does with token vectors."""

from abc import ABC, abstractmethod
from dataclasses import replace

from haystack.dataclasses import Document

from shiguan.stores import points
from shiguan.stores.shards import Shard
from shiguan.support.packed_tokens import META_KEY, PackedTokens
from shiguan.support.token_vectors import TokenVectors


class TokenVectorOperations(ABC):
    """The methods of `QdrantEdgeDocumentStore` for ranking by late interaction."""

    @property
    @abstractmethod
    def _shard(self) -> Shard:
        """The open folder."""

    def token_vectors(self, child_ids: list[str], model: str) -> TokenVectors | None:
        """
        Give the token vectors of documents, for ranking by late interaction.

        :param child_ids: Ids of documents; those without vectors are left out of the answer.
        :param model: The embedder that the question is encoded with.
        :returns: Their vectors; `None` if the folder has none at all, because it was filled without them.
        :raises StoreFormatError: If the vectors are those of another model.
        :raises StoreError: If the file that keeps them is damaged.
        """
        return self._shard.token_vectors.read({points.point_id(child): child for child in child_ids}, model)


def without_token_vectors(documents: list[Document]) -> tuple[list[Document], dict[str, PackedTokens]]:
    """
    Take token vectors out of documents, before these become points.

    :param documents: Documents, some with `PackedTokens` in their meta; they stay as they are.
    :returns: The documents without these, in their order; the vectors by the engine's ids.
    """
    plain: list[Document] = []
    packed: dict[str, PackedTokens] = {}
    for document in documents:
        tokens = document.meta.get(META_KEY)
        if isinstance(tokens, PackedTokens):
            packed[points.point_id(document.id)] = tokens
            meta = {key: value for key, value in document.meta.items() if key != META_KEY}
            plain.append(replace(document, meta=meta))
        else:
            plain.append(document)
    return plain, packed
