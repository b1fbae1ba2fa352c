"""Prefers passages of the time that a question asks about, and finds further ones."""

from collections.abc import Sequence
from itertools import repeat
from typing import Any

from haystack import Document
from haystack.document_stores.types import DocumentStore

from shiguan.reading.question import read_question
from shiguan.tenants import LibraryStore, all_of, during
from shiguan.text.asked_times import AskedTimes
from shiguan.text.passages import SharedDocument, rescored
from shiguan.text.times import When, times_in

# What a passage of the time gains, as a share of the best score: all of it if the question asks only about a time, so
# that it comes first. If the question has a subject too, a quarter, and only if the passage does not state the time as
# the question does: it is carried over, or in another calendar. The search by words finds the same wording; counting it
# twice cost questions with a year the passages without one that they need (en_multihop .696 to .656).
_ALONE, _WITH_SUBJECT = 1.0, 0.25
# The most passages of the time asked for that are added, which were not found by words or vectors.
_MOST_ADDED = 50
_FIELDS = ["id", "parent_id", "tenant_id", "source_id", "start", "end", "position", "language", "when"]


def prefer_dates(
    query: str, documents: list[Document], store: DocumentStore, filters: dict[str, Any] | None
) -> list[Document]:
    """
    Put passages of the time that a question names before others, and add those that are found only by their time.

    They are added where the question asks only about a time: 《资治通鉴》在建元元年正月记载了什么？ Nothing changes for
    a library that was ingested before times were stored.
    """
    asked = read_question(query).times
    if not asked.times:
        return documents
    best = max((document.score or 0.0 for document in documents), default=0.0) or 1.0
    bonus = best * (_ALONE if asked.alone else _WITH_SUBJECT)
    gains = [bonus * near for near in _nearness(asked, documents, unseen=not asked.alone)]
    found = rescored(documents, ((each.score or 0.0) + gain for each, gain in zip(documents, gains, strict=True)))
    if asked.alone:
        known = {document.id for document in documents}
        others = [document for document in _of_time(asked.times, store, filters) if document.id not in known]
        exact = [other for other, near in zip(others, _nearness(asked, others), strict=True) if near == 1]
        found += rescored(sorted(exact, key=_place)[:_MOST_ADDED], repeat(bonus))
    return sorted(found, key=lambda document: (-(document.score or 0.0), *_place(document)))


def _nearness(asked: AskedTimes, documents: Sequence[Document], *, unseen: bool = False) -> list[float]:
    """Return how near passages' times are to those asked for; `unseen`: of times that their words do not state."""
    found = []
    for times in [times_in(document.meta) for document in documents]:
        pairs = ((wanted, time) for wanted in asked.times for time in times)
        kept = ((a, b) for a, b in pairs if not unseen or b.how == "carried" or a.calendar != b.calendar)
        found.append(max((wanted.nearness(time) for wanted, time in kept), default=0.0))
    return found


def _place(document: Document) -> tuple[str, int, str]:
    return str(document.meta.get("source_id")), document.meta.get("position") or 0, document.id


def _of_time(asked: Sequence[When], store: DocumentStore, filters: dict[str, Any] | None) -> list[Document]:
    """Find the passages of some times, without their text."""
    if not isinstance(store, LibraryStore):
        return []
    found = {}
    for first, last in {(when.first, when.last) for when in asked}:
        of_time = all_of(filters, during(first, last))
        for row in store.list_meta(of_time, _FIELDS):
            found[row["id"]] = SharedDocument(id=row["id"], meta={name: row[name] for name in row if name != "id"})
    return list(found.values())
