"""A question with everything that is known about its right answer."""

from dataclasses import dataclass, field
from typing import Any

UNKNOWN = "und"
"""The language of a question that names none, in the words of BCP 47."""


@dataclass(frozen=True)
class Question:
    """
    One question of a set, with its judgements.

    :param id: Unique in its set.
    :param text: What is asked.
    :param grades: Record id to grade, above 0, of every document that is judged relevant; empty where nothing answers.
    :param spans: Record id to the places of the answer, in code points with the end exclusive. Several places in one
        record are alternatives: one of them is enough.
    :param answers: Right answers, each of them enough.
    :param history: The turns before the question, `{"role", "content"}`.
    :param answerable: Whether the library answers it.
    :param stratum: The group that the question is counted in beside the whole; empty for none.
    :param language: A BCP 47 tag; `und` where none is named.
    """

    id: str
    text: str
    grades: dict[str, float] = field(default_factory=dict)
    spans: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    answers: list[str] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)
    answerable: bool = True
    stratum: str = ""
    language: str = UNKNOWN

    @property
    def gold(self) -> set[str]:
        """The documents that recall counts: those of the highest grade."""
        best = max(self.grades.values(), default=0)
        return {document for document, grade in self.grades.items() if grade == best}

    def document_of(self, record_id: str | None, pieces: "list[tuple[int, int]]") -> str | None:
        """
        Name the judged document that a passage is right for.

        :param record_id: The record that the passage is from.
        :param pieces: Which code points of the record it holds.
        :returns: The record's id if it is judged and, where the answer's place is known, a piece overlaps it; or None.
        """
        if record_id is None or record_id not in self.grades:
            return None
        spans = self.spans.get(record_id)
        if spans and not any(start < to and begin < end for start, end in pieces for begin, to in spans):
            return None
        return record_id
