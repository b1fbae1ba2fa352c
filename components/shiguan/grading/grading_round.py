"""One round of grading: what was said, what the check found, and what follows from it."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, Literal, cast

from haystack import Document
from haystack.dataclasses import ChatMessage

from shiguan.claims.checker import CheckedClaim, stated_claim
from shiguan.claims.citations import UNSUPPORTED_MARK, change_record
from shiguan.claims.claims import ClaimedText
from shiguan.grading.answer_grader import CheckedAnswer
from shiguan.grading.attempts import (
    BestAttempt,
    LoopState,
    as_verdicts,
    attempt_record,
    feedback_text,
    first_state,
    passages_for_retry,
    retry_queries,
    worth,
)
from shiguan.llm.calls import budget_allows, no_answer_error
from shiguan.llm.prompts import not_found_sentence

OnUnsupported = Literal["mark", "remove", "refuse"]
MOST_CALLS = 4
"""Calls of a model in a row within the loop; with a reworded question and a hypothetical passage before it, six."""


_EMPTY_ITEM = re.compile(r"^[ \t]*(?:[-*+•·]|\d{1,2}[.)、])[ \t]*(?:\[[\d\],\[ ]*\][ \t]*)?$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n{3,}")
_SPACES = re.compile(r"(?<=\S)[ \t]{2,}(?=\S)")
_HEADING = re.compile(r"^(?:#{1,6}\s.*|\*\*[^*\n]+\*\*[:：]?|[^\n.!?。！？]{0,80}[:：])$")


@dataclass(frozen=True)
class GradingRound:
    """One answer under examination; `grade` is empty where no `AnswerGrader` stands."""

    state: LoopState
    reply: ChatMessage
    passages: list[Document]
    answer: CheckedAnswer
    grade: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    llm_calls: int = 0
    sent: list[ChatMessage] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether the model replied with nothing that could be an answer: a reply without any statement is none."""
        return not self.answer.claims and not self.answer.is_not_found

    @property
    def is_answered(self) -> bool:
        """Whether the reply is an answer and not the not-found sentence or nothing."""
        return not self.is_empty and not self.answer.is_not_found

    @property
    def ungrounded(self) -> list[CheckedClaim]:
        """The claims that no passage supports."""
        return [claim for claim in self.answer.claims if not claim.is_grounded]

    @property
    def is_accepted(self) -> bool:
        """Whether the answer may go out as it is. To admit that nothing was found is always true."""
        if not self.is_answered:
            return not self.is_empty
        return not self.ungrounded and bool(self.grade.get("passed", True))


def settle(this: GradingRound, *, max_attempts: int, on_unsupported: OnUnsupported, mode: str) -> dict[str, Any]:
    """Decide: out with it, or another round."""
    state = this.state
    attempt = state["attempt"]
    history = [*state["history"], attempt_record(attempt, state["query"], this.reply, this.answer.claims)]
    best = _better(state["best"], this)
    beside: dict[str, Any] = {
        "llm_calls": state["llm_calls"] + this.llm_calls,
        "warnings": list(dict.fromkeys([*state["warnings"], *this.warnings])),
    }
    # Another attempt is one more call, and one more to grade it.
    needed = attempt + beside["llm_calls"] + (2 if this.grade else 1)
    if not this.is_accepted and attempt < max_attempts and needed <= MOST_CALLS and budget_allows():
        return {"retry": {**state, **beside, **_next(this, history, best)}, **beside}
    return _finished(best, history, beside, on_unsupported=on_unsupported, mode=mode)


def _better(best: BestAttempt | None, this: GradingRound) -> BestAttempt:
    answers = not this.is_empty and bool(this.grade.get("answers", True))
    value = worth(this.answer.claims, accepted=this.is_accepted, answered=this.is_answered) if answers else -1.0
    # Of two equally good attempts the later one wins: it knew what the first one lacked.
    if best is not None and best["worth"] > value:
        return best
    return {
        "worth": value,
        "attempt": this.state["attempt"],
        "reply": this.reply,
        "answer": this.answer,
        "ungrounded": [claim.index for claim in this.ungrounded],
        "accepted": this.is_accepted,
        "grade": this.grade,
    }


