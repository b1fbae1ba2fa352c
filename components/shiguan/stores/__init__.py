"""Where passages are kept and found, and what all stores have in common."""

import asyncio
import inspect
from typing import Any, Self

from haystack import Document, default_from_dict, default_to_dict
from haystack.document_stores.types import DuplicatePolicy


class PipelineStore:
    """
    What Haystack asks of a store that stands in a pipeline's file, whatever is behind it.

    The asynchronous methods run their twins in a thread: a client of a server belongs to the event loop that first used
    it, a pipeline outside a server gets a new loop with every run, and the embedded engine has no asynchronous calls.
    """

    def to_dict(self) -> dict[str, Any]:
        """Write the store's parameters, without its data and without secrets."""
        names = inspect.signature(type(self).__init__).parameters
        return default_to_dict(self, **{name: getattr(self, name) for name in names if name != "self"})

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Make a store from what `to_dict` wrote."""
        return default_from_dict(cls, data)

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
