"""Reports how an answer comes about, event by event, while the pipeline runs."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from haystack.dataclasses import StreamingChunk

from shiguan.answer.quotations import QUOTING
from shiguan.claims.answer_check import AnswerCheck, answer_check, end_with_marks
from shiguan.engine.answer_object import listed
from shiguan.engine.mode import Mode
from shiguan.errors import AnswerError
from shiguan.llm.calls import is_available
from shiguan.llm.run import Run

EVENTS: Final = {
    "query_rewritten": "`query` (what is searched for, standing alone), `queries` (all of them) and `method`.",
    "documents_retrieved": "`documents`: the numbered passages that the model reads, as in the answer; `attempt`.",
    "generation_start": "`attempt`: the model begins to write; from 1.",
    "tool_call": "`tool` and `arguments`: the model of the mode `agent` asks for a tool.",
    "tool_result": "`tool`, `arguments`, `outcome` (`found`, `known`, `empty`, `failed`, `unknown_tool`, "
    "`wrong_arguments`), `numbers` of the passages that it gave, and `reason` where it gave none.",
    "token": "`text`: the next piece of the answer, checked: whole sentences with their marks.",
    "claim": "A finished sentence as in `metadata.claims`, with its `index` there and its `citations`, each with the "
    "exact span of the passage.",
    "draft_rejected": "`attempt`, `verdicts` (how many of each), `feedback` (why) and `queries` (what is searched for "
    "next; empty after the last attempt). Nothing of a rejected draft was a `token`.",
    "generation_complete": "The answer object. Terminal.",
    "error": "What went wrong. Terminal.",
}
_KNOWN_AT_THE_END: Final = frozenset({"confidence", "citation_num", "source_id", "chunk_id", "content", "score"})
TERMINAL: Final = frozenset({"generation_complete", "error"})
"""The events that end a stream; exactly one of them comes, and it comes last."""


@dataclass(frozen=True)
class AnswerEvent:
    """One event."""

    name: str
    data: dict[str, Any]
    id: int
    error: Exception | None = field(default=None, compare=False)

    @property
    def is_terminal(self) -> bool:
        return self.name in TERMINAL


class AnswerStream:
    """Turns what a run reports into events; nothing of a draft that may be rejected comes before it is accepted."""

    def __init__(self, query: str, mode: Mode) -> None:
        self._query = query
        self._generator = mode.generator if is_available(mode.writer) else ""
        self._source, _, self._documents = mode.sources.partition(".")
        self._graders = mode.graders
        self._rewriter, _, self._queries = mode.outputs.get("queries", "").partition(".")
        self.stages = {self._rewriter, self._source, *self._graders} - {""}
        self._queue: asyncio.Queue[AnswerEvent] = asyncio.Queue()
        self._count = 0
        self._attempt = 0
        self._run: Run | None = None
        self._check: AnswerCheck | None = None
        self._news = asyncio.Event()
        self._is_answered = False
        self._told = 0
        self._ended = False
        self._started = time.perf_counter()
        self._first_token: float | None = None

    def listen_to(self, run: Run) -> dict[str, Any]:
        """Report what a run does, and return the further arguments of `Mode.results`."""
        run.on_begin, self._run = self._on_begin, run

        # A plain function: Haystack copies the inputs of its components, and would copy the stream of a bound method.
        async def on_chunk(chunk: StreamingChunk) -> None:
            self._on_chunk(chunk)

        writes = self._generator and not self._graders
        return {"on_outputs": self._on_outputs, "on_chunk": on_chunk if writes else None}

    async def events(self, answer: Callable[[], Awaitable[dict[str, Any]]]) -> AsyncGenerator[AnswerEvent, None]:
        running = asyncio.create_task(self._answered(answer))
        try:
            while True:
                event = await self._queue.get()
                yield event
                if event.is_terminal:
                    break
        finally:
            running.cancel()
            await asyncio.wait({running})

    def _on_begin(self, stage: str) -> None:
        if not self._count and not self._rewriter:
            # Every listener gets the same events: in this mode the question is searched for unchanged.
            self._emit("query_rewritten", {"query": self._query, "queries": [self._query], "method": "none"})
        if stage == self._generator:
            self._attempt += 1
            self._emit("generation_start", {"attempt": self._attempt})

    def _on_outputs(self, stage: str, outputs: dict[str, Any]) -> None:
        if stage == self._rewriter:
            found = outputs.get(self._queries) or self._query  # empty if the conversation answers the question
            queries = [found] if isinstance(found, str) else list(found)
            method = outputs.get("method") or ("none" if queries == [self._query] else "contextualize")
            self._emit("query_rewritten", {"query": queries[0], "queries": queries, "method": method})
        if stage == self._source:
            documents = outputs.get(self._documents) or []
            self._check = answer_check(documents, self._query, self._run)
            # An agent reports its passages only after it has written.
            attempt = self._attempt + (stage != self._generator)
            self._emit("documents_retrieved", {"attempt": attempt, "documents": listed(documents)})
        if stage in self._graders:
            self._emit_rejection(outputs)

    def _on_chunk(self, chunk: StreamingChunk) -> None:
        if chunk.tool_calls or chunk.tool_call_result:
            self._emit("tool_call" if chunk.tool_calls else "tool_result", chunk.meta)
        if chunk.content and self._check is not None and self._check.add(chunk.content):
            self._news.set()

    def _emit_rejection(self, outputs: dict[str, Any]) -> None:
        retry = outputs.get("retry")
        if retry:
            record, why, queries = retry.history[-1] if retry.history else None, retry.feedback, list(retry.queries)
            if record is None or retry.number == record["attempt"]:
                return  # another search for the same attempt
        else:
            reply = next(iter(outputs.get("replies") or ()), None)
            grounding = reply.meta.get("grounding", {}) if reply is not None else {}
            if grounding.get("status") != "refused":
                return
            record, queries = grounding["history"][-1], []
            why = "\n".join(f"{claim['text']} ({claim['reason']})" for claim in outputs["verdicts"])
        rejected = {"attempt": record["attempt"], "verdicts": record["verdicts"], "feedback": why, "queries": queries}
        self._emit("draft_rejected", rejected)

    async def _answered(self, answer: Callable[[], Awaitable[dict[str, Any]]]) -> None:
        # Not a task of the stage that writes, which ends before the last piece is checked.
        checking = asyncio.create_task(self._check_claims())
        try:
            found = await answer()
            self._is_answered = True
            self._news.set()
            await checking
            self._emit_rest(found)
            if self._first_token is not None:
                found["metadata"]["time_to_first_token_ms"] = round(self._first_token, 2)
            self._emit("generation_complete", found)
        except Exception as error:
            self._emit("error", {"message": str(error)}, error)
        except asyncio.CancelledError:
            # The listener has gone, or the process is ending; a listener that is still there must not wait for ever.
            cancelled = AnswerError("The question was cancelled before it was answered. Ask again.")
            self._emit("error", {"message": str(cancelled)}, cancelled)
            raise
        finally:
            checking.cancel()

    async def _check_claims(self) -> None:
        # Once the answer is there, what is left comes from it.
        while await self._news.wait() and not self._is_answered and self._check is not None:
            self._news.clear()
            claims = await asyncio.to_thread(self._check.finished)
            for piece, claim in zip(self._check.pieces, claims, strict=True):
                self._emit_token(piece)
                self._emit("claim", claim)
                self._told += 1

    def _emit_rest(self, found: dict[str, Any]) -> None:
        """Stream what is left of an answer as if it were just being written: by sentences, or by quotations."""
        text, claims, at = found["answer"], found["metadata"]["claims"], 0
        if self._told and not claims:  # it became another answer
            references = f"\n\n{found['formatted_citations']}"
            self._emit_token(references if text.endswith(references) else "")
            return
        if self._told:
            at = end_with_marks(text, claims[: self._told][-1]["end"])
        for index, claim in enumerate(claims[self._told :], start=self._told):
            end = end_with_marks(text, claim["end"])
            self._emit_token(text[at:end])
            at = max(at, end)
            cited = [
                {name: value for name, value in citation.items() if name not in _KNOWN_AT_THE_END}
                for citation in found["citations"]
                if citation["claim"] == {"start": claim["start"], "end": claim["end"]}
            ]
            self._emit("claim", {"index": index, **claim, "citations": cited})
        if found["status"] in QUOTING:
            for citation in found["citations"]:
                self._emit_token(text[at : citation["claim"]["end"]])
                at = citation["claim"]["end"]
        self._emit_token(text[at:])

    def _emit_token(self, text: str) -> None:
        if text:
            if self._first_token is None:
                self._first_token = (time.perf_counter() - self._started) * 1000
            self._emit("token", {"text": text})

    def _emit(self, name: str, data: dict[str, Any], error: Exception | None = None) -> None:
        if self._ended:
            return
        self._count += 1
        self._ended = name in TERMINAL
        self._queue.put_nowait(AnswerEvent(name, data, self._count, error))
