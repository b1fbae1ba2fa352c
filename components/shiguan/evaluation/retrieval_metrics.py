"""
How well passages were found, per question, from 0 to 1, higher is better.

The arithmetic is that of Haystack's evaluators. Three things that they do not know are settled before they are asked:

- A passage is right if it is from a judged document *and* overlaps the answer's place where that is marked; the
  evaluators compare one field, so each passage gets the id of the document it is right for, or none.
- Several passages of one document count once, at the rank of the first: the NDCG evaluator would add up the gain of
  each and give more than 1. The later ones keep their rank and are right for nothing.
- None of the evaluators has a cut-off, so they get the first k passages; and for NDCG the k best judgements, for an
  ideal order of k places holds no more.

Grades are gains as they stand. Recall, MRR and all-gold count the documents of the highest grade only.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from haystack import Document
from haystack.components.evaluators import DocumentMRREvaluator, DocumentNDCGEvaluator, DocumentRecallEvaluator

from shiguan.evaluation.questions import Question

RECALL_DEPTHS = (1, 5, 10, 20)
_FIELD = "meta.judged"
_RECALL = DocumentRecallEvaluator(mode="multi_hit", document_comparison_field=_FIELD)
_NDCG = DocumentNDCGEvaluator(document_comparison_field=_FIELD)
_MRR = DocumentMRREvaluator(document_comparison_field=_FIELD)


def judged(question: Question, passages: Iterable[Document]) -> list[str | None]:
    """Name the judged document that each passage is right for."""
    return [question.document_of(passage) for passage in passages]


def recall(question: Question, found: Sequence[str | None], k: int) -> float:
    return _scored(_RECALL, dict.fromkeys(question.gold_documents, 1.0), found[:k])


def ndcg(question: Question, found: Sequence[str | None], k: int) -> float:
    """
    Give the normalised discounted cumulative gain of the first passages, with the grades as gains.

    Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques" (2002), section 2.2.
    """
    best = sorted(question.grades.items(), key=lambda entry: -entry[1])[:k]
    return _scored(_NDCG, dict(best), found[:k])


def reciprocal_rank(question: Question, found: Sequence[str | None], k: int) -> float:
    return _scored(_MRR, dict.fromkeys(question.gold_documents, 1.0), found[:k])


def ranking_metrics(question: Question, found: Sequence[str | None]) -> dict[str, float]:
    values = {f"recall@{k}": recall(question, found, k) for k in RECALL_DEPTHS}
    values["ndcg@10"] = ndcg(question, found, 10)
    values["mrr@10"] = reciprocal_rank(question, found, 10)
    values["all_gold@10"] = float(values["recall@10"] == 1)
    return values


def context_metrics(question: Question, found: Sequence[str | None], tokens: int) -> dict[str, float]:
    """Score the context that the generator would read by the places of the answers: no LLM is asked."""
    return {
        "context_recall": len(question.gold_documents & set(found)) / len(question.gold_documents),
        "context_precision": sum(name is not None for name in found) / len(found) if found else 0.0,
        "context_tokens": float(tokens),
    }


def _scored(evaluator: Any, truth: Mapping[str, float], found: Sequence[str | None]) -> float:
    if not truth:
        raise ValueError("A question without a gold document has no score.")
    if not any(found):
        # The evaluators warn of it for every question; here it is a plain miss.
        return 0.0
    # Ids are given: Haystack would hash each document's content and metadata to make one.
    expected = [Document(id=name, meta={"judged": name}, score=grade) for name, grade in truth.items()]
    retrieved = [
        Document(id=str(rank), meta={} if name is None or name in found[:rank] else {"judged": name})
        for rank, name in enumerate(found)
    ]
    return float(evaluator.run(ground_truth_documents=[expected], retrieved_documents=[retrieved])["score"])
