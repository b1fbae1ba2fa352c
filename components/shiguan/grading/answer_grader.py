"""Grades an answer as a reader would: is it supported, does it answer the question, is it complete, is it clear."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

from haystack import Document
from haystack.components.generators.chat.types import ChatGenerator
from haystack.dataclasses import ChatMessage

from shiguan.claims.answer_check import answer_check
from shiguan.claims.checker import CheckedClaim, numbered_passages
from shiguan.claims.claim_support import Verdict
from shiguan.claims.claims import whole_reply
from shiguan.claims.verbatim import find_verbatim
from shiguan.grading.attempts import GradedAnswer
from shiguan.llm.calls import NO_LLM, ask_llm_async, is_available, warm_up_generator
from shiguan.llm.json_replies import json_number, json_object
from shiguan.llm.prompts import render_prompt
from shiguan.llm.source_blocks import neutral_text, render_sources
from shiguan.reading.question import read_question
from shiguan.reading.text import read_text
from shiguan.serialization import Serializable
from shiguan.text.name_forms import foreign_names
from shiguan.text.terms import covered, terms

_ASPECTS = ("support", "relevance", "completeness", "clarity")
# At or above these local scores no model is asked: of claims from 0 to 1, of relevance from 0 to 10. However low the
# score of a claim, the passages may say it in other words.
_SURE, _SURE_RELEVANCE = 0.8, 8.0
# The average of the marks with which an answer passes; no mark may be below half of it.
_PASSING = 7.0
_SCORES: dict[Verdict, float] = {"supported": 0.9, "partial": 0.5, "unsupported": 0.15, "contradicted": 0.05}
_MOST_SUGGESTIONS, _LONGEST, _LONGEST_REASON = 3, 500, 300


class AnswerGrader(Serializable):
    """
    Gives an answer four marks from 0 to 10, with at most one call of a language model.

    An argument of `HallucinationGrader`, which acts on the grade. The marks are `support` (do the passages say so),
    `relevance` (does it answer the question), `completeness` (does it give every relevant point) and `clarity` (is it
    plain and without repetition). Only where the local check is unsure about a claim or the answer's relevance
    is a model asked, once for everything: the marks, the verdicts on the unsure claims, what is missing and how to do
    better. An answer whose average is
    below 7, or any mark below 3.5, does not pass; one whose relevance is below 3.5 does not answer. Without a model, or
    with a broken reply, the marks are those of the local check; they are coarse, have `judge: "local"`, and never fail
    an answer.

    The model is asked for JSON: `{"claims": [{"id": 1, "verdict": "supported", "source": 1, "quote": "…", "reason":
    "…"}], "support": 9, "relevance": 8, "completeness": 7, "clarity": 8, "missing": "…", "feedback": "…",
    "suggestions": ["…"]}`.
    """

    def __init__(self, chat_generator: ChatGenerator | None = None) -> None:
        """
        Set the judge.

        :param chat_generator: The judge; None, or one that is not available, for the local marks.
        """
        self.chat_generator = chat_generator

    def warm_up(self) -> None:
        warm_up_generator(self.chat_generator)

    async def graded(self, answer: GradedAnswer) -> GradedAnswer:
        """
        Add the grade of a checked answer, and the model's verdicts on its claims if it was asked.

        The grade has `judge` (`llm` or `local`), `judged` (how many of the `claims` the model decided), `passed`,
        `answers`, `overall` (the average), the four marks, `missing`, `feedback` and `suggestions`.
        """
        answer, warning = replace(answer, grade=_local_grade(answer)), ""
        if not is_available(self.chat_generator):
            asked = self.chat_generator is not None and answer.claims
            warning = f"{NO_LLM}: the answer was checked locally." if asked else ""
        elif _needs_judge(answer):
            reply = await ask_llm_async(self.chat_generator, grade_messages(answer), helper=False)
            judged = read_grade(reply.text, answer)
            if judged is None:
                why = reply.failure or "its reply was not the JSON that was asked for"
                warning = f"The LLM did not grade the answer ({why}); it was checked locally."
            answer = replace(judged or answer, llm_calls=1)
        marks = [answer.grade[aspect] for aspect in _ASPECTS]
        overall, local = sum(marks) / len(marks), answer.grade["judge"] == "local"
        decision = {
            "overall": round(overall, 2),
            "passed": local or (overall >= _PASSING and min(marks) >= _PASSING / 2),
            "answers": local or answer.grade["relevance"] >= _PASSING / 2,
        }
        warnings = (*answer.warnings, *([warning] if warning else []))
        return replace(answer, grade={**answer.grade, **decision}, warnings=warnings)


def check_answer(
    reply: ChatMessage, documents: Sequence[Document], question: str, language: str | None
) -> GradedAnswer:
    """Check a reply without a model."""
    reply, check = whole_reply(reply), answer_check(documents, question)
    checker = check.checker
    parts = checker.split((reply.text or "").strip())
    read = [] if checker.says_nothing(parts) else checker.read(parts)
    return GradedAnswer(
        reply=reply,
        question=question,
        language=language or read_text(question).language,
        parts=parts,
        documents=list(numbered_passages(documents).values()),
        claims=checker.judge(read),
    )


def _unsure(answer: GradedAnswer) -> list[CheckedClaim]:
    """Return the claims that the local check cannot decide: neither compared exactly nor clearly supported."""
    claims = (claim for claim in answer.claims if not claim.support.exact)
    return [claim for claim in claims if claim.support.foreign or claim.support.score < _SURE]


def _needs_judge(answer: GradedAnswer) -> bool:
    if not answer.parts.claims or answer.is_not_found:
        return False
    return bool(_unsure(answer)) or answer.grade["relevance"] < _SURE_RELEVANCE


def _local_grade(answer: GradedAnswer) -> dict[str, Any]:
    """Mark an answer coarsely without a model: relevance is the share of the question's words, weighted by rarity."""
    grade = {"judge": "local", "judged": 0, "claims": len(answer.claims)}
    grade |= {"missing": "", "feedback": "", "suggestions": []}
    if not answer.parts.claims or answer.is_not_found:
        return grade | dict.fromkeys(_ASPECTS, 0.0)
    asked = read_question(answer.question)
    words = read_text(answer.parts.text).words.union(*(terms(claim.quote) for claim in answer.claims))
    share = covered(asked.weights, words) if asked.weights else 1.0
    if asked.shapes and not asked.answered_by(answer.parts.text, asked.shapes[0]):
        share /= 2
    scores = [claim.support.score for claim in answer.claims]
    sentences = [" ".join(terms(claim.text)) for claim in answer.parts.claims]
    marks = (sum(scores) / len(scores) if scores else 1.0, share, share, len(set(sentences)) / len(sentences))
    return grade | {aspect: round(10 * mark, 1) for aspect, mark in zip(_ASPECTS, marks, strict=True)}


