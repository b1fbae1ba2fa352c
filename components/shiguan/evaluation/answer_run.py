"""Asks every question of a golden set, keeps what was answered, and scores it."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from haystack import GeneratedAnswer

from shiguan.errors import AnswerError, RefusedError
from shiguan.evaluation.answer_metrics import score_answer
from shiguan.evaluation.expected_passage import ExpectedPassages
from shiguan.evaluation.golden_set import GoldenQuestion
from shiguan.evaluation.lost_section import expected_of, loss_of
from shiguan.evaluation.prices import Prices
from shiguan.evaluation.results import QuestionResult
from shiguan.evaluation.run_store import RunStore, record_of
from shiguan.evaluation.traced_mode import TracedMode
from shiguan.runner import Runner

Track = Callable[[list[GoldenQuestion]], Iterable[GoldenQuestion]]
"""Goes through the questions and shows how far it is."""


class AnswerRun:
    """The answers of one mode over one library."""

    def __init__(self, runner: Runner, library: ExpectedPassages) -> None:
        self.mode = TracedMode(runner)
        self.library = library

    def warm_up(self) -> None:
        """Load models and open stores, so that the first question is as fast as the others."""
        self.mode.runner.warm_up()

    def ask(self, golden: GoldenQuestion) -> dict[str, Any]:
        """Ask one question and score its answer."""
        question = golden.question
        history: dict[str, Any] = {"history": question.history} if question.history else {}
        tenant = self.library.tenant_id
        try:
            told = self.mode.run(question.text, tenant_id=tenant, **history)
        except RefusedError as error:
            raise RefusedError(f"The question `{question.id}` cannot be asked: {error}") from error
        answers: list[GeneratedAnswer] = told["outputs"]["answers"] or []
        if not answers:
            raise AnswerError(f"The question `{question.id}` got no answer. Run `shiguan check` on the mode's file.")
        answer = answers[0]
        scored = score_answer(golden, answer)
        lost = None
        if question.answerable and golden.gold and not scored.right:
            trace = self.mode.trace(question.text, told, tenant_id=tenant)
            lost = loss_of(trace, expected_of(golden, self.library))
        return {
            "metrics": scored.metrics,
            "confidence": scored.confidence,
            "right": scored.right,
            "status": answer.meta.get("status", "answered"),
            "answer": answer.data,
            "passages": [document.content or "" for document in answer.documents],
            "cited": sorted({citation["number"] for citation in answer.meta.get("citations", [])}),
            "lost": lost.to_json() if lost else None,
            "model": str(answer.meta.get("model") or ""),
            "usage": told["usage"],
            "timings_ms": told["timings_ms"],
            "llm_calls": told["llm_calls"],
            "warnings": told["warnings"],
        }


def answer_all(run: AnswerRun, questions: list[GoldenQuestion], store: RunStore, track: Track) -> None:
    """Ask every question that the store does not have yet."""
    missing = [golden for golden in questions if golden.question.id not in store.records]
    if missing:
        run.warm_up()
    for golden in track(missing):
        store.add(golden.question.id, run.ask(golden))


def result_all(
    questions: list[GoldenQuestion], records: dict[str, dict[str, Any]], prices: Prices | None
) -> Iterator[QuestionResult]:
    """Write down what the questions gave."""
    for golden in questions:
        question = golden.question
        record = record_of(records, question.id)
        metrics = dict(record["metrics"])
        metrics["latency_ms"] = record["timings_ms"].get("total", 0.0)
        metrics["llm_calls"] = float(record["llm_calls"])
        cost = prices.cost(record["model"], record["usage"], record["llm_calls"]) if prices else None
        if cost is not None:
            metrics["cost"] = cost
        yield QuestionResult(
            id=question.id,
            metrics=metrics,
            stratum=question.stratum,
            language=question.language,
            timings_ms=record["timings_ms"],
            llm_calls=record["llm_calls"],
            details={
                "question": question.text,
                "answer": record["answer"],
                "status": record["status"],
                "gold": question.answers or [passage.quote for passage in golden.gold],
                "confidence": record["confidence"],
                "right": record["right"],
                **({"lost": record["lost"]} if record.get("lost") else {}),
                **({"warnings": record["warnings"]} if record["warnings"] else {}),
            },
        )
