"""One measurement: each question of a set is asked once and recorded, and the records are scored."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from haystack import Document

from shiguan.engine.library import Library
from shiguan.engine.loading import read_definition
from shiguan.engine.runner import Runner
from shiguan.engine.why import Attribution, ExpectedPassage, ExpectedPassages, StageTrace, TracedMode, loss_of
from shiguan.errors import AnswerError, RefusedError
from shiguan.evaluation import provenance
from shiguan.evaluation.json_lines import fingerprint, write_review
from shiguan.evaluation.judges import AnswerJudge, for_review
from shiguan.evaluation.questions import Question, QuestionSet
from shiguan.evaluation.results import RESULTS_FILE, Results, RunStore
from shiguan.evaluation.scoring import RECALL_DEPTHS, answer_record, is_right, score_records
from shiguan.models.token_counter import TokenCounter
from shiguan.resources import utc_time, write_json

DEFAULT_ROOT = Path(".data") / "eval"
DEPTH = max(RECALL_DEPTHS)  # how many passages of the ranking are looked at; a mode reads fewer
_WARNINGS_SHOWN = 10

Kind = Literal["retrieval", "answers", "golden"]
Ingest = Callable[[list[Path], str, Path], list[str]]
"""Ingests files into the data folder of a deployment, and returns what was skipped or warned of."""

Track = Callable[[list[Question]], Iterable[Question]]


@dataclass(frozen=True)
class Plan:
    """
    What is measured, on what, and where the results go.

    `files` are ingested into a library at `data_dir`, or beside the run's folder `output`; without files the library
    of `tenant_id` is asked. `asked` are the options of every question.
    """

    kind: Kind
    questions: QuestionSet
    files: Sequence[Path] = ()
    deployment: str = "embedded"
    mode: str | Path = "simple"
    tenant_id: str = "default"
    output: Path | None = None
    data_dir: Path | None = None
    asked: dict[str, Any] = field(default_factory=dict)

    @property
    def tenant(self) -> str:
        return provenance.TENANT if self.files else self.tenant_id

    def outputs(self) -> list[str] | None:
        """List the outputs to ask the pipeline for, None for all: a ranking needs no generator."""
        if self.kind != "retrieval":
            return None
        declared = read_definition(self.deployment, self.mode).get("outputs", {})
        # A file that declares no context is measured by its ranking alone.
        read = ["passages", "context"] if {"passages", "context"} <= declared.keys() else []
        return ["documents", *read]

    def configuration(self) -> dict[str, Any]:
        """Describe all that the numbers depend on; a run's folder belongs to one configuration."""
        options = {
            **({"asked": self.asked} if self.asked else {}),
            "questions": fingerprint([question.id for question in self.questions.questions]),
            "count": len(self.questions.questions),
            "unjudged": len(self.questions.unjudged),
            "library": self._library(),
        }
        described = provenance.describe_configuration(
            self.deployment, self.mode, data=self.questions.hashes, options=options
        )
        return {"kind": self.kind, "set": self.questions.name, **described}

    def _library(self) -> str:
        """Fingerprint the library: ids of parents are hashes that depend on their text."""
        if self.files:
            return fingerprint(provenance.corpus_stamp(list(self.files), self.deployment))
        stores = Library(self.deployment, data_dir=self.data_dir).stores
        ids = sorted(parent.id for parent in ExpectedPassages(stores, self.tenant_id).parents())
        if not ids:
            raise RefusedError(
                f"The tenant `{self.tenant_id}` has nothing in this library. Ingest something, name the files with "
                "`--corpus`, or check `--tenant` and `--data-dir`."
            )
        return fingerprint(ids)


