"""What may be asked, and the plain object in which every answer leaves the engine."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypedDict

from haystack import Document, GeneratedAnswer

from shiguan.errors import RefusedError
from shiguan.llm.budget import Budget
from shiguan.llm.run_watch import TimeLimits

if TYPE_CHECKING:
    from shiguan.engine.pipeline_run import PipelineRun

MAX_QUESTION = 2000
"""The longest question that is answered, in characters."""


class AskOptions(TypedDict, total=False):
    """
    What a question may come with; what is left out, or None, is as the mode's file says.

    - `top_k`: how many passages to read at most
    - `filters`: further conditions in Haystack's filter format
    - `conversation_id`: the conversation that the question goes on; it is asked with what was said there before, and
      kept there with its answer
    - `history`: the turns before the question, `ChatMessage`s or `{"role", "content"}`; modes that do not read them
      answer the question as it stands. It goes before what is kept of a conversation, and nothing is kept then
    - `temperature`: of the model that writes the answer, 0 to 2
    - `task`: what is asked for, a layer of `prompts/layers/task/` such as `compare`
    - `profile`: a field's demands on every answer, a file of `prompts/profiles/` such as `history`
    - `language`: the language of the prompt and of the not-found sentence, `en` or `zh`
    - `limits`: how long the parts of the run may take
    - `budget`: what the question may spend, a `Budget` or its fields: `calls`, `tokens`, `seconds`, `cost`
    """

    top_k: int | None
    filters: dict[str, Any] | None
    conversation_id: str | None
    history: list[Any] | None
    temperature: float | None
    task: str | None
    profile: str | None
    language: str | None
    limits: TimeLimits | None
    budget: Budget | dict[str, Any] | None


def checked_question(query: str) -> str:
    """Check a question before anything runs."""
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
    """Read one output."""
    component, _, socket = target.partition(".")
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


def answer_object(answer: GeneratedAnswer, run: "PipelineRun", *, mode: str, results: Results) -> dict[str, Any]:
    """Write an answer as the command line and the server print it."""
    meta, tally, meter = answer.meta, run.tally, run.meter
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
            "usage": tally.usage or meta.get("usage", {}),
            "warnings": warnings,
            "language": meta.get("language"),
            "claims": meta.get("claims", []),
            "changes": meta.get("changes", []),
            "grade": meta.get("grounding", {}).get("grade"),
            "confidence": meta.get("confidence"),
            "grounding": meta.get("grounding", {}).get("status"),
        },
    }
