"""What a self-correcting loop carries from one attempt to the next, and how its attempts compare."""

from collections.abc import Sequence
from typing import Any, TypedDict

from haystack import Document
from haystack.dataclasses import ChatMessage

from shiguan.claims.checker import CheckedClaim
from shiguan.grading.answer_grade import CheckedAnswer

_PREVIEW = 160


class BestAttempt(TypedDict):
    """The best answer of the rounds so far."""

    worth: float
    attempt: int
    reply: ChatMessage
    answer: CheckedAnswer
    ungrounded: list[int]
    accepted: bool
    grade: dict[str, Any]


class LoopState(TypedDict):
    """What travels around the loop, as a plain dictionary between the sockets."""

    attempt: int
    question: str
    query: str
    queries: list[str]
    documents: list[Document]
    feedback: str
    messages: list[ChatMessage]
    read: list[Document]
    history: list[dict[str, Any]]
    best: BestAttempt | None
    reformulated: bool
    llm_calls: int
    warnings: list[str]
    carried: dict[str, Any]


def first_state(
    question: str,
    queries: Sequence[str] | None,
    carried: dict[str, Any],
    messages: Sequence[ChatMessage] | None = None,
    read: Sequence[Document] | None = None,
) -> LoopState:
    """Open the loop, with the messages that its prompts begin with and the passages that these show."""
    return {
        "attempt": 1,
        "question": question,
        "query": question,
        "queries": list(dict.fromkeys(query for query in (queries or [question]) if query.strip())) or [question],
        "documents": [],
        "feedback": "",
        "messages": list(messages or []),
        "read": list(read or []),
        "history": [],
        "best": None,
        "reformulated": False,
        "llm_calls": 0,
        "warnings": [],
        "carried": dict(carried),
    }


def attempt_record(attempt: int, query: str, reply: ChatMessage, claims: Sequence[CheckedClaim]) -> dict[str, Any]:
    """Describe an attempt for the answer's history."""
    verdicts = dict.fromkeys(("supported", "partial", "unsupported", "contradicted"), 0)
    for claim in claims:
        verdicts[claim.support.verdict] += 1
    scores = [claim.support.score for claim in claims]
    text = " ".join((reply.text or "").split())
    return {
        "attempt": attempt,
        "query": query,
        "verdicts": verdicts,
        "score": round(sum(scores) / len(scores), 4) if scores else 1.0,
        "least": round(min(scores), 4) if scores else 1.0,
        "preview": text if len(text) <= _PREVIEW else f"{text[: _PREVIEW - 1]}…",
        "model": reply.meta.get("model", ""),
        "usage": reply.meta.get("usage", {}),
    }


def worth(claims: Sequence[CheckedClaim], *, accepted: bool, answered: bool) -> float:
    """Tell how good an attempt is, for choosing the best of several."""
    if not answered:
        return 1.0 if accepted else 0.0
    if not claims:
        return 1.0 + accepted * 0.5
    share = sum(claim.is_grounded for claim in claims) / len(claims)
    mean = sum(claim.support.score for claim in claims) / len(claims)
    return float(accepted) + 0.7 * share + 0.3 * mean


def as_verdicts(claims: Sequence[CheckedClaim], documents: Sequence[Document]) -> list[dict[str, Any]]:
    """Write checked claims as plain data."""
    verdicts = []
    for one in claims:
        support = one.support
        document = documents[support.passage] if 0 <= support.passage < len(documents) else None
        offset = (document.meta.get("cut") or [0])[0] if document else 0
        verdicts.append(
            {
                "text": one.claim.text,
                "start": one.claim.start,
                "end": one.claim.end,
                "verdict": support.verdict,
                "score": round(support.score, 4),
                "reason": support.reason,
                "number": document.meta.get("number", support.passage + 1) if document else None,
                "parent_id": document.id if document else "",
                "support": {"start": offset + support.start, "end": offset + support.end} if document else None,
                "quote": one.quote,
            }
        )
    return verdicts


def passages_for_retry(passages: Sequence[Document], verdicts: Sequence[dict[str, Any]]) -> list[Document]:
    """Order the passages of an attempt for the next one: those that supported something first."""
    useful = {verdict["parent_id"] for verdict in verdicts if verdict["verdict"] in ("supported", "partial")}
    unique = list({passage.id: passage for passage in passages}.values())
    return sorted(unique, key=lambda passage: passage.id not in useful)
