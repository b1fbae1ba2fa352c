"""Reads what a model asks for: tool calls of the API, or one in the text of a model that cannot make them."""

import re
from dataclasses import dataclass, replace

from haystack.dataclasses import ChatMessage, ToolCall

from shiguan.llm.json_replies import json_object, without_thoughts
from shiguan.llm.source_blocks import neutral_text

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


@dataclass(frozen=True)
class ModelStep:
    """One reply: the calls it makes, or the text of an answer; `in_text` where the calls were written as JSON."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    in_text: bool = False

    @property
    def message(self) -> ChatMessage:
        """What the model is shown of its own reply in the next call."""
        return ChatMessage.from_assistant(neutral_text(self.text) or None, tool_calls=list(self.calls) or None)


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
