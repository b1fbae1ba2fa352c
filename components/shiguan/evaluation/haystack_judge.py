"""Lets a language model judge answers with Haystack's own evaluators."""

import math
from collections import Counter
from typing import Any

from haystack.components.evaluators import ContextRelevanceEvaluator, FaithfulnessEvaluator

from shiguan.evaluation.answer_judge import AnswerJudge
from shiguan.evaluation.answer_matching import spoken_answer
from shiguan.evaluation.golden_set import GoldenQuestion
from shiguan.llm.configured_chat_generator import ConfiguredChatGenerator

HAYSTACK_METRICS = ("haystack_faithfulness", "haystack_context_relevance")
"""What it adds."""


class HaystackJudge(AnswerJudge):
    """
    Judges with `FaithfulnessEvaluator` (the share of an answer's statements that its context supports) and
    `ContextRelevanceEvaluator` (whether the context has anything to the question), one call each per answer.

    :param model: The judge; None for `$OPENAI_MODEL`.
    """

    def __init__(self, model: str | None = None) -> None:
        super().__init__("haystack", model, HAYSTACK_METRICS)
        generator = ConfiguredChatGenerator(
            self.model,
            timeout=120.0,
            max_retries=1,
            generation_kwargs={"temperature": 0, "response_format": {"type": "json_object"}},
        )
        settings: dict[str, Any] = {"chat_generator": generator, "progress_bar": False, "raise_on_failure": False}
        self._faithfulness = FaithfulnessEvaluator(**settings)
        self._relevance = ContextRelevanceEvaluator(**settings)

    def judge_one(self, golden: GoldenQuestion, record: dict[str, Any]) -> tuple[dict[str, float], Counter[str]]:
        """
        Judge one answer.

        :param golden: The question.
        :param record: What `AnswerRun.ask` gave.
        :returns: Metric to value, and what could not be judged.
        """
        asked = {"questions": [golden.question.text], "contexts": [record["passages"]]}
        found = (
            self._faithfulness.run(**asked, predicted_answers=[spoken_answer(record["answer"])]),
            self._relevance.run(**asked),
        )
        metrics: dict[str, float] = {}
        faults: Counter[str] = Counter()
        for name, result in zip(HAYSTACK_METRICS, found, strict=True):
            value = float(result["score"])
            if math.isfinite(value):
                metrics[name] = value
            else:
                faults[f"{name}, no number"] += 1
        return metrics, faults
