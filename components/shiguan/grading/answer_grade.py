"""The marks of an answer: how a model is asked for them, how its reply is read, and what stands in for it."""

from collections.abc import Sequence
from typing import Any

from haystack import Document
from haystack.dataclasses import ChatMessage

from shiguan.claims.checker import ClaimChecker, numbered_passages
from shiguan.claims.claim_kinds import is_not_found
from shiguan.claims.claims import split_claims
from shiguan.llm.json_replies import json_number, json_object
from shiguan.llm.prompt_rendering import render_prompt
from shiguan.llm.source_blocks import SourceBlock, neutral_text, render_sources
from shiguan.text.rarity import question_subject
from shiguan.text.terms import terms

PROMPT = "answer_grader"
ASPECTS = ("relevance", "accuracy", "completeness", "citation_quality")
_MOST_SUGGESTIONS, _LONGEST = 3, 500


def source_context(documents: Sequence[Document]) -> str:
    """Render passages for a judge, numbered as the answer's marks number them."""
    return render_sources(
        [
            SourceBlock(number=number, text=document.content or "", file=str(document.meta.get("source") or ""))
            for number, document in numbered_passages(documents).items()
        ]
    )


def grade_messages(answer: str, documents: Sequence[Document], question: str, language: str) -> list[ChatMessage]:
    """Write the prompt that asks for the marks."""
    # Its own marks must stay: whether they are right is one of the questions. Only tags are made harmless.
    harmless = answer.replace("<", "‹").replace(">", "›")
    return render_prompt(
        PROMPT,
        context=source_context(documents),
        question=neutral_text(question),
        answer=harmless,
        language=language,
    )


def read_grade(reply: str) -> dict[str, Any] | None:
    """Read the marks from a model's reply."""
    found = json_object(reply, ASPECTS[0])
    if found is None:
        return None
    marks = {aspect: json_number(found.get(aspect), low=0, high=10) for aspect in ASPECTS}
    if any(mark is None for mark in marks.values()):
        return None
    given = found.get("suggestions")
    items = given if isinstance(given, list) else [given]
    suggestions = [" ".join(item.split())[:_LONGEST] for item in items if isinstance(item, str) and item.strip()]
    feedback = found.get("feedback")
    return {
        **marks,
        "feedback": " ".join(feedback.split())[:_LONGEST] if isinstance(feedback, str) else "",
        "suggestions": suggestions[:_MOST_SUGGESTIONS],
    }


def local_grade(answer: str, documents: Sequence[Document], question: str) -> dict[str, Any]:
    """Mark an answer without a model, coarsely."""
    parts = split_claims(answer)
    if not parts.claims or is_not_found(answer):
        return {**dict.fromkeys(ASPECTS, 0.0), "feedback": "", "suggestions": []}
    numbered = numbered_passages(documents)
    checked = ClaimChecker({number: one.content or "" for number, one in numbered.items()}).check(parts)
    asked = set(terms(question_subject(question)))
    said = set(terms(parts.text)).union(*(terms(one.quote) for one in checked))
    shared = len(asked & said) / len(asked) if asked else 1.0
    support = sum(one.support.score for one in checked) / len(checked) if checked else 1.0
    cited = sum(bool(one.claim.numbers) for one in checked) / len(checked) if checked else 1.0
    marks = {"relevance": shared, "accuracy": support, "completeness": shared, "citation_quality": cited}
    return {**{aspect: round(10 * mark, 1) for aspect, mark in marks.items()}, "feedback": "", "suggestions": []}
