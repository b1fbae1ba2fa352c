"""Checks the sentences of an answer while it is still being written."""

import re
from collections.abc import Sequence
from typing import Any

from haystack import Document

from shiguan.claims.checker import checker_of, numbered_passages
from shiguan.claims.citations import CitedClaim, citations_of, cite_claim, write_cited
from shiguan.claims.claims import MOST_CHARACTERS, whole_sentences
from shiguan.llm.json_replies import CLOSED_THOUGHT, END_OF_THOUGHT

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


def end_with_marks(text: str, end: int) -> int:
    """Return where the marks end that follow a claim of a written answer."""
    return _MARKS.match(text, end).end()  # type: ignore[union-attr]


class ClaimStream:
    """Yields each sentence with the verdict that it has in the whole answer, as soon as the next one has begun."""

    def __init__(self, documents: Sequence[Document], question: str = "") -> None:
        self._numbered = numbered_passages(documents)
        self._checker = checker_of(self._numbered, question)
        self._text = ""
        self._looked_at = 0
        self._stopped_at = -1
        self._checked: list[CitedClaim] = []
        # The text that each claim reported last adds to what is shown: its true marks, and whatever precedes it.
        self.pieces: list[str] = []
        # Whether the model stopped at its length limit, so that the last sentence is not whole.
        self.is_cut = False

    def add(self, piece: str) -> bool:
        """Append the next piece of the answer and return whether a sentence may have been finished; cheap."""
        piece = piece if self._text else piece.lstrip()
        before = len(self._text)
        self._text += piece
        if ">" in piece and END_OF_THOUGHT.search(self._text, max(0, before - _LONGEST_END)):
            # The model's thoughts have ended: the answer begins here.
            piece = self._text = CLOSED_THOUGHT.sub(" ", self._text).lstrip()
            before = self._looked_at = 0
            self._stopped_at = -1
        stops = [before + stop.start() for stop in _STOP.finditer(piece)]
        if self._stopped_at < 0 and stops:
            self._stopped_at = stops[0]
        if not self._looked_at + self._looked_at // _NEW_SHARE <= len(self._text) <= MOST_CHARACTERS:
            return False
        return self._stopped_at >= 0 and bool(_WORD.search(self._text, max(before, self._stopped_at + 1)))

    def finished(self, *, last: bool = False) -> list[dict[str, Any]]:
        """Check the sentences that have been finished since the last call."""
        self._looked_at, self.pieces = len(self._text), []
        text = self._text.strip() if last else _OPEN_MARK.sub("", self._text)
        if last and self.is_cut:
            text = whole_sentences(text)
        parts = self._checker.split(text)
        # A sentence that goes on may still be split into other clauses.
        complete = [claim for claim in parts.claims if last or claim.sentence != parts.claims[-1].sentence]
        if len(complete) <= len(self._checked) or (last and self._checker.says_nothing(parts)):
            return []
        # A stop that ended no sentence (3.14, or one followed only by its mark so far) is kept until one does.
        self._stopped_at = -1
        known = len(self._checked)
        self._checked += [cite_claim(claim, self._checker, self._numbered) for claim in complete[known:]]
        shown, places = write_cited(parts, self._checked)
        ends = [end_with_marks(shown, end) for _, end in places]
        stated = [index for index, cited in enumerate(self._checked) if cited.support is not None]
        self.pieces = [
            shown[ends[before] if before >= 0 else 0 : ends[index]]
            for before, index in zip([-1, *stated], stated, strict=False)
            if index >= known
        ]
        return [
            {
                "index": sum(earlier.support is not None for earlier in self._checked[:index]),
                **cited.record(places[index], shown),
                "citations": [
                    {name: value for name, value in citation.items() if name != "confidence"}
                    for citation in citations_of([cited], [places[index]], self._numbered)
                ],
            }
            for index, cited in enumerate(self._checked)
            if index >= known and cited.support is not None
        ]
