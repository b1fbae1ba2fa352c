"""Lets a language model judge answers, each once; a judgement that cannot be read is left out, not counted as 0."""

import math
import os
from collections import Counter
from pathlib import Path
from typing import Any

from haystack.components.evaluators import ContextRelevanceEvaluator, FaithfulnessEvaluator, LLMEvaluator

from shiguan.errors import AnswerError, ConfigurationError
from shiguan.evaluation.answer_metrics import without_marks
from shiguan.evaluation.questions import Question
from shiguan.evaluation.results import RunStore
from shiguan.llm.configured_chat_generator import ConfiguredChatGenerator
from shiguan.llm.model_settings import DEFAULT_MODEL, is_endpoint_configured


class AnswerJudge:
    """
    Lets a language model judge answers by Haystack's `FaithfulnessEvaluator` and `ContextRelevanceEvaluator`.

    Each is one call per answer, to any OpenAI-compatible endpoint. Refusals are not judged. A judgement that fails, or
    is not a number, is counted and left out. Judgements are saved answer by answer, so that a stopped run can continue.
    """

    def __init__(self) -> None:
        if not is_endpoint_configured():
            raise ConfigurationError(
                "`--judge` needs a language model, and none is configured. Set OPENAI_API_KEY, or OPENAI_BASE_URL for "
                "a server of your own."
            )
        self.model = os.environ.get("OPENAI_MODEL") or DEFAULT_MODEL
        self.faults: Counter[str] = Counter()
        in_json = {"temperature": 0, "response_format": {"type": "json_object"}}
        generator = ConfiguredChatGenerator(self.model, timeout=120.0, max_retries=1, generation_kwargs=in_json)
        settings: dict[str, Any] = {"chat_generator": generator, "progress_bar": False, "raise_on_failure": False}
        self._evaluators: dict[str, LLMEvaluator] = {
            "haystack_faithfulness": FaithfulnessEvaluator(**settings),
            "haystack_context_relevance": ContextRelevanceEvaluator(**settings),
        }

    def judge(
        self, questions: list[Question], records: dict[str, dict[str, Any]], folder: Path
    ) -> dict[str, dict[str, float]]:
        judged: dict[str, dict[str, float]] = {}
        with RunStore(folder / "judged", {"model": self.model, "metrics": list(self._evaluators)}) as store:
            for question in questions:
                name, record = question.id, records[question.id]
                if record["status"] in ("not_found", "refused"):
                    continue
                if name not in store.records:
                    store.add(name, self._judged(question, record))
                judged[name] = store.records[name]["metrics"]
                self.faults.update(store.records[name]["faults"])
        if judged and not any(judged.values()):
            raise AnswerError(
                f"The judge `{self.model}` gave no readable judgement for any of {len(judged)} answers "
                f"({self._faults_in_words()}). Use a model that can reply in JSON, and remove {folder / 'judged'}."
            )
        return judged

    def notes(self) -> list[str]:
        note = f"Some judgements of `{self.model}` could not be read and are left out: {self._faults_in_words()}."
        return [note] if self.faults else []

    def _judged(self, question: Question, record: dict[str, Any]) -> dict[str, Any]:
        passages = [document["content"] for document in record["documents"]]
        metrics: dict[str, float] = {}
        faults: Counter[str] = Counter()
        predicted = {"predicted_answers": [without_marks(record["answer"])]}
        for name, evaluator in self._evaluators.items():
            given = predicted if isinstance(evaluator, FaithfulnessEvaluator) else {}
            try:
                value = float(evaluator.run(questions=[question.text], contexts=[passages], **given)["score"])
            # A client may fail in any way; the judgement is then left out, and a note says so.
            except Exception as error:
                faults[f"{name}, {type(error).__name__}"] += 1
                continue
            if math.isfinite(value):
                metrics[name] = min(max(value, 0.0), 1.0)
            else:
                faults[f"{name}, no number"] += 1
        return {"metrics": metrics, "faults": dict(faults)}

    def _faults_in_words(self) -> str:
        return ", ".join(f"{kind}: {count}" for kind, count in self.faults.most_common())
