"""Weights the passages of a library by their languages, and by the time that a question names."""

import math
from collections.abc import Sequence
from itertools import repeat
from typing import Any

from haystack import Document, component
from haystack.document_stores.types import DocumentStore

from shiguan.reading.passage import highest_cosines
from shiguan.reading.question import AskedTimes, Question, read_question
from shiguan.tenants import LibraryStore, TermStore, all_of, during, require_filters
from shiguan.text.names import heard_names, names_in_library
from shiguan.text.passages import SharedDocument, rescored
from shiguan.text.terms import covered, terms
from shiguan.text.times import When, times_in

# How steeply a language counts less whose nearest passage is farther from the question.
_FALL = 4
# Passages that have so much of a question's words may well answer it, whatever those in another language have. Below
# it a language counts less, e times for so much that another one has more.
_ENOUGH, _STEP = 0.8, 0.3
_OTHER_NAME = {
    "en": "Also searched for “{other}”: the library says that it is another name of “{name}”.",
    "zh": "也按“{other}”检索：据书库，这是“{name}”的别名。",
}
_EMPTY = "Nothing was searched: the library is empty, or nothing in it is within the limits of the question."


@component
class LanguageBalancer:
    """
    Lets a language count less in which a library hardly has what a question asks for, and a time more that it names.

    It comes after the joiner, whose scores are scaled within each language and cannot be compared between languages. A
    language counts less, by the fourth power, the farther its nearest passage is, and the more of the question's words
    are known only in another one: a question about Ahab is not about a Chinese chronicle in the same library, and one
    about Huang Chao not about a Japanese novel. Otherwise the best of every language would rank equally. The numbers
    are in docs/decisions/0012. Passages of the time that a question names then come before others: see docs/dates.md.

    Example:
    ```python
    balancer = LanguageBalancer(document_store)
    balancer.run("Who is Ahab?", documents=joined, nearest=by_vectors, filters=tenant)["documents"]
    ```
    """

    def __init__(self, document_store: DocumentStore) -> None:
        """
        Set the store of the children.

        :param document_store: The embedded store reports the words of its passages; with another store languages are
            weighted only by their nearest passages.
        """
        self.document_store = document_store

    @component.output_types(documents=list[Document], warnings=list[str])
    def run(
        self,
        query: str,
        documents: list[Document],
        nearest: list[Document] | None = None,
        filters: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """
        Weight the languages.

        :param query: The question.
        :param documents: Passages with scores from 0, scaled within each language from its own lowest.
        :param nearest: The children found by vectors, with cosines as score or, where that is scaled, as
            `meta.raw_score`; without it no language is nearer than another.
        :param filters: What may be found, from `TenantFilter`.
        :returns: `documents`, copies with their new scores, the best first, equal scores by id; `warnings` that say
            by which other names the library was searched, or that nothing was there to be found.
        :raises RefusedError: If `filters` name no tenant.
        """
        best: dict[str, float] = {}
        for (_, language), cosine in highest_cosines(nearest or []).items():
            best[language] = max(best.get(language, 0.0), cosine)
        most = max(best.values(), default=0.0)
        languages = [str(document.meta.get("language")) for document in documents]
        lacking = self._lacking(read_question(query), filters)
        weights = {
            language: math.exp(-lacking.get(language, 0.0) / _STEP)
            * ((best.get(language, most) / most) ** _FALL if most > 0 else 1.0)
            for language in set(languages)
        }
        scores = [(each.score or 0.0) * weights[own] for each, own in zip(documents, languages, strict=True)]
        weighted = rescored(documents, scores)
        weighted.sort(key=lambda document: (-(document.score or 0.0), document.id))
        note = _OTHER_NAME["zh" if read_question(query).language == "zh" else "en"]
        names = names_in_library(query, self.document_store, filters)
        warnings = [note.format(name=name, other=other) for name, other in names]
        if not documents and isinstance(self.document_store, TermStore):
            empty = not self.document_store.count_languages(require_filters(filters, type(self).__name__))
            warnings += [_EMPTY] if empty else []
        return {"documents": prefer_dates(query, weighted, self.document_store, filters), "warnings": warnings}

    def _lacking(self, question: Question, filters: dict[str, Any] | None) -> dict[str, float]:
        """Return for each language how much larger a share of a question's words another one knows, at least 0."""
        store = self.document_store
        if not isinstance(store, TermStore):
            return {}
        filters = require_filters(filters, type(self).__name__)
        languages = store.count_languages(filters)
        if len(languages) < 2:  # with one there is nothing to balance
            return {}
        known = {language: _known(store, question, language, filters) for language in languages}
        most = min(max(known.values()), _ENOUGH)
        return {language: max(0.0, most - share) for language, share in known.items()}


def _known(store: TermStore, question: Question, into: str, filters: dict[str, Any]) -> float:
    """Return the share of a question's words that passages in a language have: as such, translated or by sound."""
    asked = {*question.weights, *question.translated_terms(into), *question.sounds}
    known = store.known_terms(asked, into, filters)
    known |= {term for name in heard_names(question.string, known) for term in terms(name)}
    return covered(question.weights, question.with_translated(known, into))


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
    """Put passages of the time that a question names first; where it asks for nothing else, find more by it."""
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
