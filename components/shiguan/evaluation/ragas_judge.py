"""Lets a language model judge answers with Ragas' metrics, through Haystack's integration."""

import math
import os
from collections import Counter
from typing import Any

from shiguan.errors import ConfigurationError
from shiguan.evaluation.answer_judge import AnswerJudge
from shiguan.evaluation.golden_set import GoldenQuestion

RAGAS_METRICS = ("ragas_faithfulness", "ragas_answer_relevancy", "ragas_context_precision", "ragas_context_recall")
"""What it adds: Es et al., "Ragas: Automated Evaluation of Retrieval Augmented Generation", 2023."""

_EMBEDDER = "sentence-transformers/all-MiniLM-L6-v2"
_KEY_FREE = "not-needed"


class RagasJudge(AnswerJudge):
    """
    Judges with Ragas.

    Faithfulness and answer relevancy are judged for every answer, context precision and recall where the golden set
    has a right answer.
    """

    def __init__(self, model: str | None = None) -> None:
        os.environ.setdefault("RAGAS_DO_NOT_TRACK", "true")
        try:
            from haystack_integrations.components.evaluators.ragas import RagasEvaluator
        except ImportError as error:
            raise ConfigurationError(
                "Ragas is not installed, and `--judge ragas` needs it. Install it with: pip install 'shiguan[ragas]'"
            ) from error
        super().__init__("ragas", model, RAGAS_METRICS)
        made = zip(RAGAS_METRICS, _metrics(self.model), strict=True)
        self._evaluators = {name: RagasEvaluator(ragas_metrics=[metric]) for name, metric in made}

    def judge_one(self, golden: GoldenQuestion, record: dict[str, Any]) -> tuple[dict[str, float], Counter[str]]:
        """Judge one answer."""
        reference = golden.question.answers[0] if golden.question.answers else None
        metrics: dict[str, float] = {}
        faults: Counter[str] = Counter()
        for name, evaluator in self._evaluators.items():
            if reference is None and name in RAGAS_METRICS[2:]:
                continue
            try:
                found = evaluator.run(
                    query=golden.question.text,
                    response=record["answer"],
                    documents=record["passages"],
                    reference=reference,
                )
                value = float(next(iter(found["result"].values())).value)
            # Any client of any judge may fail in any way; the number is missing then, and that is said.
            except Exception as error:
                faults[f"{name}, {type(error).__name__}"] += 1
                continue
            if math.isfinite(value):
                metrics[name] = min(max(value, 0.0), 1.0)
            else:
                faults[f"{name}, no number"] += 1
        return metrics, faults


def _metrics(model: str) -> tuple[Any, ...]:
    from openai import AsyncOpenAI
    from ragas.llms import llm_factory
    from ragas.metrics import collections

    client = AsyncOpenAI(
        api_key=os.environ.get("OPENAI_API_KEY") or _KEY_FREE, base_url=os.environ.get("OPENAI_BASE_URL") or None
    )
    llm = llm_factory(model, client=client)
    return (
        collections.Faithfulness(llm=llm),
        collections.AnswerRelevancy(llm=llm, embeddings=_embeddings()),
        collections.ContextPrecision(llm=llm),
        collections.ContextRecall(llm=llm),
    )


def _embeddings() -> Any:
    """Give Ragas the embedder that comes with the installation, so that no judge needs an embedding endpoint."""
    from haystack_integrations.components.embedders.sentence_transformers.sentence_transformers_text_embedder import (
        SentenceTransformersTextEmbedder,
    )
    from ragas.embeddings.base import BaseRagasEmbedding

    from shiguan.support.model_cache import seed_model_cache

    seed_model_cache()
    embedder = SentenceTransformersTextEmbedder(model=_EMBEDDER, progress_bar=False, local_files_only=True)
    embedder.warm_up()

    class PackagedEmbedding(BaseRagasEmbedding):  # type: ignore[misc]
        def embed_text(self, text: str, **_: Any) -> list[float]:
            return list(embedder.run(text=text)["embedding"])

        async def aembed_text(self, text: str, **_: Any) -> list[float]:
            return self.embed_text(text)

    return PackagedEmbedding()
