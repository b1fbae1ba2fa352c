"""Asks for summaries of passages, all in one call, and reads the reply."""

from collections.abc import Sequence

from haystack.dataclasses import ChatMessage

from shiguan.llm.json_replies import json_object
from shiguan.llm.prompt_rendering import render_prompt
from shiguan.llm.source_blocks import SourceBlock, render_sources
from shiguan.text.languages import detect_language

_WORDS_PER_TOKEN = 0.7
_FEWEST_WORDS = 20


def summary_messages(blocks: Sequence[SourceBlock], query: str, tokens: int) -> list[ChatMessage]:
    """Write the prompt."""
    return render_prompt(
        "context_builder",
        context=render_sources(blocks),
        query=query,
        language=detect_language(query),
        words=max(_FEWEST_WORDS, int(tokens * _WORDS_PER_TOKEN)),
    )


def read_summaries(reply: str, count: int) -> dict[int, str]:
    """Read the summaries from the model's reply."""
    found = json_object(reply, "summaries") or {}
    entries = found.get("summaries")
    summaries: dict[int, str] = {}
    twice: set[int] = set()
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict):
            continue
        number, text = entry.get("number"), entry.get("summary")
        if isinstance(number, str) and number.strip().isdecimal():
            number = int(number)
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= count:
            continue
        if number in summaries or not isinstance(text, str) or not text.strip():
            twice.add(number)
            continue
        summaries[number] = " ".join(text.split())
    return {number: text for number, text in summaries.items() if number not in twice}
