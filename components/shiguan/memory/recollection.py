"""Finds what was said about a question in its conversation, and writes it for the prompt."""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from haystack import Document
from numpy.typing import NDArray

from shiguan.conversations import SummaryNode, Turn
from shiguan.text.terms import term_index, terms

LAST_TURNS = 3
"""How many of the last turns are always included, as they were said."""
_MOST_SUMMARIES = 5
_K1, _B, _AVERAGE = 1.2, 0.75, 200.0
_LONGEST_TURN = 1_000
# Fragments never change, so this process keeps the terms of this many: about ten conversations of 1,000 turns.
_REMEMBERED = 20_000


def fragments(
    query: str, vector: Sequence[float], turns: Sequence[Turn], nodes: Sequence[SummaryNode]
) -> list[Document]:
    """
    Choose the fragments of a conversation that a question is about, best first.

    The last turns are always among them, and with them the summaries of all levels that are nearest by words and by
    vectors, both scores scaled to their best and added. Of summaries that contain one another the best is kept. A turn
    without a summary is itself a fragment.

    Fragments have `meta.level` (-1 for a turn) and `meta.turns`. They have no number, because what was said does not
    support a claim.
    """
    if not turns:
        return []
    spoken = [f"{turn.question}\n{turn.said[:_LONGEST_TURN]}".strip() for turn in turns]
    texts = [*spoken, *(node.text for node in nodes)]
    spans = [(-1, turn.number, turn.number) for turn in turns] + [node[:3] for node in nodes]
    scores = _to_best(_bm25(query, texts)) + _to_best(_cosines(vector, turns, nodes))
    found = [_fragment(text, span, float(score)) for text, span, score in zip(texts, spans, scores, strict=True)]
    recent = found[max(0, len(turns) - LAST_TURNS) : len(turns)]
    others = [fragment for fragment in found if fragment.score and fragment not in recent]
    chosen = [*recent, *_without_nested(others, recent, _MOST_SUMMARIES)]
    return sorted(chosen, key=lambda found: (-(found.score or 0.0), -found.meta["turns"][1], found.meta["level"]))


def written(found: Sequence[Document], *, before: int | None) -> str:
    """Write fragments for a prompt, in the order of the turns; turns from the number `before` on are left out."""
    return "\n".join(f"- {text}" for text in in_order(found, before=before))


def in_order(found: Sequence[Document], *, before: int | None = None) -> list[str]:
    """Return the texts of fragments in the order of their turns, without turns from the number `before` on."""
    ordered = sorted(found, key=lambda fragment: fragment.meta["turns"])
    return [text.content or "" for text in ordered if before is None or text.meta["turns"][0] < before]


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
    """Return cosines of unit vectors; a turn has the vector of its own summary, 0 where there is no fitting vector."""
    wanted = np.asarray(query, dtype=np.float32)
    leaves = {node.first_turn: node.embedding for node in nodes if node.level == 0}
    vectors = [*(leaves.get(turn.number, b"") for turn in turns), *(node.embedding for node in nodes)]
    scores = np.zeros(len(vectors))
    fitting = [at for at, vector in enumerate(vectors) if len(wanted) and len(vector) == wanted.nbytes]
    if fitting:
        matrix = np.frombuffer(b"".join(vectors[at] for at in fitting), dtype=np.float32).reshape(len(fitting), -1)
        scores[fitting] = matrix @ wanted
    return scores


def _without_nested(found: Sequence[Document], recent: Sequence[Document], most: int) -> list[Document]:
    """Return the best fragments, without recent ones and those that contain, or are contained in, a better one."""
    kept: list[Document] = []
    shown = {tuple(fragment.meta["turns"]) for fragment in recent}
    for fragment in sorted(found, key=lambda fragment: -(fragment.score or 0.0)):
        if len(kept) == most:
            break
        first, last = fragment.meta["turns"]
        nested = any(
            (a <= first and last <= b) or (first <= a and b <= last) for a, b in (other.meta["turns"] for other in kept)
        )
        if not nested and (first, last) not in shown:
            kept.append(fragment)
    return kept
