"""One round of grading: what was said, what the check found, and what follows from it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from haystack import Document
from haystack.components.embedders.types import DocumentEmbedder
from haystack.dataclasses import ChatMessage

from shiguan.claims.checker import CheckedClaim, ClaimChecker, numbered_passages
from shiguan.claims.claim_kinds import is_not_found
from shiguan.claims.claims import ClaimedText, split_claims
from shiguan.grading.attempts import (
    BestAttempt,
    LoopState,
    as_verdicts,
    attempt_record,
    first_state,
    passages_for_retry,
    worth,
)
from shiguan.grading.claim_judge import read_verdicts
from shiguan.grading.claim_removal import with_marked_claims, without_claims
from shiguan.grading.retry_request import feedback_text, retry_queries
from shiguan.grading.window_similarity import try_similarities
from shiguan.llm.calls import LlmReply
from shiguan.llm.prompts import not_found_sentence
from shiguan.text.languages import detect_language

OnUnsupported = Literal["mark", "remove", "refuse"]
UNSUPPORTED_MARK = "⚠"
"""What stands at the end of a sentence that nothing supports, where such sentences are marked."""


@dataclass(frozen=True)
class GradingRound:
    """One answer under examination."""

    state: LoopState
    reply: ChatMessage
    documents: list[Document]
    passages: list[Document]
    grade: dict[str, Any]
    language: str
    parts: ClaimedText
    claims: list[CheckedClaim]
    missing: str = ""
    warnings: list[str] = field(default_factory=list)
    llm_calls: int = 0

    @property
    def is_answered(self) -> bool:
        """Whether the reply is an answer and not the not-found sentence or nothing."""
        return bool(self.parts.claims) and not is_not_found(self.reply.text or "")

    @property
    def ungrounded(self) -> list[CheckedClaim]:
        """The claims that no passage supports."""
        return [claim for claim in self.claims if not claim.is_grounded]

    @property
    def is_accepted(self) -> bool:
        """Whether the answer may go out as it is. To admit that nothing was found is always true."""
        return not self.is_answered or (not self.ungrounded and self.grade.get("passed", True) is not False)


def open_round(
    replies: Sequence[ChatMessage],
    documents: Sequence[Document],
    state: LoopState,
    *,
    passages: Sequence[Document] | None,
    grade: dict[str, Any] | None,
    language: str | None,
    embedder: DocumentEmbedder | None,
    raise_on_failure: bool,
) -> GradingRound:
    """Check an answer."""
    reply = replies[0] if replies else ChatMessage.from_assistant("")
    parts = split_claims((reply.text or "").strip())
    answered = bool(parts.claims) and not is_not_found(reply.text or "")
    numbered = numbered_passages(documents)
    checker = ClaimChecker({number: document.content or "" for number, document in numbered.items()})
    read = checker.read(parts) if answered else []
    similarities, warnings = try_similarities(embedder, checker.windows(read), raise_on_failure=raise_on_failure)
    return GradingRound(
        state=state,
        reply=reply,
        documents=list(numbered.values()),
        passages=list(documents if passages is None else passages),
        grade=grade or {},
        language=language or detect_language(state["question"]),
        parts=parts,
        claims=checker.judge(read, similarities),
        warnings=warnings,
    )


def with_judgement(this: GradingRound, reply: LlmReply) -> GradingRound:
    """Weigh a judge's verdicts in."""
    judged = read_verdicts(reply.text, this.claims, this.documents)
    if judged is None:
        why = reply.failure or "its reply was not the JSON that was asked for"
        warning = f"The LLM did not judge the answer ({why}); it was checked locally."
        return replace(this, warnings=[*this.warnings, warning], llm_calls=this.llm_calls + 1)
    claims, missing = judged
    return replace(this, claims=claims, missing=missing, llm_calls=this.llm_calls + 1)


