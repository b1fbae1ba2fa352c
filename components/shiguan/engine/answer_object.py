"""Builds the answer object, which the command line and the server print."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from haystack import Document, GeneratedAnswer

from shiguan.engine.pipeline_run import PipelineRun, Results, value_at, warnings_of
from shiguan.errors import AnswerError
from shiguan.llm.calls import NO_LLM
from shiguan.llm.prompt_rendering import prefix_reuse


def listed(documents: Iterable[Document]) -> list[dict[str, Any]]:
    """List the passages that an answer was written from."""
    return [
        {
            "number": document.meta.get("number"),
            "id": document.id,
            "source": document.meta.get("source"),
            "title": document.meta.get("title"),
            "section": document.meta.get("section", []),
            "score": document.score,
            "record_id": document.meta.get("record_id"),
        }
        for document in documents
    ]


def first_answer(results: Results, mode: str, outputs: Mapping[str, str]) -> GeneratedAnswer:
    """Return the answer that a mode's run ended with, or raise an error that says why there is none."""
    answers: list[GeneratedAnswer] = value_at(results, outputs["answers"]) or []
    if not answers:
        raise AnswerError(
            f"The mode `{mode}` ended without an answer. A stage before `{outputs['answers']}` was left out; run "
            "`shiguan check` on its file."
        )
    return answers[0]


def answer_object(
    answer: GeneratedAnswer,
    pipeline_run: PipelineRun,
    results: Results,
    *,
    mode: str,
    generator: str,
    outputs: Mapping[str, str],
    warnings: Sequence[str] = (),
) -> dict[str, Any]:
    """Build the answer object; `outputs` are those of the mode's file, `warnings` are added to those of the run."""
    meta, run, cache = answer.meta, pipeline_run.run, pipeline_run.run.cache
    read = {document.id for document in answer.documents}
    grounding, changes = meta.get("grounding", {}), meta.get("changes", [])
    written = [call for call in run.calls if call["stage"] == generator and not call.get("failed")]
    seconds = sum(call["ms"] for call in written) / 1000
    tokens = sum(call["tokens"].get("completion_tokens", 0) for call in written)
    found = [*warnings_of(results), *run.warnings()]
    if not run.calls:  # the answer itself already says that there is no model
        found = [warning for warning in found if not warning.startswith(NO_LLM)]
    searched = outputs.get("queries", "")
    queries = value_at(results, searched) or [answer.query]
    prefix = (meta.get("prompt_rendered") or {}).get("prefix")
    before = (value_at(results, outputs.get("thread", "")) or {}).get("prefix")
    return {
        "answer": answer.data,
        "query": answer.query,
        "mode": mode,
        "status": meta.get("status", "answered"),
        "citations": meta.get("citations", []),
        "documents": listed(answer.documents),
        "metadata": {
            "model": meta.get("model"),
            "llm_calls": run.answered,
            "calls": run.calls,
            "switches": run.switches,
            "budget": run.budget_record(),
            "timings_ms": {stage: round(value, 2) for stage, value in run.times.items()},
            "prefix": prefix_reuse(before or [], prefix) if prefix else None,
            "usage": run.usage or meta.get("usage", {}),
            "warnings": [*found, *warnings, *(cache.warnings if cache else ())],
            "language": meta.get("language"),
            "claims": meta.get("claims", []),
            "changes": changes,
            "disagreements": meta.get("disagreements", []),
            "grade": grounding.get("grade"),
            "confidence": meta.get("confidence"),
            "absent": meta.get("absent", []),
            "waiting": meta.get("waiting", 0),
            "grounding": grounding.get("status"),
            "retrieved": len(pipeline_run.found | read),
            "read": len(read),
            "attempts": run.visits[generator] if written else 0,
            "corrections": len(changes),
            "generation_ms": round(seconds * 1000, 2) if written else None,
            "tokens_per_second": round(tokens / seconds, 2) if tokens and seconds else None,
            "method": value_at(results, f"{searched.partition('.')[0]}.method") or "none",
            "queries": [queries] if isinstance(queries, str) else queries,
            "cache": dict(cache.hits) if cache else {},
            "sub_questions": value_at(results, outputs.get("sub_questions", "")) or [],
        },
    }
