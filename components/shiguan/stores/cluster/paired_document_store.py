"""One document store made of two: words in the one, vectors in the other."""

import asyncio
from collections import Counter
from typing import Any

from haystack import Document, default_from_dict, default_to_dict
from haystack.document_stores.types import DuplicatePolicy

from shiguan.stores.cluster.elasticsearch_store import ElasticsearchStore
from shiguan.stores.cluster.qdrant_store import QdrantStore


class PairedDocumentStore:
    """
    Keeps every child twice: its words in Elasticsearch, its vector in Qdrant.

    Stands behind the children's writer, so that the index pipeline writes, compares and removes children as if they
    were in one place. Words come first and are searchable at once; a child has its vector where Qdrant has it. A child
    counts as left over where either has it.
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

        :param documents: The children; those with an embedding are found by it too.
        :param policy: What to do about ids that are stored already.
        :returns: How many were written.
        :raises StoreError: If a server refused some; the message names them.
        """
        written = self.words.write_documents(documents, policy=policy)
        embedded = [document for document in documents if document.embedding is not None]
        if embedded:
            self.vectors.write_documents(embedded, policy=policy)
        return written

    def write_vectors(self, documents: list[Document], *, model: str) -> int:
        """
        Give stored children their vectors.

        :param documents: The children with their embeddings.
        :param model: The embedder's identity; a collection belongs to the embedder of its deployment's files.
        :returns: How many were written.
        :raises StoreError: If a child has no embedding, or the server refused some; the message names them.
        """
        del model
        return self.vectors.write_documents(documents, policy=DuplicatePolicy.OVERWRITE)

    def list_ids_without_vector(self, filters: dict[str, Any] | None = None) -> list[str]:
        """
        Give the ids of the children that Qdrant does not have yet.

        :param filters: A Haystack filter; all children without one.
        :returns: Their ids, sorted.
        """
        return sorted({*self.words.list_ids(filters)}.difference(self.vectors.list_ids(filters)))

    def other_vectors(self, model: str | None = None) -> str | None:  # noqa: ARG002
        """
        Tell whether the vectors are another embedder's, which a collection does not say.

        :param model: The embedder's identity.
        :returns: None.
        """
        return None

    def drop_vectors(self) -> None:
        """Do nothing: another embedder has another collection, see docs/deploy.md."""

    def count_by_file(self, filters: dict[str, Any] | None = None) -> dict[str, tuple[int, int]]:
        """
        Count the children of each file.

        :param filters: A Haystack filter; all children without one.
        :returns: How many there are by `file_id`, and how many of them have a vector.
        """
        words = Counter(meta.get("file_id", "") for meta in self.words.list_meta(filters, ["file_id"]))
        vectors = Counter(meta.get("file_id", "") for meta in self.vectors.list_meta(filters, ["file_id"]))
        return {file: (count, vectors[file]) for file, count in words.items()}

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
        Tell which children are stored.

        :param document_ids: Ids to look for.
        :returns: Those whose words need not be written.
        """
        return self.words.existing_ids(document_ids)

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
