"""Finds what was said about a question in its conversation."""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shiguan.conversations import SummaryNode, Turn
from shiguan.text.terms import term_indices, terms

LAST_TURNS = 3
"""How many of the last turns are always included, as they were said."""
_MOST_SUMMARIES = 5
_K1, _B, _AVERAGE = 1.2, 0.75, 200.0
_LONGEST_TURN = 1_000
# Fragments never change, so this process keeps the terms of this many: about ten conversations of 1,000 turns.
_REMEMBERED = 20_000


def fragments(
    query: str, vector: Sequence[float], turns: Sequence[Turn], nodes: Sequence[SummaryNode]
) -> list[SummaryNode]:
    """Choose the last turns, of level -1, and the summaries nearest by words and vectors, in the order of the turns."""
    if not turns:
        return []
    leaves = {node.first_turn: node.embedding for node in nodes if node.level == 0}
    spoken = [(turn.number, f"{turn.question}\n{turn.said[:_LONGEST_TURN]}".strip()) for turn in turns]
    found = [SummaryNode(-1, number, number, text, embedding=leaves.get(number, b"")) for number, text in spoken]
    found += nodes
    vectors = [fragment.embedding for fragment in found]
    scores = _to_best(_bm25(query, [fragment.text for fragment in found])) + _to_best(_cosines(vector, vectors))
    recent = range(max(0, len(turns) - LAST_TURNS), len(turns))
    said = {found[at][1:3] for at in recent}
    chosen = [found[at] for at in recent]
    for at in np.argsort(-scores, kind="stable"):
        if scores[at] == 0 or len(chosen) == len(recent) + _MOST_SUMMARIES:
            break
        best = found[at]
        if best[1:3] not in said and not any(_nested(best, other) for other in chosen[len(recent) :]):
            chosen.append(best)
    return sorted(chosen, key=lambda fragment: fragment[1:3])


def _nested(one: SummaryNode, other: SummaryNode) -> bool:
    """Return whether one of two fragments contains the other."""
    first, last = max(one.first_turn, other.first_turn), min(one.last_turn, other.last_turn)
    return (first, last) in (one[1:3], other[1:3])


def _to_best(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    best = float(scores.max(initial=0.0))
    return np.maximum(scores, 0.0) / best if best > 0 else np.zeros(len(scores))


@lru_cache(_REMEMBERED)
def _term_numbers(text: str) -> NDArray[np.uint32]:
    return np.array(term_indices(terms(text)), dtype=np.uint32)


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


def _cosines(query: Sequence[float], vectors: Sequence[bytes]) -> NDArray[np.float64]:
    """Return cosines of unit vectors, 0 where there is no fitting vector."""
    wanted = np.asarray(query, dtype=np.float32)
    scores = np.zeros(len(vectors))
    fitting = [at for at, vector in enumerate(vectors) if len(wanted) and len(vector) == wanted.nbytes]
    if fitting:
        matrix = np.frombuffer(b"".join(vectors[at] for at in fitting), dtype=np.float32).reshape(len(fitting), -1)
        scores[fitting] = matrix @ wanted
    return scores
