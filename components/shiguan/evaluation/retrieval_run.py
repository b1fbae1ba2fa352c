"""Searches every question of a set, keeps what was found, and scores it."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from shiguan.errors import RefusedError
from shiguan.evaluation.expected_passage import ExpectedPassages
from shiguan.evaluation.ingested_corpus import TENANT
from shiguan.evaluation.lost_section import expected_of_question, loss_of
from shiguan.evaluation.passage import Passage, passages_of
from shiguan.evaluation.question import Question
from shiguan.evaluation.results import QuestionResult
from shiguan.evaluation.retrieval_metrics import RECALL_DEPTHS, context_metrics, ranking_metrics
from shiguan.evaluation.run_store import RunStore, record_of
from shiguan.evaluation.traced_mode import TracedMode
from shiguan.library import Library
from shiguan.loading import read_definition
from shiguan.runner import Runner
from shiguan.support.token_counter import TokenCounter

DEPTH = max(RECALL_DEPTHS)
"""How many passages are asked for."""

_CONTEXT_OUTPUTS = ["passages", "context"]
_FOUND_SHOWN = 5

Track = Callable[[list[Question]], Iterable[Question]]
"""Goes through the questions and shows how far it is."""


class RetrievalRun:
    """
    The retrieval of one mode over one data folder.

    Ranking looks 20 passages deep, deeper than a mode reads; a mode that is asked for 20 would also read 20. So each
    question is asked twice: for 20 passages, and for the context as the mode builds it by itself. Latency and calls are
    those of the second. A pipeline file without the outputs `passages` and `context` is measured by its ranking alone.
    """

    def __init__(self, deployment: str, mode: str | Path, *, data_dir: Path, context: bool = True) -> None:
        """Load the mode."""
        declared = read_definition(deployment, mode).get("outputs", {})
        self.reads_context = context and all(name in declared for name in _CONTEXT_OUTPUTS)
        self._search = Runner(deployment, mode, data_dir=data_dir, outputs=["documents"])
        self._read = (
            Runner(deployment, mode, data_dir=data_dir, outputs=_CONTEXT_OUTPUTS) if self.reads_context else None
        )
        self._counter = TokenCounter()
        self._library = ExpectedPassages(Library(deployment, data_dir=data_dir).stores, TENANT)

    def warm_up(self) -> None:
        """Load models and open stores, so that the first question is as fast as the others."""
        for runner in (self._search, self._read):
            if runner is not None:
                runner.warm_up()
        self._counter.warm_up()

    def close(self) -> None:
        """End the event loops."""
        for runner in (self._search, self._read):
            if runner is not None:
                runner.close()

    def ask(self, question: Question) -> dict[str, Any]:
        """Search one question."""
        asked: dict[str, Any] = {"tenant_id": TENANT, "history": question.history or None}
        try:
            found = self._search.trace(question.text, outputs=["documents"], top_k=DEPTH, **asked)
            told, read, tokens, lost = found, None, None, None
            if self._read is not None:
                told = self._read.trace(question.text, outputs=_CONTEXT_OUTPUTS, **asked)
                read = _written(told["outputs"]["passages"])
                tokens = self._counter.count(told["outputs"]["context"] or "") if read else 0
                lost = self._loss(question, told["outputs"]["passages"] or [], asked)
        except RefusedError as error:
            raise RefusedError(f"The question `{question.id}` cannot be asked: {error}") from error
        return {
            "found": _written(found["outputs"]["documents"])[:DEPTH],
            "read": read,
            "tokens": tokens,
            "lost": lost,
            "timings_ms": told["timings_ms"],
            "llm_calls": told["llm_calls"],
            "warnings": told["warnings"],
        }

    def _loss(self, question: Question, read: list[Any], asked: dict[str, Any]) -> dict[str, Any] | None:
        right = {question.document_of(one.record_id, one.pieces) for one in passages_of(read)}
        if self._read is None or question.gold <= right:
            return None
        # Asked once more, so that looking on costs nothing where nothing was lost.
        trace, _ = TracedMode(self._read).ask(question.text, **asked)
        lost = loss_of(trace, expected_of_question(question, self._library))
        return lost.to_json() if lost and lost.stage != "nothing_lost" else None


def ask_all(run: RetrievalRun, questions: list[Question], store: RunStore, track: Track) -> None:
    """Search every question that the store does not have yet."""
    missing = [question for question in questions if question.id not in store.records]
    if missing:
        run.warm_up()
    for question in track(missing):
        store.add(question.id, run.ask(question))


def score_all(questions: list[Question], records: dict[str, dict[str, Any]]) -> Iterator[QuestionResult]:
    """Score what the questions found."""
    for question in questions:
        record = record_of(records, question.id)
        found = [Passage.from_json(value) for value in record["found"]]
        metrics = ranking_metrics(question, found)
        if record["read"] is not None:
            read = [Passage.from_json(value) for value in record["read"]]
            metrics |= context_metrics(question, read, record["tokens"])
        yield QuestionResult(
            id=question.id,
            metrics=metrics,
            stratum=question.stratum,
            language=question.language,
            timings_ms=record["timings_ms"],
            llm_calls=record["llm_calls"],
            details={
                "question": question.text,
                "gold": sorted(question.gold),
                "found": [passage.record_id for passage in found[:_FOUND_SHOWN]],
                **({"lost": record["lost"]} if record.get("lost") else {}),
                **({"warnings": record["warnings"]} if record["warnings"] else {}),
            },
        )


def _written(documents: Any) -> list[list[Any]]:
    return [passage.to_json() for passage in passages_of(documents or [])]
