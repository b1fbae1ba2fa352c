"""What may be asked, and the plain object in which every answer leaves the engine."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from haystack import Document, GeneratedAnswer

from shiguan.errors import RefusedError

if TYPE_CHECKING:
    from shiguan.engine.pipeline_run import PipelineRun

MAX_QUESTION = 2000
"""The longest question that is answered, in characters."""


def checked_question(query: str) -> str:
    # Lone surrogates come from bytes that are no UTF-8, control characters from a paste; neither can be searched for.
    clean = "".join(
        " " if (ord(c) < 32 and c not in "\n\t") or 0xD800 <= ord(c) <= 0xDFFF or c == "\x7f" else c for c in query
    ).strip()
    if not clean:
        raise RefusedError("The question is empty. Type a question of 1 to 2,000 characters.")
    if len(clean) > MAX_QUESTION:
        raise RefusedError(
            f"The question has {len(clean):,} characters, the limit is {MAX_QUESTION:,}. Shorten it, or ingest the "
            "long text as a document and ask about it."
        )
    return clean


Results = dict[str, dict[str, Any]]
"""The outputs of a run: by component, then by socket."""


def value_at(results: Results, target: str) -> Any:
    component, _, socket = target.partition(".")
    return results.get(component, {}).get(socket)


def warnings_of(results: Results) -> list[str]:
    return list(dict.fromkeys(warning for outputs in results.values() for warning in outputs.get("warnings", [])))


def listed(documents: Iterable[Document]) -> list[dict[str, Any]]:
    """Name the passages that an answer was written from."""
    return [
        {
            "number": document.meta.get("number"),
            "id": document.id,
            "source": document.meta.get("source"),
            "section": document.meta.get("section", []),
            "score": document.score,
            "record_id": document.meta.get("record_id"),
        }
        for document in documents
    ]


def answer_object(
    answer: GeneratedAnswer, run: "PipelineRun", *, mode: str, results: Results, generator: str = ""
) -> dict[str, Any]:
    """Write an answer as the command line and the server print it."""
    meta, tally, meter = answer.meta, run.tally, run.meter
    read = {document.id for document in answer.documents}
    grounding, changes = meta.get("grounding", {}), meta.get("changes", [])
    written = [call for call in tally.made if call["stage"] == generator and not call.get("failed")]
    seconds = sum(call["ms"] for call in written) / 1000
    tokens = sum(call["tokens"].get("completion_tokens", 0) for call in written)
    warnings = [*warnings_of(results), *tally.warnings(), *(meter.warnings() if meter else ())]
    return {
        "answer": answer.data,
        "query": answer.query,
        "mode": mode,
        "status": meta.get("status", "answered"),
        "citations": meta.get("citations", []),
        "documents": listed(answer.documents),
        "metadata": {
            "model": meta.get("model"),
            "llm_calls": tally.calls,
            "calls": tally.made,
            "switches": tally.switches,
            "budget": meter.record() if meter else None,
            "timings_ms": {stage: round(value, 2) for stage, value in run.times.items()},
            "prefix": None,
            "usage": tally.usage or meta.get("usage", {}),
            "warnings": warnings,
            "language": meta.get("language"),
            "claims": meta.get("claims", []),
            "changes": changes,
            "grade": grounding.get("grade"),
            "confidence": meta.get("confidence"),
            "grounding": grounding.get("status"),
            "retrieved": len(run.found | read),
            "read": len(read),
            "attempts": run.visits[generator],
            "corrections": len(changes),
            "generation_ms": round(seconds * 1000, 2) if written else None,
            "tokens_per_second": round(tokens / seconds, 2) if tokens and seconds else None,
        },
    }
