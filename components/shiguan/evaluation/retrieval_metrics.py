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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from haystack import Document
from haystack.components.evaluators import DocumentMRREvaluator, DocumentNDCGEvaluator, DocumentRecallEvaluator

from shiguan.evaluation.questions import Question

RECALL_DEPTHS = (1, 5, 10, 20)
_FIELD = "meta.judged"
_RECALL = DocumentRecallEvaluator(mode="multi_hit", document_comparison_field=_FIELD)
_NDCG = DocumentNDCGEvaluator(document_comparison_field=_FIELD)
_MRR = DocumentMRREvaluator(document_comparison_field=_FIELD)


@dataclass(frozen=True)
class Passage:
    """
    A passage that was found or read, reduced to where it stands: all that a judgement needs.

    `record_id` is None for a passage of a file without records, such as a book; `pieces` are the code points of the
    record that it holds, one stretch or several where the context left something out in between.
    """

    record_id: str | None
    pieces: list[tuple[int, int]]
    parent_id: str = ""

    @classmethod
    def of(cls, document: Document) -> Self:
        """Reduce a parent, whole or cut by the context, to its place in the record's own code points."""
        meta = document.meta
        start, end = int(meta.get("start") or 0), int(meta.get("end") or 0)
        read = meta.get("kept") or ([meta["cut"]] if meta.get("cut") else [[0, end - start]])
        pieces = [(start + begin, start + to) for begin, to in read]
        return cls(meta.get("record_id"), pieces, meta.get("parent_id") or document.id)

    def to_json(self) -> list[Any]:
        """Write the passage short, for a file with many of them."""
        return [self.record_id, [list(piece) for piece in self.pieces], self.parent_id]

    @classmethod
    def from_json(cls, value: list[Any]) -> Self:
        record_id, pieces, parent_id = value
        return cls(record_id, [(start, end) for start, end in pieces], parent_id)


def passages_of(documents: Iterable[Document]) -> list[Passage]:
    return [Passage.of(document) for document in documents]


def first_hits(question: Question, passages: Sequence[Passage]) -> list[str | None]:
    """Name the judged document that each passage is the first to find."""
    seen: set[str] = set()
    found: list[str | None] = []
    for passage in passages:
        document = question.document_of(passage.record_id, passage.pieces)
        found.append(None if document in seen else document)
        if document is not None:
            seen.add(document)
    return found


def recall(question: Question, passages: Sequence[Passage], k: int) -> float:
    return _scored(_RECALL, _gold(question), first_hits(question, passages)[:k])


def ndcg(question: Question, passages: Sequence[Passage], k: int) -> float:
    """
    Give the normalised discounted cumulative gain of the first passages, with the grades as gains.

    Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques" (2002), section 2.2.
    """
    best = sorted(question.grades.items(), key=lambda entry: -entry[1])[:k]
    return _scored(_NDCG, best, first_hits(question, passages)[:k])


def reciprocal_rank(question: Question, passages: Sequence[Passage], k: int) -> float:
    return _scored(_MRR, _gold(question), first_hits(question, passages)[:k])


def ranking_metrics(question: Question, passages: Sequence[Passage]) -> dict[str, float]:
    values = {f"recall@{k}": recall(question, passages, k) for k in RECALL_DEPTHS}
    values["ndcg@10"] = ndcg(question, passages, 10)
    values["mrr@10"] = reciprocal_rank(question, passages, 10)
    values["all_gold@10"] = float(values["recall@10"] == 1)
    return values


def context_metrics(question: Question, passages: Sequence[Passage], tokens: int) -> dict[str, float]:
    """Score the context that the generator would read by the places of the answers: no LLM is asked."""
    right = [question.document_of(passage.record_id, passage.pieces) for passage in passages]
    return {
        "context_recall": len(question.gold_documents & set(right)) / len(question.gold_documents),
        "context_precision": sum(document is not None for document in right) / len(right) if right else 0.0,
        "context_tokens": float(tokens),
    }


def _gold(question: Question) -> list[tuple[str, float]]:
    return [(document, 1.0) for document in sorted(question.gold_documents)]


def _scored(evaluator: Any, truth: Sequence[tuple[str, float]], found: Sequence[str | None]) -> float:
    if not truth:
        raise ValueError("A question without a gold document has no score.")
    if not any(found):
        # The evaluators warn of it for every question; here it is a plain miss.
        return 0.0
    # Ids are given: Haystack would hash each document's content and metadata to make one.
    expected = [Document(id=name, meta={"judged": name}, score=grade) for name, grade in truth]
    retrieved = [
        Document(id=str(rank), meta={} if name is None else {"judged": name}) for rank, name in enumerate(found)
    ]
    return float(evaluator.run(ground_truth_documents=[expected], retrieved_documents=[retrieved])["score"])
