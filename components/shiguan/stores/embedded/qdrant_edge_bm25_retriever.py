"""Find children by the words of a question; and what both retrievers of the embedded store share."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from heapq import nlargest
from typing import Any

import numpy as np
from haystack import component
from haystack.dataclasses import Document

from shiguan.reading.question import read_question
from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore
from shiguan.tenants import all_of, require_filters, where
from shiguan.text.names import names_in_library, other_name_weights
from shiguan.text.passages import rescored

# At most so many languages have their own lists; all others share the last one.
_MOST_LANGUAGES = 7


class EdgeRetriever:
    """A search of the embedded store for the best of every language."""

    def __init__(self, document_store: QdrantEdgeDocumentStore, *, top_k: int = 50, scale_score: bool = False) -> None:
        """
        Describe the search.

        :param document_store: The store; with BM25 to be searched by words, with vectors to be searched by these.
        :param top_k: How many documents at most, in each language of the library.
        :param scale_score: Whether scores become deviations above the lowest of their language, from 0, so that those
            of words and of vectors can be added up. The retriever's own score is then `meta["raw_score"]`.
        :raises ValueError: If `top_k` is not positive or the store is another one.
        """
        if not isinstance(document_store, QdrantEdgeDocumentStore):
            raise ValueError(
                f"`document_store` must be a QdrantEdgeDocumentStore, got `{type(document_store).__name__}`"
            )
        if top_k < 1:
            raise ValueError(f"`top_k` must be positive, got {top_k}")
        self.document_store = document_store
        self.top_k = top_k
        self.scale_score = scale_score

    def search_each_language(
        self, search: Callable[..., list[Document]], question: Any, filters: dict[str, Any] | None, top_k: int | None
    ) -> list[Document]:
        """
        Find the best of every language of the library, which one list would not hold.

        A question's words and its vector are nearest to passages in its own language, so these fill a list to its end
        wherever there are enough of them. While a list is full and the library holds more languages, the next one is
        searched without its commonest language.
        """
        filters = require_filters(filters, type(self).__name__)
        condition: dict[str, Any] | None = filters
        limit = self.top_k if top_k is None else top_k
        found: dict[str, Document] = {}
        known: list[Any] = []
        while True:
            documents = search(question, condition, top_k=limit)
            found |= {document.id: document for document in documents}
            languages = Counter(document.meta.get("language") for document in documents)
            if len(documents) < limit or None in languages or len(known) == _MOST_LANGUAGES:
                break
            known.append(str(max(languages, key=languages.__getitem__)))
            condition = self._without(filters, known)
            if condition is None:
                break
        return best_first(list(found.values()))

    def _without(self, filters: dict[str, Any], known: list[Any]) -> dict[str, Any] | None:
        """Write the filter for the other languages; None if nothing is in another one."""
        rest = all_of(filters, where("meta.language", "not in", known))
        store = self.document_store
        languages, documents = store.count_languages(rest), store.count_documents_by_filter(rest)
        if len(languages) == 1 and sum(languages.values()) == documents:
            # The engine searches one language in half the time that it takes for all but some, by words and by vectors.
            return all_of(filters, where("meta.language", "==", *languages))
        return rest if documents else None


@component
class QdrantEdgeBM25Retriever(EdgeRetriever):
    """
    Finds the documents that share words with a question.

    It comes after the TenantFilter, beside the embedding retriever, and before the joiner; for several wordings of a
    question inside Haystack's `MultiQueryTextRetriever`, which keeps the best score of each document. The documents
    have no content and only the meta that the fetcher of parents needs, because the rest is read later.

    ```python
    retriever = QdrantEdgeBM25Retriever(document_store=store, top_k=5)
    retriever.run(query="书", filters=tenant)["documents"]  # finds 他的书
    ```
    """

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """
        Search.

        Passages in another language than the question are also searched by the translations of its words, where the
        dictionary has both languages, which are Chinese and English; all by other names of those in the question, where
        a passage says these: 杜甫，字子美.

        :param query: The question; one without words, or of stop words only, finds nothing.
        :param filters: What may be found, from `TenantFilter`; without it nothing is searched.
        :param top_k: How many documents of a language at most, for this call.
        :returns: `documents`: the best first, equal scores by id. Scores are BM25, above 0 with no upper bound, or
            scaled.
        :raises FilterError: If the filter is malformed.
        :raises RefusedError: If it names no tenant.
        """
        allowed = require_filters(filters, type(self).__name__)
        found = self._found(query, allowed, top_k)
        return {"documents": best_first(scaled(found)) if self.scale_score else found}

    def _found(self, query: str, allowed: dict[str, Any], top_k: int | None) -> list[Document]:
        store, asked = self.document_store, read_question(query)
        names = other_name_weights(names_in_library(query, store, allowed))
        search = partial(store.bm25_retrieval, also=names)
        others = store.count_languages(allowed).keys() - {asked.language}
        also = {term: weight for into in others for term, weight in asked.translated_terms(into).items()}
        if not also:
            return self.search_each_language(search, query, allowed, top_k)
        own = all_of(allowed, where("meta.language", "==", asked.language))
        rest = self._without(allowed, [asked.language])
        in_own = search(query, own, top_k=self.top_k if top_k is None else top_k)
        in_rest = self.search_each_language(partial(store.bm25_retrieval, also=also | names), query, rest, top_k)
        return best_first([*in_own, *in_rest])


def best_first(documents: list[Document]) -> list[Document]:
    return sorted(documents, key=lambda document: (-(document.score or 0.0), document.id))


RAW_SCORE = "raw_score"
"""Where a scaled document keeps the retriever's own score, in its meta."""
LEAST_DEVIATION_OF_COSINES = 0.006
"""Cosines that lie closer mean next to nothing: fifty passages of classical Chinese have .0035 among them, of other
texts .01 to .02, and the first of them is not an answer because it stands out from so little."""

