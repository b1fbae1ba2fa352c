"""The state that a self-correcting loop passes on: the round that begins, and the answers graded so far."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self, get_args

from haystack import Document
from haystack.dataclasses import ChatMessage

from shiguan.claims.checker import CheckedClaim
from shiguan.claims.claim_kinds import is_not_found
from shiguan.claims.claim_support import Verdict
from shiguan.claims.claims import ClaimedText
from shiguan.reading.passage import Passage

_LONGEST_QUERY, _PREVIEW = 600, 160
# How good an attempt is: the share of its claims that are supported, and their mean score.
_SHARE, _MEAN = 0.7, 0.3


@dataclass(frozen=True)
class Attempt:
    """
    One round of the loop of `precise`: what its stages take from outside the loop, and the results of earlier rounds.

    `queries` are searched now, `question` is the user's own, `documents` are read again, `shown` are in `messages`.
    """

    question: str
    queries: tuple[str, ...]
    filters: dict[str, Any]
    number: int = 1
    analysis: dict[str, Any] = field(default_factory=dict)
    retrieval: str = "hybrid"
    documents: tuple[Document, ...] = ()
    messages: tuple[ChatMessage, ...] = ()
    shown: tuple[Document, ...] = ()
    feedback: str = ""
    history: tuple[dict[str, Any], ...] = ()
    best: "GradedAnswer | None" = None
    searched_again: bool = False
    llm_calls: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def query(self) -> str:
        return " ".join(dict.fromkeys(self.queries))[:_LONGEST_QUERY] if self.number > 1 else self.queries[0]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the same object, because nothing in it is ever changed."""
        return self


@dataclass(frozen=True)
class GradedAnswer:
    """The reply of one round, with what the local check and then the `AnswerGrader`, if there is one, found."""

    reply: ChatMessage
    question: str
    language: str
    parts: ClaimedText
    documents: list[Document]
    claims: list[CheckedClaim]
    grade: dict[str, Any] = field(default_factory=dict)
    number: int = 1
    warnings: tuple[str, ...] = ()
    llm_calls: int = 0
    partial_stands: bool = True
    """Whether claims that are supported only in part stand: without a judge, their words alone were compared."""

    @property
    def is_not_found(self) -> bool:
        return not self.claims and is_not_found(self.parts)

    def stands(self, claim: CheckedClaim) -> bool:
        """Return whether a claim may be shown by a mode that shows nothing else."""
        return claim.support.verdict == "supported" or (self.partial_stands and claim.support.verdict == "partial")

    @property
    def ungrounded(self) -> list[CheckedClaim]:
        return [claim for claim in self.claims if not self.stands(claim)]

    @property
    def is_accepted(self) -> bool:
        """Whether it may be returned unchanged: the not-found sentence always may, what states nothing never."""
        if not self.claims:
            return self.is_not_found
        return not self.ungrounded and bool(self.grade.get("passed", True))

    @property
    def value(self) -> float:
        """How good it is, for choosing the best of several."""
        if not self.grade.get("answers", True) or not (self.claims or self.is_not_found):
            return -1.0
        if not self.claims:
            return 1.0
        share = sum(map(self.stands, self.claims)) / len(self.claims)
        mean = sum(claim.support.score for claim in self.claims) / len(self.claims)
        return float(self.is_accepted) + _SHARE * share + _MEAN * mean

    def record(self, query: str) -> dict[str, Any]:
        found = [claim.support.verdict for claim in self.claims]
        scores = [claim.support.score for claim in self.claims] or [1.0]
        text = " ".join((self.reply.text or "").split())
        return {
            "attempt": self.number,
            "query": query,
            "verdicts": {verdict: found.count(verdict) for verdict in get_args(Verdict)},
            "score": round(sum(scores) / len(scores), 4),
            "least": round(min(scores), 4),
            "preview": text if len(text) <= _PREVIEW else f"{text[: _PREVIEW - 1]}…",
            "model": self.reply.meta.get("model", ""),
            "usage": self.reply.meta.get("usage", {}),
        }

    def verdicts(self) -> list[dict[str, Any]]:
        return [_verdict(claim, self.documents) for claim in self.claims]


def _verdict(claim: CheckedClaim, documents: Sequence[Document]) -> dict[str, Any]:
    support = claim.support
    document = documents[support.passage] if 0 <= support.passage < len(documents) else None
    offset = Passage(document).offset if document else 0
    return {
        "text": claim.claim.text,
        "start": claim.claim.start,
        "end": claim.claim.end,
        "verdict": support.verdict,
        "score": round(support.score, 4),
        "reason": support.reason,
        "number": document.meta.get("number", support.passage + 1) if document else None,
        "parent_id": document.id if document else "",
        "support": {"start": offset + support.start, "end": offset + support.end} if document else None,
        "quote": claim.quote,
    }
