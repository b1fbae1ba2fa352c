"""Let a language model judge answers: each answer once, kept at once, and no number where the judge said nothing."""

import math
import os
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from haystack.components.evaluators import ContextRelevanceEvaluator, FaithfulnessEvaluator, LLMEvaluator

from shiguan.errors import AnswerError, ConfigurationError
from shiguan.evaluation.answer_metrics import spoken_answer
from shiguan.evaluation.questions import Question
from shiguan.evaluation.results import RunStore
from shiguan.llm.configured_chat_generator import ConfiguredChatGenerator
from shiguan.llm.model_settings import DEFAULT_MODEL, is_endpoint_configured

Ask = Callable[[Question, str, list[str]], float | None]
"""Judges an answer with its passages, 0 to 1; None where the metric does not apply."""


class AnswerJudge:
    """
    Lets a language model judge answers, with any OpenAI-compatible endpoint.

    What was refused is not judged. A judgement that fails, or is no number, is counted and left out: a silent zero
    would lie. Each answer's judgements are kept at once, so that a stopped run goes on.
    """

    metrics: dict[str, Ask]

    def __init__(self, name: str) -> None:
        if not is_endpoint_configured():
            raise ConfigurationError(
                f"The judge `{name}` takes a language model, and none is configured. Set OPENAI_API_KEY, or "
                "OPENAI_BASE_URL for a server of your own."
            )
        self.name = name
        self.model = os.environ.get("OPENAI_MODEL") or DEFAULT_MODEL
        self.faults: Counter[str] = Counter()

    def judge(
        self, questions: list[Question], records: dict[str, dict[str, Any]], folder: Path
    ) -> dict[str, dict[str, float]]:
        judged: dict[str, dict[str, float]] = {}
        with RunStore(folder / self.name, {"model": self.model, "metrics": list(self.metrics)}) as store:
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
                f"The judge `{self.model}` gave no judgement that can be read for any of {len(judged)} answers "
                f"({self._told()}). Use a model that can answer in JSON, and remove {folder / self.name}."
            )
        return judged

    def notes(self) -> list[str]:
        told = f"Some judgements of `{self.model}` could not be read and are left out: {self._told()}."
        return [told] if self.faults else []

    def _judged(self, question: Question, record: dict[str, Any]) -> dict[str, Any]:
        passages = [document["content"] for document in record["documents"]]
        metrics: dict[str, float] = {}
        faults: Counter[str] = Counter()
        for name, ask in self.metrics.items():
            try:
                value = ask(question, record["answer"], passages)
            # Any client of any judge may fail in any way; the number is missing then, and that is said.
            except Exception as error:
                faults[f"{name}, {type(error).__name__}"] += 1
                continue
            if value is not None and math.isfinite(value):
                metrics[name] = min(max(value, 0.0), 1.0)
            elif value is not None:
                faults[f"{name}, no number"] += 1
        return {"metrics": metrics, "faults": dict(faults)}

    def _told(self) -> str:
        return ", ".join(f"{kind}: {count}" for kind, count in self.faults.most_common())


class HaystackJudge(AnswerJudge):
    """Judges by `FaithfulnessEvaluator` and `ContextRelevanceEvaluator`, one call each per answer."""

    def __init__(self) -> None:
        super().__init__("haystack")
        in_json = {"temperature": 0, "response_format": {"type": "json_object"}}
        generator = ConfiguredChatGenerator(self.model, timeout=120.0, max_retries=1, generation_kwargs=in_json)
        settings: dict[str, Any] = {"chat_generator": generator, "progress_bar": False, "raise_on_failure": False}
        self.metrics = {
            "haystack_faithfulness": partial(self._ask, FaithfulnessEvaluator(**settings)),
            "haystack_context_relevance": partial(self._ask, ContextRelevanceEvaluator(**settings)),
        }

    def _ask(self, evaluator: LLMEvaluator, question: Question, answer: str, passages: list[str]) -> float:
        said = {"predicted_answers": [spoken_answer(answer)]} if isinstance(evaluator, FaithfulnessEvaluator) else {}
        return float(evaluator.run(questions=[question.text], contexts=[passages], **said)["score"])


class RagasJudge(AnswerJudge):
    """
    Judges with Ragas; context precision and recall only where the golden set has a right answer.

    Es et al., "Ragas: Automated Evaluation of Retrieval Augmented Generation", 2023.
    """

    def __init__(self) -> None:
        os.environ.setdefault("RAGAS_DO_NOT_TRACK", "true")
        try:
            from haystack_integrations.components.evaluators.ragas import RagasEvaluator
        except ImportError as error:
            raise ConfigurationError(
                "Ragas is not installed, and `--judge ragas` needs it. Install it with: pip install 'shiguan[ragas]'"
            ) from error
        super().__init__("ragas")
        from openai import AsyncOpenAI
        from ragas.llms import llm_factory
        from ragas.metrics import collections

        address, key = os.environ.get("OPENAI_BASE_URL") or None, os.environ.get("OPENAI_API_KEY") or "not-needed"
        llm = llm_factory(self.model, client=AsyncOpenAI(api_key=key, base_url=address))
        metrics = {
            "ragas_faithfulness": collections.Faithfulness(llm=llm),
            "ragas_answer_relevancy": collections.AnswerRelevancy(llm=llm, embeddings=_embeddings()),
            "ragas_context_precision": collections.ContextPrecision(llm=llm),
            "ragas_context_recall": collections.ContextRecall(llm=llm),
        }
        evaluators = {name: RagasEvaluator(ragas_metrics=[metric]) for name, metric in metrics.items()}

        def ask(name: str, question: Question, answer: str, passages: list[str]) -> float | None:
            reference = question.answers[0] if question.answers else None
            if reference is None and name.startswith("ragas_context"):
                return None
            asked = {"query": question.text, "response": answer, "documents": passages, "reference": reference}
            return float(next(iter(evaluators[name].run(**asked)["result"].values())).value)

        self.metrics = {name: partial(ask, name) for name in metrics}


def _embeddings() -> Any:
    """Give Ragas the embedder that comes with the installation, so that no judge needs an embedding endpoint."""
    from ragas.embeddings.base import BaseRagasEmbedding

    from shiguan.models.engine import engine

    embedder = engine()

    class PackagedEmbedding(BaseRagasEmbedding):  # type: ignore[misc]
        def embed_text(self, text: str, **_: Any) -> list[float]:
            # Ragas compares questions with questions.
            vector: list[float] = embedder.embed([text], "query")[0].tolist()
            return vector

        async def aembed_text(self, text: str, **_: Any) -> list[float]:
            return self.embed_text(text)

    return PackagedEmbedding()
