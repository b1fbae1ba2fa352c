"""The state that a self-correcting loop passes on, the comparison of attempts, and the queries of the next one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypedDict

from haystack import Document
from haystack.dataclasses import ChatMessage

from shiguan.claims.checker import CheckedClaim
from shiguan.grading.answer_grader import CheckedAnswer
from shiguan.llm.source_blocks import neutral_text
from shiguan.text.languages import HAN
from shiguan.text.terms import question_subject, terms

_PREVIEW = 160
_MOST_CLAIMS = 6
_LONGEST_CLAIM, _LONGEST_QUERY = 300, 600
_TOKEN = re.compile(rf"[{HAN}]+|[^\W_{HAN}]+")
_FEEDBACK = {
    "en": ("The sources do not support these sentences of it:", "What it lacked: ", "“{claim}” ({reason})"),
    "zh": ("下列句子没有资料支持：", "所缺：", "“{claim}”（{reason}）"),
}


class BestAttempt(TypedDict):
    """The best answer of the rounds so far."""

    value: float
    attempt: int
    reply: ChatMessage
    answer: CheckedAnswer
    ungrounded: list[int]
    accepted: bool
    grade: dict[str, Any]


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
    best: BestAttempt | None = None
    searched_again: bool = False
    llm_calls: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def query(self) -> str:
        """What this round searches for, in one line."""
        return " ".join(dict.fromkeys(self.queries))[:_LONGEST_QUERY] if self.number > 1 else self.queries[0]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the same object, because nothing in it is ever changed."""
        return self


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


def value_of(claims: Sequence[CheckedClaim], *, accepted: bool, answered: bool) -> float:
    """Return how good an attempt is, for choosing the best of several."""
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
    for claim in claims:
        support = claim.support
        document = documents[support.passage] if 0 <= support.passage < len(documents) else None
        offset = (document.meta.get("cut") or [0])[0] if document else 0
        verdicts.append(
            {
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
        )
    return verdicts


def passages_for_retry(passages: Sequence[Document], verdicts: Sequence[dict[str, Any]]) -> list[Document]:
    """Order the passages of an attempt for the next one: those that supported something first."""
    useful = {verdict["parent_id"] for verdict in verdicts if verdict["verdict"] in ("supported", "partial")}
    unique = list({passage.id: passage for passage in passages}.values())
    return sorted(unique, key=lambda passage: passage.id not in useful)


def retry_queries(
    question: str, passages: Sequence[Document], refused: Sequence[CheckedClaim], missing: str = ""
) -> tuple[str, ...]:
    """Search next for words of the question that no passage has and what a grader misses, never for a refused claim."""
    read = set[str]().union(*(terms(passage.content or "") for passage in passages))
    uncovered = [word for word in _TOKEN.findall(question_subject(question)) if not read.issuperset(terms(word))]
    asked = set(terms(question))
    invented = set[str]().union(*(terms(claim.stated) for claim in refused)) - asked
    wanted = " ".join(_without(missing[:_LONGEST_CLAIM], invented).split())
    queries = [question, " ".join(uncovered), wanted if set(terms(wanted)) - asked else ""]
    return tuple(dict.fromkeys(query for query in queries if terms(query))) or (question,)


def _without(text: str, invented: set[str]) -> str:
    """Remove words from a text: Latin ones, and Han characters in pairs."""

    def kept(match: re.Match[str]) -> str:
        token = match[0]
        if len(token) < 2 or not re.match(f"[{HAN}]", token):
            return " " if invented.issuperset(terms(token)) and terms(token) else token
        pairs = [
            any(len(term) == 2 and term in invented for term in terms(token[at : at + 2]))
            for at in range(len(token) - 1)
        ]
        removed = [before or after for before, after in zip([False, *pairs], [*pairs, False], strict=True)]
        return "".join(" " if out else character for character, out in zip(token, removed, strict=True))

    return _TOKEN.sub(kept, text)


def feedback_text(claims: Sequence[CheckedClaim], language: str, lacks: Sequence[str] = ()) -> str:
    """Write what was wrong with an answer, quoted as data, and how a grader would improve it, for the generator."""
    intro, lacked, item = _FEEDBACK["zh" if language == "zh" else "en"]
    lines = []
    if claims:
        lines.append(intro)
        for claim in claims[:_MOST_CLAIMS]:
            text = neutral_text(" ".join(claim.claim.text.split()))[:_LONGEST_CLAIM]
            lines.append("- " + item.format(claim=text, reason=neutral_text(claim.support.reason)))
    given = [neutral_text(" ".join(text.split()))[:_LONGEST_QUERY] for text in lacks if text.strip()]
    if given:
        lines.append(lacked + given[0])
        lines += [f"- {text}" for text in given[1:]]
    return "\n".join(lines)
