"""One document store made of two: words in the one, vectors in the other."""

import asyncio
from typing import Any

from haystack import Document, default_from_dict, default_to_dict
from haystack.document_stores.types import DuplicatePolicy

from shiguan.cluster.elasticsearch_store import ElasticsearchStore
from shiguan.cluster.qdrant_store import QdrantStore
from shiguan.errors import StoreError


class PairedDocumentStore:
    """
    Keeps every child twice: its words in Elasticsearch, its vector in Qdrant.

    Stands behind the children's writer, so that the index pipeline writes, compares and removes children as if they
    were in one place. A child counts as stored only where both have it, and as left over where either has it: a run
    that died between the two writes is repaired by the next one.
    """

    def __init__(self, words: ElasticsearchStore, *, vectors: QdrantStore) -> None:
        """
        Keep the two stores.

        :param words: Where children are found by their words, and read.
        :param vectors: Where children are found by their vectors.
        """
        self.words = words
        self.vectors = vectors

    def to_dict(self) -> dict[str, Any]:
        """
        Write the parameters of both stores.

        :returns: What `from_dict` takes.
        """
        return default_to_dict(self, words=self.words.to_dict(), vectors=self.vectors.to_dict())

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "PairedDocumentStore":
        """
        Make the two stores from their parameters.

        :param data: What `to_dict` returned.
        :returns: The pair.
        """
        return default_from_dict(cls, data)

    def set_up(self) -> list[str]:
        """
        Make the index and the collection, where they are not there yet.

        :returns: What was done, a sentence for each thing.
        """
        return [*self.words.set_up(), *self.vectors.set_up()]

    def status(self) -> list[dict[str, Any]]:
        """
        Tell how both do.

        :returns: The entry of each; where one has more children than the other, that is a problem of the second.
        """
        words, vectors = self.words.status()[0], self.vectors.status()[0]
        if None not in (words["documents"], vectors["documents"]) and words["documents"] != vectors["documents"]:
            vectors["problems"].append(
                f"{self.words.index} holds {words['documents']:,} passages and {self.vectors.index} "
                f"{vectors['documents']:,}; an ingest may be running, else run it again"
            )
        return [words, vectors]

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """
        Store children: words first, for a child that is found by its vector must be readable.

        :param documents: The children, each with its embedding.
        :param policy: What to do about ids that are stored already.
        :returns: How many were written.
        :raises StoreError: If a child has no embedding, or a server refused some; the message names them.
        """
        bare = [document.id for document in documents if document.embedding is None]
        if bare:
            raise StoreError(
                f"{len(bare):,} of {len(documents):,} passages have no embedding, `{bare[0]}` first. This deployment "
                "finds passages by vectors too: let the embedder run before the writer, for every language."
            )
        self.words.write_documents(documents, policy=policy)
        return self.vectors.write_documents(documents, policy=policy)

    def delete_documents(self, document_ids: list[str]) -> None:
        """
        Delete children from both: vectors first, so that nothing that is found is unreadable.

        :param document_ids: Their ids.
        """
        self.vectors.delete_documents(document_ids)
        self.words.delete_documents(document_ids)

    def delete_by_filter(self, filters: dict[str, Any]) -> int:
        """
        Delete the children that match from both.

        :param filters: A Haystack filter.
        :returns: How many were deleted.
        """
        self.vectors.delete_by_filter(filters)
        return self.words.delete_by_filter(filters)

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """
        Give the children that match, without embeddings.

        :param filters: A Haystack filter; all children without one.
        :returns: The children by id.
        """
        return self.words.filter_documents(filters)

    def get_documents_by_id(self, document_ids: list[str]) -> list[Document]:
        """
        Give children by id, without embeddings.

        :param document_ids: Their ids.
        :returns: The children in the order of their ids; ids that are not stored are left out.
        """
        return self.words.get_documents_by_id(document_ids)

    def existing_ids(self, document_ids: list[str]) -> set[str]:
        """
        Tell which children are stored in both.

        :param document_ids: Ids to look for.
        :returns: Those that need not be written.
        """
        return self.words.existing_ids(document_ids) & self.vectors.existing_ids(document_ids)

    def list_ids(self, filters: dict[str, Any] | None = None) -> list[str]:
        """
        Give the ids of the children that match in either.

        :param filters: A Haystack filter; all children without one.
        :returns: Their ids, sorted.
        """
        return sorted({*self.words.list_ids(filters), *self.vectors.list_ids(filters)})

    def count_documents(self) -> int:
        """
        Count the children.

        :returns: How many Elasticsearch has.
        """
        return self.words.count_documents()

    def count_documents_by_filter(self, filters: dict[str, Any]) -> int:
        """
        Count the children that match.

        :param filters: A Haystack filter.
        :returns: How many Elasticsearch has.
        """
        return self.words.count_documents_by_filter(filters)

    def unscoped(self) -> "PairedDocumentStore":
        """Give the same pair for maintenance, over all tenants; never hand it to a pipeline."""
        return PairedDocumentStore(self.words.unscoped(), vectors=self.vectors.unscoped())

    def close(self) -> None:
        """Close both connections; the next use opens them again."""
        self.words.close()
        self.vectors.close()

    async def write_documents_async(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """See `write_documents`."""
        return await asyncio.to_thread(self.write_documents, documents, policy)
