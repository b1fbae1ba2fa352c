"""Writes what is said where no model wrote the answer, and why: the same in every mode."""

from typing import Any

from haystack import GeneratedAnswer
from haystack.document_stores.types import DocumentStore

from shiguan.answer.answerability import CLOSEST_BELOW, NOTHING_BELOW, read_probability
from shiguan.answer.question_names import absent_names
from shiguan.answer.quotations import chapter_outline, judged_quotations, tells_no_origin, write_quotations
from shiguan.llm.calls import Outcome
from shiguan.llm.prompts import not_found_sentence
from shiguan.llm.source_blocks import neutral_text
from shiguan.reading.question import read_question
from shiguan.resources import read_texts
from shiguan.tenants import LibraryStore

_LONGEST_RECALLED = 600


def unwritten_answer(
    outcome: Outcome,
    query: str,
    *,
    mode: str,
    language: str,
    confidence: float | None = None,
    closest_below: float = CLOSEST_BELOW,
    store: DocumentStore | None = None,
    filters: dict[str, Any] | None = None,
) -> GeneratedAnswer:
    """
    Write the answer to a question that ended without a reply.

    Where passages were found the closest places are quoted, status `quoted`, or `closest` where it is doubtful that
    they answer; `not_found` where nothing is near. The last two name what the library lacks (`absent`) and how many of
    its passages have no vector yet (`waiting`), read from the `store` of the children under the tenant's `filters`.
    """
    found = list(outcome.documents)
    meta: dict[str, Any] = {
        "status": outcome.kind, "reason": outcome.reason, "language": language, "citations": [], "claims": [],
        "changes": [], "confidence": confidence, "absent": [], "waiting": 0, "model": "", "usage": {}, **outcome.meta,
    }  # fmt: skip
    if outcome.kind == "unanswered":
        # Passages that come only from earlier turns have no score.
        found = [document for document in found if document.score is not None] or found
        found.sort(key=lambda document: -(document.score or 0.0))
    if outcome.kind in ("unanswered", "not_found"):
        chapter = read_question(query).chapter
        outline = chapter_outline(found, chapter) if chapter is not None else []
        judged = judged_quotations(found, query) if outcome.kind == "unanswered" and not outline else []
        if confidence is not None:
            odds = [odds for _, odds in judged if odds is not None]
            confidence = round(read_probability(confidence, query, found, odds), 4)
        absent = absent_names(query, found, store, filters) if store is not None and filters else []
        nowhere = any(not name["near"] for name in absent)
        sure = confidence is None or confidence >= closest_below
        nothing = not sure and (nowhere or (confidence or 0.0) < NOTHING_BELOW)
        nowhere = nowhere or tells_no_origin(query, found)
        quoted = outline or ([] if nothing else [one for one, _ in judged])
        status = "not_found" if not quoted else "quoted" if outline or (sure and not nowhere) else "closest"
        opening = _opening(status, outcome, mode, language, "outline" if outline else status)
        text, citations = write_quotations(quoted, opening, confidence or 0.0)
        meta |= {"status": status, "citations": citations, "confidence": confidence, "absent": absent}
        if filters and status != "quoted" and isinstance(store, LibraryStore):
            meta["waiting"] = store.count_without_vector(filters)
    else:
        text = _recalled(outcome.texts, language) if outcome.kind == "recalled" else " ".join(outcome.texts)
    return GeneratedAnswer(data=text, query=query, documents=found, meta=meta)


def _opening(status: str, outcome: Outcome, mode: str, language: str, kind: str) -> str:
    """Write what stands before the quotations; without a model in the setup, doubtful ones need no cause."""
    texts = read_texts("quotations")["zh" if language == "zh" else "en"]
    text = not_found_sentence(mode, language) if status == "not_found" else texts[kind]
    if outcome.kind != "unanswered" or (outcome.reason == "no_model" and status != "quoted"):
        return text
    return f"{text}{'' if language == 'zh' else ' '}{texts['causes'][outcome.reason]}"


def _recalled(messages: tuple[str, ...], language: str) -> str:
    """Quote earlier messages of a conversation."""
    sentences: dict[str, str] = read_texts("recalled")
    text = sentences.get(language, sentences["en"])
    for message in map(neutral_text, messages):
        shown = message if len(message) <= _LONGEST_RECALLED else f"{message[:_LONGEST_RECALLED]}…"
        text += "\n\n" + "\n".join(f"> {line}".rstrip() for line in shown.splitlines())
    return text
