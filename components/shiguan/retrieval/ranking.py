"""What a ranker reports of its work: which passage stood where before and after, and what put it there."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from haystack import Document

FUSION = "fusion"
"""What `meta.ranked_by` says where no ranker could rank: passages stand in the order in which they were fused."""


def ranking_of(before: Sequence[Document], after: Sequence[Document]) -> list[dict[str, Any]]:
    """List the passages that a ranker returns."""
    places = {document.id: place for place, document in enumerate(before, start=1)}
    entries = []
    for place, document in enumerate(after, start=1):
        ranked_by = document.meta["ranked_by"]
        score = None if document.score is None else round(document.score, 4)
        entry = {"id": document.id, "rank_before": places[document.id], "rank": place, "score": score}
        entries.append({**entry, "ranked_by": ranked_by})
    return entries


def as_found(documents: Sequence[Document], top_k: int, skipped: str = "") -> dict[str, Any]:
    """Give what a ranker returns that leaves the passages as they came."""
    kept = [stamped(document, document.score, FUSION) for document in documents[: max(0, top_k)]]
    return {
        "documents": kept,
        "ranking": ranking_of(documents, kept),
        "skipped": skipped,
        "warnings": [f"Passages stand in the order of the fusion: {skipped}."] if skipped else [],
    }


def stamped(document: Document, score: float | None, ranked_by: str, **meta: Any) -> Document:
    """Write on a passage what ranked it."""
    return replace(document, score=score, meta={**document.meta, "ranked_by": ranked_by, **meta})
