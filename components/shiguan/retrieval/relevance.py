"""How well passages fit a question: by a model's judgement, by a ranker's scores, or by words."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from haystack import Document
from haystack.dataclasses import ChatMessage

from shiguan.llm.json_replies import json_number, json_object
from shiguan.llm.prompt_rendering import render_prompt
from shiguan.llm.source_blocks import SourceBlock, neutral_text, render_sources
from shiguan.text.rarity import covered, question_subject, rarity
from shiguan.text.terms import terms

_WORD = re.compile(r"[^\W_]+")
PROMPT = "relevance_grader"
_LONGEST_PASSAGE, _LONGEST_REASON, _LONGEST_QUERY = 1_500, 200, 300


@dataclass(frozen=True)
class Relevance:
    """The scores of some passages."""

    scores: tuple[float, ...]
    reasons: tuple[str, ...]
    overall: float
    better_query: str = ""


def relevance_messages(documents: Sequence[Document], question: str, language: str) -> list[ChatMessage]:
    """Write the prompt that asks for all scores at once."""
    blocks = [
        SourceBlock(number=place, text=(document.content or "")[:_LONGEST_PASSAGE])
        for place, document in enumerate(documents, start=1)
    ]
    return render_prompt(PROMPT, context=render_sources(blocks), question=neutral_text(question), language=language)


def read_relevance(reply: str, count: int) -> Relevance | None:
    """Read the scores from a model's reply."""
    found = json_object(reply, "passages")
    items = found.get("passages") if found else None
    if found is None or not isinstance(items, list):
        return None
    scores, reasons = [0.0] * count, [""] * count
    known = False
    for item in items:
        if not isinstance(item, dict):
            continue
        number = json_number(item.get("number"), low=1, high=count)
        score = json_number(item.get("score"), low=0, high=10)
        if number is None or score is None:
            continue
        known = True
        scores[int(number) - 1] = score
        reason = item.get("reason")
        reasons[int(number) - 1] = " ".join(reason.split())[:_LONGEST_REASON] if isinstance(reason, str) else ""
    if not known:
        return None
    overall = json_number(found.get("overall"), low=0, high=10)
    query = found.get("better_query")
    better = " ".join(neutral_text(query).split())[:_LONGEST_QUERY] if isinstance(query, str) else ""
    return Relevance(tuple(scores), tuple(reasons), max(scores) if overall is None else overall, better)


def relevance_by_scores(documents: Sequence[Document]) -> Relevance:
    """Take a ranker's scores, 0 to 1, for relevance."""
    scores = tuple(round(10 * min(max(document.score or 0.0, 0.0), 1.0), 2) for document in documents)
    return Relevance(scores, ("",) * len(scores), max(scores, default=0.0))


def relevance_by_words(documents: Sequence[Document], question: str) -> Relevance:
    """Score passages by the question's words, weighted by rarity."""
    subject = question_subject(question)
    weights = {word: rarity(word) for word in terms(subject)}
    said = [_words(document) for document in documents]

    def share(words: set[str]) -> float:
        return round(10 * covered(weights, words), 2)

    known = set[str]().union(*said)
    missing = [word for word in _WORD.findall(subject) if not known.issuperset(terms(word))]
    return Relevance(tuple(share(words) for words in said), ("",) * len(said), share(known), " ".join(missing))


def _words(document: Document) -> set[str]:
    section = document.meta.get("section") or []
    headings = section if isinstance(section, str) else " ".join(map(str, section))
    return set(terms(f"{document.meta.get('title') or ''} {headings} {document.content or ''}"))