# Stores compute with 32 bits: equal passages differ by as much, and dividing by that would make an order of noise.
_NOISE = 1e-6
# What each of equal scores gets, and a single one: the better of any two lies so far above the other.
_WITHOUT_SPREAD = 2.0
_SECOND_MATCH = 0.2


def scaled(documents: Sequence[Document], least_deviation: float = 0.0) -> list[Document]:
    """
    Copy documents with scores that those of the other search can be added to, and the raw score in `meta`.

    A score becomes `(score - lowest) / sd` over the list. The sum that a `DocumentJoiner` with `join_mode: merge` makes
    of two such lists is the sum of standardised scores up to a constant, in which a passage that a list does not have
    counts as its lowest: Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval" (ACM TOIS 2023),
    section 4, https://arxiv.org/abs/2210.11934. The scale and the zero of a retriever's scores then play no part.

    Each language is scaled by itself: BM25 scores of two vocabularies do not compare, and vectors of different
    languages lie farther apart than their meanings. What stands out in its own language counts; `LanguageBalancer` then
    weighs the languages.

    A child gains a fifth of what another child of its passage has: where two places of a passage match, one of them is
    less likely to have matched by accident. This belongs to each list and not to their sum, since ranks lie so close
    together that any passage found twice would come first (docs/decisions/0012-one-fusion.md has the table).
    """
    scores = [_WITHOUT_SPREAD] * len(documents)
    places: dict[Any, list[int]] = {}
    for at, document in enumerate(documents):
        places.setdefault(document.meta.get("language"), []).append(at)
    for own in places.values():
        raw = np.array([documents[at].score or 0.0 for at in own])
        deviation = raw.std()
        if deviation > _NOISE * np.abs(raw).max():
            above = (raw - raw.min()) / max(deviation, least_deviation)
            for at, score in zip(own, above.tolist(), strict=True):
                scores[at] = score
    passages = [document.meta.get("parent_id") or document.id for document in documents]
    of_passage: dict[str, list[float]] = {}
    for passage, score in zip(passages, scores, strict=True):
        of_passage.setdefault(passage, []).append(score)
    best_two = {passage: nlargest(2, [*own, 0.0]) for passage, own in of_passage.items()}
    for at, passage in enumerate(passages):
        first, second = best_two[passage]
        other = second if scores[at] == first else first  # the best other child of the same passage
        scores[at] += _SECOND_MATCH * min(other, scores[at])
    found = rescored(documents, scores)
    for twin, document in zip(found, documents, strict=True):
        twin.meta[RAW_SCORE] = document.score
    return found
