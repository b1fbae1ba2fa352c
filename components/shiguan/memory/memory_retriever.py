"""Finds what a conversation said about a question."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from haystack import Document, component
from haystack.components.embedders.types.protocol import TextEmbedder
from haystack.components.joiners import DocumentJoiner
from numpy.typing import NDArray

from shiguan.conversations import ConversationStore, SummaryNode, Turn
from shiguan.errors import StoreError
from shiguan.llm.calls import NestingComponent
from shiguan.tenants import require_filters, tenant_of
from shiguan.text.terms import term_index, terms

_K1, _B, _AVERAGE = 1.2, 0.75, 200.0
_LONGEST_TURN, _LONGEST_LIST = 1_000, 50
_REMEMBERED = 20_000
"""Fragments whose terms are kept in this process, which never change: some ten conversations of 1,000 turns."""


@component
class MemoryRetriever(NestingComponent):
    """
    Finds the fragments of a conversation that a question is about.

    Stands beside the library's retrievers and never shares a pool with them; `SourceWeigher` comes next. The last turns
    are always given, as they were said; with them the summaries of all levels that are nearest, by words and by
    vectors, fused as passages are: both lists standardised, then joined. Of summaries that contain one another the best
    stays. A turn that has no summary yet stands in for it. There are a few hundred fragments, so they are read from the
    store and compared one by one.

    Fragments are `Document`s with `meta.origin` = `memory`, their `level` (-1 for a turn) and their `turns`. They have
    no number: no claim is supported by what was said.

    Where the router says `database`, without a conversation and, with a warning, where the store fails there are none.
    """

    def __init__(
        self,
        conversation_store: ConversationStore,
        *,
        text_embedder: TextEmbedder,
        standardizer: Any,
        joiner: DocumentJoiner,
        last_turns: int = 3,
        top_k: int = 5,
    ) -> None:
        """
        Name the store, and how fragments are compared.

        :param conversation_store: Where conversations are kept.
        :param text_embedder: The one that the library's questions are embedded with.
        :param standardizer: A `ScoreStandardizer`, for both lists.
        :param joiner: Joins the two lists, that of the words first.
        :param last_turns: How many of the last turns are given as they were said.
        :param top_k: How many summaries at most.
        :raises ValueError: If a number is negative.
        """
        if last_turns < 0 or top_k < 0:
            raise ValueError(f"`last_turns` and `top_k` must not be negative, got {last_turns} and {top_k}.")
        self.conversation_store = conversation_store
        self.text_embedder = text_embedder
        self.standardizer = standardizer
        self.joiner = joiner
        self.last_turns = last_turns
        self.top_k = top_k

    def warm_up(self) -> None:
        """Load the embedder's model; a second call does nothing."""
        if hasattr(self.text_embedder, "warm_up"):
            self.text_embedder.warm_up()

    @component.output_types(documents=list[Document], warnings=list[str])
    def run(
        self,
        memory_query: str,
        filters: dict[str, Any] | None = None,
        conversation_id: str | None = None,
        source: str = "both",
    ) -> dict[str, Any]:
        """
        Search a conversation.

        :param memory_query: What to look for, from `MemoryRouter`.
        :param filters: Whose conversation it is, from `TenantFilter`.
        :param conversation_id: The conversation; None for none.
        :param source: The router's word; with `database` nothing is looked up.
        :returns: `documents`, the fragments, best first; `warnings`.
        :raises RefusedError: If the filters name no tenant, or the id can be none.
        """
        tenant_id = tenant_of(require_filters(filters, type(self).__name__))
        if conversation_id is None or source == "database" or not memory_query.strip():
            return {"documents": [], "warnings": []}
        try:
            turns, nodes = self._fragments(tenant_id, conversation_id)
        except StoreError as error:
            return {"documents": [], "warnings": [f"The conversation was not looked up. {error}"]}
        if not turns:
            return {"documents": [], "warnings": []}
        self.warm_up()
        embedded = self.text_embedder.run(text=memory_query) if nodes else {"embedding": []}
        said = [f"{turn.question}\n{turn.said[:_LONGEST_TURN]}".strip() for turn in turns]
        texts = [*said, *(node.text for node in nodes)]
        spans = [(-1, turn.number, turn.number) for turn in turns] + [node[:3] for node in nodes]
        whose = {"tenant_id": tenant_id, "conversation_id": conversation_id, "origin": "memory"}

        def fragment(at: int, score: float) -> Document:
            level, first, last = spans[at]
            meta = {**whose, "level": level, "turns": [first, last]}
            return Document(id=f"{conversation_id}/{level}/{first}", content=texts[at], meta=meta, score=score)

        lists = [
            self.standardizer.run(documents=[fragment(at, float(scores[at])) for at in _best(scores)])["documents"]
            for scores in (_bm25(memory_query, texts), _cosines(embedded["embedding"], turns, nodes))
        ]
        found = {one.id: one for one in self.joiner.run(documents=lists)["documents"]}
        last_said = range(max(0, len(turns) - self.last_turns), len(turns))
        recent = [found.pop(one.id, one) for one in (fragment(at, 0.0) for at in last_said)]
        chosen = [*recent, *_apart(list(found.values()), recent, self.top_k)]
        chosen.sort(key=lambda one: (-(one.score or 0.0), -one.meta["turns"][1], one.meta["level"]))
        return {"documents": chosen, "warnings": list(embedded.get("warnings") or [])}

    def _fragments(self, tenant_id: str, conversation_id: str) -> tuple[list[Turn], list[SummaryNode]]:
        """Read the last turns with those that have no summary yet, and the summaries."""
        nodes = self.conversation_store.nodes(tenant_id, conversation_id)
        summarised = max((node.last_turn for node in nodes), default=0)
        waiting = self.conversation_store.turns(tenant_id, conversation_id, after=summarised)
        if len(waiting) >= self.last_turns:
            return waiting, nodes
        return self.conversation_store.turns(tenant_id, conversation_id, last=self.last_turns), nodes


