"""Ranks passages by the token vectors that ingest kept, without a second model and without reading a passage."""

import math
from typing import Any, Literal, Protocol

import numpy as np
from haystack import Document, component

from shiguan.errors import StoreError, StoreFormatError
from shiguan.support.languages import detect_language
from shiguan.support.model_cache import PACKAGED_MODEL
from shiguan.support.question_encoder import question_encoder
from shiguan.support.ranking import FUSION, as_found, ranking_of, stamped
from shiguan.support.token_encoder import EncodedText
from shiguan.support.token_vectors import TokenVectors
from shiguan.tenants import require_filters

RANKED_BY = "late_interaction"
"""What passages say in `meta.ranked_by` that this ranker has put in their place."""


class _TokenVectorStore(Protocol):
    """A document store that keeps the token vectors of children, such as `QdrantEdgeDocumentStore`."""

    def to_dict(self) -> dict[str, Any]:
        """Write the store's parameters."""

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """Give the documents that match."""

    def token_vectors(self, child_ids: list[str], model: str) -> TokenVectors | None:
        """Give the vectors of those children that have any; None if the store has none at all."""


@component
class LateInteractionRanker:
    """
    Puts the passages first in which every word of the question meets one that means the same.

    Stands between the parent fetcher and the context. A sentence embedding is one vector for a whole child; here each
    token of the question looks for its nearest token in the child, and the passage gets the score of its best child.
    Nothing is encoded while a person waits: the vectors of the children were kept at ingest, and those of the question
    are the ones that the embedder has just made.

    Late interaction: Khattab and Zaharia, "ColBERT: Efficient and Effective Passage Search via Contextualized Late
    Interaction over BERT" (SIGIR 2020), section 3.3, https://arxiv.org/abs/2004.12832. We depart from it in three
    points: the model is a sentence embedder that was not trained for this; a question's tokens are weighted by their
    inverse document frequency among the stored children, which that training would have taught the model; and questions
    are not padded with mask tokens. The new order is fused with the old one by reciprocal ranks (Cormack et al., SIGIR
    2009): `docs/late-interaction.md` has the numbers behind the defaults.

    A passage none of whose children has vectors keeps its place, and the others are ranked around it. The order stays
    as it came where the question is in a language that the model does not know, has no words, or where nothing has
    vectors, or they cannot be read; `skipped` says why.

    Example:
    ```python
    ranker = LateInteractionRanker(children_store, languages=["en"], top_k=2)
    ranker.run(query="Who was Guo Ziyi?", documents=parents)["ranking"][0]
    # {"id": "…", "rank_before": 4, "rank": 1, "score": 0.9859, "ranked_by": "late_interaction",
    #  "late_interaction": 0.71}
    ```
    """

    def __init__(
        self,
        document_store: _TokenVectorStore,
        *,
        model: str = PACKAGED_MODEL,
        languages: list[str] | None = None,
        top_k: int = 5,
        scope: Literal["child", "parent"] = "child",
        weight: float = 0.7,
        rrf_k: int = 60,
    ) -> None:
        """
        Name the store of the children and how their scores are used.

        :param document_store: Where the children and their token vectors are.
        :param model: The embedder that both were made with, as the text embedder names it.
        :param languages: ISO 639-1 codes that the model knows; None for all.
        :param top_k: How many passages to return.
        :param scope: `child`: a passage counts as its best matched child. `parent`: each token of the question may meet
            any token of the passage, those of children that did not match included; these are looked up in the store,
            which takes several times as long.
        :param weight: The share of the new order in the result, 0 to 1; the old order has the rest. 1 for the new one
            alone.
        :param rrf_k: The constant of the reciprocal rank fusion; larger lets the first places count less.
        :raises ValueError: If a parameter is out of its range, or the store keeps no token vectors.
        """
        if top_k < 1:
            raise ValueError(f"`top_k` must be positive, got {top_k}.")
        if languages is not None and not languages:
            raise ValueError("`languages` must name at least one language, or be null for a model that knows all.")
        if scope not in ("child", "parent"):
            raise ValueError(f"`scope` must be 'child' or 'parent', got {scope!r}.")
        if not 0 <= weight <= 1:
            raise ValueError(f"`weight` must be between 0 and 1, got {weight}.")
        if rrf_k < 1:
            raise ValueError(f"`rrf_k` must be positive, got {rrf_k}.")
        if not hasattr(document_store, "token_vectors"):
            raise ValueError(
                f"`document_store` must keep token vectors, `{type(document_store).__name__}` does not. Use a "
                "`QdrantEdgeDocumentStore`, or another ranker."
            )
        self.document_store = document_store
        self.model = model
        self.languages = languages
        self.top_k = top_k
        self.scope = scope
        self.weight = weight
        self.rrf_k = rrf_k

    def warm_up(self) -> None:
        """
        Load the model, or take the copy that this process has; a second call does nothing.

        :raises ConfigurationError: If the model is not on this machine, or cannot be used this way.
        """
        question_encoder(self.model).warm_up()

    @component.output_types(documents=list[Document], ranking=list[dict[str, Any]], skipped=str, warnings=list[str])
    def run(
        self,
        query: str,
        documents: list[Document],
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
    ) -> dict[str, Any]:
        """
        Rank passages by late interaction.

        :param query: The question.
        :param documents: Parents in fused order, with `meta.matches` where children matched; a document without stands
            for its own child.
        :param filters: The filters that these were found under, from `TenantFilter`; children that are looked up for
            the scope `parent` are looked up under them.
        :param top_k: How many to return, for this call.
        :returns: `documents`, the best first. Their scores fall along the order and lie between 0 and 1, where 1 is
            first in both orders; `meta.late_interaction` is the similarity itself, about -1 to 1. `ranking`, for each
            its `id`, `rank_before` and `rank` (from 1), `score`, `ranked_by` and `late_interaction`; `skipped`, why the
            order was left as it came, empty where it was not; `warnings`, the same as a sentence.
        :raises StoreFormatError: If the stored vectors are those of another model.
        """
        limit = self.top_k if top_k is None else top_k
        if not documents or limit < 1:
            return as_found(documents, limit)
        unknown = self._unknown_language(query)
        if unknown:
            return as_found(documents, limit, unknown)
        question = question_encoder(self.model).encode(query)
        if not len(question.tokens):
            return as_found(documents, limit, "the question has no words to compare")
        families = self._children(documents, filters)
        children = list(dict.fromkeys(child for family in families for child in family))
        try:
            stored = self.document_store.token_vectors(children, self.model)
        except StoreFormatError:
            raise
        except StoreError as error:  # the passages are worth more than their order
            return as_found(documents, limit, f"the token vectors cannot be read ({error})")
        if stored is None:
            return as_found(
                documents,
                limit,
                "the library was ingested without token vectors, which late interaction needs; ingest its sources "
                "into a new data folder to have them",
            )
        scores = _passage_scores(question, stored, families, scope=self.scope)
        if all(math.isnan(score) for score in scores):
            return as_found(documents, limit, "none of the passages found has token vectors")
        ranked = self._ordered(documents, scores)[:limit]
        return {"documents": ranked, "ranking": ranking_of(documents, ranked), "skipped": "", "warnings": []}

    def _unknown_language(self, query: str) -> str:
        language = detect_language(query)
        if self.languages is None or language in self.languages:
            return ""
        if language == "und":
            return "the question has no words to compare"
        return f"late interaction knows {', '.join(self.languages)}, the question is in {language}"

    def _children(self, documents: list[Document], filters: dict[str, Any] | None) -> list[list[str]]:
        families = [[match["child_id"] for match in document.meta.get("matches") or []] for document in documents]
        if self.scope == "parent":
            places = {document.id: place for place, document in enumerate(documents)}
            wanted: dict[str, Any] = {"field": "meta.parent_id", "operator": "in", "value": list(places)}
            wanted = {"operator": "AND", "conditions": [wanted, require_filters(filters, type(self).__name__)]}
            for child in self.document_store.filter_documents(wanted):
                families[places[child.meta["parent_id"]]].append(child.id)
        return [
            list(dict.fromkeys(family)) or [document.id] for family, document in zip(families, documents, strict=True)
        ]

    def _ordered(self, documents: list[Document], scores: list[float]) -> list[Document]:
        """Fuse both orders of the passages that have a score, and let the others keep their places."""
        known = [place for place, score in enumerate(scores) if not math.isnan(score)]
        fused = {place: 1 / (self.rrf_k + rank) for rank, place in enumerate(known, start=1)}
        by_score = sorted(known, key=lambda place: (-scores[place], place))
        late = {place: 1 / (self.rrf_k + rank) for rank, place in enumerate(by_score, start=1)}
        # Times what makes 1 of a passage that is first in both.
        points = {
            place: (self.rrf_k + 1) * (self.weight * late[place] + (1 - self.weight) * fused[place]) for place in known
        }
        turns = iter(sorted(known, key=lambda place: (-points[place], place)))
        result: list[Document] = []
        # One step above the highest score, so that the first passage may have that.
        last = math.nextafter(1.0, math.inf)
        for place, document in enumerate(documents):
            if place not in points:
                # Later stages order passages by score, so one without gets a score that keeps it where it is.
                last = math.nextafter(last, 0)
                result.append(stamped(document, last, FUSION))
                continue
            mine = next(turns)
            last = min(points[mine], math.nextafter(last, 0))
            result.append(stamped(documents[mine], last, RANKED_BY, late_interaction=round(scores[mine], 4)))
        return result


