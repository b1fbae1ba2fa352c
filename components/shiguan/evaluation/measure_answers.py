"""One measurement of answers from beginning to end: ask, score, judge, write down."""

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from shiguan.errors import RefusedError
from shiguan.evaluation.answer_judge import AnswerJudge
from shiguan.evaluation.answer_run import AnswerRun, Track, answer_all, result_all
from shiguan.evaluation.expected_passage import ExpectedPassages
from shiguan.evaluation.golden_set import GoldenQuestion, GoldenSet
from shiguan.evaluation.ingested_corpus import TENANT, corpus_stamp, ingest_corpus
from shiguan.evaluation.lost_section import lost_section
from shiguan.evaluation.measure_retrieval import DEFAULT_ROOT, Ingest
from shiguan.evaluation.prices import Prices
from shiguan.evaluation.provenance import describe_circumstances, describe_configuration
from shiguan.evaluation.results import Results, write_results
from shiguan.evaluation.risk_coverage import curve_table, risk_curve
from shiguan.evaluation.run_store import RunStore, fingerprint
from shiguan.library import Library
from shiguan.runner import Runner

_WARNINGS_SHOWN = 10


def _ingest_silently(files: list[Path], deployment: str, data_dir: Path) -> list[str]:
    return ingest_corpus(files, deployment=deployment, data_dir=data_dir)


def _track_silently(questions: list[GoldenQuestion]) -> list[GoldenQuestion]:
    return questions


@dataclass(frozen=True)
class AnswersPlan:
    """What is measured and where it is kept."""

    golden: GoldenSet
    corpus: Sequence[Path] = ()
    deployment: str = "embedded"
    mode: str | Path = "simple"
    tenant_id: str = "default"
    output: Path | None = None
    data_dir: Path | None = None
    prices: Prices | None = None
    seed: int = 0

    @property
    def tenant(self) -> str:
        """Whose library is asked."""
        return TENANT if self.corpus else self.tenant_id

    def configuration(self) -> dict[str, Any]:
        """Name what the numbers hang on."""
        options = {
            "questions": fingerprint([one.question.id for one in self.golden.questions]),
            "library": self.library(),
        }
        described = describe_configuration(self.deployment, self.mode, data=self.golden.hashes, options=options)
        return {"kind": "answers", "set": Path(next(iter(self.golden.hashes))).stem, **described}

    def library(self) -> str:
        """Fingerprint what is asked: parents' ids hang on their text."""
        if self.corpus:
            return fingerprint(corpus_stamp(list(self.corpus), self.deployment))
        stores = Library(self.deployment, data_dir=self.data_dir).stores
        owned = {"field": "meta.tenant_id", "operator": "==", "value": self.tenant_id}
        ids = sorted(parent.id for parent in stores["parents"].filter_documents(owned))
        if not ids:
            raise RefusedError(
                f"The tenant `{self.tenant_id}` has nothing in this library. Ingest something, name the files with "
                "`--corpus`, or check `--tenant` and `--data-dir`."
            )
        return fingerprint(ids)


def measure_answers(
    plan: AnswersPlan,
    *,
    track: Track = _track_silently,
    ingest: Ingest = _ingest_silently,
    judge: AnswerJudge | None = None,
) -> tuple[Results, Path]:
    """Measure how well a mode answers; a run that was stopped goes on where it was."""
    configuration = plan.configuration()
    name = f"answers-{configuration['set']}-{configuration['mode']}-{fingerprint(configuration)[:8]}"
    output = plan.output or DEFAULT_ROOT / name
    questions = plan.golden.questions
    with RunStore(output, configuration) as store:
        notes: list[str] = []
        if any(one.question.id not in store.records for one in questions):
            data_dir = plan.data_dir
            if plan.corpus:
                data_dir = data_dir or output.resolve().parent / f"library-{configuration['options']['library'][:8]}"
                notes = ingest(list(plan.corpus), plan.deployment, data_dir)
            library = ExpectedPassages(Library(plan.deployment, data_dir=data_dir).stores, plan.tenant)
            with closing(Runner(plan.deployment, plan.mode, data_dir=data_dir)) as runner:
                answer_all(AnswerRun(runner, library), questions, store, track)
        found = list(result_all(questions, store.records, plan.prices))
        if judge is not None:
            judged = judge.judge(questions, store.records, output)
            notes += judge.notes()
            for result in found:
                result.metrics.update(judged.get(result.id, {}))
        results = Results(
            kind="answers",
            run={
                **configuration,
                **describe_circumstances(),
                "seed": plan.seed,
                "finished": datetime.now(UTC).isoformat(timespec="seconds"),
                "notes": [*notes, *_warnings(store.records)],
            },
            questions=found,
            sections={**_risk_section(store.records), **_lost_section(store.records)},
        )
        write_results(results, output)
    return results, output


def _risk_section(records: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Draw the curve of what would be wrong if only the surest answers were given."""
    given = [(one["confidence"], bool(one["right"])) for one in records.values() if one["right"] is not None]
    curve = risk_curve(given, refused=len(records) - len(given))
    if not curve.points:
        return {}
    rows = [[f"{row['coverage']:.2f}", f"{row['risk']:.3f}", f"{row['confidence']:.3f}"] for row in curve_table(curve)]
    return {
        "Risk over coverage": {
            "text": "What share of the answers would be wrong if only the surest were given. The confidence is the "
            "support of the weakest claim times the share of the question's words that the cited passages have. Mean "
            f"risk {curve.area:.3f}.",
            "curves": {"risk": [[point.coverage, point.risk] for point in curve.points]},
            "columns": [">coverage", ">risk", ">confidence at least"],
            "rows": rows,
        }
    }


def _lost_section(records: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return lost_section(one["lost"]["stage"] for one in records.values() if one["lost"])


def _warnings(records: dict[str, dict[str, Any]]) -> list[str]:
    counts = Counter(warning for record in records.values() for warning in record["warnings"])
    return [f"{warning} ({count:,} questions)" for warning, count in counts.most_common(_WARNINGS_SHOWN)]
