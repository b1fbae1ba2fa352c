"""
Scores the records of a run: passages, answers and cost.

Passages are scored by Haystack's evaluators, by the judged document that each is right for, the first alone. Answers
are compared as in SQuAD (Rajpurkar et al. 2016, 6.1), Chinese by characters as in CMRC 2018 (Cui et al. 2019, 4).
Citations follow ALCE (Gao et al. 2023, 4.3); where it asks a model, the claim checker of all modes decides.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from haystack import Document, GeneratedAnswer
from haystack.components.evaluators import DocumentMRREvaluator, DocumentNDCGEvaluator, DocumentRecallEvaluator

from shiguan.answer.quotations import QUOTING
from shiguan.claims.checker import ClaimChecker
from shiguan.claims.claims import split_claims
from shiguan.evaluation.metrics import KNOWN
from shiguan.evaluation.questions import Question
from shiguan.evaluation.results import QuestionResult
from shiguan.text.languages import fold_han


class CitationScores(NamedTuple):
    """Counts for the citations of one answer."""

    claims: int
    recalled: int
    citations: int
    precise: int

    @property
    def recall(self) -> float:
        """The share of claims that are recalled, 0 to 1; 0 without claims."""
        return self.recalled / self.claims if self.claims else 0.0

    @property
    def precision(self) -> float:
        """The share of citations that are precise, 0 to 1; 0 without citations."""
        return self.precise / self.citations if self.citations else 0.0


def score_citations(answer: str, passages: Mapping[int, str]) -> CitationScores:
    checker = ClaimChecker(passages)
    claims = checker.read(split_claims(answer))
    recalled = citations = precise = 0
    for claim in claims:
        cited = [number for number in claim.claim.numbers if number in passages]
        citations += len(claim.claim.numbers)
        if not _hold(claim.stated, cited, checker):
            continue
        recalled += 1
        for number in cited:
            others = [other for other in cited if other != number]
            precise += _hold(claim.stated, [number], checker) or not _hold(claim.stated, others, checker)
    return CitationScores(len(claims), recalled, citations, precise)


def _hold(stated: str, numbers: Sequence[int], checker: ClaimChecker) -> bool:
    """Return whether passages say a claim, or have its words, alone or together; nobody judges the words here."""
    found = [checker.relation(stated, number) for number in numbers]
    if len(found) > 1:
        found.append(ClaimChecker({1: "\n\n".join(map(checker.quote, found))}).relation(stated, 1))
    return any(support.verdict == "supported" or support.same_words for support in found)


_ARTICLES = frozenset(("a", "an", "the"))
_TOKEN = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff](?<=\w)|[^\W_\u2e80-\u9fff\uf900-\ufaff]+")

_META = ("source", "source_id", "record_id", "start", "end", "title", "section")
"""The metadata of a passage that is recorded: where it is, and what the confidence is computed from."""

Record = Mapping[str, Any]
REFUSALS = ("not_found", "refused")
"""The states of an answer that says nothing of the matter."""


def answer_record(answer: GeneratedAnswer) -> dict[str, Any]:
    """Turn an answer into JSON values; of an answer by quotation only the quoted text counts."""
    meta = answer.meta
    quotes = [citation["quote"] for citation in meta.get("citations", []) if citation.get("verdict") == "quoted"]
    documents = []
    for place, document in enumerate(answer.documents, start=1):
        number = document.meta.get("number")
        number = number if isinstance(number, int) and number > 0 else place
        kept = {name: document.meta[name] for name in _META if document.meta.get(name) is not None}
        documents.append({"number": number, "id": document.id, "content": document.content or "", "meta": kept})
    return {
        "status": meta.get("status", "answered"),
        "answer": "\n\n".join(quotes) or answer.data,
        "documents": documents,
        "cited": sorted({citation["number"] for citation in meta.get("citations", [])}),
        "verdicts": [claim["verdict"] for claim in meta.get("claims", [])],
        "confidence": meta.get("confidence") or 0.0,
        "model": str(meta.get("model") or ""),
    }


def is_right(question: Question, record: Record) -> bool | None:
    """Return whether an answer contains a right one or, where none is given, cites a gold passage; None if refused."""
    if record["status"] in REFUSALS:
        return None
    if not question.answerable:
        return False
    if question.answers:
        return contains_answer(without_marks(record["answer"]), question.answers) > 0
    return _gold_share(question, record, cited=True) > 0


def score_answer(question: Question, record: Record) -> dict[str, float]:
    """Score a recorded answer; refusing, or showing the closest passages, is correct where nothing answers."""
    refused = record["status"] in (REFUSALS if question.answerable else (*REFUSALS, "closest"))
    text = "" if refused else without_marks(record["answer"])
    metrics: dict[str, float] = {}
    if question.answerable:
        metrics["false_refusal"] = float(refused)
        if question.answers:
            metrics["contains_answer"] = contains_answer(text, question.answers)
        if question.gold:
            metrics["gold_read"] = _gold_share(question, record, cited=False)
            metrics["gold_cited"] = 0.0 if refused else _gold_share(question, record, cited=True)
    else:
        metrics["correct_refusal"] = float(refused)
    if record["status"] not in (*REFUSALS, *QUOTING):
        # A quotation makes no claim that could be supported or not.
        passages = {document["number"]: document["content"] for document in record["documents"]}
        scores = score_citations(record["answer"], passages)
        if scores.claims:
            metrics["citation_precision"] = scores.precision
            metrics["citation_recall"] = scores.recall
        if record["verdicts"]:
            # The mode's own verdicts: it saw more than the cited passages.
            metrics["claims_supported"] = record["verdicts"].count("supported") / len(record["verdicts"])
    metrics["correct"] = float(bool(is_right(question, record)) or (refused and not question.answerable))
    return {name: metrics[name] for name in KNOWN if name in metrics}


def answer_tokens(text: str) -> list[str]:
    """Split a text into Han characters, and words of other scripts without articles."""
    folded = fold_han(unicodedata.normalize("NFKC", text)).lower().replace("'", "").replace("’", "")
    return [token for token in _TOKEN.findall(folded) if token not in _ARTICLES]


def without_marks(answer: str) -> str:
    return split_claims(answer).text


def contains_answer(answer: str, right: Sequence[str]) -> float:
    """Return 1 if an answer in whole sentences contains a right one as a run of tokens, else 0."""
    given = f" {' '.join(answer_tokens(answer))} "
    wanted = (" ".join(answer_tokens(text)) for text in right)
    return float(any(text and f" {text} " in given for text in wanted))


def _gold_share(question: Question, record: Record, *, cited: bool) -> float:
    """Compute the share of gold passages among the documents that were read, or only among the cited ones."""
    documents = [
        Document(id=read["id"], content=read["content"], meta=read["meta"])
        for read in record["documents"]
        if not cited or read["number"] in record["cited"]
    ]
    held = sum(any(gold.stands_in(document) for document in documents) for gold in question.gold)
    return held / len(question.gold) if question.gold else 0.0


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
