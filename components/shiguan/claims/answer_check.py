"""The one check of an answer: fed while it is written, or whole, and closed; every stage of a run asks the same one."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from threading import RLock
from typing import Any

from haystack import Document

from shiguan.claims.checker import ClaimChecker, checker_of, numbered_passages
from shiguan.claims.citations import CitedClaim, citations_of, cite_claim, write_cited
from shiguan.claims.claims import MOST_CHARACTERS, Claim, ClaimedText
from shiguan.llm.json_replies import END_OF_THOUGHT, without_closed_thoughts
from shiguan.llm.run import Run, current_run

_STOP = re.compile(r"[.!?。！？…\n]")
_WORD = re.compile(r"[^\W_]")
_MARKS = re.compile(r"(?: ?(?:\[\d{1,3}\])+)?")
# A bracket that may still become a citation mark or a link, or markup that is not part of the answer.
_OPEN_MARK = re.compile(
    r"(?:!?\[[^\[\]\n]{0,200}\] ?(?:\([^()\n]{0,500})?|[\[【［〔][^\]】］〕\n]{0,40}|<[^<>\n]{0,200})\Z"
)
_LONGEST_END = len("</reasoning>")
# A long answer is checked again when this share of it is new, so that the work grows in proportion to its length.
_NEW_SHARE = 32


@dataclass(frozen=True)
class CheckedAnswer:
    """An answer as it is shown, with the support and the place of each of its claims; no claims if it has no answer."""

    parts: ClaimedText
    cited: tuple[CitedClaim, ...]
    text: str
    places: tuple[tuple[int, int], ...]


def answer_check(documents: Sequence[Document], question: str = "", run: Run | None = None) -> "AnswerCheck":
    """Return the check of answers that are written from these passages: one for all stages of a run."""
    run = run or current_run()
    if run is None:
        return AnswerCheck(documents, question)
    key = (question, *((d.id, d.content, d.meta.get("number"), f"{d.meta.get('cut')}") for d in documents))
    if key not in run.checks:
        run.checks[key] = AnswerCheck(documents, question)
    check: AnswerCheck = run.checks[key]
    return check


def end_with_marks(text: str, end: int) -> int:
    """Return where the marks end that follow a claim of a written answer."""
    return _MARKS.match(text, end).end()  # type: ignore[union-attr]


class AnswerCheck:
    """Checks answers from some passages; a sentence is reported with its final verdict when the next one begins."""

    def __init__(self, documents: Sequence[Document], question: str = "") -> None:
        self.numbered = numbered_passages(documents)
        self.checker: ClaimChecker = checker_of(self.numbered, question)
        # A sentence is checked in one thread while the stage that closes the answer runs in another.
        self._lock = RLock()
        self._cited: dict[tuple[str, tuple[int, ...]], CitedClaim] = {}
        self._text = ""
        self._closed = False
        self._looked_at = 0
        self._stopped_at = -1
        self._reported = 0
        # The text that each claim reported last adds to what is shown: its true marks, and whatever precedes it.
        self.pieces: list[str] = []

    def add(self, piece: str) -> bool:
        """Append the next piece of the answer and return whether a sentence may have been finished; cheap."""
        piece = piece if self._text else piece.lstrip()
        before = len(self._text)
        self._text += piece
        if ">" in piece and END_OF_THOUGHT.search(self._text, max(0, before - _LONGEST_END)):
            # The model's thoughts have ended: the answer begins here.
            piece = self._text = without_closed_thoughts(self._text).lstrip()
            before = self._looked_at = 0
            self._stopped_at = -1
        stops = [before + stop.start() for stop in _STOP.finditer(piece)]
        if self._stopped_at < 0 and stops:
            self._stopped_at = stops[0]
        if not self._looked_at + self._looked_at // _NEW_SHARE <= len(self._text) <= MOST_CHARACTERS:
            return False
        return self._stopped_at >= 0 and bool(_WORD.search(self._text, max(before, self._stopped_at + 1)))

    def finished(self) -> list[dict[str, Any]]:
        """Return the claims that have been finished since the last call; once it is closed, all that are left."""
        with self._lock:
            text = self._text if self._closed else _OPEN_MARK.sub("", self._text)
            parts = self.checker.split(text.strip() if self._closed else text, is_open=not self._closed)
            # What follows the last sentence that is read is not looked at.
            self._looked_at, self.pieces = MOST_CHARACTERS if parts.is_cut else len(self._text), []
            # A sentence that goes on may still be split into other clauses.
            complete = [one for one in parts.claims if self._closed or one.sentence != parts.claims[-1].sentence]
            if len(complete) <= self._reported or (self._closed and self.checker.says_nothing(parts)):
                return []
            # A stop that ended no sentence (3.14, or one followed only by its mark so far) is kept until one does.
            self._stopped_at = -1
            known, self._reported = self._reported, len(complete)
            return self._records(self._written(parts, complete), known)

    def close(self, text: str | None = None, graded: Mapping[str, Mapping[str, Any]] | None = None) -> CheckedAnswer:
        """
        End the answer and check it whole.

        :param text: The answer, in the place of what was added.
        :param graded: The verdicts of a grader by sentence, which count instead of those here.
        """
        with self._lock:
            self._text, self._closed = self._text if text is None else text, True
            parts = self.checker.split(self._text.strip())
            return self._written(parts, () if self.checker.says_nothing(parts) else parts.claims, graded)

    def _written(
        self, parts: ClaimedText, claims: Sequence[Claim], graded: Mapping[str, Mapping[str, Any]] | None = None
    ) -> CheckedAnswer:
        cited = tuple(self._cite(claim, graded) for claim in claims)
        text, places = write_cited(parts, cited)
        return CheckedAnswer(parts, cited, text, tuple(places))

    def _cite(self, claim: Claim, graded: Mapping[str, Mapping[str, Any]] | None) -> CitedClaim:
        if graded:
            return cite_claim(claim, self.checker, self.numbered, graded)
        key = (claim.text, claim.numbers)
        if key not in self._cited:
            self._cited[key] = cite_claim(claim, self.checker, self.numbered)
        return replace(self._cited[key], claim=claim)

    def _records(self, answer: CheckedAnswer, known: int) -> list[dict[str, Any]]:
        """Write the claims that are not known yet as events have them, and set the pieces of text that end in each."""
        ends = [end_with_marks(answer.text, end) for _, end in answer.places]
        stated = [index for index, cited in enumerate(answer.cited) if cited.support is not None]
        self.pieces = [
            answer.text[ends[before] if before >= 0 else 0 : ends[index]]
            for before, index in zip([-1, *stated], stated, strict=False)
            if index >= known
        ]
        return [
            {
                "index": place,
                **answer.cited[index].record(answer.places[index], answer.text),
                "citations": [
                    {name: value for name, value in citation.items() if name != "confidence"}
                    for citation in citations_of([answer.cited[index]], [answer.places[index]], self.numbered)
                ],
            }
            for place, index in enumerate(stated)
            if index >= known
        ]
