"""Decides by rules whether a question goes to the library, to the conversation, or to both."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from haystack.dataclasses import ChatMessage

from shiguan.resources import read_patterns
from shiguan.text.follow_ups import needs_context, salient_terms
from shiguan.text.languages import detect_language

Source = Literal["database", "both", "history"]


@dataclass(frozen=True)
class Route:
    """Where a question is answered from, and what the library is searched for."""

    source: Source
    query: str


def route_question(question: str, turns: Sequence[ChatMessage]) -> Route:
    """
    Route a question.

    `database`: a question that is complete by itself and does not refer to the conversation. `both`: one that depends
    on the turns before it, searched with their most informative words, or one that doubts an earlier answer.
    `history`: one about the conversation itself.
    """
    text = " ".join(question.split())
    if not turns or not text:
        return Route("database", question)
    table = "zh" if detect_language(text) in ("zh", "ja") else "en"
    found = {name for name, patterns in _phrases().items() if patterns[table].search(text)}
    if "history" in found and "checked" not in found:
        return Route("history", question)
    if not found and not needs_context(text):
        return Route("database", question)
    return Route("both", " ".join([question, *salient_terms(question, turns)]))


@cache
def _phrases() -> dict[str, Any]:
    return read_patterns(Path(__file__).with_name("conversation_phrases.yaml"))