def _next(this: GradingRound, history: list[dict[str, Any]], best: BestAttempt) -> dict[str, Any]:
    lacks = [str(this.grade.get("feedback") or ""), *this.grade.get("suggestions", ())]
    question, missing = this.state["question"], str(this.grade.get("missing") or "")
    query, queries = retry_queries(question, this.answer.documents, this.ungrounded, missing)
    return {
        "attempt": this.state["attempt"] + 1,
        "query": query,
        "queries": queries,
        "documents": passages_for_retry(this.passages, as_verdicts(this.answer.claims, this.answer.documents)),
        "feedback": feedback_text(this.ungrounded, this.answer.language, lacks),
        "messages": [*this.sent, ChatMessage.from_assistant(this.reply.text or "…")] if this.sent else [],
        "read": this.answer.documents if this.sent else [],
        "history": history,
        "best": best,
    }


def _finished(
    best: BestAttempt,
    history: list[dict[str, Any]],
    beside: dict[str, Any],
    *,
    on_unsupported: OnUnsupported,
    mode: str,
) -> dict[str, Any]:
    reply, answer, grade = best["reply"], best["answer"], best["grade"]
    if not any(map(str.isalpha, reply.text or "")):
        raise no_answer_error(reply)
    text, status = (reply.text or "").strip(), "not_found" if answer.is_not_found else "accepted"
    warnings, removed = list(beside["warnings"]), []
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
        removed = [change_record(one.claim, "removed", (), one.support.reason) for one in ungrounded.values()]
    grounding = {
        "status": status,
        "attempts": len(history),
        "chosen": best["attempt"],
        "history": history,
        "removed": removed,
        "llm_calls": beside["llm_calls"],
        "grade": {name: value for name, value in grade.items() if name not in ("feedback", "suggestions", "missing")},
    }
    final = ChatMessage.from_assistant(
        text or not_found_sentence(mode, answer.language), meta={**reply.meta, "grounding": grounding}
    )
    return {
        "replies": [final],
        "documents": answer.documents,
        "verdicts": as_verdicts(answer.claims, answer.documents),
        **beside,
        "warnings": warnings,
    }


def state_of(state: dict[str, Any] | None, query: str) -> LoopState:
    """Give the state of a round."""
    own = cast("LoopState", dict(state)) if state is not None else first_state(query, None, {})
    if query:
        own["question"] = query
    return own


def without_claims(parts: ClaimedText, removed: Collection[int]) -> str:
    """
    Write an answer without some of its claims.

    Their marks go with them, and so do list items and headings that are left with nothing.
    """
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
    """Give the place up to which the marks behind a claim belong to it."""
    end = parts.claims[index].end
    following = parts.claims[index + 1].start if index + 1 < len(parts.claims) else len(parts.text)
    own = [at for at, _ in parts.marks if end <= at <= following and not parts.text[end:at].strip()]
    # A mark right before the next sentence is that sentence's only if the line is a new one.
    return max((at for at in own if "\n" not in parts.text[end:at]), default=end)


def _tidy(text: str) -> str:
    lines = _EMPTY_ITEM.sub("", _SPACES.sub(" ", text)).split("\n")
    kept: list[str] = []
    for line in reversed(lines):
        below = next((other for other in reversed(kept) if other.strip()), "")
        # A heading over nothing, or over the next heading, announces what was taken out.
        if _HEADING.match(line.strip()) and line.strip() and (not below or _HEADING.match(below.strip())):
            continue
        kept.append(line.rstrip())
    return _BLANK_LINES.sub("\n\n", "\n".join(reversed(kept))).strip()
