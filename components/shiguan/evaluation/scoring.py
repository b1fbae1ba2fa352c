"""
Scores the records of a run: passages, answers and cost.

Passages are scored by Haystack's evaluators, which compare one field and have no cut-off. So each passage gets the id
of the judged document that it is right for, the first of several alone: the others would add up gains and exceed 1.
Grades are gains; recall, MRR and all-gold count only the documents with the highest grade.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from haystack import Document
from haystack.components.evaluators import DocumentMRREvaluator, DocumentNDCGEvaluator, DocumentRecallEvaluator

from shiguan.evaluation.answer_metrics import is_right, score_answer
from shiguan.evaluation.questions import Question
from shiguan.evaluation.results import QuestionResult

RECALL_DEPTHS = (1, 5, 10, 20)
_FIELD = "meta.judged"
_RECALL = DocumentRecallEvaluator(mode="multi_hit", document_comparison_field=_FIELD)
_NDCG = DocumentNDCGEvaluator(document_comparison_field=_FIELD)
_MRR = DocumentMRREvaluator(document_comparison_field=_FIELD)
_FOUND_SHOWN = 5


def judged(question: Question, passages: Iterable[Document]) -> list[str | None]:
    """Name the judged document that each passage is right for, if any."""
    return [question.document_of(passage) for passage in passages]


def recall(question: Question, found: Sequence[str | None], k: int) -> float:
    return _scored(_RECALL, dict.fromkeys(question.gold_documents, 1.0), found[:k])


def ndcg(question: Question, found: Sequence[str | None], k: int) -> float:
    """Compute nDCG (Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", 2002, section 2.2)."""
    best = sorted(question.grades.items(), key=lambda entry: -entry[1])[:k]
    return _scored(_NDCG, dict(best), found[:k])


def reciprocal_rank(question: Question, found: Sequence[str | None], k: int) -> float:
    return _scored(_MRR, dict.fromkeys(question.gold_documents, 1.0), found[:k])


def ranking_metrics(question: Question, found: Sequence[str | None]) -> dict[str, float]:
    values = {f"recall@{k}": recall(question, found, k) for k in RECALL_DEPTHS}
    values |= {"ndcg@10": ndcg(question, found, 10), "mrr@10": reciprocal_rank(question, found, 10)}
    return values | {"all_gold@10": float(values["recall@10"] == 1)}


def context_metrics(question: Question, found: Sequence[str | None], tokens: int) -> dict[str, float]:
    """Score the context that the generator would read by the places of the answers, without an LLM."""
    return {
        "context_recall": len(question.gold_documents & set(found)) / len(question.gold_documents),
        "context_precision": sum(name is not None for name in found) / len(found) if found else 0.0,
        "context_tokens": float(tokens),
    }


def _scored(evaluator: Any, truth: Mapping[str, float], found: Sequence[str | None]) -> float:
    if not truth:
        raise ValueError("A question without a gold document has no score.")
    if not any(found):  # a plain miss, of which the evaluators would warn for every question
        return 0.0
    # Ids are given: Haystack would hash each document's content and metadata to make one.
    expected = [Document(id=name, meta={"judged": name}, score=grade) for name, grade in truth.items()]
    retrieved = [
        Document(id=str(rank), meta={} if name is None or name in found[:rank] else {"judged": name})
        for rank, name in enumerate(found)
    ]
    return float(evaluator.run(ground_truth_documents=[expected], retrieved_documents=[retrieved])["score"])


def score_records(kind: str, questions: Iterable[Question], records: dict[str, dict[str, Any]]) -> list[QuestionResult]:
    """Score the records of `MeasuredMode.ask`: a result per question, in order."""
    results = []
    for question in questions:
        record = records[question.id]
        metrics: dict[str, float] = {}
        details: dict[str, Any] = {"question": question.text}
        if kind != "answers" and question.grades:
            metrics |= ranking_metrics(question, [name for _, name in record["found"]])
            if record["read"] is not None:
                metrics |= context_metrics(question, [name for _, name in record["read"]], record["tokens"])
        if kind == "retrieval":
            details["gold"] = sorted(question.gold_documents)
            details["found"] = [record_id for record_id, _ in record["found"][:_FOUND_SHOWN]]
        else:
            metrics |= score_answer(question, record)
            details |= {name: record[name] for name in ("answer", "status", "confidence")}
            details["gold"] = question.answers or [passage.quote for passage in question.gold]
            details["right"] = is_right(question, record)
        if kind == "golden":
            metrics["tenant_kept"] = float(record["kept"])
        metrics |= {"latency_ms": record["timings_ms"].get("total", 0.0), "llm_calls": float(record["llm_calls"])}
        metrics |= {"cost": cost} if (cost := record.get("cost")) is not None else {}
        details |= {name: record[name] for name in ("lost", "warnings") if record[name]}
        stages = record["timings_ms"]
        results.append(QuestionResult(question.id, metrics, question.stratum, question.language, stages, details))
    return results
