"""Measures a mode on a golden set in one go: what it finds, what it answers, and whose documents it shows."""

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from shiguan.errors import AnswerError, RefusedError
from shiguan.evaluation.answer_metrics import score_answer
from shiguan.evaluation.golden_set import GoldenQuestion, GoldenSet, gold_parents
from shiguan.evaluation.ingested_corpus import TENANT
from shiguan.evaluation.passage import Passage
from shiguan.evaluation.provenance import describe_circumstances, describe_configuration
from shiguan.evaluation.results import QuestionResult, Results
from shiguan.evaluation.retrieval_metrics import context_metrics, ranking_metrics
from shiguan.evaluation.retrieval_run import RetrievalRun
from shiguan.library import Library
from shiguan.runner import Runner

NEIGHBOUR = "neighbour"
"""Another tenant with the same documents: what shows up of them has leaked."""

Track = Callable[[list[GoldenQuestion]], Iterable[GoldenQuestion]]


def ingest_for_two(files: list[Path], *, deployment: str, data_dir: Path) -> None:
    """Put the same files in for the tenant who asks and for the neighbour."""
    library = Library(deployment, data_dir=data_dir)
    for tenant in (TENANT, NEIGHBOUR):
        for result in library.ingest(files, tenant_id=tenant):
            if not result.parents:
                raise RefusedError(f"{result.file} gave no passage: {result.skipped or result.warnings}. Check it.")


def measure_golden(
    golden: GoldenSet, *, deployment: str, mode: str | Path, data_dir: Path, track: Track = iter
) -> Results:
    """
    Ask every question of a golden set and score ranking, context, answer and isolation.

    A gold passage counts as one document, found by whichever stored passage holds its quote.
    """
    places = _places(golden, deployment, data_dir)
    with (
        closing(RetrievalRun(deployment, mode, data_dir=data_dir)) as retrieval,
        Runner(deployment, mode, data_dir=data_dir) as runner,
    ):
        retrieval.warm_up()
        runner.warm_up()
        questions = [_ask(one, places[one.question.id], retrieval, runner) for one in track(golden.questions)]
    described = describe_configuration(deployment, mode, data=golden.hashes, options={"count": len(questions)})
    run = {"kind": "golden", "set": "golden", **described, **describe_circumstances(), "seed": 0}
    return Results(kind="golden", run=run, questions=questions)


def _ask(one: GoldenQuestion, places: dict[str, str], retrieval: RetrievalRun, runner: Runner) -> QuestionResult:
    question = one.question
    record = retrieval.ask(question)
    told = runner.trace(
        question.text,
        tenant_id=TENANT,
        outputs=["answers", "documents"],
        history=question.history or None,
    )
    answers = told["outputs"]["answers"]
    if not answers:
        raise AnswerError(
            f"The question `{question.id}` ended without an answer in `{runner.mode}`. A stage of it waited for what "
            "never came; check the file with `shiguan check`."
        )
    answer = answers[0]
    metrics: dict[str, float] = {}
    if places:
        judged = replace(question, grades=dict.fromkeys(places.values(), 1.0))
        metrics |= ranking_metrics(judged, _located(record["found"], places))
        if record["read"] is not None:
            metrics |= context_metrics(judged, _located(record["read"], places), record["tokens"])
    shown = [*told["outputs"]["documents"], *answer.documents]
    metrics["tenant_kept"] = float(all(document.meta.get("tenant_id") == TENANT for document in shown))
    metrics |= score_answer(one, answer).metrics
    return QuestionResult(
        id=question.id,
        metrics=metrics,
        stratum=question.stratum,
        language=question.language,
        timings_ms=told["timings_ms"],
        llm_calls=told["llm_calls"],
        details={"question": question.text, "answer": answer.data},
    )


def _located(written: list[list[Any]], places: dict[str, str]) -> list[Passage]:
    """Name each passage after the gold one that it holds, if any."""
    passages = [Passage.from_json(value) for value in written]
    return [replace(passage, record_id=places.get(passage.parent_id)) for passage in passages]


def _places(golden: GoldenSet, deployment: str, data_dir: Path) -> dict[str, dict[str, str]]:
    """Say for every question which stored passage holds which gold one; one that holds two stands for both."""
    stores = Library(deployment, data_dir=data_dir).stores
    of_tenant = {"field": "meta.tenant_id", "operator": "==", "value": TENANT}
    parents = stores["parents"].filter_documents(of_tenant)
    places: dict[str, dict[str, str]] = {}
    for one in golden.questions:
        held: dict[str, str] = {}
        for ids in gold_parents(one, parents):
            if not ids:
                raise RefusedError(
                    f"The library has no passage with a quote of the question `{one.question.id}`. Correct the quote, "
                    "or ingest what it is from."
                )
            name = next((held[parent] for parent in ids if parent in held), ids[0])
            held |= dict.fromkeys(ids, name)
        places[one.question.id] = held
    return places
