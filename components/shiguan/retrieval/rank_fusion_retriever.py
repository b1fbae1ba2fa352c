"""Several questions, two retrievers, one fused list."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

from haystack import Document, component
from haystack.components.embedders.types.protocol import TextEmbedder
from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers.types import EmbeddingRetriever, TextRetriever

from shiguan.support.languages import detect_language
from shiguan.tenants import require_filters


@dataclass(frozen=True)
class _Search:
    """One ranked list to come: which retriever, for which of the queries."""

    kind: str
    query: str
    first: bool


@component
class RankFusionRetriever:
    """
    Finds what any wording of the question finds, and puts first what several of them agree on.

    Stands between the rewriter and the parent fetcher. Every query is searched by words and by meaning, side by side;
    the lists are fused by reciprocal rank over all of them (Haystack's `DocumentJoiner`), never by raw scores, which
    two retrievers do not share.

    Sources: reciprocal rank fusion, Cormack, Clarke and Buettcher, "Reciprocal Rank Fusion outperforms Condorcet and
    individual Rank Learning Methods" (SIGIR 2009), k = 60; over several queries, Rackauckas, "RAG-Fusion: a New Take on
    Retrieval-Augmented Generation" (2024). We depart from the latter in the weights: a retriever's weight is shared
    among its lists, so that many queries of one kind do not outvote the other kind.

    Queries in a language that the embedder does not know are searched by words alone: see `languages`.
    """

    def __init__(
        self,
        bm25_retriever: TextRetriever,
        *,
        embedding_retriever: EmbeddingRetriever,
        text_embedder: TextEmbedder,
        languages: list[str] | None = None,
        bm25_weight: float = 0.5,
        top_k: int = 50,
    ) -> None:
        """
        Name the two retrievers and what turns a query into a vector.

        :param bm25_retriever: Finds children by words.
        :param embedding_retriever: Finds children by vectors.
        :param text_embedder: Embeds queries; a `HyDEEmbedder` is told when a hypothetical passage pays.
        :param languages: ISO 639-1 codes that the embedder knows; None for all.
        :param bm25_weight: The share of the lists found by words, between 0 and 1; vectors get the rest.
        :param top_k: How many children to return at most.
        :raises ValueError: If a number is out of range or `languages` is empty.
        """
        if not 0 <= bm25_weight <= 1:
            raise ValueError(f"`bm25_weight` must be between 0 and 1, got {bm25_weight}.")
        if top_k < 1:
            raise ValueError(f"`top_k` must be positive, got {top_k}.")
        if languages is not None and not languages:
            raise ValueError("`languages` must name at least one language, or be null for an embedder that knows all.")
        self.bm25_retriever = bm25_retriever
        self.embedding_retriever = embedding_retriever
        self.text_embedder = text_embedder
        self.languages = languages
        self.bm25_weight = bm25_weight
        self.top_k = top_k

    def warm_up(self) -> None:
        """Load the embedder's model."""
        for part in (self.bm25_retriever, self.embedding_retriever, self.text_embedder):
            if hasattr(part, "warm_up"):
                part.warm_up()

    @component.output_types(documents=list[Document], searches=list[dict[str, Any]], warnings=list[str], llm_calls=int)
    def run(
        self,
        queries: list[str],
        filters: dict[str, Any] | None = None,
        use_hyde: bool = False,
        attempt: int = 1,
        top_k: int | None = None,
    ) -> dict[str, Any]:
        """
        Search for every query with both retrievers and fuse the lists.

        :param queries: The question first, then its other wordings.
        :param filters: What may be found, from `TenantFilter`.
        :param use_hyde: Whether the question (not its other wordings) may be embedded with a hypothetical passage.
        :param attempt: Which round of a loop this is, from 1. Later rounds search for statements that lacked support,
            which need no hypothetical passage.
        :param top_k: How many children to return at most, for this call.
        :returns: `documents`, children by fused score; `searches`, for each list `kind`, `query`, how many were
            `found` and, with HyDE, the `hypothetical_passages`; `warnings`; `llm_calls`, how many HyDE made.
        """
        filters = require_filters(filters, type(self).__name__)
        self.warm_up()
        searches, warnings = self._plan(queries)
        use_hyde = use_hyde and attempt == 1
        with ThreadPoolExecutor(max_workers=max(1, len(searches)), thread_name_prefix="search") as pool:
            # Each search runs in a copy of this context, so that its spans and timings stay with this question.
            pending = [pool.submit(copy_context().run, self._search, search, filters, use_hyde) for search in searches]
            results = [future.result() for future in pending]
        return self._fused(searches, results, warnings, self.top_k if top_k is None else top_k)

    @component.output_types(documents=list[Document], searches=list[dict[str, Any]], warnings=list[str], llm_calls=int)
    async def run_async(
        self,
        queries: list[str],
        filters: dict[str, Any] | None = None,
        use_hyde: bool = False,
        attempt: int = 1,
        top_k: int | None = None,
    ) -> dict[str, Any]:
        """
        Search for every query with both retrievers and fuse the lists, from within an event loop.

        :param queries: The question first, then its other wordings.
        :param filters: What may be found, from `TenantFilter`.
        :param use_hyde: Whether the question (not its other wordings) may be embedded with a hypothetical passage.
        :param attempt: Which round of a loop this is, from 1. Later rounds search for statements that lacked support,
            which need no hypothetical passage.
        :param top_k: How many children to return at most, for this call.
        :returns: As `run`.
        """
        filters = require_filters(filters, type(self).__name__)
        self.warm_up()
        searches, warnings = self._plan(queries)
        use_hyde = use_hyde and attempt == 1
        results = await asyncio.gather(*(self._search_async(search, filters, use_hyde) for search in searches))
        return self._fused(searches, results, warnings, self.top_k if top_k is None else top_k)

    def _plan(self, queries: list[str]) -> tuple[list[_Search], list[str]]:
        searches: list[_Search] = []
        unknown: list[str] = []
        for position, query in enumerate(dict.fromkeys(query for query in queries if query.strip())):
            if self.bm25_weight > 0:
                searches.append(_Search("bm25", query, position == 0))
            language = detect_language(query)
            if self.languages is not None and language not in self.languages:
                unknown.append(language)
                # Words alone then, even where the weights would leave words out.
                if self.bm25_weight == 0:
                    searches.append(_Search("bm25", query, position == 0))
            elif self.bm25_weight < 1:
                searches.append(_Search("embedding", query, position == 0))
        if not unknown:
            return searches, []
        known = ", ".join(self.languages or [])
        return searches, [
            f"The embedder knows {known}, the question is in {'/'.join(dict.fromkeys(unknown))}: passages were found "
            "by their words (BM25) alone."
        ]

    def _search(self, search: _Search, filters: dict[str, Any] | None, use_hyde: bool) -> dict[str, Any]:
        if search.kind == "bm25":
            return self.bm25_retriever.run(query=search.query, filters=filters)
        embedded = self.text_embedder.run(**self._embedder_input(search, use_hyde))
        found = self.embedding_retriever.run(query_embedding=embedded.pop("embedding"), filters=filters)
        return {**embedded, **found}

    async def _search_async(self, search: _Search, filters: dict[str, Any] | None, use_hyde: bool) -> dict[str, Any]:
        if search.kind == "bm25":
            return await _run(self.bm25_retriever, query=search.query, filters=filters)
        embedded = await _run(self.text_embedder, **self._embedder_input(search, use_hyde))
        found = await _run(self.embedding_retriever, query_embedding=embedded.pop("embedding"), filters=filters)
        return {**embedded, **found}

    def _embedder_input(self, search: _Search, use_hyde: bool) -> dict[str, Any]:
        sockets = self.text_embedder.__haystack_input__._sockets_dict  # type: ignore[attr-defined]
        if "use_hyde" in sockets:
            return {"text": search.query, "use_hyde": use_hyde and search.first}
        return {"text": search.query}

    def _fused(
        self, searches: list[_Search], results: list[dict[str, Any]], warnings: list[str], top_k: int
    ) -> dict[str, Any]:
        lists = [result["documents"] for result in results]
        weights = _weights([search.kind for search in searches], self.bm25_weight)
        joiner = DocumentJoiner(join_mode="reciprocal_rank_fusion", weights=weights, top_k=top_k)
        documents = joiner.run(documents=lists)["documents"] if lists else []
        return {
            "documents": documents,
            "searches": [
                {
                    "kind": search.kind,
                    "query": search.query,
                    "found": len(result["documents"]),
                    "hypothetical_passages": result.get("hypothetical_passages", []),
                }
                for search, result in zip(searches, results, strict=True)
            ],
            "warnings": [*warnings, *_gathered(results)],
            "llm_calls": sum(result.get("llm_calls", 0) for result in results),
        }


def _weights(kinds: list[str], bm25_weight: float) -> list[float]:
    """Share each retriever's weight among its lists; a retriever that is alone gets everything."""
    share = {"bm25": bm25_weight, "embedding": 1 - bm25_weight}
    present = {kind: share[kind] for kind in kinds}
    total = sum(present.values())
    if total == 0:
        return [1.0] * len(kinds)
    return [present[kind] / total / kinds.count(kind) for kind in kinds]


def _gathered(results: list[dict[str, Any]]) -> Iterator[str]:
    yield from dict.fromkeys(warning for result in results for warning in result.get("warnings", []))


async def _run(part: Any, **arguments: Any) -> dict[str, Any]:
    if getattr(part, "__haystack_supports_async__", False):
        result: dict[str, Any] = await part.run_async(**arguments)
        return result
    return await asyncio.to_thread(part.run, **arguments)
