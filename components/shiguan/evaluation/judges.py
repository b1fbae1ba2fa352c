"""Let a language model judge answers: each answer once, kept at once, and no number where the judge said nothing."""

import math
import os
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from haystack.components.evaluators import ContextRelevanceEvaluator, FaithfulnessEvaluator

from shiguan.errors import AnswerError, ConfigurationError
from shiguan.evaluation.answer_metrics import spoken_answer
from shiguan.evaluation.questions import Question
from shiguan.evaluation.results import RunStore
from shiguan.llm.configured_chat_generator import ConfiguredChatGenerator
from shiguan.llm.model_settings import DEFAULT_MODEL, is_endpoint_configured

HAYSTACK_METRICS = ("haystack_faithfulness", "haystack_context_relevance")
RAGAS_METRICS = ("ragas_faithfulness", "ragas_answer_relevancy", "ragas_context_precision", "ragas_context_recall")
"""Es et al., "Ragas: Automated Evaluation of Retrieval Augmented Generation", 2023."""

_KEY_FREE = "not-needed"

Ask = Callable[[Question, str, list[str]], float | None]
"""Judges an answer with its passages, 0 to 1; None where the metric does not apply."""


class AnswerJudge:
    """
    Lets a language model judge answers, with any OpenAI-compatible endpoint.

    What was refused is not judged. A judgement that fails, or is no number, is counted and left out: a silent zero
    would lie. Each answer's judgements are kept at once, so that a stopped run goes on.
    """

    def __init__(self, name: str, model: str | None, metrics: dict[str, Ask]) -> None:
        if not is_endpoint_configured():
            raise ConfigurationError(
                f"The judge `{name}` takes a language model, and none is configured. Set OPENAI_API_KEY, or "
                "OPENAI_BASE_URL for a server of your own."
            )
        self.name = name
        self.model = model or os.environ.get("OPENAI_MODEL") or DEFAULT_MODEL
        self.metrics = metrics
        self.faults: Counter[str] = Counter()

    def judge(
        self, questions: list[Question], records: dict[str, dict[str, Any]], folder: Path
    ) -> dict[str, dict[str, float]]:
        given = [one for one in questions if records[one.id]["status"] != "not_found"]
        judged: dict[str, dict[str, float]] = {}
        with RunStore(folder / self.name, {"model": self.model, "metrics": list(self.metrics)}) as store:
            for question in given:
                name = question.id
                if name not in store.records:
                    store.add(name, self._judged(question, records[name]))
                judged[name] = store.records[name]["metrics"]
                self.faults.update(store.records[name]["faults"])
        if given and not any(judged.values()):
            raise AnswerError(
                f"The judge `{self.model}` gave no judgement that can be read for any of {len(given)} answers "
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

    def __init__(self, model: str | None = None) -> None:
        super().__init__("haystack", model, {name: partial(self._ask, name) for name in HAYSTACK_METRICS})
        generator = ConfiguredChatGenerator(
            self.model,
            timeout=120.0,
            max_retries=1,
            generation_kwargs={"temperature": 0, "response_format": {"type": "json_object"}},
        )
        settings: dict[str, Any] = {"chat_generator": generator, "progress_bar": False, "raise_on_failure": False}
        kinds: tuple[Any, ...] = (FaithfulnessEvaluator, ContextRelevanceEvaluator)
        self._evaluators = {name: kind(**settings) for name, kind in zip(HAYSTACK_METRICS, kinds, strict=True)}

    def _ask(self, name: str, question: Question, answer: str, passages: list[str]) -> float:
        said = {"predicted_answers": [spoken_answer(answer)]} if name == HAYSTACK_METRICS[0] else {}
        return float(self._evaluators[name].run(questions=[question.text], contexts=[passages], **said)["score"])


class RagasJudge(AnswerJudge):
    """Judges with Ragas; context precision and recall only where the golden set has a right answer."""

    def __init__(self, model: str | None = None) -> None:
        os.environ.setdefault("RAGAS_DO_NOT_TRACK", "true")
        try:
            from haystack_integrations.components.evaluators.ragas import RagasEvaluator
        except ImportError as error:
            raise ConfigurationError(
                "Ragas is not installed, and `--judge ragas` needs it. Install it with: pip install 'shiguan[ragas]'"
            ) from error
        super().__init__("ragas", model, {name: partial(self._ask, name) for name in RAGAS_METRICS})
        from openai import AsyncOpenAI
        from ragas.llms import llm_factory
        from ragas.metrics import collections

        address, key = os.environ.get("OPENAI_BASE_URL") or None, os.environ.get("OPENAI_API_KEY") or _KEY_FREE
        llm = llm_factory(self.model, client=AsyncOpenAI(api_key=key, base_url=address))
        metrics = (
            collections.Faithfulness(llm=llm),
            collections.AnswerRelevancy(llm=llm, embeddings=_embeddings()),
            collections.ContextPrecision(llm=llm),
            collections.ContextRecall(llm=llm),
        )
        made = zip(RAGAS_METRICS, metrics, strict=True)
        self._evaluators = {name: RagasEvaluator(ragas_metrics=[metric]) for name, metric in made}

    def _ask(self, name: str, question: Question, answer: str, passages: list[str]) -> float | None:
        reference = question.answers[0] if question.answers else None
        if reference is None and name in RAGAS_METRICS[2:]:
            return None
        found = self._evaluators[name].run(
            query=question.text, response=answer, documents=passages, reference=reference
        )
        return float(next(iter(found["result"].values())).value)


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
