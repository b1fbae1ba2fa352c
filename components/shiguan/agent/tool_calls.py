"""Calls of tools: read from what a model says, and told to it with what came of them, in numbered passages that fit."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from haystack import Document
from haystack.dataclasses import ChatMessage, ToolCall

from shiguan.agent.tools import sentence
from shiguan.llm.json_replies import json_object, without_thoughts
from shiguan.llm.source_blocks import neutral_text, render_sources, source_block
from shiguan.models.token_counter import TokenCounter
from shiguan.text.passages import cut_span

# A call is the end of a reply and begins a line: JSON in the middle of an answer may be a source's.
_CALL = re.compile(
    r"(?:^|\n)[ \t]*(?:(?:行动|行動|action)[ \t]*[:：]\s*)?(?:```\w*\s*)?(\{.*\})\s*(?:```)?\s*$",
    re.DOTALL | re.IGNORECASE,
)
_NAMES = ("tool", "name", "action")
_ARGUMENTS = ("arguments", "parameters", "action_input", "args")
_ANSWERS = ("answer", "final_answer")
_MOST = 20
_ODD = re.compile(r"[^\w-]", re.ASCII)
# The most that one observation may have.
_MOST_TOKENS = 1_500
# What is longer is cut before its sentences are looked for; a passage with less room than this is left out.
_MOST_CHARACTERS, _LEAST_TOKENS = 30_000, 50

Outcome = Literal["found", "known", "empty", "failed", "unknown_tool", "wrong_arguments", "too_many"]


@dataclass(frozen=True)
class ModelStep:
    """One reply: the calls it makes, or the text of an answer; `in_text` where the calls were written as JSON."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    in_text: bool = False

    @property
    def message(self) -> ChatMessage:
        """What the model is shown of its own reply in the next call."""
        calls = () if self.in_text else self.calls
        return ChatMessage.from_assistant(neutral_text(self.text) or None, tool_calls=list(calls) or None)


def read_step(reply: ChatMessage, step: int) -> ModelStep:
    """Read a reply; calls without an id of their own get one, names that no API would take are mended."""
    text = without_thoughts(reply.text or "").strip()
    if reply.tool_calls:
        calls = []
        for number, call in enumerate(reply.tool_calls[:_MOST]):
            arguments = call.arguments if isinstance(call.arguments, dict) else {}
            calls.append(ToolCall(_ODD.sub("_", call.tool_name)[:64] or "_", arguments, id=f"call_{step}_{number}"))
        return ModelStep(text, tuple(calls))
    match = _CALL.search(text)
    found = json_object(match[1]) if match else None
    if not found:
        return ModelStep(text)
    answer = next((found[key] for key in _ANSWERS if isinstance(found.get(key), str)), None)
    name = next((found[key] for key in _NAMES if isinstance(found.get(key), str)), None)
    if name is None:
        return ModelStep(answer.strip() if answer else text)
    arguments = next((found[key] for key in _ARGUMENTS if isinstance(found.get(key), dict)), {})
    return ModelStep(text, (ToolCall(_ODD.sub("_", name)[:64] or "_", arguments),), in_text=True)


def as_answer(reply: ChatMessage, text: str, prompt: ChatMessage) -> ChatMessage:
    """Make the final reply: its text alone, with the marks of the prompt that began the conversation."""
    marks = {name: value for name, value in prompt.meta.items() if name.startswith("prompt")}
    return replace(ChatMessage.from_assistant(text), _meta={**reply.meta, **marks})


@dataclass(frozen=True)
class Observation:
    """What came of one call: passages with numbers, or a sentence that says why there are none."""

    call: ToolCall
    outcome: Outcome
    text: str
    passages: tuple[Document, ...] = ()
    reason: str = ""

    def record(self) -> dict[str, Any]:
        """Write it as `--explain` and the stream tell it."""
        numbers = [passage.meta["number"] for passage in self.passages]
        told = {"tool": self.call.tool_name, "arguments": self.call.arguments, "outcome": self.outcome}
        return {**told, "numbers": numbers, "reason": self.reason}

    def message(self, language: str, *, in_text: bool) -> ChatMessage:
        """Write it for the model."""
        if not in_text:
            return ChatMessage.from_tool(self.text, origin=self.call)
        return ChatMessage.from_user(f"{sentence('observation', language, tool=self.call.tool_name)}\n{self.text}")


def fitting(documents: Sequence[Document], counter: TokenCounter) -> list[Document]:
    """Keep what fits into one observation, best first, the last one cut at its sentences."""
    left, kept = _MOST_TOKENS, []
    for document in documents:
        if not (document.content or "").strip():
            continue
        if left < _LEAST_TOKENS:
            break
        header = counter.count(render_sources([source_block(_numbered(document, 1), "")]))
        shortened = _shortened(document, max(1, left - header), counter)
        left -= header + counter.count(shortened.content or "")
        kept.append(shortened)
    return kept


def number_passages(found: Sequence[Document], passages: Sequence[Document]) -> tuple[list[Document], list[Document]]:
    """Give new passages the next numbers, and name those that are among the numbered ones already."""
    new: list[Document] = []
    known: list[Document] = []
    highest = max((one.meta["number"] for one in passages), default=0)
    for document in found:
        same = next((one for one in [*passages, *new] if _holds(one, document)), None)
        if same is None:
            new.append(_numbered(document, highest + len(new) + 1))
        elif same not in known:
            known.append(same)
    return new, known


def written(new: Sequence[Document], known: Sequence[Document], language: str) -> str:
    """Write passages as a model reads them: between delimiters, made harmless; known ones by their numbers."""
    parts = [render_sources(map(source_block, new))] if new else []
    if known:
        numbers = ", ".join(f"[{passage.meta['number']}]" for passage in known)
        parts.append(sentence("known", language, numbers=numbers))
    return "\n".join(parts)


def _holds(passage: Document, document: Document) -> bool:
    return passage.id == document.id and (document.content or "") in (passage.content or "")


def _numbered(document: Document, number: int) -> Document:
    return replace(document, meta={**document.meta, "number": number}, embedding=None, sparse_embedding=None)


def _shortened(document: Document, room: int, counter: TokenCounter) -> Document:
    text = (document.content or "")[:_MOST_CHARACTERS]
    if text == document.content and counter.count(text) <= room:
        return document
    matches = [(match["start"], match["end"]) for match in document.meta.get("matches") or []]
    start, end = cut_span(text, matches, room, counter.count)
    if document.meta.get("origin") == "tool":
        # No store keeps it whole: what is read of it is all there is.
        return Document(content=text[start:end], meta=document.meta)
    first = document.meta["cut"][0] if "cut" in document.meta else 0
    return replace(document, content=text[start:end], meta={**document.meta, "cut": [first + start, first + end]})
