"""Which of the passages that were found, and which others, are of the time that a question asks about."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from haystack import Document
from haystack.document_stores.types import DocumentStore

from shiguan.tenants import all_of, where
from shiguan.text.dates import WHEN_FROM, WHEN_TO, When, find_dates, times_in
from shiguan.text.passages import SharedDocument
from shiguan.text.terms import has_subject, terms

# What a passage of the time gains, in the score of the best one: all of it where the time is all that is asked, so that
# it comes before all others; half of it where the passage must also be about something.
_ALONE, _BESIDE = 1.0, 0.5
# A passage that was not found by words or vectors, and is of the time that is asked for.
_MOST_ADDED = 50
# What a question says beside its date when it asks for all of that time: a work, and that something is told there.
_WORK = re.compile("《[^》]*》")
_EVENTS = re.compile(
    r"记载|記載|记录|記錄|发生|發生|大事|事件|事情|事|年|月|日"
    r"|\b(?:happen(?:ed|s)?|events?|occur(?:red|s)?|record(?:ed|s)?|(?:took|take) place|important|things?|year)\b",
    re.IGNORECASE,
)
_FIELDS = ["id", "parent_id", "tenant_id", "source_id", "start", "end", "position", "language", "when"]


def prefer_dates(
    query: str, documents: list[Document], store: DocumentStore, filters: dict[str, Any] | None
) -> list[Document]:
    """
    Put passages of the time that a question names before others, and add those that only their time shows.

    They are added where the time is all that the question asks: 《资治通鉴》在建元元年正月记载了什么？ Of a library
    that was ingested before times were kept nothing changes.
    """
    mentions = find_dates(query)
    asked = [when for mention in mentions for when in mention.times]
    if not asked:
        return documents
    rest = _WORK.sub(" ", query)
    for mention in mentions:
        rest = rest.replace(mention.label, " ")
    alone = not (has_subject(rest := _EVENTS.sub(" ", rest)) and terms(rest))
    best = max((document.score or 0.0 for document in documents), default=0.0) or 1.0
    bonus = best * (_ALONE if alone else _BESIDE)
    found = [
        replace(document, score=(document.score or 0.0) + bonus * _nearness(asked, times_in(document.meta)))
        for document in documents
    ]
    if alone:
        known = {document.id for document in documents}
        others = [one for one in _of_time(asked, store, filters) if one.id not in known]
        near = [(one, _nearness(asked, times_in(one.meta))) for one in others]
        near.sort(key=lambda pair: (-pair[1], *_place(pair[0])))
        found += [replace(one, score=bonus * nearness) for one, nearness in near[:_MOST_ADDED] if nearness == 1]
    return sorted(found, key=lambda document: (-(document.score or 0.0), *_place(document)))


def _nearness(asked: Sequence[When], times: Sequence[When]) -> float:
    return max((one.nearness(other) for one in asked for other in times), default=0.0)


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


def during(first: int, last: int) -> dict[str, Any]:
    """Write the filter for passages of which a time falls between two years."""
    return all_of(where(f"meta.{WHEN_FROM}", "<=", last), where(f"meta.{WHEN_TO}", ">=", first))