def settle(this: GradingRound, *, max_attempts: int, on_unsupported: OnUnsupported, mode: str) -> dict[str, Any]:
    """Decide: out with it, or another round."""
    state = this.state
    attempt = state["attempt"]
    history = [*state["history"], attempt_record(attempt, state["query"], this.reply, this.claims)]
    best = _better(state["best"], this)
    beside: dict[str, Any] = {
        "llm_calls": state["llm_calls"] + this.llm_calls,
        "warnings": list(dict.fromkeys([*state["warnings"], *this.warnings])),
    }
    if not this.is_accepted and attempt < max_attempts:
        return {"retry": {**state, **beside, **_next(this, history, best)}, **beside}
    return _finished(best, history, beside, on_unsupported=on_unsupported, mode=mode)


def _better(best: BestAttempt | None, this: GradingRound) -> BestAttempt:
    value = worth(this.claims, accepted=this.is_accepted, answered=this.is_answered)
    # Of two equally good attempts the later one wins: it knew what the first one lacked.
    if best is not None and best["worth"] > value:
        return best
    return {
        "worth": value,
        "attempt": this.state["attempt"],
        "reply": this.reply,
        "documents": this.documents,
        "verdicts": as_verdicts(this.claims, this.documents),
        "ungrounded": [claim.index for claim in this.ungrounded],
        "accepted": this.is_accepted,
        "answered": this.is_answered,
        "language": this.language,
    }


def _next(this: GradingRound, history: list[dict[str, Any]], best: BestAttempt) -> dict[str, Any]:
    feedback = str(this.grade.get("feedback") or "")
    query, queries = retry_queries(this.state["question"], this.ungrounded, this.missing)
    return {
        "attempt": this.state["attempt"] + 1,
        "query": query,
        "queries": queries,
        "documents": passages_for_retry(this.passages, as_verdicts(this.claims, this.documents)),
        "feedback": feedback_text(this.ungrounded, this.language, feedback),
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
    reply = best["reply"]
    text, status = (reply.text or "").strip(), "accepted" if best["answered"] else "not_found"
    removed: list[str] = []
    warnings = list(beside["warnings"])
    ungrounded = set(best["ungrounded"])
    count = f"{len(ungrounded)} {'sentence' if len(ungrounded) == 1 else 'sentences'}"
    if ungrounded:
        parts = split_claims(text)
        if on_unsupported == "mark":
            text, status = with_marked_claims(parts, ungrounded, UNSUPPORTED_MARK), "marked"
            warnings.append(f"{count} marked {UNSUPPORTED_MARK}: the sources do not support them.")
        else:
            removed = [parts.claims[index].text for index in sorted(ungrounded)]
            text = without_claims(parts, ungrounded) if on_unsupported == "remove" else ""
            status = "removed"
            warnings.append(f"{count} removed from the answer: the sources do not support them.")
        if not text:
            status = "refused"
            warnings[-1] = (
                f"The answer was withheld after {len(history)} {'attempt' if len(history) == 1 else 'attempts'}: "
                f"the sources do not support {count} of it."
            )
    elif not best["accepted"]:
        warnings.append("The answer stayed below the grader's threshold after its last attempt.")
    grounding = {
        "status": status,
        "attempts": len(history),
        "chosen": best["attempt"],
        "history": history,
        "removed": removed,
        "llm_calls": beside["llm_calls"],
    }
    final = ChatMessage.from_assistant(
        text or not_found_sentence(mode, best["language"]), meta={**reply.meta, "grounding": grounding}
    )
    return {
        "replies": [final],
        "documents": best["documents"],
        "verdicts": best["verdicts"],
        **beside,
        "warnings": warnings,
    }


def state_of(state: dict[str, Any] | None, query: str, attempt: int | None) -> LoopState:
    """Give the state of a round."""
    own = cast("LoopState", dict(state)) if state is not None else first_state(query, None, {})
    if query:
        own["question"] = query
    if attempt is not None:
        own["attempt"] = max(1, attempt)
    return own
