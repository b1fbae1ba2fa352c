"""Several wordings of a question, each searched by words and by meaning."""

import asyncio
from dataclasses import dataclass
from typing import Any

from haystack import Document, component
from haystack.components.embedders.types.protocol import TextEmbedder
from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers.types import EmbeddingRetriever, TextRetriever

from shiguan.llm.calls import blocking, run_nested_async
from shiguan.retrieval.language_balancer import LanguageBalancer
from shiguan.retrieval.score_standardizer import LEAST_DEVIATION, left_out, standardized
from shiguan.serialization import Serializable


@dataclass(frozen=True)
class _Found:
    """What one query found: lists by words, its own and those of hypothetical passages, and one by vectors."""

    query: str
    by_words: list[list[Document]]
    by_vectors: list[Document]
    embedded: dict[str, Any]

    @property
    def passages(self) -> list[str]:
        return self.embedded.get("hypothetical_passages") or []


@component
class MultiQueryHybridRetriever(Serializable):
    """
    Finds what any wording of the question finds, and puts first what several of them agree on.

    Stands between the rewriter and the parent fetcher. Within one question it does what the nodes of `simple` do: both
    lists standardised (see `ScoreStandardizer`), joined by `joiner`, the languages weighed (see `LanguageBalancer`).
    Scores for two questions do not compare, so their lists are joined by rank, with `query_joiner`; a question without
    other wordings goes past it and keeps its scores. Both are Haystack's `DocumentJoiner`, and either can be given
    another `join_mode`.

    With a `HyDEEmbedder` the question's hypothetical passages are searched by words too. As their vectors are averaged
    with the question's, so are their standardised scores: the question and each passage count alike within the words,
    and the words as a whole count no more than without them.

    Sources: for one question Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval" (2023); for
    several Rackauckas, "RAG-Fusion: a New Take on Retrieval-Augmented Generation" (2024), by reciprocal rank, Cormack,
    Clarke and Buettcher (SIGIR 2009), k = 60.

    Example in YAML:
    ```yaml
    joiner:
      type: haystack.components.joiners.document_joiner.DocumentJoiner
      init_parameters: {join_mode: merge, weights: [0.5, 0.5], top_k: 50}  # words, vectors
    query_joiner:
      type: haystack.components.joiners.document_joiner.DocumentJoiner
      init_parameters: {join_mode: reciprocal_rank_fusion, top_k: 50}
    ```
    """

    tenant_readers = ("bm25_retriever", "embedding_retriever", "language_balancer")

    def __init__(
        self,
        bm25_retriever: TextRetriever,
        *,
        embedding_retriever: EmbeddingRetriever,
        text_embedder: TextEmbedder,
        joiner: DocumentJoiner,
        query_joiner: DocumentJoiner,
        language_balancer: LanguageBalancer | None = None,
    ) -> None:
        """
        Name the retrievers, what turns a query into a vector, and how lists become one.

        :param bm25_retriever: Finds children by words.
        :param embedding_retriever: Finds children by vectors.
        :param text_embedder: Embeds queries; a `HyDEEmbedder` is told when a hypothetical passage pays. Where it gives
            an empty embedding, words alone are searched.
        :param joiner: Joins the two lists of a query, that of the words first.
        :param query_joiner: Joins the lists of several queries.
        :param language_balancer: Weighs the languages of the library within each query; without it all count alike.
        """
        self.bm25_retriever = bm25_retriever
        self.embedding_retriever = embedding_retriever
        self.text_embedder = text_embedder
        self.joiner = joiner
        self.query_joiner = query_joiner
        self.language_balancer = language_balancer

    def warm_up(self) -> None:
        """Load the embedder's model; a second call does nothing."""
        for part in (self.bm25_retriever, self.embedding_retriever, self.text_embedder):
            if hasattr(part, "warm_up"):
                part.warm_up()

    @component.output_types(
        documents=list[Document],
        nearest=list[Document],
        searches=list[dict[str, Any]],
        warnings=list[str],
        llm_calls=int,
    )
    async def run_async(
        self,
        queries: list[str],
        filters: dict[str, Any] | None = None,
        use_hyde: bool = False,
        attempt: int = 1,
        retrieval: str = "hybrid",
    ) -> dict[str, Any]:
        """
        Search for every query with both retrievers and join the lists.

        :param queries: The question first, then its other wordings.
        :param filters: What may be found, from `TenantFilter`.
        :param use_hyde: Whether hypothetical passages may be written for the question; for its other wordings never.
        :param attempt: Which round of a loop this is, from 1. Later rounds search for what an answer lacked,
            which need no hypothetical passage.
        :param retrieval: `words` or `vectors` to take passages from one of the two lists alone; `nearest` stays.
        :returns: `documents`, children by fused score; `nearest`, those that the first query found by vectors,
            with their cosines; `searches`, for each list its `kind` (`bm25` or `embedding`),
            `query`, how many were `found` and, for vectors with HyDE, the `hypothetical_passages`; `warnings`;
            `llm_calls`, how many HyDE made.
        :raises ValueError: If `retrieval` is none of the three.
        """
        self.warm_up()
        hyde = use_hyde and attempt == 1
        asked = enumerate(_asked(queries))
        found = await asyncio.gather(*(self._search(query, filters, hyde and not place) for place, query in asked))
        lists = [await self._fused(one, filters, retrieval) for one in found]
        return {
            "documents": lists[0] if len(lists) == 1 else self.query_joiner.run(documents=lists)["documents"],
            "nearest": found[0].by_vectors if found else [],
            "searches": [search for one in found for search in _searches(one)],
            "warnings": list(dict.fromkeys(text for one in found for text in one.embedded.get("warnings") or [])),
            "llm_calls": sum(one.embedded.get("llm_calls", 0) for one in found),
        }

    run = blocking(run_async)

    async def _search(self, query: str, filters: dict[str, Any] | None, use_hyde: bool) -> _Found:
        async def words(text: str) -> list[Document]:
            found = await run_nested_async(self.bm25_retriever, query=text, filters=filters)
            return list(found["documents"])

        own, embedded = await asyncio.gather(
            words(query), run_nested_async(self.text_embedder, **self._embedder_input(query, use_hyde))
        )
        passages = embedded.get("hypothetical_passages") or []
        vectors = self._by_vectors(embedded["embedding"], filters)
        by_vectors, *more = await asyncio.gather(vectors, *map(words, passages))
        return _Found(query, [own, *more], by_vectors, embedded)

    async def _by_vectors(self, vector: list[float], filters: dict[str, Any] | None) -> list[Document]:
        if not vector:
            return []
        found = await run_nested_async(self.embedding_retriever, query_embedding=vector, filters=filters)
        return list(found["documents"])

    def _embedder_input(self, query: str, use_hyde: bool) -> dict[str, Any]:
        sockets = self.text_embedder.__haystack_input__._sockets_dict  # type: ignore[attr-defined]
        return {"text": query, "use_hyde": use_hyde} if "use_hyde" in sockets else {"text": query}

    async def _fused(self, found: _Found, filters: dict[str, Any] | None, retrieval: str) -> list[Document]:
        words = [] if left_out("words", retrieval) else _averaged(found.by_words)
        vectors = [] if left_out("vectors", retrieval) else standardized(found.by_vectors, LEAST_DEVIATION)
        joined: list[Document] = self.joiner.run(documents=[words, vectors])["documents"]
        if self.language_balancer is None:
            return joined
        named = {"query": found.query, "documents": joined, "nearest": found.by_vectors, "filters": filters}
        return list((await run_nested_async(self.language_balancer, **named))["documents"])


def _asked(queries: list[str]) -> list[str]:
    return list(dict.fromkeys(query for query in queries if query.strip()))


def _averaged(lists: list[list[Document]]) -> list[Document]:
    """Make one standardised list of several in which each counts alike; it is cut to the length of the longest."""
    if len(lists) == 1:
        return standardized(lists[0])
    joiner = DocumentJoiner(join_mode="merge", top_k=max(map(len, lists)) or None)
    return standardized(joiner.run(documents=[standardized(documents) for documents in lists])["documents"])


def _searches(found: _Found) -> list[dict[str, Any]]:
    texts = zip([found.query, *found.passages], found.by_words, strict=True)
    words = [{"kind": "bm25", "query": text, "found": len(documents)} for text, documents in texts]
    vectors = {"kind": "embedding", "query": found.query, "found": len(found.by_vectors)}
    if found.passages:
        vectors["hypothetical_passages"] = found.passages
    return [*words, vectors] if found.embedded["embedding"] else words
