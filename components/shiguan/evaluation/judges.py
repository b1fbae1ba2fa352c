"""Lets a language model judge answers; a judgement that cannot be read is left out, not counted as 0."""

import math
import os
from typing import Any

from haystack.components.evaluators import ContextRelevanceEvaluator, FaithfulnessEvaluator

from shiguan.errors import AnswerError, ConfigurationError
from shiguan.evaluation.answer_metrics import without_marks
from shiguan.evaluation.questions import Question
from shiguan.llm.configured_chat_generator import ConfiguredChatGenerator
from shiguan.llm.model_settings import DEFAULT_MODEL, is_endpoint_configured


class AnswerJudge:
    """
    Lets a language model judge answers by Haystack's `FaithfulnessEvaluator` and `ContextRelevanceEvaluator`.

    Each is one call per answer, to any OpenAI-compatible endpoint. Refusals are not judged.
    """

    def __init__(self) -> None:
        if not is_endpoint_configured():
            raise ConfigurationError(
                "`--judge` needs a language model, and none is configured. Set OPENAI_API_KEY, or OPENAI_BASE_URL for "
                "a server of your own."
            )
        self.model = os.environ.get("OPENAI_MODEL") or DEFAULT_MODEL
        in_json = {"temperature": 0, "response_format": {"type": "json_object"}}
        generator = ConfiguredChatGenerator(self.model, timeout=120.0, max_retries=1, generation_kwargs=in_json)
        settings: dict[str, Any] = {"chat_generator": generator, "raise_on_failure": False}
        self._faithfulness = FaithfulnessEvaluator(**settings)
        self._relevance = ContextRelevanceEvaluator(**settings)

    def judge(
        self, questions: list[Question], records: dict[str, dict[str, Any]]
    ) -> tuple[dict[str, dict[str, float]], list[str]]:
        """Return the metrics of each judged answer, and notes on what could not be read."""
        answered = [one for one in questions if records[one.id]["status"] not in ("not_found", "refused")]
        if not answered:
            return {}, []
        asked = {
            "questions": [question.text for question in answered],
            "contexts": [[read["content"] for read in records[question.id]["documents"]] for question in answered],
        }
        answers = [without_marks(records[question.id]["answer"]) for question in answered]
        scores = {
            "haystack_faithfulness": self._faithfulness.run(**asked, predicted_answers=answers)["individual_scores"],
            "haystack_context_relevance": self._relevance.run(**asked)["individual_scores"],
        }
        judged = {
            question.id: {
                name: min(max(float(of[at]), 0.0), 1.0) for name, of in scores.items() if not math.isnan(of[at])
            }
            for at, question in enumerate(answered)
        }
        unread = sum(len(scores) - len(metrics) for metrics in judged.values())
        if unread == len(scores) * len(answered):
            raise AnswerError(
                f"The judge `{self.model}` gave no readable judgement for any of {len(judged)} answers. Use a model "
                "that can reply in JSON."
            )
        left_out = f"{unread} judgements of `{self.model}` could not be read and are left out."
        return judged, [left_out] if unread else []
