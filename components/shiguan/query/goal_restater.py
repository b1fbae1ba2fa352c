"""States in one sentence what the user wants to know, for the end of the prompt."""

from typing import Any

from haystack import component
from haystack.components.generators.chat.types import ChatGenerator
from haystack.dataclasses import ChatMessage

from shiguan.llm.calls import NO_LLM, ask_llm_async, blocking, is_available, warm_up_generator
from shiguan.llm.json_replies import json_object
from shiguan.llm.prompts import LAST_TURNS, clean_history, render_prompt
from shiguan.llm.source_blocks import neutral_text
from shiguan.reading.text import read_text
from shiguan.text.follow_ups import needs_context
from shiguan.text.questions import cleaned_question, fault_of_goal
from shiguan.text.sentences import sentence_spans

_WITHOUT_LLM = f"{NO_LLM}: the goal is the question itself."
_LONGEST_RAW_REPLY = 400
_LONGEST_SUMMARY, _LONGEST_BEFORE = 1_000, 200


@component
class GoalRestater:
    """
    States the goal of a conversation, so that the answer does not lose sight of it behind long sources.

    Models attend best to the end of a prompt; the restated goal is put there, right before the answer. Without a model
    (`simple` and `agent` have none) the goal of a follow-up is the question with the one before it. Without a history,
    where the model cannot be called, and after a bad reply it is the question itself; the last two leave a warning. A
    goal that has names which nobody mentioned, is in another language or is an answer is not used.

    Reply of the model: an object with `goal`.

    Example:
    ```python
    restater = GoalRestater(OpenAIChatGenerator())
    restater.run(query="And his son?", history=[ChatMessage.from_user("How did An Lushan die?")])
    # {"goal": "The person wants to know how An Lushan's son died.", "warnings": []}
    ```
    """

    def __init__(self, chat_generator: ChatGenerator | None = None) -> None:
        """
        Set the model.

        :param chat_generator: The model; None for none.
        """
        self.chat_generator = chat_generator

    def warm_up(self) -> None:
        """Prepare the nested generator; a second call does nothing."""
        warm_up_generator(self.chat_generator)

    @component.output_types(goal=str, warnings=list[str])
    async def run_async(self, query: str, history: list[Any] | None = None, summary: str = "") -> dict[str, Any]:
        """
        State the goal.

        :param query: The question.
        :param history: The turns before it, `ChatMessage`s or `{"role", "content"}`.
        :param summary: A summary of the conversation before these.
        :returns: `goal`, one sentence or the question; `warnings`.
        """
        turns, warnings = clean_history(history, max_turns=LAST_TURNS)
        nothing = {"goal": query, "warnings": warnings}
        if not turns or not query.strip() or self.chat_generator is None:
            return {**nothing, "goal": _by_rule(query, turns)}
        if not is_available(self.chat_generator):
            return {**nothing, "warnings": [*warnings, _WITHOUT_LLM]}
        summary = neutral_text(summary[-_LONGEST_SUMMARY:])
        messages = render_prompt(
            "goal_restater",
            query=neutral_text(query),
            language=read_text(query).language,
            summary=summary,
            history=[{"role": turn.role.value, "text": turn.text} for turn in turns],
        )
        reply = await ask_llm_async(self.chat_generator, messages)
        goal, fault = _goal_in(reply.text), reply.failure
        fault = fault or fault_of_goal(goal, query, "\n".join([summary, *(turn.text or "" for turn in turns)]))
        if fault:
            goal = query
            warnings = [*warnings, f"The goal was not restated ({fault}): it is the question itself."]
        return {"goal": goal, "warnings": warnings}

    run = blocking(run_async)


def _by_rule(query: str, turns: list[ChatMessage]) -> str:
    """Return a follow-up with the question before it; any other question is the goal itself."""
    before = next((turn.text or "" for turn in reversed(turns) if turn.role.value == "user"), "")
    if not before or not needs_context(query):
        return query
    before = " ".join(before.split())[:_LONGEST_BEFORE]
    chinese = read_text(query).language == "zh"
    return f"{query}（接着“{before}”问）" if chinese else f'{query} (going on from "{before}")'


def _goal_in(reply: str) -> str:
    found = json_object(reply, "goal")
    text = found.get("goal") if found else None
    if found is None and len(reply) <= _LONGEST_RAW_REPLY and "{" not in reply:
        text = reply
    if not isinstance(text, str):
        return ""
    line = neutral_text(cleaned_question(text))
    # A semicolon ends a Chinese sentence in the retrieval, but it does not end a goal.
    ends = (end for _, end in sentence_spans(line) if line[end - 1] not in "；;")
    return line[: next(ends, len(line))]