class MeasuredMode:
    """A mode over a library, and the record of each question it is asked."""

    def __init__(self, plan: Plan, runner: Runner, library: ExpectedPassages) -> None:
        self.kind, self.asked = plan.kind, plan.asked
        self.mode = TracedMode(runner)
        self.library = library
        self._counter = TokenCounter()
        # So that the first question is as fast as the others.
        runner.warm_up()
        self._counter.warm_up()

    def ask(self, question: Question) -> dict[str, Any]:
        """Ask one question, once, and record what was found, read and answered, where it was lost, and its cost."""
        options = {**self.asked, **({"history": question.history} if question.history else {})}
        try:
            depth = 0 if self.kind == "answers" else DEPTH
            run = self.mode.ask(question.text, tenant_id=self.library.tenant_id, depth=depth, **options)
        except RefusedError as error:
            raise RefusedError(f"The question `{question.id}` cannot be asked: {error}") from error
        record: dict[str, Any] = {}
        if self.kind != "answers":
            record |= self._ranking(question, run)
        if self.kind != "retrieval":
            if run.answer is None:
                raise AnswerError(
                    f"The question `{question.id}` got no answer: a stage of `{self.mode.runner.mode}` never got its "
                    "input. Run `shiguan check` on the mode's file."
                )
            record |= answer_record(run.answer)
            shown = [*(run.traced["outputs"].get("documents") or []), *run.answer.documents]
            record["kept"] = all(document.meta.get("tenant_id") == self.library.tenant_id for document in shown)
        lost = self._loss(question, run, record)
        record["lost"] = lost.to_json() if lost and (lost.stage != "nothing_lost" or run.answer) else None
        return record | {name: run.traced[name] for name in ("timings_ms", "llm_calls", "usage", "cost", "warnings")}

    def _ranking(self, question: Question, run: StageTrace) -> dict[str, Any]:
        """Record each passage that was found and read: its record, and the judged document it is right for."""

        def written(documents: Iterable[Document]) -> list[tuple[str | None, str | None]]:
            return [(found.meta.get("record_id"), question.document_of(found)) for found in documents]

        first = run.traced["first"]
        read = written(first.get("passages") or []) if "context" in self.mode.outputs else None
        tokens = self._counter.count(first.get("context") or "") if read else 0
        return {"found": written(run.found), "read": read, "tokens": tokens}

    def _loss(self, question: Question, run: StageTrace, record: dict[str, Any]) -> Attribution | None:
        if self.kind == "retrieval":
            wrong = record["read"] is not None and not question.gold_documents <= {name for _, name in record["read"]}
        else:
            wrong = bool(question.answerable and question.gold and not is_right(question, record))
        return loss_of(run, _gold(self.library, question)) if wrong else None


def _gold(library: ExpectedPassages, question: Question) -> list[ExpectedPassage]:
    """Find the gold passages of a question with the highest grade."""
    found = []
    for gold in question.best:
        parents = [parent for parent in library.parents() if gold.stands_in(parent)]
        found.append(library.find(gold.quote) if gold.quote and not parents else library.in_units(parents, gold.quote))
    return found


def measure(
    plan: Plan, *, track: Track = iter, ingest: Ingest = provenance.ingest_corpus, judge: AnswerJudge | None = None
) -> tuple[Results, Path]:
    """Ask every question once, or continue a stopped run; score it, and write `results.json` into its folder."""
    configuration = plan.configuration()
    questions = plan.questions.questions
    name = f"{plan.kind}-{configuration['set']}-{configuration['mode']}-{fingerprint(configuration)[:8]}"
    output = plan.output or DEFAULT_ROOT / name
    store = RunStore(output, configuration)
    missing = [question for question in questions if question.id not in store.records]
    notes: list[str] = []
    if missing:
        data_dir = plan.data_dir
        if plan.files:
            data_dir = data_dir or output.resolve().parent / f"library-{configuration['options']['library'][:8]}"
            notes += ingest(list(plan.files), plan.deployment, data_dir)
        library = ExpectedPassages(Library(plan.deployment, data_dir=data_dir).stores, plan.tenant)
        with Runner(plan.deployment, plan.mode, data_dir=data_dir, outputs=plan.outputs()) as runner:
            mode = MeasuredMode(plan, runner, library)
            for question in track(missing):
                store.add(question.id, mode.ask(question))
    scored = score_records(plan.kind, questions, store.records)
    if judge is not None:
        judged, unread = judge.judge(questions, store.records)
        notes += unread
        if judged:
            write_review(output / "review.jsonl", for_review(questions, store.records, judged))
        for result in scored:
            result.metrics.update(judged.get(result.id, {}))
    if plan.questions.unjudged:
        notes.append(f"{len(plan.questions.unjudged):,} questions without a relevant document were left out.")
    # Each warning of a stage is noted once: numbers without a ranker, say, are other numbers.
    warned = Counter(text for record in store.records.values() for text in record["warnings"])
    notes += [f"{warning} ({count:,} questions)" for warning, count in warned.most_common(_WARNINGS_SHOWN)]
    about = {"finished": utc_time(), "notes": notes}
    run = {**configuration, **provenance.describe_circumstances(), **about}
    results = Results(plan.kind, run, scored)
    write_json(output / RESULTS_FILE, results.to_json())
    return results, output