def _best(scores: NDArray[np.float64]) -> list[int]:
    return [int(at) for at in np.argsort(-scores, kind="stable")[:_LONGEST_LIST] if scores[at] > 0]


@lru_cache(_REMEMBERED)
def _term_numbers(text: str) -> NDArray[np.uint32]:
    return np.array([term_index(term) for term in terms(text)], dtype=np.uint32)


def _bm25(query: str, texts: Sequence[str]) -> NDArray[np.float64]:
    """Score texts by BM25 as the embedded store does, with the conversation's own frequencies."""
    numbers = [_term_numbers(text) for text in texts]
    lengths = np.array([len(one) for one in numbers], dtype=np.float64)
    owners, flat = np.repeat(np.arange(len(texts)), lengths.astype(int)), np.concatenate(numbers)
    scores = np.zeros(len(texts))
    for term in set(_term_numbers(query).tolist()):
        counts = np.bincount(owners[flat == term], minlength=len(texts))
        having = np.count_nonzero(counts)
        weight = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
        scores += weight * counts * (_K1 + 1) / (counts + _K1 * (1 - _B + _B * lengths / _AVERAGE))
    return scores


def _cosines(query: Sequence[float], turns: Sequence[Turn], nodes: Sequence[SummaryNode]) -> NDArray[np.float64]:
    """Compare vectors of length one; a turn has that of its own summary, and one without a fitting vector has none."""
    wanted = np.asarray(query, dtype=np.float32)
    leaves = {node.first_turn: node.embedding for node in nodes if node.level == 0}
    vectors = [*(leaves.get(turn.number, b"") for turn in turns), *(node.embedding for node in nodes)]
    scores = np.zeros(len(vectors))
    fitting = [at for at, vector in enumerate(vectors) if len(wanted) and len(vector) == wanted.nbytes]
    if fitting:
        matrix = np.frombuffer(b"".join(vectors[at] for at in fitting), dtype=np.float32).reshape(len(fitting), -1)
        scores[fitting] = matrix @ wanted
    return scores


def _apart(fragments: Sequence[Document], recent: Sequence[Document], most: int) -> list[Document]:
    """Take the best that neither contain, nor are contained in, something that scored higher or is there."""
    kept: list[Document] = []
    shown = {tuple(one.meta["turns"]) for one in recent}
    for one in sorted(fragments, key=lambda one: -(one.score or 0.0)):
        if len(kept) == most:
            break
        first, last = one.meta["turns"]
        nested = any(
            (a <= first and last <= b) or (first <= a and b <= last) for a, b in (other.meta["turns"] for other in kept)
        )
        if not nested and (first, last) not in shown:
            kept.append(one)
    return kept
