"""What the embedded document store does with token vectors."""

from abc import ABC, abstractmethod

from shiguan.stores import points
from shiguan.stores.shards import Shard
from shiguan.support.token_encoder import EncodedText
from shiguan.support.token_vectors import TokenVectors


class TokenVectorOperations(ABC):
    """The methods of `QdrantEdgeDocumentStore` for ranking by late interaction."""

    @property
    @abstractmethod
    def _shard(self) -> Shard:
        """The open folder."""

    def stage_token_vectors(self, texts: dict[str, EncodedText], model: str) -> None:
        """
        Take the token vectors of documents that will be written next.

        `write_documents` lets them be seen. A document that is written without new ones loses those it had.

        :param texts: What the embedder made of the documents, by their ids.
        :param model: The embedder.
        :raises StoreFormatError: If the folder has those of another model.
        :raises StoreError: If they cannot be written.
        """
        by_point = {points.point_id(document_id): text for document_id, text in texts.items()}
        self._shard.token_vectors.stage(model, by_point)

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
