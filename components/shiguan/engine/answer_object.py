"""The plain object in which every answer leaves the engine, and how it is read out of a pipeline's outputs."""

from collections.abc import Iterable
from typing import Any

from haystack import Document, GeneratedAnswer

from shiguan.llm.tally import LlmTally

Results = dict[str, dict[str, Any]]
"""The outputs of a run: by component, then by socket."""


def value_at(results: Results, target: str) -> Any:
    """Read one output."""
    component, socket = target.split(".")
    return results.get(component, {}).get(socket)


def warnings_of(results: Results) -> list[str]:
    """Collect what the stages warn of."""
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
    answer: GeneratedAnswer, *, mode: str, times: dict[str, float], tally: LlmTally, results: Results
) -> dict[str, Any]:
    """Write an answer as the command line and the server print it."""
    meta = answer.meta
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
            "timings_ms": {stage: round(value, 2) for stage, value in times.items()},
            "usage": tally.usage or meta.get("usage", {}),
            "warnings": warnings_of(results),
            "language": meta.get("language"),
            "claims": meta.get("claims", []),
        },
    }
