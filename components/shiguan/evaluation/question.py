"""A question with everything that is known about its right answer."""

from dataclasses import dataclass, field
from typing import Any

UNKNOWN = "und"
"""The language of a question that names none, in the words of BCP 47."""


@dataclass(frozen=True)
class Question:
    """One question of a set, with its judgements."""

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
        """Name the judged document that a passage is right for."""
        if record_id is None or record_id not in self.grades:
            return None
        spans = self.spans.get(record_id)
        if spans and not any(start < to and begin < end for start, end in pieces for begin, to in spans):
            return None
        return record_id
