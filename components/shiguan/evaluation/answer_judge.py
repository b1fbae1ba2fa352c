"""What judges of answers share: each answer once, kept at once, and no number where the judge said nothing."""

import os
from abc import ABC, abstractmethod
from collections import Counter
from pathlib import Path
from typing import Any

from shiguan.errors import AnswerError, ConfigurationError
from shiguan.evaluation.golden_set import GoldenQuestion
from shiguan.evaluation.run_store import RunStore
from shiguan.llm.endpoint import DEFAULT_MODEL, is_endpoint_configured


class AnswerJudge(ABC):
    """
    Lets a language model judge answers, with any OpenAI-compatible endpoint.

    What was refused is not judged. A judgement that fails, or is no number, is counted and left out: a silent zero
    would lie. Each answer's judgements are kept at once, so that a stopped run goes on.

    :param name: The judge's name, also of the folder below the run's where it keeps what it said.
    :param model: The model; None for `$OPENAI_MODEL`.
    :param metrics: What it adds.
    """

    def __init__(self, name: str, model: str | None, metrics: tuple[str, ...]) -> None:
        if not is_endpoint_configured():
            raise ConfigurationError(
                f"The judge `{name}` takes a language model, and none is configured. Set OPENAI_API_KEY, or "
                "OPENAI_BASE_URL for a server of your own."
            )
        self.name = name
        self.model = model or os.environ.get("OPENAI_MODEL") or DEFAULT_MODEL
        self.metrics = metrics
        self.faults: Counter[str] = Counter()

    @abstractmethod
    def judge_one(self, golden: GoldenQuestion, record: dict[str, Any]) -> tuple[dict[str, float], Counter[str]]:
        """
        Judge one answer.

        :param golden: The question.
        :param record: What `AnswerRun.ask` gave.
        :returns: Metric to value, and what could not be judged, by kind.
        """

    def judge(
        self, questions: list[GoldenQuestion], records: dict[str, dict[str, Any]], folder: Path
    ) -> dict[str, dict[str, float]]:
        """
        Judge every answer that was given.

        :param questions: The golden set.
        :param records: Question id to what `AnswerRun.ask` gave.
        :param folder: The run's folder.
        :returns: Question id to metrics.
        :raises AnswerError: If no judgement at all could be read.
        """
        given = [one for one in questions if records[one.question.id]["status"] != "not_found"]
        judged: dict[str, dict[str, float]] = {}
        with RunStore(folder / self.name, {"model": self.model, "metrics": list(self.metrics)}) as store:
            for golden in given:
                name = golden.question.id
                if name not in store.records:
                    metrics, faults = self.judge_one(golden, records[name])
                    store.add(name, {"metrics": metrics, "faults": dict(faults)})
                judged[name] = store.records[name]["metrics"]
                self.faults.update(store.records[name]["faults"])
        if given and not any(judged.values()):
            raise AnswerError(
                f"The judge `{self.model}` gave no judgement that can be read for any of {len(given)} answers "
                f"({self._told()}). Use a model that can answer in JSON, and remove {folder / self.name}."
            )
        return judged

    def notes(self) -> list[str]:
        """
        Say what could not be judged.

        :returns: A sentence; nothing if everything could.
        """
        if not self.faults:
            return []
        return [f"Some judgements of `{self.model}` could not be read and are left out: {self._told()}."]

    def _told(self) -> str:
        return ", ".join(f"{kind}: {count}" for kind, count in self.faults.most_common())