def _passage_scores(
    question: EncodedText, stored: TokenVectors, families: list[list[str]], *, scope: str = "child"
) -> list[float]:
    """
    Score passages by late interaction with a question.

    :param question: Its token ids and vectors; at least one.
    :param stored: The token vectors of children.
    :param families: For each passage the ids of its children.
    :param scope: `child` for a passage's best child, `parent` for all its children as one.
    :returns: For each passage the weighted mean, over the question's tokens, of the cosine of the nearest token: about
        -1 to 1 (the stored vectors are rounded), higher is nearer; NaN where none of its children has vectors.
    """
    starts, ends = stored.bounds[:-1], stored.bounds[1:]
    # `reduceat` takes an empty stretch for its first row, so children without tokens are left out of it.
    filled = np.flatnonzero(ends > starts)
    if not len(filled):
        return [math.nan] * len(families)
    # Shape: (rows, question's tokens).
    similarities = (stored.values.astype(np.float32) @ stored.project(question.tokens).T) * stored.scales[:, None]
    # Shape: (children, question's tokens).
    nearest = np.maximum.reduceat(similarities, starts[filled], axis=0)
    weights = stored.idf(question.token_ids)
    weights = weights / weights.sum()
    row_of = {stored.ids[child]: row for row, child in enumerate(filled)}
    scores = []
    for family in families:
        rows = nearest[[row_of[child] for child in family if child in row_of]]
        if not len(rows):
            scores.append(math.nan)
        elif scope == "parent":
            scores.append(float(rows.max(axis=0) @ weights))
        else:
            scores.append(float((rows @ weights).max()))
    return scores
