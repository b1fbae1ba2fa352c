"""What differs between Haystack 2.31 and 3, and each private name of Haystack that is used: nothing else has them."""

import logging
import sys
from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from haystack import Document, component
from haystack.dataclasses import ChatMessage
from jinja2 import Environment

try:
    from haystack import AsyncPipeline
except ImportError:  # Haystack 3, where every pipeline can run asynchronously
    from haystack import Pipeline as AsyncPipeline  # type: ignore[assignment]

__all__ = [
    "AsyncPipeline",
    "ElasticsearchHooks",
    "ObservedPipeline",
    "QdrantHooks",
    "allow_types",
    "elasticsearch_filter",
    "open_async_client",
    "template_environment",
    "with_meta",
]

_RANKERS, _NEW = "haystack.components.rankers.transformers_similarity", "SentenceTransformersSimilarityRanker"


class _Rankers(ModuleType):
    """The module of the cross-encoder by its name in Haystack 2, by which files name it."""

    def __getattr__(self, name: str) -> Any:
        if name != "TransformersSimilarityRanker":
            raise AttributeError(f"{self.__name__} has no {name}")
        base = _MissingRanker
        if find_spec("haystack_integrations.components.rankers") is not None:
            base = import_module("haystack_integrations.components.rankers.sentence_transformers").__dict__[_NEW]
        found: Any = component(type(name, (base,), {"__module__": self.__name__, "__doc__": base.__doc__}))
        setattr(self, name, found)
        return found


class _MissingRanker:
    """Has the sockets of the cross-encoder where its package is missing, so that files that name it can be checked."""

    def __init__(self, **_: Any) -> None:
        raise ImportError("TransformersSimilarityRanker needs the package `sentence-transformers-haystack`.")

    @component.output_types(documents=list[Document])
    def run(self, query: str, documents: list[Document], top_k: int | None = None) -> dict[str, Any]:
        raise NotImplementedError


# Haystack 3 has it only as `SentenceTransformersSimilarityRanker`.
if find_spec(_RANKERS) is None:
    sys.modules[_RANKERS] = _Rankers(_RANKERS)
else:  # Haystack 2 advises at each start to name the class of Haystack 3, which the files cannot yet
    logging.getLogger(_RANKERS).addFilter(lambda record: "is considered legacy" not in record.getMessage())


def allow_types(checked: Any) -> None:
    """Let Haystack 3 load the classes of a file that our own check has passed; Haystack 2 loads any class."""
    try:
        from haystack.core.serialization import allow_deserialization_module  # type: ignore[attr-defined]  # noqa: PLC0415
    except ImportError:
        return
    if isinstance(checked, dict) and isinstance(type_ := checked.get("type"), str) and "." in type_:
        allow_deserialization_module(type_.rpartition(".")[0])
    for inner in checked.values() if isinstance(checked, dict) else checked if isinstance(checked, list) else ():
        allow_types(inner)


class ObservedPipeline(AsyncPipeline):
    """A pipeline that runs each component through `run_component`, which a subclass replaces."""

    async def run_component(
        self,
        name: str,  # noqa: ARG002
        inputs: Mapping[str, Any],
        run: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]],
    ) -> Mapping[str, Any]:
        """Let `run` give a component its inputs, and return its outputs."""
        return await run(inputs)

    def _run_component_async(  # type: ignore[override]
        self,
        component_name: str,
        component: dict[str, Any],
        component_inputs: dict[str, Any],
        *more: Any,
        **options: Any,
    ) -> Awaitable[Mapping[str, Any]]:
        run: Any = AsyncPipeline._run_component_async
        return self.run_component(
            component_name, component_inputs, lambda inputs: run(component_name, component, inputs, *more, **options)
        )


def template_environment(component: Any) -> Any:
    """Return what a component of Haystack renders templates with, if it renders any."""
    return found if isinstance(found := getattr(component, "_env", None), Environment) else None


def with_meta(message: ChatMessage, **more: Any) -> ChatMessage:
    """Return a message with more in its meta; Haystack has no public way to copy one."""
    twin = deepcopy(message)
    twin.meta.update(more)
    return twin


async def open_async_client(generator: Any) -> Any:
    """Return the client of a generator of Haystack; Haystack 3 makes it when it is first used."""
    if generator.async_client is None:
        await generator.warm_up_async()
    return generator.async_client


class ElasticsearchHooks:
    """What Haystack's store for Elasticsearch and its retriever call: a checked client, and a search of our own."""

    def _ensure_initialized(self: Any) -> None:
        # Haystack's own keeps a client whose first call failed, and makes the index.
        self._client = self.server.client()

    def _bm25_retrieval(self: Any, query: str, **options: Any) -> Any:
        return self.bm25_retrieval(query, **options)


class QdrantHooks:
    """What Haystack's store for Qdrant and its retriever call."""

    def _initialize_client(self: Any) -> None:
        self._client = self.server.client()

    def _query_by_embedding(self: Any, query_embedding: list[float], **options: Any) -> Any:
        return self.query_by_embedding(query_embedding, **options)


def elasticsearch_filter(filters: dict[str, Any]) -> dict[str, Any]:
    """Write filters as Elasticsearch reads them."""
    from haystack_integrations.document_stores.elasticsearch.filters import _normalize_filters  # noqa: PLC0415

    return _normalize_filters(filters)
