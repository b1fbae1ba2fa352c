"""The document stores, and what all of them have in common."""

import asyncio
from typing import Any

from haystack import Document
from haystack.document_stores.types import DuplicatePolicy

from shiguan.serialization import Serializable

HIT_FIELDS = ("parent_id", "tenant_id", "source_id", "start", "end", "position", "language", "when")
"""The meta of a child that the fetcher of parents and the scaling of scores need; texts are not read."""

BM25_K1, BM25_B = 1.2, 0.75


class PipelineStore(Serializable):
    """
    What Haystack needs of a store in a pipeline file.

    The asynchronous methods run the synchronous ones in a thread: a client of a server belongs to the event loop that
    first used it, a pipeline outside a server gets a new loop with every run, and the embedded engine has no
    asynchronous calls.
    """

    async def write_documents_async(
        self: Any, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """See `write_documents`; what Haystack's `DocumentWriter` awaits."""
        written: int = await asyncio.to_thread(self.write_documents, documents, policy)
        return written

    async def filter_documents_async(self: Any, filters: dict[str, Any] | None = None) -> list[Document]:
        """See `filter_documents`; what Haystack's `FilterRetriever` awaits."""
        found: list[Document] = await asyncio.to_thread(self.filter_documents, filters)
        return found
