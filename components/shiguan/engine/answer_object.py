"""Builds the answer object, which the command line and the server print, and lists what it cites."""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from haystack import Document, GeneratedAnswer

from shiguan.engine.mode import Mode
from shiguan.engine.mode_pipeline import Results, value_at, warnings_of
from shiguan.engine.options import AskOptions, ReferenceFormat
from shiguan.errors import AnswerError
from shiguan.llm.calls import NO_LLM
from shiguan.llm.run import Run
from shiguan.text.places import page_words
from shiguan.text.terminal import one_line

EXCERPT = 200
"""How many characters of each passage an answer carries unless the question says otherwise."""


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


def first_answer(results: Results, mode: Mode, query: str) -> GeneratedAnswer:
    """Return the answer that a mode's run ended with, or raise an error that says why there is none."""
    answers: list[GeneratedAnswer] = value_at(results, mode.outputs["answers"]) or []
    if not answers:
        raise AnswerError(
            f"The mode `{mode.name}` ended without an answer. A stage before `{mode.outputs['answers']}` was left out; "
            "run `shiguan check` on its file."
        )
    return replace(answers[0], query=query)  # not the wording that was searched for


def answer_object(
    answer: GeneratedAnswer, run: Run, results: Results, mode: Mode, warnings: Sequence[str]
) -> dict[str, Any]:
    """Build the answer object; `warnings` are added to those of the run."""
    meta = answer.meta
    read = {document.id for document in answer.documents}
    grounding, changes = meta.get("grounding", {}), meta.get("changes", [])
    written = [call for call in run.calls if call["stage"] == mode.generator and not call.get("failed")]
    seconds = sum(call["ms"] for call in written) / 1000
    tokens = sum(call["tokens"].get("completion_tokens", 0) for call in written)
    found = [*warnings_of(results), *run.warnings()]
    if not run.calls:  # the answer itself already says that there is no model
        found = [warning for warning in found if not warning.startswith(NO_LLM)]
    outputs = mode.outputs
    searched = outputs.get("queries", "")
    queries = value_at(results, searched) or [answer.query]
    return {
        "answer": answer.data,
        "query": answer.query,
        "mode": mode.name,
        "status": meta.get("status", "answered"),
        "citations": meta.get("citations", []),
        "documents": listed(answer.documents),
        "metadata": {
            "model": meta.get("model"),
            "finish_reason": meta.get("finish_reason"),
            "llm_calls": run.answered,
            "calls": run.calls,
            "switches": run.switches,
            "budget": run.budget_record(),
            **_seconds(run, mode),
            "timings_ms": {stage: round(value, 2) for stage, value in run.times.items()},
            "usage": run.usage or meta.get("usage", {}),
            "warnings": [*found, *warnings],
            "language": meta.get("language"),
            "claims": meta.get("claims", []),
            "changes": changes,
            "grade": grounding.get("grade"),
            "confidence": meta.get("confidence"),
            "reason": meta.get("reason", ""),
            "absent": meta.get("absent", []),
            "waiting": meta.get("waiting", 0),
            "grounding": grounding.get("status"),
            "retrieved": len(run.found | read),
            "chunks_found": len(run.found | read),
            "read": len(read),
            "attempts": run.visits[mode.generator] if written else 0,
            "corrections": len(changes),
            "generation_ms": round(seconds * 1000, 2) if written else None,
            "tokens_per_second": round(tokens / seconds, 2) if tokens and seconds else None,
            "method": value_at(results, f"{searched.partition('.')[0]}.method") or "none",
            "queries": [queries] if isinstance(queries, str) else queries,
            "sub_questions": value_at(results, outputs.get("sub_questions", "")) or [],
        },
    }


def _seconds(run: Run, mode: Mode) -> dict[str, float]:
    """Sum up the seconds of the stages that reword the question, that search, and that write."""
    stages = {
        "total_time": {"total"},
        "rewrite_time": {mode.outputs.get("queries", "").partition(".")[0]},
        "retrieve_time": run.reading,
        "generate_time": {mode.generator},
    }
    return {name: round(sum(run.times.get(stage, 0.0) for stage in own) / 1000, 3) for name, own in stages.items()}


# Characters that begin a note, a link, an image or an element where a client shows the text as Markdown.
_NO_MARKUP = str.maketrans("[]【】［］〔〕<>`\\", "()()()()‹›'/", "\u00ad\u200b\u2060\ufeff")


def with_sources(answer: Mapping[str, Any], documents: Sequence[Document], options: AskOptions) -> dict[str, Any]:
    """Add what clients expect, such as `sources` and `citation_num`; `documents` are those of the answer."""
    longest = EXCERPT if options.source_characters is None else options.source_characters
    read = [
        {**entry, "content": (document.content or "")[:longest]}
        for entry, document in zip(answer["documents"], documents, strict=True)
    ]
    scores = {entry["id"]: entry["score"] for entry in read}
    cited = {citation["parent_id"]: citation["number"] for citation in answer["citations"]}
    written = reference_list(answer["citations"], options.citation_format or "plain")
    metadata = answer["metadata"]
    return {
        **answer,
        "answer": f"{answer['answer']}\n\n{written}" if options.references and written else answer["answer"],
        "rewritten_query": metadata["queries"][0],
        "retrieved_count": metadata["retrieved"],
        "generation_time": round(metadata["timings_ms"]["total"] / 1000, 3),
        "citations": [
            {
                **citation,
                "citation_num": citation["number"],
                "source_id": citation["parent_id"],
                "chunk_id": citation["parent_id"],
                "content": citation["quote"],
                "score": scores.get(citation["parent_id"]),
            }
            for citation in answer["citations"]
        ],
        "formatted_citations": written,
        "documents": read,
        "sources": [
            {
                **{name: entry[name] for name in ("id", "content", "score", "source")},
                "title": entry["title"] or entry["source"],
                "citation_id": f"[{cited[entry['id']]}]",
            }
            for entry in read
            if entry["id"] in cited
        ],
    }


def reference_list(citations: Sequence[Mapping[str, Any]], form: ReferenceFormat = "plain") -> str:
    """List the sources that an answer cites, one per line, by number; empty where it cites none."""
    places = {citation["number"]: citation for citation in reversed(citations)}
    lines = [_reference(number, places[number], form) for number in sorted(places)]
    return "\n".join(['<ol class="references">', *lines, "</ol>"] if form == "html" and lines else lines)


def _reference(number: int, citation: Mapping[str, Any], form: ReferenceFormat) -> str:
    source, title = _name(citation["source"], form), _name(citation["title"] or citation["source"], form)
    headings = [_name(heading, form) for heading in citation["section"]]
    place = " > ".join(part for part in (title, *headings[headings[:1] == [title] :]) if part)
    place = ", ".join(filter(None, (place, _name(page_words(citation), form))))
    file = f" ({source})" if source and source != title else ""
    if form == "html":
        return f'<li value="{number}">{html.escape(place + file, quote=False)}</li>'
    return f"{'- ' if form == 'markdown' else ''}[{number}] {place}{file}"


def _name(text: str | None, form: ReferenceFormat) -> str:
    """Write a name from a document in one line without markup, so that it cannot pose as a note or a link."""
    line = one_line(html.unescape(text or ""))
    if form == "html":
        return line
    line = line.translate(_NO_MARKUP)
    return re.sub(r"[*_]", r"\\\g<0>", line) if form == "markdown" else line
