"""Asks a language model for its verdicts on claims, and weighs them with the local ones."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

from haystack import Document
from haystack.dataclasses import ChatMessage

from shiguan.claims.checker import CheckedClaim
from shiguan.claims.claim_support import Support, Verdict
from shiguan.claims.evidence import find_verbatim
from shiguan.llm.json_replies import json_object
from shiguan.llm.prompt_rendering import render_prompt
from shiguan.llm.source_blocks import SourceBlock, neutral_text, render_sources

PROMPT = "hallucination_grader"
_SCORES: dict[Verdict, float] = {"supported": 0.9, "partial": 0.5, "unsupported": 0.15, "contradicted": 0.05}
_LONGEST_REASON = 300


def judge_messages(
    claims: Sequence[CheckedClaim], documents: Sequence[Document], question: str, language: str
) -> list[ChatMessage]:
    """Write the one prompt that asks for all verdicts."""
    blocks = [
        SourceBlock(number=place, text=document.content or "", file=str(document.meta.get("source") or ""))
        for place, document in enumerate(documents, start=1)
    ]
    return render_prompt(
        PROMPT,
        context=render_sources(blocks),
        question=neutral_text(question),
        claims=[neutral_text(" ".join(one.stated.split())) for one in claims],
        language=language,
    )


def read_verdicts(
    reply: str, claims: Sequence[CheckedClaim], documents: Sequence[Document]
) -> tuple[list[CheckedClaim], str] | None:
    """
    Read the model's verdicts and weigh them with the local ones.

    A claim that the reply leaves out, or judges with an unknown word, keeps its local verdict. "Supported" needs a
    quote that stands in the sources; without one it counts as partial, unless the local check found support as well.
    Where the local check found another number or name in the very sentence, the model cannot overrule it.
    """
    found = json_object(reply, "claims")
    items = found.get("claims") if found else None
    if not isinstance(items, list):
        return None
    by_id = {place: item for item in items if isinstance(item, dict) and (place := _id(item)) is not None}
    if not by_id:
        return None
    judged = [
        _weighed(one, by_id[place], documents) if place in by_id else one for place, one in enumerate(claims, start=1)
    ]
    missing = found.get("missing") if found else ""
    return judged, missing.strip() if isinstance(missing, str) else ""


def _id(item: dict[str, Any]) -> int | None:
    value = item.get("id")
    try:
        return int(value) if value is not None and not isinstance(value, bool) else None
    except (TypeError, ValueError):
        return None


def _weighed(one: CheckedClaim, item: dict[str, Any], documents: Sequence[Document]) -> CheckedClaim:
    verdict = str(item.get("verdict", "")).strip().lower()
    if verdict not in get_args(Verdict) or one.support.verdict == "contradicted":
        return one
    reason = item.get("reason")
    said = " ".join(reason.split())[:_LONGEST_REASON] if isinstance(reason, str) and reason.strip() else ""
    place, start, end = _quoted(item, documents)
    if verdict == "supported" and place < 0 and one.support.verdict != "supported":
        verdict, said = "partial", "the judge gave no words of the sources for it"
    if place < 0:
        place, start, end = one.support.passage, one.support.start, one.support.end
    score = (_SCORES[verdict] + one.support.score) / 2  # type: ignore[index]
    quote = (documents[place].content or "")[start:end] if place >= 0 else ""
    support = Support(score, verdict, said or one.support.reason, place, start, end)  # type: ignore[arg-type]
    return replace(one, support=support, quote=quote)


def _quoted(item: dict[str, Any], documents: Sequence[Document]) -> tuple[int, int, int]:
    quote = item.get("quote")
    if not isinstance(quote, str) or not quote.strip():
        return -1, 0, 0
    number = item.get("source")
    first = number - 1 if isinstance(number, int) and 1 <= number <= len(documents) else 0
    order = [first, *(place for place in range(len(documents)) if place != first)]
    for place in order if documents else []:
        span = find_verbatim(quote.strip().strip("“”\"'…"), documents[place].content or "")
        if span:
            return place, *span
    return -1, 0, 0
