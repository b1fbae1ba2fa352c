"""One measurement of retrieval from beginning to end: ingest, search, score, write down."""

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from shiguan.evaluation.ingested_corpus import corpus_stamp, ingest_corpus
from shiguan.evaluation.lost_section import lost_section
from shiguan.evaluation.provenance import describe_circumstances, describe_configuration
from shiguan.evaluation.question import Question
from shiguan.evaluation.results import Results, write_results
from shiguan.evaluation.retrieval_run import RetrievalRun, Track, ask_all, score_all
from shiguan.evaluation.retrieval_set import RetrievalSet
from shiguan.evaluation.run_store import RunStore, fingerprint

DEFAULT_ROOT = Path(".data") / "eval"
"""Where runs are kept that name no folder."""

_WARNINGS_SHOWN = 10

Ingest = Callable[[list[Path], str, Path], list[str]]
"""Puts files into the data folder of a deployment, and shows how far it is."""


def _ingest_silently(files: list[Path], deployment: str, data_dir: Path) -> list[str]:
    return ingest_corpus(files, deployment=deployment, data_dir=data_dir)


def _track_silently(questions: list[Question]) -> list[Question]:
    return questions


@dataclass(frozen=True)
class RetrievalPlan:
    """What is measured and where it is kept."""

    questions: RetrievalSet
    deployment: str = "embedded"
    mode: str | Path = "simple"
    output: Path | None = None
    data_dir: Path | None = None
    context: bool = True
    seed: int = 0

    def configuration(self) -> dict[str, Any]:
        """Name what the numbers hang on."""
        options = {
            "context": self.context,
            "questions": fingerprint([question.id for question in self.questions.questions]),
            "count": len(self.questions.questions),
            "unjudged": len(self.questions.unjudged),
        }
        described = describe_configuration(self.deployment, self.mode, data=self.questions.hashes, options=options)
        return {"kind": "retrieval", "set": self.questions.name, **described}

    def folders(self, configuration: dict[str, Any]) -> tuple[Path, Path]:
        """Say where the run and the corpus are kept."""
        name = f"retrieval-{self.questions.name}-{configuration['mode']}-{fingerprint(configuration)[:8]}"
        output = self.output or DEFAULT_ROOT / name
        stamp = fingerprint(corpus_stamp([self.questions.corpus], self.deployment))[:8]
        return output, self.data_dir or output.resolve().parent / f"library-{stamp}"


def measure_retrieval(
    plan: RetrievalPlan, *, track: Track = _track_silently, ingest: Ingest = _ingest_silently
) -> tuple[Results, Path]:
    """Measure how well a mode finds passages; a run that was stopped goes on where it was."""
    configuration = plan.configuration()
    output, data_dir = plan.folders(configuration)
    questions = plan.questions.questions
    with RunStore(output, configuration) as store:
        notes: list[str] = []
        if any(question.id not in store.records for question in questions):
            notes = ingest([plan.questions.corpus], plan.deployment, data_dir)
            with closing(RetrievalRun(plan.deployment, plan.mode, data_dir=data_dir, context=plan.context)) as run:
                ask_all(run, questions, store, track)
        results = Results(
            kind="retrieval",
            run={
                **configuration,
                **describe_circumstances(),
                "seed": plan.seed,
                "finished": datetime.now(UTC).isoformat(timespec="seconds"),
                "notes": [*notes, *_left_out(plan.questions), *_warnings(store.records)],
            },
            questions=list(score_all(questions, store.records)),
            sections=lost_section(record["lost"]["stage"] for record in store.records.values() if record.get("lost")),
        )
        write_results(results, output)
    return results, output


def _left_out(questions: RetrievalSet) -> list[str]:
    if not questions.unjudged:
        return []
    return [f"{len(questions.unjudged):,} questions without a relevant document were left out."]


def _warnings(records: dict[str, dict[str, Any]]) -> list[str]:
    """Tell once what stages warned of: a number without a ranker is another number."""
    counts = Counter(warning for record in records.values() for warning in record["warnings"])
    return [f"{warning} ({count:,} questions)" for warning, count in counts.most_common(_WARNINGS_SHOWN)]
