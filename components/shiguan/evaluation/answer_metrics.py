"""Scores one answer against its golden question: right, cited, supported, or rightly refused."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from haystack import Document, GeneratedAnswer

from shiguan.evaluation.answer_matching import contains_answer, exact_match, spoken_answer, token_f1
from shiguan.evaluation.citation_metrics import CitationScores, score_citations
from shiguan.evaluation.golden_set import GoldenQuestion
from shiguan.support.relevance import relevance_by_words

ANSWER_METRICS = (
    "correct",
    "exact_match",
    "token_f1",
    "contains_answer",
    "gold_read",
    "gold_cited",
    "citation_precision",
    "citation_recall",
    "claims_supported",
    "correct_refusal",
    "false_refusal",
)
"""What `score_answer` may give; a metric that does not apply to a question is left out."""


@dataclass(frozen=True)
class ScoredAnswer:
    """One answer, scored."""

    metrics: dict[str, float]
    confidence: float
    right: bool | None


def score_answer(golden: GoldenQuestion, answer: GeneratedAnswer) -> ScoredAnswer:
    """
    Score an answer.

    What was refused has no citations and no claims to score; its exact match, F1 and cited passages are 0, for nothing
    right was said. For a question that nothing answers only the refusal counts, and the citations of an answer that
    should not have been given.
    """
    question = golden.question
    refused = answer.meta.get("status") == "not_found"
    said = "" if refused else spoken_answer(answer.data)
    metrics: dict[str, float] = {}
    confidence = 0.0
    if question.answerable:
        if question.answers:
            metrics["exact_match"] = exact_match(said, question.answers)
            metrics["token_f1"] = token_f1(said, question.answers) if said else 0.0
            metrics["contains_answer"] = contains_answer(said, question.answers)
        if golden.gold:
            metrics["gold_read"] = _gold_share(golden, answer.documents)
            metrics["gold_cited"] = 0.0 if refused else _gold_share(golden, _cited(answer))
    if not refused:
        scores = score_citations(answer.data, _texts(answer))
        if scores.claims:
            metrics["citation_precision"] = scores.precision
            metrics["citation_recall"] = scores.recall
        metrics |= _supported(answer.meta)
        confidence = _confidence(question.text, scores, _cited(answer))
    if question.answerable:
        metrics["false_refusal"] = float(refused)
    else:
        metrics["correct_refusal"] = float(refused)
    right = question.answerable and metrics.get("contains_answer", metrics.get("gold_cited", 0.0)) > 0
    metrics["correct"] = float(right or (refused and not question.answerable))
    metrics = {name: metrics[name] for name in ANSWER_METRICS if name in metrics}
    return ScoredAnswer(metrics, confidence, None if refused else right)


def _number(document: Document, place: int) -> int:
    number = document.meta.get("number")
    return number if isinstance(number, int) and number > 0 else place


def _texts(answer: GeneratedAnswer) -> dict[int, str]:
    return {_number(document, at): document.content or "" for at, document in enumerate(answer.documents, start=1)}


def _cited(answer: GeneratedAnswer) -> list[Document]:
    numbers = {citation["number"] for citation in answer.meta.get("citations", [])}
    return [document for at, document in enumerate(answer.documents, start=1) if _number(document, at) in numbers]


def _gold_share(golden: GoldenQuestion, documents: Sequence[Document]) -> float:
    held = sum(any(gold.stands_in(document) for document in documents) for gold in golden.gold)
    return held / len(golden.gold)


def _supported(meta: Mapping[str, Any]) -> dict[str, float]:
    """Take the verdicts that the mode itself gave, which knew more than the cited passages."""
    verdicts = [claim["verdict"] for claim in meta.get("claims", [])]
    return {"claims_supported": verdicts.count("supported") / len(verdicts)} if verdicts else {}


def _confidence(question: str, scores: CitationScores, cited: Sequence[Document]) -> float:
    if not cited:
        return 0.0
    return round(scores.lowest * relevance_by_words(cited, question).overall / 10, 6)
