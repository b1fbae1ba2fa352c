"""The files of a run: the record of each question as soon as it is there, and the results."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError

from shiguan.errors import RefusedError
from shiguan.evaluation.metrics import Estimate, estimate_mean
from shiguan.resources import write_json

_RUN = "run.json"
RECORDS_FILE = "questions.jsonl"


class RunStore:
    """
    The folder of a run: its configuration in `run.json`, and a line in `questions.jsonl` for each question.

    A record is in its file before the next question begins; numbers of two configurations must never mix.
    """

    def __init__(self, folder: Path, configuration: dict[str, Any]) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _check_configuration(folder, json.loads(json.dumps(configuration)))
        except OSError as error:
            raise RefusedError(f"{folder} cannot be written: {error}. Name another `--output`.") from error
        self._path = folder / RECORDS_FILE
        self.records = dict(_read_records(self._path))

    def add(self, question_id: str, record: dict[str, Any]) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"id": question_id, **record}, ensure_ascii=False) + "\n")
        self.records[question_id] = record


def _check_configuration(folder: Path, configuration: dict[str, Any]) -> None:
    path = folder / _RUN
    if not path.exists():
        if any(folder.iterdir()):
            raise RefusedError(f"{folder} holds files and no run, and some might be replaced. Name another `--output`.")
        write_json(path, configuration)
        return
    try:
        earlier = dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise RefusedError(f"{path} is broken: {error}. Name another `--output`, or remove the folder.") from error
    if earlier != configuration:
        changed = ", ".join(f"`{name}`" for name in configuration if earlier.get(name) != configuration[name])
        raise RefusedError(
            f"{folder} holds a run with another configuration: {changed or _RUN}. Name another `--output`, or remove "
            "the folder to measure anew."
        )


def _read_records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        # The process was killed while it wrote this line: the question is asked again.
        os.truncate(path, whole)
    for number, line in enumerate(content[:whole].splitlines(), start=1):
        try:
            record = json.loads(line)
            yield str(record.pop("id")), record
        except (ValueError, AttributeError, KeyError) as error:
            raise RefusedError(
                f"{path}, line {number} is broken: {error}. Remove the line to ask its question again."
            ) from error


FORMAT = "shiguan-evaluation/1"
"""The first field of every results file; other formats are refused."""

RESULTS_FILE = "results.json"


@dataclass(frozen=True)
class QuestionResult:
    """The metrics of a question, and in `details` what a person wants to see where it went wrong."""

    id: str
    metrics: dict[str, float]
    stratum: str = ""
    language: str = ""
    timings_ms: dict[str, float] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        metrics = {name: round(value, 6) for name, value in self.metrics.items()}
        return {name: value for name, value in asdict(self).items() if value} | {"metrics": metrics}


@dataclass(frozen=True)
class Results:
    """One run, of the kind `retrieval`, `answers` or `golden`: its configuration, and an entry per question."""

    kind: str
    run: dict[str, Any]
    questions: list[QuestionResult]

    @property
    def metrics(self) -> list[str]:
        return list(dict.fromkeys(name for question in self.questions for name in question.metrics))

    def values(self, metric: str) -> dict[str, float]:
        return {question.id: question.metrics[metric] for question in self.questions if metric in question.metrics}

    def estimates(self, questions: list[QuestionResult] | None = None) -> dict[str, Estimate]:
        """Average every metric over the questions that have it."""
        chosen = self.questions if questions is None else questions
        found = {name: [q.metrics[name] for q in chosen if name in q.metrics] for name in self.metrics}
        return {name: estimate_mean(values) for name, values in found.items() if values}

    def strata(self) -> dict[str, list[QuestionResult]]:
        """Group the questions by stratum and by language, where there are several, the largest group first."""
        groups: dict[str, list[QuestionResult]] = {}
        for kind in ("stratum", "language"):
            names = Counter(getattr(question, kind) for question in self.questions)
            for name, _ in names.most_common() if len(names) > 1 else ():
                chosen = [question for question in self.questions if getattr(question, kind) == name]
                groups[f"{kind}: {name or 'none'}"] = chosen
        return groups

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "kind": self.kind,
            "run": self.run,
            "metrics": {name: value.to_json() for name, value in self.estimates().items()},
            "strata": {
                name: {metric: value.to_json() for metric, value in self.estimates(group).items()}
                for name, group in self.strata().items()
            },
            "questions": [question.to_json() for question in self.questions],
        }


class _File(BaseModel):
    format: Literal["shiguan-evaluation/1"]
    kind: str
    run: dict[str, Any]
    questions: Annotated[list[QuestionResult], Field(min_length=1)]


def read_results(path: Path) -> Results:
    file = path / RESULTS_FILE if path.is_dir() else path
    try:
        found = _File.model_validate_json(file.read_bytes())
    except OSError as error:
        raise RefusedError(f"{file} cannot be read: {error.strerror}. Give a finished run's folder.") from error
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(map(str, fault["loc"])) or "it"
        raise RefusedError(
            f"{file} is not a complete {FORMAT} file of `shiguan eval`: `{place}`: {fault['msg']}. Measure again with "
            "this version."
        ) from error
    return Results(found.kind, found.run, found.questions)
