"""One round of grading: a reply, the results of its check, and the decision that follows from them."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any, Literal

from haystack.dataclasses import ChatMessage

from shiguan.claims.checker import CheckedClaim, stated_claim
from shiguan.claims.citations import UNSUPPORTED_MARK, change_record
from shiguan.claims.claims import ClaimedText
from shiguan.grading.answer_grader import CheckedAnswer
from shiguan.grading.attempts import (
    Attempt,
    BestAttempt,
    as_verdicts,
    attempt_record,
    feedback_text,
    passages_for_retry,
    retry_queries,
    value_of,
)
from shiguan.llm.calls import budget_allows, no_answer_error
from shiguan.llm.prompts import not_found_sentence
from shiguan.text.terms import question_subject, terms

OnUnsupported = Literal["mark", "remove", "refuse"]
MOST_CALLS = 4
"""Successive model calls within the loop; with a reworded question and a hypothetical passage before it, six."""
_CONFIDENT = 0.5
"""At this probability that the passages answer, "the sources do not say" is not accepted at first."""


_EMPTY_ITEM = re.compile(r"^[ \t]*(?:[-*+•·]|\d{1,2}[.)、])[ \t]*(?:\[[\d\],\[ ]*\][ \t]*)?$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n{3,}")
_SPACES = re.compile(r"(?<=\S)[ \t]{2,}(?=\S)")
_HEADING = re.compile(r"^(?:#{1,6}\s.*|\*\*[^*\n]+\*\*[:：]?|[^\n.!?。！？]{0,80}[:：])$")


@dataclass(frozen=True)
class GradingRound:
    """An answer that is being graded; `grade` is empty without an `AnswerGrader`, `attempt` None outside a loop."""

    attempt: Attempt | None
    reply: ChatMessage
    answer: CheckedAnswer
    grade: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    llm_calls: int = 0
    sent: list[ChatMessage] = field(default_factory=list)
    confidence: float | None = None

    @property
    def number(self) -> int:
        """The number of the attempt, from 1."""
        return self.attempt.number if self.attempt else 1

    @property
    def is_doubtful(self) -> bool:
        """Whether it says that the sources do not answer, though the passages of the first attempt seem to."""
        return self.answer.is_not_found and self.number == 1 and (self.confidence or 0.0) >= _CONFIDENT

    @property
    def is_empty(self) -> bool:
        """Whether the reply is not an answer, because it states nothing and is not the not-found sentence either."""
        return not self.answer.claims and not self.answer.is_not_found

    @property
    def is_answered(self) -> bool:
        """Whether the reply is an answer, neither empty nor the not-found sentence."""
        return not self.is_empty and not self.answer.is_not_found

    @property
    def ungrounded(self) -> list[CheckedClaim]:
        """The claims that no passage supports."""
        return [claim for claim in self.answer.claims if not claim.is_grounded]

    @property
    def is_accepted(self) -> bool:
        """Whether the answer may be returned unchanged. The not-found sentence always may."""
        if not self.is_answered:
            return not self.is_empty
        return not self.ungrounded and bool(self.grade.get("passed", True))


def decide(this: GradingRound, *, max_attempts: int, on_unsupported: OnUnsupported, mode: str) -> dict[str, Any]:
    """Return the answer, or start another attempt."""
    attempt = this.attempt
    query = attempt.query if attempt else this.answer.question
    record = attempt_record(this.number, query, this.reply, this.answer.claims)
    history = [*(attempt.history if attempt else ()), record]
    best = _better(attempt.best if attempt else None, this)
    llm_calls = (attempt.llm_calls if attempt else 0) + this.llm_calls
    warnings = list(dict.fromkeys([*(attempt.warnings if attempt else ()), *this.warnings]))
    # Another attempt takes one more call, and another one to grade it.
    needed = this.number + llm_calls + (2 if this.grade else 1)
    good = this.is_accepted and not this.is_doubtful
    if attempt and not good and this.number < max_attempts and needed <= MOST_CALLS and budget_allows():
        following = _next(attempt, this, tuple(history), best)
        retry = replace(following, llm_calls=llm_calls, warnings=tuple(warnings))
        return {"retry": retry, "llm_calls": llm_calls, "warnings": warnings}
    return finished(best, history, llm_calls, warnings, on_unsupported=on_unsupported, mode=mode)


def _better(best: BestAttempt | None, this: GradingRound) -> BestAttempt:
    answers = not this.is_empty and bool(this.grade.get("answers", True))
    value = value_of(this.answer.claims, accepted=this.is_accepted, answered=this.is_answered) if answers else -1.0
    # Of two equally good attempts the later one wins: it had feedback on what the first one lacked.
    if best is not None and best["value"] > value:
        return best
    return {
        "value": value,
        "attempt": this.number,
        "reply": this.reply,
        "answer": this.answer,
        "ungrounded": [claim.index for claim in this.ungrounded],
        "accepted": this.is_accepted,
        "grade": this.grade,
    }


def _next(attempt: Attempt, this: GradingRound, history: tuple[dict[str, Any], ...], best: BestAttempt) -> Attempt:
    lacks = [str(this.grade.get("feedback") or ""), *this.grade.get("suggestions", ())]
    queries = retry_queries(
        attempt.question, this.answer.documents, this.ungrounded, str(this.grade.get("missing") or "")
    )
    if this.is_doubtful and len(queries) == 1:
        # Another wording: the content words, without those that make them a question.
        subject = " ".join(word for word in question_subject(attempt.question).split() if terms(word))
        queries = tuple(dict.fromkeys([attempt.question, subject or queries[0]]))
    useful = passages_for_retry(this.answer.documents, as_verdicts(this.answer.claims, this.answer.documents))
    return replace(
        attempt,
        number=this.number + 1,
        queries=queries,
        documents=tuple(useful),
        feedback=feedback_text(this.ungrounded, this.answer.language, lacks),
        messages=(*this.sent, ChatMessage.from_assistant(this.reply.text or "…")) if this.sent else (),
        shown=tuple(this.answer.documents) if this.sent else attempt.shown,
        history=history,
        best=best,
    )


def finished(
    best: BestAttempt,
    history: Sequence[dict[str, Any]],
    llm_calls: int,
    earlier_warnings: Sequence[str],
    *,
    on_unsupported: OnUnsupported,
    mode: str,
) -> dict[str, Any]:
    """Return the best attempt, its unsupported claims marked or removed, or withhold it."""
    reply, answer, grade = best["reply"], best["answer"], best["grade"]
    if not any(map(str.isalpha, reply.text or "")):
        raise no_answer_error(reply)
    text, status = (reply.text or "").strip(), "not_found" if answer.is_not_found else "accepted"
    warnings, removed = list(earlier_warnings), []
    ungrounded = {claim.index: claim for claim in answer.claims if claim.index in best["ungrounded"]}
    tries = f"{len(history)} {'attempt' if len(history) == 1 else 'attempts'}"
    count = f"{len(ungrounded)} {'sentence' if len(ungrounded) == 1 else 'sentences'}"
    if status == "accepted" and not answer.claims:
        text, status = "", "refused"
        warnings.append(f"The answer was withheld after {tries}: it states nothing.")
    elif status == "accepted" and not grade.get("answers", True):
        text, status, ungrounded = "", "refused", {claim.index: claim for claim in answer.claims}
        warnings.append(f"The answer was withheld after {tries}: it does not answer the question.")
    elif ungrounded and on_unsupported == "mark":
        status = "marked"
        warnings.append(f"{count} marked {UNSUPPORTED_MARK}: the sources do not support them.")
    elif ungrounded:
        text, status = without_claims(answer.parts, ungrounded) if on_unsupported == "remove" else "", "removed"
        warnings.append(f"{count} removed from the answer: the sources do not support them.")
        if not text:
            status = "refused"
            warnings[-1] = f"The answer was withheld after {tries}: the sources do not support {count} of it."
    elif not best["accepted"]:
        warnings.append("The answer stayed below the grader's threshold after its last attempt.")
    if status in ("removed", "refused"):
        removed = [change_record(claim.claim, "removed", (), claim.support.reason) for claim in ungrounded.values()]
    grounding = {
        "status": status,
        "attempts": len(history),
        "chosen": best["attempt"],
        "history": history,
        "removed": removed,
        "llm_calls": llm_calls,
        "grade": {name: value for name, value in grade.items() if name not in ("feedback", "suggestions", "missing")},
    }
    verdicts = as_verdicts(answer.claims, answer.documents)
    final = ChatMessage.from_assistant(
        text or not_found_sentence(mode, answer.language),
        meta={**reply.meta, "grounding": grounding, "verdicts": verdicts},
    )
    outputs = {"replies": [final], "documents": answer.documents, "verdicts": verdicts}
    return {**outputs, "llm_calls": llm_calls, "warnings": warnings}


def without_claims(parts: ClaimedText, removed: Collection[int]) -> str:
    """Write an answer without some claims, their marks, and list items and headings that become empty."""
    left = [claim for index, claim in enumerate(parts.claims) if index not in removed]
    if not any(stated_claim(claim) for claim in left):
        return ""
    alive = bytearray(b"\1" * len(parts.text))
    for index, claim in enumerate(parts.claims):
        if index in removed:
            end = _end(parts, index)
            alive[claim.start : end] = bytes(end - claim.start)
    pieces: list[str] = []
    at = 0
    for place, numbers in [*parts.marks, (len(parts.text), ())]:
        pieces.extend(compress(parts.text[at:place], alive[at:place]))
        if not place or alive[place - 1]:
            pieces.extend(f"[{number}]" for number in numbers)
        at = place
    return _tidy("".join(pieces))


def _end(parts: ClaimedText, index: int) -> int:
    """Return the position up to which the marks after a claim belong to it."""
    end = parts.claims[index].end
    following = parts.claims[index + 1].start if index + 1 < len(parts.claims) else len(parts.text)
    own = [at for at, _ in parts.marks if end <= at <= following and not parts.text[end:at].strip()]
    # A mark right before the next sentence belongs to that sentence only if it begins a new line.
    return max((at for at in own if "\n" not in parts.text[end:at]), default=end)


def _tidy(text: str) -> str:
    lines = _EMPTY_ITEM.sub("", _SPACES.sub(" ", text)).split("\n")
    kept: list[str] = []
    for line in reversed(lines):
        below = next((other for other in reversed(kept) if other.strip()), "")
        # A heading over nothing, or over the next heading, announces what was removed.
        if _HEADING.match(line.strip()) and line.strip() and (not below or _HEADING.match(below.strip())):
            continue
        kept.append(line.rstrip())
    return _BLANK_LINES.sub("\n\n", "\n".join(reversed(kept))).strip()
