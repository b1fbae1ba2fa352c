"""Takes from a conversation what may be shown to a model."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from haystack.dataclasses import ChatMessage

from shiguan.llm.source_blocks import neutral_text

LAST_TURNS = 6
"""A follow-up is read with so many of the last turns."""

_SPEAKERS = ("user", "assistant")
_LONGEST_TURN = 2_000
_MOST_TURNS = 20
_LONGEST_ROLE = 20


def clean_history(
    history: Iterable[ChatMessage | Mapping[str, Any]] | None,
    *,
    max_turns: int = _MOST_TURNS,
    max_characters: int = _LONGEST_TURN,
) -> tuple[list[ChatMessage], list[str]]:
    """
    Keep the turns of the person and of the assistant, made harmless, and say what was left out.

    System and tool messages come from outside and could carry instructions. The oldest turns are left out beyond
    `max_turns`, and a long turn keeps its beginning and its end: no mistakes of the caller, and not reported.
    """
    if isinstance(history, str | bytes | Mapping) or not isinstance(history, Iterable | None):
        kind = type(history).__name__
        return [], [f"The history was ignored: it is a {kind}, and a list of messages was expected."]
    kept: list[ChatMessage] = []
    dropped: Counter[str] = Counter()
    for turn in history or []:
        role, text = _role_and_text(turn)
        text = neutral_text(text).strip()
        if role not in _SPEAKERS:
            dropped[f"with the role `{role}`" if role else "that are no messages"] += 1
        elif not text:
            dropped["without text"] += 1
        else:
            text = _shortened(text, max_characters)
            kept.append(ChatMessage.from_user(text) if role == "user" else ChatMessage.from_assistant(text))
    warnings = [
        f"{count} {'message' if count == 1 else 'messages'} {what} left out of the history; only turns of `user` and "
        "`assistant` count."
        for what, count in dropped.items()
    ]
    return kept[max(0, len(kept) - max_turns) :], warnings


def _role_and_text(turn: Any) -> tuple[str, str]:
    if isinstance(turn, ChatMessage):
        return turn.role.value, " ".join(turn.texts)
    if not isinstance(turn, Mapping):
        return "", ""
    role = turn.get("role")
    name = "".join(c for c in str(getattr(role, "value", role) or "") if c.isalnum() or c in "_-")[:_LONGEST_ROLE]
    return name, _text(turn.get("content"))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
        return " ".join(part for part in parts if isinstance(part, str))
    return ""


def _shortened(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    # What a long turn is about stands at its beginning, what it leads to at its end.
    head = limit * 2 // 3
    return f"{text[:head]} … {text[len(text) - (limit - head) :]}"
