"""The rounds of a self-correcting loop: a round, its graded answer, and what follows: another one, or the best one."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, get_args

from haystack import Document
from haystack.dataclasses import ChatMessage

from shiguan.claims.checker import CheckedClaim
from shiguan.claims.citations import UNSUPPORTED_MARK, change_record
from shiguan.claims.claim_kinds import is_not_found
from shiguan.claims.claim_support import Verdict
from shiguan.claims.claims import ClaimedText
from shiguan.grading.sentence_removal import with_their_sentences, without_claims
from shiguan.llm.calls import budget_allows, no_answer_error
from shiguan.llm.prompts import not_found_sentence
from shiguan.llm.source_blocks import neutral_text
from shiguan.reading.passage import Passage
from shiguan.text.languages import HAN
from shiguan.text.terms import is_wide, question_subject, terms

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


OnUnsupported = Literal["mark", "remove", "refuse"]
MOST_ATTEMPTS = 3
MOST_CALLS = 4
"""Successive model calls within the loop; with a reworded question and a hypothetical passage before it, six."""

# At this probability that the passages answer, "the sources do not say" is not accepted at first.
_CONFIDENT = 0.5
_MODE = "precise"  # whose not-found sentence is used
_MOST_CLAIMS, _LONGEST_CLAIM, _LONGEST_WISH = 6, 300, 600
_FEEDBACK = {
    "en": ("The sources do not support these sentences of it:", "What it lacked: ", "“{claim}” ({reason})"),
    "zh": ("下列句子没有资料支持：", "所缺：", "“{claim}”（{reason}）"),
}
_TOKEN = re.compile(rf"[{HAN}]+|[^\W_{HAN}]+")
_BESIDE = "its sentence also says what the sources do not support"


def decide(
    this: GradedAnswer,
    attempt: Attempt,
    on_unsupported: OnUnsupported,
    *,
    in_loop: bool,
    sent: Sequence[ChatMessage],
    confidence: float | None,
) -> dict[str, Any]:
    """Return the answer, or start another attempt."""
    doubtful = this.is_not_found and this.number == 1 and (confidence or 0.0) >= _CONFIDENT
    # Of two equally good attempts the later one wins: it had feedback on what the first one lacked.
    best = this if attempt.best is None or this.value >= attempt.best.value else attempt.best
    attempt = replace(
        attempt,
        history=(*attempt.history, this.record(attempt.query)),
        best=best,
        llm_calls=attempt.llm_calls + this.llm_calls,
        warnings=tuple(dict.fromkeys([*attempt.warnings, *this.warnings])),
    )
    # Another attempt takes one more call, and another one to grade it.
    needed = this.number + attempt.llm_calls + (2 if this.grade else 1)
    good = this.is_accepted and not doubtful
    if not in_loop or good or this.number >= MOST_ATTEMPTS or needed > MOST_CALLS or not budget_allows():
        return finished(best, attempt, on_unsupported)
    retry = _next(attempt, this, sent, reworded=doubtful)
    return {"retry": retry, "llm_calls": attempt.llm_calls, "warnings": list(attempt.warnings)}


def _next(attempt: Attempt, this: GradedAnswer, sent: Sequence[ChatMessage], *, reworded: bool) -> Attempt:
    queries = retry_queries(attempt.question, this.documents, this.ungrounded, str(this.grade.get("missing") or ""))
    if reworded and len(queries) == 1:
        # The content words, without those that make them a question.
        subject = " ".join(word for word in question_subject(attempt.question).split() if terms(word))
        queries = tuple(dict.fromkeys([attempt.question, subject or queries[0]]))
    grounded = (claim.support.passage for claim in this.claims if claim.is_grounded)
    useful = {this.documents[passage].id for passage in grounded if passage >= 0}
    documents = {document.id: document for document in this.documents}
    wishes = [str(this.grade.get("feedback") or ""), *this.grade.get("suggestions", ())]
    return replace(
        attempt,
        number=this.number + 1,
        queries=queries,
        documents=tuple(sorted(documents.values(), key=lambda document: document.id not in useful)),
        feedback=feedback_text(this.ungrounded, this.language, wishes),
        messages=(*sent, ChatMessage.from_assistant(this.reply.text or "…")) if sent else (),
        shown=tuple(this.documents) if sent else attempt.shown,
    )


def retry_queries(
    question: str, passages: Sequence[Document], refused: Sequence[CheckedClaim], missing: str
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
    kept = list(text)
    for token in _TOKEN.finditer(text):
        size = min(2, len(token[0])) if is_wide(token[0][0]) else len(token[0])
        for at in range(token.start(), token.end() - size + 1):
            if any(term in invented for term in terms(text[at : at + size])[-1:]):
                kept[at : at + size] = " " * size
    return "".join(kept)


def feedback_text(claims: Sequence[CheckedClaim], language: str, lacks: Sequence[str]) -> str:
    """Write what was wrong with an answer, quoted as data, and how a grader would improve it, for the generator."""
    intro, lacked, item = _FEEDBACK["zh" if language == "zh" else "en"]
    lines = [intro] if claims else []
    for claim in claims[:_MOST_CLAIMS]:
        text = neutral_text(" ".join(claim.claim.text.split()))[:_LONGEST_CLAIM]
        lines.append("- " + item.format(claim=text, reason=neutral_text(claim.support.reason)))
    wishes = [neutral_text(" ".join(text.split()))[:_LONGEST_WISH] for text in lacks if text.strip()]
    return "\n".join([*lines, *(f"- {text}" if at else lacked + text for at, text in enumerate(wishes))])


def _count(claims: Mapping[int, CheckedClaim]) -> str:
    """Count the sentences of claims, which may be clauses of them."""
    sentences = len({claim.claim.sentence for claim in claims.values()})
    return f"{sentences} {'sentence' if sentences == 1 else 'sentences'}"


def finished(best: GradedAnswer, attempt: Attempt, on_unsupported: OnUnsupported) -> dict[str, Any]:
    """Return the best answer so far, its unsupported claims marked or removed, or withhold it."""
    reply, grade, history = best.reply, best.grade, list(attempt.history)
    if not any(map(str.isalpha, reply.text or "")):
        raise no_answer_error(reply)
    text, status, warning = (reply.text or "").strip(), "accepted", ""
    refused = {claim.index: claim for claim in best.ungrounded}
    tries = f"{len(history)} {'attempt' if len(history) == 1 else 'attempts'}"
    count = _count(refused)
    withheld = f"The answer was withheld after {tries}: "
    if best.is_not_found:
        status = "not_found"
    elif not best.claims:
        text, status, warning = "", "refused", f"{withheld}it makes no claim."
    elif not grade.get("answers", True):
        text, status, warning = "", "refused", f"{withheld}it does not answer the question."
        refused = {claim.index: claim for claim in best.claims}
    elif refused and on_unsupported == "mark":
        status, warning = "marked", f"{count} marked {UNSUPPORTED_MARK}: the sources do not support them."
    elif refused:
        gone = with_their_sentences(best.parts, refused, {claim.index for claim in best.claims if best.stands(claim)})
        refused = {claim.index: claim for claim in best.claims if claim.index in gone}
        count = _count(refused)
        text = (
            without_claims(best.parts, gone) if on_unsupported == "remove" and len(refused) < len(best.claims) else ""
        )
        status, warning = "removed", f"{count} removed from the answer: the sources do not support them."
        if not text:
            status, warning = "refused", f"{withheld}the sources do not support {count} of it."
    elif not best.is_accepted:
        warning = "The answer stayed below the grader's threshold after its last attempt."
    removed = refused.values() if status in ("removed", "refused") else ()
    failed = {claim.index for claim in best.ungrounded}
    grounding = {
        "status": status,
        "attempts": len(history),
        "chosen": best.number,
        "history": history,
        "removed": [
            change_record(claim.claim, "removed", (), claim.support.reason if claim.index in failed else _BESIDE)
            for claim in removed
        ],
        "llm_calls": attempt.llm_calls,
        "grade": {name: value for name, value in grade.items() if name not in ("feedback", "suggestions", "missing")},
    }
    verdicts = best.verdicts()
    meta = {**reply.meta, "grounding": grounding, "verdicts": verdicts}
    final = ChatMessage.from_assistant(text or not_found_sentence(_MODE, best.language), meta=meta)
    return {
        "replies": [final],
        "documents": best.documents,
        "verdicts": verdicts,
        "llm_calls": attempt.llm_calls,
        "warnings": [*attempt.warnings, *([warning] if warning else [])],
    }
