"""Reads calls of tools from a model's replies, and numbers what the tools found."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from haystack import Document
from haystack.dataclasses import ChatMessage, ToolCall

from shiguan.agent.tools import sentence
from shiguan.llm.json_replies import json_object, without_thoughts
from shiguan.llm.source_blocks import neutral_text, numbered, render_sources
from shiguan.models.token_counter import TokenCounter
from shiguan.reading.passage import Passage

# A call begins a line and ends the reply: JSON in the middle of an answer may come from a source.
_CALL = re.compile(r"(?:^|\n)[ \t]*(?:(?:行动|行動|action)[ \t]*[:：]\s*)?(?:```\w*\s*)?(?=\{)", re.IGNORECASE)
_NAMES = ("tool", "name", "action")
_ARGUMENTS = ("arguments", "parameters", "action_input", "args")
_ANSWERS = ("answer", "final_answer")
_MOST = 20
_ODD = re.compile(r"[^\w-]", re.ASCII)
# The limit of one observation.
_MOST_TOKENS = 1_500
# Longer texts are cut before they are split into sentences; a passage with less room than this is left out.
_MOST_CHARACTERS, _LEAST_TOKENS = 30_000, 50

Outcome = Literal["found", "known", "empty", "failed", "unknown_tool", "wrong_arguments", "too_many"]


@dataclass(frozen=True)
class ModelStep:
    """One reply: its calls, or the text of an answer; `in_text` if the calls were written as JSON."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    in_text: bool = False

    @property
    def message(self) -> ChatMessage:
        """The reply as the model sees it in the next call."""
        calls = () if self.in_text else self.calls
        return ChatMessage.from_assistant(neutral_text(self.text) or None, tool_calls=list(calls) or None)


def read_step(reply: ChatMessage, step: int) -> ModelStep:
    """Read a reply; every call gets an id, and names that no API would accept are corrected."""
    text = without_thoughts(reply.text or "").strip()
    if reply.tool_calls:
        calls = [
            _call(call.tool_name, call.arguments, id=f"call_{step}_{number}")
            for number, call in enumerate(reply.tool_calls[:_MOST])
        ]
        return ModelStep(text, tuple(calls))
    end = text.removesuffix("```").rstrip()
    match = _CALL.search(end) if end.endswith("}") else None
    found = json_object(end[match.end() :]) if match else None
    if not found:
        return ModelStep(text)
    name = next((found[key] for key in _NAMES if isinstance(found.get(key), str)), None)
    if name is None:
        answer = next((found[key] for key in _ANSWERS if isinstance(found.get(key), str)), None)
        return ModelStep(answer.strip() if answer else text)
    arguments: Any = next((found[key] for key in _ARGUMENTS if isinstance(found.get(key), dict)), {})
    return ModelStep(text, (_call(name, arguments),), in_text=True)


def _call(name: str, arguments: Any, **more: Any) -> ToolCall:
    return ToolCall(_ODD.sub("_", name)[:64] or "_", arguments if isinstance(arguments, dict) else {}, **more)


@dataclass(frozen=True)
class Observation:
    """The result of one call: numbered passages, or a sentence that says why there are none."""

    call: ToolCall
    outcome: Outcome
    text: str
    passages: tuple[Document, ...] = ()
    reason: str = ""

    def record(self) -> dict[str, Any]:
        """Return what `--explain` and the stream show."""
        numbers = [passage.meta["number"] for passage in self.passages]
        asked = {"tool": self.call.tool_name, "arguments": self.call.arguments}
        return {**asked, "outcome": self.outcome, "numbers": numbers, "reason": self.reason}

    def message(self, language: str, *, in_text: bool) -> ChatMessage:
        if not in_text:
            return ChatMessage.from_tool(self.text, origin=self.call)
        return ChatMessage.from_user(f"{sentence('observation', language, tool=self.call.tool_name)}\n{self.text}")


def observe(
    call: ToolCall, found: Sequence[Document], passages: Sequence[Document], language: str, counter: TokenCounter
) -> tuple[Observation, list[Document]]:
    """Make the observation of a call, and return it with its new passages, numbered after those so far."""
    new: list[Document] = []
    known: list[Document] = []
    highest = max((passage.meta["number"] for passage in passages), default=0)
    for document in _fitting(found, counter):
        same = next((passage for passage in [*passages, *new] if _holds(passage, document)), None)
        if same is None:
            new.append(numbered(document, highest + len(new) + 1))
        elif same not in known:
            known.append(same)
    if not new and not known:
        return Observation(call, "empty", sentence("no_result", language)), []
    # New ones between delimiters, made harmless; known ones by their numbers.
    parts = [render_sources(new)] if new else []
    if known:
        numbers = ", ".join(f"[{passage.meta['number']}]" for passage in known)
        parts.append(sentence("known", language, numbers=numbers))
    return Observation(call, "found" if new else "known", "\n".join(parts), (*new, *known)), new


def _fitting(documents: Sequence[Document], counter: TokenCounter) -> list[Document]:
    """Keep what fits into one observation, best first, the last cut at a sentence."""
    left, kept = _MOST_TOKENS, []
    for document in documents:
        if not (document.content or "").strip():
            continue
        if left < _LEAST_TOKENS:
            break
        header = counter.count(render_sources([replace(numbered(document, 1), content="")]))
        shortened = _shortened(document, max(1, left - header), counter)
        left -= header + counter.count(shortened.content or "")
        kept.append(shortened)
    return kept


def _holds(passage: Document, document: Document) -> bool:
    return passage.id == document.id and (document.content or "") in (passage.content or "")


def _shortened(document: Document, room: int, counter: TokenCounter) -> Document:
    text = (document.content or "")[:_MOST_CHARACTERS]
    if text == document.content and counter.count(text) <= room:
        return document
    part = Passage(replace(document, content=text)).shortened(room, counter.count)
    # What a tool found is in no store, so the part that is read is all there is.
    return Document(content=part.content, meta=document.meta) if document.meta.get("origin") == "tool" else part
