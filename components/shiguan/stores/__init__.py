"""The document stores, and what all of them have in common."""

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from pathlib import Path
from typing import Any

from shiguan.serialization import Serializable

HIT_FIELDS = ("parent_id", "tenant_id", "source_id", "start", "end", "position", "language", "when")
"""The meta of a child that the fetcher of parents and the scaling of scores need; texts are not read."""

BM25_K1, BM25_B = 1.2, 0.75

_AWAITED = {"write_documents_async", "filter_documents_async"}
"""What Haystack's `DocumentWriter` and `FilterRetriever` await."""


def is_model(found: str | None, wanted: str) -> bool:
    """Whether vectors are those of a model, of which `wanted` is the identity or how it begins."""
    return found is not None and f"{found},".startswith(f"{wanted},")


def other_vectors(place: object, found: str | None, wanted: str) -> str:
    """Explain that the vectors of a store are another embedder's, and what to do."""
    return (
        f"The vectors in `{place}` were made with {f'`{found}`' if found else 'an earlier embedder'} and not with "
        f"`{wanted}`, so passages are found by their words alone until `shiguan ingest --resume` makes them anew."
    )


class PipelineStore(Serializable):
    """What Haystack needs of a store in a pipeline file, and the engine of one without a folder or a server."""

    def __init_subclass__(cls, **options: Any) -> None:
        # A client of a server belongs to the event loop that first used it, and a pipeline outside a server gets a new
        # loop with every run; so what is awaited runs in a thread.
        super().__init_subclass__(**options)
        names = {name for name in dir(cls) if name.endswith("_async")}
        haystacks = {name for name in names if getattr(cls, name).__module__.startswith("haystack")}
        for name in haystacks | (_AWAITED - names):
            method = inspect.getattr_static(cls, name.removesuffix("_async"), None)
            if inspect.isfunction(method):
                setattr(cls, name, _in_thread(method))

    @property
    def folder(self) -> Path | None:
        """Where it is on this machine; None for one on a server."""
        return None

    def set_up(self) -> list[str]:
        """Create what is missing on its server, and say what was done."""
        return []

    def turn(
        self,
        tenant_id: str,  # noqa: ARG002
        source: str,  # noqa: ARG002
        waiting: Callable[[str], object] | None = None,  # noqa: ARG002
    ) -> AbstractContextManager[None]:
        """Keep others from writing or deleting a source during a `with` block; stores on servers have no such lock."""
        return nullcontext()

    def count_languages(self, filters: dict[str, Any] | None = None) -> dict[str, int]:  # noqa: ARG002
        """Count the documents in each language; nothing where a store does not know them."""
        return {}

    def count_without_vector(self, filters: dict[str, Any] | None = None) -> int:  # noqa: ARG002
        """Count the documents without a vector; 0 where a store has none, or nothing else."""
        return 0

    def count_documents(self: Any) -> int:
        """Count all documents."""
        count: int = self.count_documents_by_filter({})
        return count

    def list_ids(self: Any, filters: dict[str, Any] | None = None) -> list[str]:
        """List the ids of the documents that match, without reading the documents."""
        return list(self.iter_ids(filters))

    def iter_ids_without_vector(self: Any, filters: dict[str, Any] | None = None) -> Iterator[str]:
        """List the ids of the documents that have no vector yet, one after the other."""
        return iter(self.list_ids_without_vector(filters))

    def read_vectors(self: Any, filters: dict[str, Any]) -> dict[str, list[float]]:
        """Read the vectors of the documents that match, by their ids."""
        found = self.filter_documents(filters)
        return {document.id: document.embedding for document in found if document.embedding is not None}


def _in_thread(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    async def twin(self: Any, *arguments: Any, **words: Any) -> Any:
        return await asyncio.to_thread(getattr(self, method.__name__), *arguments, **words)

    return twin
