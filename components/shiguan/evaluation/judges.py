"""Lets a language model judge answers; a judgement that cannot be read is left out, not counted as 0."""

import math
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from haystack.components.evaluators import FaithfulnessEvaluator, LLMEvaluator

from shiguan.errors import AnswerError, ConfigurationError
from shiguan.evaluation.questions import Question
from shiguan.evaluation.scoring import REFUSALS, without_marks
from shiguan.llm.configured_chat_generator import ConfiguredChatGenerator
from shiguan.llm.model_settings import DEFAULT_MODEL, is_endpoint_configured
from shiguan.resources import read_texts

_QUESTION = "When did An Lushan rise?"
_INPUTS: dict[str, Any] = {
    "questions": list[str], "predicted_answers": list[str], "contexts": list[list[str]], "references": list[str],
}  # fmt: skip
_tasks = partial(read_texts, "answer_judge")


class AnswerJudge:
    """
    Lets a language model judge answers and contexts, as defined by Ragas (Es et al. 2023, and its documentation).

    Each metric is one call per answer; those of the context need a right answer. Refusals are not judged.
    """

    def __init__(self) -> None:
        if not is_endpoint_configured():
            raise ConfigurationError(
                "`--judge` needs a language model, and none is configured. Set OPENAI_API_KEY, or OPENAI_BASE_URL for "
                "a server of your own."
            )
        self.model = os.environ.get("OPENAI_MODEL") or DEFAULT_MODEL
        in_json = {"temperature": 0, "response_format": {"type": "json_object"}}
        models = {"models": [{"name": "default", "timeout": 120.0}]}
        generator = ConfiguredChatGenerator(role="judge", models=models, generation_kwargs=in_json)
        settings: dict[str, Any] = {"chat_generator": generator, "raise_on_failure": False}
        self._evaluators: dict[str, LLMEvaluator] = {"faithfulness": FaithfulnessEvaluator(**settings)}
        for name, task in _tasks().items():
            inputs = [(judged, _INPUTS[judged]) for judged in ("questions", *task["judged"])]
            examples = [{"inputs": {"questions": _QUESTION, **task["judged"]}, "outputs": task["reply"]}]
            self._evaluators[name] = LLMEvaluator(task["task"], inputs, [*task["reply"]], examples, **settings)

    def judge(
        self, questions: list[Question], records: dict[str, dict[str, Any]]
    ) -> tuple[dict[str, dict[str, float]], list[str]]:
        """Return the metrics of each judged answer, and notes on what could not be read."""
        answered = [one for one in questions if records[one.id]["status"] not in REFUSALS]
        judged: dict[str, dict[str, float]] = {question.id: {} for question in answered}
        asked = unread = 0
        for name, evaluator in self._evaluators.items():
            inputs = {name for name, _ in evaluator.inputs}
            chosen = [one for one in answered if one.answers or "references" not in inputs]
            given = {
                "questions": [question.text for question in chosen],
                "contexts": [[read["content"] for read in records[question.id]["documents"]] for question in chosen],
                "predicted_answers": [without_marks(records[question.id]["answer"]) for question in chosen],
                "references": ["; ".join(question.answers) for question in chosen],
            }
            found = evaluator.run(**{of: values for of, values in given.items() if of in inputs}) if chosen else {}
            for question, result in zip(chosen, found.get("results", ()), strict=True):
                asked += 1
                value = judgement(name, result)
                unread += value is None
                judged[question.id] |= {} if value is None else {name: value}
        if asked and unread == asked:
            raise AnswerError(
                f"The judge `{self.model}` gave no readable judgement for any of {len(judged)} answers. Use a model "
                "that can reply in JSON."
            )
        left_out = f"{unread} judgements of `{self.model}` could not be read and are left out."
        return judged, [left_out] if unread else []


def for_review(
    questions: Sequence[Question], records: Mapping[str, Any], judged: Mapping[str, dict[str, float]]
) -> list[dict[str, Any]]:
    """Return what a person needs to review each judged answer."""
    asked = {question.id: question for question in questions}
    return [
        {
            "id": name,
            "question": asked[name].text,
            "answer": records[name]["answer"],
            "contexts": [read["content"] for read in records[name]["documents"]],
            "references": asked[name].answers,
            "judge": judged[name],
        }
        for name in sorted(judged)
    ]


def judgement(name: str, result: Mapping[str, Any] | None) -> float | None:
    """Read the value of a metric from a judge's reply, 0 to 1; None if it has none."""
    (key,) = _tasks()[name]["reply"] if name in _tasks() else ("statement_scores",)
    given: Any = (result or {}).get(key)
    values: list[Any] = given if isinstance(given, list) else [given]
    if not values or not all(isinstance(one, int | float) and abs(one) < math.inf for one in values):
        return None
    scores = [float(min(max(one, 0), 1)) for one in values]
    return _average_precision(scores) if name == "judged_context_precision" else sum(scores) / len(scores)


def _average_precision(useful: Sequence[float]) -> float:
    """Average the share of useful passages up to each useful one; 0 where none is."""
    shares = [sum(useful[:at]) / at for at, score in enumerate(useful, start=1) if score > 0]
    return sum(shares) / len(shares) if shares else 0.0
