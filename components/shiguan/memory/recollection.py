"""Finds what a conversation said about a question, and writes it down."""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from haystack import Document
from numpy.typing import NDArray

from shiguan.conversations import SummaryNode, Turn
from shiguan.text.terms import term_index, terms

LAST_TURNS = 3
"""So many turns are always given, as they were said."""
_MOST_SUMMARIES = 5
_K1, _B, _AVERAGE = 1.2, 0.75, 200.0
_LONGEST_TURN = 1_000
# Fragments whose terms are kept in this process, which never change: some ten conversations of 1,000 turns.
_REMEMBERED = 20_000


def fragments(
    query: str, vector: Sequence[float], turns: Sequence[Turn], nodes: Sequence[SummaryNode]
) -> list[Document]:
    """
    Choose the fragments of a conversation that a question is about, best first.

    The last turns are always among them; with them the summaries of all levels that are nearest by words and by the
    vectors of the question and the summaries, both scaled to the best of theirs and added up. Of summaries that contain
    one another the best stays. A turn that has no summary yet stands in for it.

    Fragments have `meta.level` (-1 for a turn) and `meta.turns`. They have no number: no claim is supported by what was
    said.
    """
    if not turns:
        return []
    said = [f"{turn.question}\n{turn.said[:_LONGEST_TURN]}".strip() for turn in turns]
    texts = [*said, *(node.text for node in nodes)]
    spans = [(-1, turn.number, turn.number) for turn in turns] + [node[:3] for node in nodes]
    scores = _to_best(_bm25(query, texts)) + _to_best(_cosines(vector, turns, nodes))
    found = [_fragment(text, span, float(score)) for text, span, score in zip(texts, spans, scores, strict=True)]
    recent = found[max(0, len(turns) - LAST_TURNS) : len(turns)]
    others = [one for one in found if one.score and one not in recent]
    chosen = [*recent, *_apart(others, recent, _MOST_SUMMARIES)]
    return sorted(chosen, key=lambda one: (-(one.score or 0.0), -one.meta["turns"][1], one.meta["level"]))


def written(found: Sequence[Document], *, before: int | None) -> str:
    """Write fragments for a prompt, in the order in which they were said, leaving out the turns from a number on."""
    in_time = sorted(found, key=lambda fragment: fragment.meta["turns"])
    return "\n".join(f"- {one.content}" for one in in_time if before is None or one.meta["turns"][0] < before)


def in_order(found: Sequence[Document]) -> list[str]:
    """Give what fragments say, in the order in which it was said."""
    return [one.content or "" for one in sorted(found, key=lambda fragment: fragment.meta["turns"])]


def _fragment(text: str, span: tuple[int, int, int], score: float) -> Document:
    level, first, last = span
    meta = {"origin": "memory", "level": level, "turns": [first, last]}
    return Document(id=f"memory/{level}/{first}", content=text, meta=meta, score=score)


def _to_best(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    best = float(scores.max(initial=0.0))
    return np.maximum(scores, 0.0) / best if best > 0 else np.zeros(len(scores))


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


def _apart(found: Sequence[Document], recent: Sequence[Document], most: int) -> list[Document]:
    """Take the best that neither contain, nor are contained in, something that scored higher or is there."""
    kept: list[Document] = []
    shown = {tuple(one.meta["turns"]) for one in recent}
    for one in sorted(found, key=lambda one: -(one.score or 0.0)):
        if len(kept) == most:
            break
        first, last = one.meta["turns"]
        nested = any(
            (a <= first and last <= b) or (first <= a and b <= last) for a, b in (other.meta["turns"] for other in kept)
        )
        if not nested and (first, last) not in shown:
            kept.append(one)
    return kept