def grade_messages(answer: GradedAnswer) -> list[ChatMessage]:
    """Write the prompt that asks for the marks and for the verdicts on the claims that the local check is unsure of."""
    sources = [
        Document(content=document.content, meta={"number": place, "source": document.meta.get("source")})
        for place, document in enumerate(answer.documents, start=1)
    ]
    return render_prompt(
        "answer_grader",
        context=render_sources(sources),
        question=neutral_text(answer.question),
        answer=neutral_text(answer.parts.text),
        claims=[neutral_text(" ".join(claim.stated.split())) for claim in _unsure(answer)],
        language=answer.language,
    )


def read_grade(reply: str, answer: GradedAnswer) -> GradedAnswer | None:
    """Read a model's marks, all of them or none, what the answer lacks, and its verdicts; None without marks or any."""
    found = json_object(reply, _ASPECTS[1]) or {}
    marks = {aspect: json_number(found.get(aspect), low=0, high=10) for aspect in _ASPECTS}
    by_id = _by_id(found.get("claims"))
    is_marked = None not in marks.values()
    if not is_marked and not by_id:
        return None
    judged = {
        claim.index: _combined(claim, by_id[place], answer.documents)
        for place, claim in enumerate(_unsure(answer), start=1)
        if place in by_id and str(by_id[place].get("verdict", "")).strip().lower() in get_args(Verdict)
    }
    suggestions = found.get("suggestions")
    texts = map(_line, suggestions if isinstance(suggestions, list) else [suggestions])
    grade = {
        **answer.grade,
        **({"judge": "llm", **marks} if is_marked else {}),
        "judged": len(judged),
        "missing": _line(found.get("missing")),
        "feedback": _line(found.get("feedback")),
        "suggestions": [text for text in texts if text][:_MOST_SUGGESTIONS],
    }
    claims = [judged.get(claim.index, claim) for claim in answer.claims]
    return replace(answer, claims=claims, grade=grade)


def _by_id(items: Any) -> dict[int, dict[str, Any]]:
    known = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return {int(place): item for item in known if (place := json_number(item.get("id"), low=1, high=1e6)) is not None}


def _line(value: Any) -> str:
    return " ".join(value.split())[:_LONGEST] if isinstance(value, str) else ""


def _combined(claim: CheckedClaim, item: dict[str, Any], documents: Sequence[Document]) -> CheckedClaim:
    """Combine a model's verdict with the local one: support needs words of the sources, and no unknown names."""
    verdict: Any = str(item["verdict"]).strip().lower()
    reason, local = _line(item.get("reason"))[:_LONGEST_REASON], claim.support
    place, start, end = _quoted(item, documents)
    known = set[str]().union(*(read_text(document.content or "").words for document in documents))
    if local.verdict == "unsupported" and not local.foreign and foreign_names(claim.stated, known):
        return claim
    if verdict == "supported" and place < 0 and local.verdict != "supported":
        verdict, reason = "partial", "the judge gave no words of the sources for it"
    if place < 0:
        place, start, end = local.passage, local.start, local.end
    score = (_SCORES[verdict] + local.score) / 2
    quote, reason = (documents[place].content or "")[start:end] if place >= 0 else "", reason or local.reason
    found = replace(local, score=score, verdict=verdict, reason=reason, passage=place, start=start, end=end)
    return replace(claim, support=found, quote=quote)


def _quoted(item: dict[str, Any], documents: Sequence[Document]) -> tuple[int, int, int]:
    """Find the words that a model quotes: the passage, the named one first, and the span in it."""
    quote, number = item.get("quote"), item.get("source")
    if isinstance(quote, str) and quote.strip():
        for place in sorted(range(len(documents)), key=lambda place: place + 1 != number):
            span = find_verbatim(quote.strip().strip("“”\"'…"), documents[place].content or "")
            if span:
                return place, *span
    return -1, 0, 0
