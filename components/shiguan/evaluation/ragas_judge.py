"""Lets a language model judge answers with Ragas' metrics, through Haystack's integration."""

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from shiguan.errors import AnswerError, ConfigurationError
from shiguan.evaluation.golden_set import GoldenQuestion
from shiguan.evaluation.run_store import RunStore
from shiguan.support.openai_endpoint import DEFAULT_MODEL, is_endpoint_configured

RAGAS_METRICS = ("ragas_faithfulness", "ragas_answer_relevancy", "ragas_context_precision", "ragas_context_recall")
"""What it adds: Es et al., "Ragas: Automated Evaluation of Retrieval Augmented Generation", 2023."""

_EMBEDDER = "sentence-transformers/all-MiniLM-L6-v2"
_KEY_FREE = "not-needed"

Track = Callable[[list[GoldenQuestion]], Iterable[GoldenQuestion]]


class RagasJudge:
    """
    Judges answers with any OpenAI-compatible endpoint: `OPENAI_BASE_URL`, `OPENAI_API_KEY` and `OPENAI_MODEL`.

    Faithfulness and answer relevancy are judged for every answer, context precision and recall where the golden set
    has a right answer. What was refused is not judged. A judgement that fails, or is no number, is counted and left
    out: a silent zero would lie. Each answer's judgements are kept at once, so that a stopped run goes on.

    :param model: The judge; None for `$OPENAI_MODEL`.
    """

    def __init__(self, model: str | None = None) -> None:
        os.environ.setdefault("RAGAS_DO_NOT_TRACK", "true")
        try:
            from haystack_integrations.components.evaluators.ragas import RagasEvaluator
        except ImportError as error:
            raise ConfigurationError(
                "Ragas is not installed, and `--ragas` needs it. Install it with: pip install 'shiguan[ragas]'"
            ) from error
        if not is_endpoint_configured():
            raise ConfigurationError(
                "Ragas' metrics take a language model, and none is configured. Set OPENAI_API_KEY, or OPENAI_BASE_URL "
                "for a server of your own."
            )
        self.model = model or os.environ.get("OPENAI_MODEL") or DEFAULT_MODEL
        self.faults: Counter[str] = Counter()
        self._evaluator_class = RagasEvaluator
        self._metrics = _metrics(self.model)

    def judge(
        self, questions: list[GoldenQuestion], records: dict[str, dict[str, Any]], folder: Path
    ) -> dict[str, dict[str, float]]:
        """
        Judge every answer that was given.

        :param questions: The golden set.
        :param records: Question id to what `AnswerRun.ask` gave.
        :param folder: The run's folder; judgements are kept below it.
        :returns: Question id to metrics.
        :raises AnswerError: If no judgement at all could be read.
        """
        given = [one for one in questions if records[one.question.id]["status"] != "not_found"]
        judged: dict[str, dict[str, float]] = {}
        with RunStore(folder / "ragas", {"model": self.model, "metrics": list(RAGAS_METRICS)}) as store:
            for golden in given:
                name = golden.question.id
                if name not in store.records:
                    store.add(name, self._one(golden, records[name]))
                judged[name] = store.records[name]["metrics"]
                self.faults.update(store.records[name]["faults"])
        if given and not any(judged.values()):
            raise AnswerError(
                f"The judge `{self.model}` gave no judgement that can be read for any of {len(given)} answers "
                f"({self._told()}). Use a model that can answer in JSON."
            )
        return judged

    def notes(self) -> list[str]:
        """
        Say what could not be judged.

        :returns: A sentence; nothing if everything could.
        """
        return [f"Some judgements of `{self.model}` could not be read and are left out: {self._told()}."] * bool(
            self.faults
        )

    def _told(self) -> str:
        return ", ".join(f"{kind} {count} times" for kind, count in self.faults.most_common())

    def _one(self, golden: GoldenQuestion, record: dict[str, Any]) -> dict[str, Any]:
        reference = golden.question.answers[0] if golden.question.answers else None
        metrics: dict[str, float] = {}
        faults: Counter[str] = Counter()
        for name, metric in self._metrics.items():
            if reference is None and name in RAGAS_METRICS[2:]:
                continue
            evaluator = self._evaluator_class(ragas_metrics=[metric])
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
                faults[f"{name} ({type(error).__name__})"] += 1
                continue
            if math.isfinite(value):
                metrics[name] = min(max(value, 0.0), 1.0)
            else:
                faults[f"{name} (no number)"] += 1
        return {"metrics": metrics, "faults": dict(faults)}


def _metrics(model: str) -> dict[str, Any]:
    from openai import AsyncOpenAI
    from ragas.llms import llm_factory
    from ragas.metrics import collections

    client = AsyncOpenAI(
        api_key=os.environ.get("OPENAI_API_KEY") or _KEY_FREE, base_url=os.environ.get("OPENAI_BASE_URL") or None
    )
    llm = llm_factory(model, client=client)
    made = (
        collections.Faithfulness(llm=llm),
        collections.AnswerRelevancy(llm=llm, embeddings=_embeddings()),
        collections.ContextPrecision(llm=llm),
        collections.ContextRecall(llm=llm),
    )
    return dict(zip(RAGAS_METRICS, made, strict=True))


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
