"""Lets a language model judge answers, each once; a judgement that cannot be read is left out, not counted as 0."""

import math
import os
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

    Each is one call per answer, to any OpenAI-compatible endpoint. Refusals are not judged. Judgements are saved answer
    by answer, so that a stopped run can continue.
    """

    def __init__(self) -> None:
        if not is_endpoint_configured():
            raise ConfigurationError(
                "`--judge` needs a language model, and none is configured. Set OPENAI_API_KEY, or OPENAI_BASE_URL for "
                "a server of your own."
            )
        self.model = os.environ.get("OPENAI_MODEL") or DEFAULT_MODEL
        self.unread = 0
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
                record = records[question.id]
                if record["status"] in ("not_found", "refused"):
                    continue
                if question.id not in store.records:
                    store.add(question.id, {"metrics": self._judged(question, record)})
                judged[question.id] = store.records[question.id]["metrics"]
                self.unread += len(self._evaluators) - len(judged[question.id])
        if judged and not any(judged.values()):
            raise AnswerError(
                f"The judge `{self.model}` gave no readable judgement for any of {len(judged)} answers. Use a model "
                f"that can reply in JSON, and remove {folder / 'judged'}."
            )
        return judged

    def notes(self) -> list[str]:
        left_out = f"{self.unread} judgements of `{self.model}` could not be read and are left out."
        return [left_out] if self.unread else []

    def _judged(self, question: Question, record: dict[str, Any]) -> dict[str, float]:
        given = {"questions": [question.text], "contexts": [[document["content"] for document in record["documents"]]]}
        metrics: dict[str, float] = {}
        for name, evaluator in self._evaluators.items():
            if isinstance(evaluator, FaithfulnessEvaluator):
                given["predicted_answers"] = [without_marks(record["answer"])]
            else:
                given.pop("predicted_answers", None)
            try:
                value = float(evaluator.run(**given)["score"])
            except Exception:  # noqa: S112 - a client may fail in any way; a note counts what is left out
                continue
            if math.isfinite(value):
                metrics[name] = min(max(value, 0.0), 1.0)
        return metrics
