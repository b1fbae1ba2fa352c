"""The state that a self-correcting loop passes on: the round that begins, and the answers graded so far."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from haystack import Document
from haystack.dataclasses import ChatMessage

from shiguan.claims.checker import CheckedClaim
from shiguan.grading.answer_grader import CheckedAnswer

_LONGEST_QUERY, _PREVIEW = 600, 160
# At this probability that the passages answer, "the sources do not say" is not accepted at first.
_CONFIDENT = 0.5
# How good an attempt is: the share of its claims that are supported, and their mean score.
_SHARE, _MEAN = 0.7, 0.3


@dataclass(frozen=True)
class Attempt:
    """
    One round of the loop of `precise`: what its stages take from outside the loop, and the results of earlier rounds.

    It is passed between the components, so that one set of them serves many questions at once. `queries` are searched
    in this round, `question` is the user's own; `documents` are passages of earlier rounds to read again, `messages`
    the beginning of the prompt and `shown` the passages in it; `feedback` is for the generator, `best` the best answer
    so far.
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
    """The answer of one round; its grade is empty where only the claims were checked."""

    number: int
    reply: ChatMessage
    checked: CheckedAnswer
    grade: dict[str, Any] = field(default_factory=dict)

    @property
    def ungrounded(self) -> list[CheckedClaim]:
        return [claim for claim in self.checked.claims if not claim.is_grounded]

    @property
    def is_accepted(self) -> bool:
        """Whether it may be returned unchanged: the not-found sentence always may, what states nothing never."""
        if not self.checked.claims:
            return self.checked.is_not_found
        return not self.ungrounded and bool(self.grade.get("passed", True))

    @property
    def value(self) -> float:
        """How good it is, for choosing the best of several."""
        claims = self.checked.claims
        if not self.grade.get("answers", True) or not (claims or self.checked.is_not_found):
            return -1.0
        if not claims:
            return 1.0
        share = sum(claim.is_grounded for claim in claims) / len(claims)
        mean = sum(claim.support.score for claim in claims) / len(claims)
        return float(self.is_accepted) + _SHARE * share + _MEAN * mean

    def is_doubtful(self, confidence: float | None) -> bool:
        """Return whether it says that the sources do not answer, though the passages of the first round seem to."""
        return self.checked.is_not_found and self.number == 1 and (confidence or 0.0) >= _CONFIDENT

    def record(self, query: str) -> dict[str, Any]:
        claims = self.checked.claims
        verdicts = dict.fromkeys(("supported", "partial", "unsupported", "contradicted"), 0)
        for claim in claims:
            verdicts[claim.support.verdict] += 1
        scores = [claim.support.score for claim in claims] or [1.0]
        text = " ".join((self.reply.text or "").split())
        return {
            "attempt": self.number,
            "query": query,
            "verdicts": verdicts,
            "score": round(sum(scores) / len(scores), 4),
            "least": round(min(scores), 4),
            "preview": text if len(text) <= _PREVIEW else f"{text[: _PREVIEW - 1]}…",
            "model": self.reply.meta.get("model", ""),
            "usage": self.reply.meta.get("usage", {}),
        }

    def verdicts(self) -> list[dict[str, Any]]:
        return [_verdict(claim, self.checked.documents) for claim in self.checked.claims]


def _verdict(claim: CheckedClaim, documents: Sequence[Document]) -> dict[str, Any]:
    support = claim.support
    document = documents[support.passage] if 0 <= support.passage < len(documents) else None
    offset = (document.meta.get("cut") or [0])[0] if document else 0
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
