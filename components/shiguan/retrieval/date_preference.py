"""Which of the passages that were found, and which others, are of the time that a question asks about."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from haystack import Document
from haystack.document_stores.types import DocumentStore

from shiguan.tenants import all_of, during
from shiguan.text.asked_times import AskedTimes, asked_times
from shiguan.text.passages import SharedDocument
from shiguan.text.times import When, times_in

# What a passage of the time gains, in the score of the best one: all of it where the time is all that is asked, so that
# it comes before all others. Beside a subject it gains a quarter, and only where its words do not say the time as the
# question does: it is carried, or of another calendar. What they say alike, the search by words has seen; where that
# counted twice, questions with a year lost the passages that they need and that have none (en_multihop .696 to .656).
_ALONE, _BESIDE = 1.0, 0.25
# A passage that was not found by words or vectors, and is of the time that is asked for.
_MOST_ADDED = 50
_FIELDS = ["id", "parent_id", "tenant_id", "source_id", "start", "end", "position", "language", "when"]


def prefer_dates(
    query: str, documents: list[Document], store: DocumentStore, filters: dict[str, Any] | None
) -> list[Document]:
    """
    Put passages of the time that a question names before others, and add those that only their time shows.

    They are added where the time is all that the question asks: 《资治通鉴》在建元元年正月记载了什么？ Of a library
    that was ingested before times were kept nothing changes.
    """
    asked = asked_times(query)
    if not asked.times:
        return documents
    best = max((document.score or 0.0 for document in documents), default=0.0) or 1.0
    bonus = best * (_ALONE if asked.alone else _BESIDE)
    found = [
        replace(
            document,
            score=(document.score or 0.0) + bonus * _nearness(asked, times_in(document.meta), unseen=not asked.alone),
        )
        for document in documents
    ]
    if asked.alone:
        known = {document.id for document in documents}
        others = [one for one in _of_time(asked.times, store, filters) if one.id not in known]
        near = [(one, _nearness(asked, times_in(one.meta))) for one in others]
        near.sort(key=lambda pair: (-pair[1], *_place(pair[0])))
        found += [replace(one, score=bonus * nearness) for one, nearness in near[:_MOST_ADDED] if nearness == 1]
    return sorted(found, key=lambda document: (-(document.score or 0.0), *_place(document)))


def _nearness(asked: AskedTimes, times: Sequence[When], *, unseen: bool = False) -> float:
    """Say how near a passage is to what is asked; `unseen`, by times that its words do not say in the same way."""
    pairs = ((one, other) for one in asked.times for other in times)
    kept = (pair for pair in pairs if not unseen or pair[1].how == "carried" or pair[0].calendar != pair[1].calendar)
    return max((one.nearness(other) for one, other in kept), default=0.0)


def _place(document: Document) -> tuple[str, int, str]:
    return str(document.meta.get("source_id")), document.meta.get("position") or 0, document.id


def _of_time(asked: Sequence[When], store: DocumentStore, filters: dict[str, Any] | None) -> list[Document]:
    """Read which passages are of a time, without their text."""
    if not hasattr(store, "list_meta"):
        return []
    found = {}
    for first, last in {(when.first, when.last) for when in asked}:
        of_time = all_of(filters, during(first, last))
        for row in store.list_meta(of_time, _FIELDS):
            found[row["id"]] = SharedDocument(id=row["id"], meta={name: row[name] for name in row if name != "id"})
    return list(found.values())
