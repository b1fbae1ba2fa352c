"""Where passages are kept and found, and what all stores have in common."""

import asyncio
from typing import Any

from haystack import Document
from haystack.document_stores.types import DuplicatePolicy

from shiguan.serialization import Serializable

HIT_FIELDS = ("parent_id", "tenant_id", "source_id", "start", "end", "position", "language", "when")
"""What the fetcher of parents and the standardiser of scores need of a child; texts are not read."""

BM25_K1, BM25_B = 1.2, 0.75


class PipelineStore(Serializable):
    """
    What Haystack asks of a store that stands in a pipeline's file, whatever is behind it.

    The asynchronous methods run their twins in a thread: a client of a server belongs to the event loop that first used
    it, a pipeline outside a server gets a new loop with every run, and the embedded engine has no asynchronous calls.
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
