"""States in one sentence what the person is after, to stand last in the prompt."""

from dataclasses import dataclass
from typing import Any

from haystack import component
from haystack.components.generators.chat.types import ChatGenerator
from haystack.dataclasses import ChatMessage

from shiguan.llm.calls import LlmReply, ask_llm, ask_llm_async, is_available, warm_up_generator
from shiguan.llm.json_replies import json_object
from shiguan.llm.prompt_rendering import LAST_TURNS, clean_history, render_prompt
from shiguan.llm.source_blocks import neutral_text
from shiguan.text.languages import detect_language
from shiguan.text.questions import cleaned_question, fault_of_goal, needs_context
from shiguan.text.sentences import sentence_spans

_NO_LLM = "No LLM is configured: the goal is the question itself."
_LONGEST_RAW_REPLY = 400
_LONGEST_SUMMARY, _LONGEST_BEFORE = 1_000, 200


@component
class GoalRestater:
    """
    Says what a conversation comes down to, so that the answer does not lose sight of it behind long sources.

    Models attend best to the end of a prompt; the restated goal stands there, right before the answer. It is made
    beside the retrieval, so it costs no time. Without a model to ask (`simple` and `agent` name none) the goal of a
    follow-up is the question with the one before it. Without a history, where the model cannot be called, and after a
    bad reply it is the question itself; the last two leave a warning. A goal that names what nobody mentioned, is in
    another language or is an answer instead is not used.

    Reply of the model: an object with `goal`.

    Example:
    ```python
    restater = GoalRestater(ConfiguredChatGenerator())
    restater.run(query="And his son?", history=[ChatMessage.from_user("How did An Lushan die?")])
    # {"goal": "The person wants to know how An Lushan's son died.", "warnings": [], "llm_calls": 1}
    ```
    """

    def __init__(self, chat_generator: ChatGenerator | None = None, *, raise_on_failure: bool = False) -> None:
        """
        Set who is asked.

        :param chat_generator: The model; None for none.
        :param raise_on_failure: Let an error of the model through.
        """
        self.chat_generator = chat_generator
        self.raise_on_failure = raise_on_failure

    def warm_up(self) -> None:
        """Prepare the nested generator; a second call does nothing."""
        warm_up_generator(self.chat_generator)

    @component.output_types(goal=str, warnings=list[str], llm_calls=int)
    def run(self, query: str, history: list[Any] | None = None, summary: str = "") -> dict[str, Any]:
        """
        State the goal.

        :param query: The question.
        :param history: The turns before it, `ChatMessage`s or `{"role", "content"}`.
        :param summary: What the conversation was about until then.
        :returns: `goal`, one sentence or the question; `warnings`; `llm_calls`, 0 or 1.
        """
        asked = self._asked(query, history, summary)
        reply = ask_llm(*asked.request, raise_on_failure=self.raise_on_failure) if asked.request else None
        return _read(reply, query, asked)

    @component.output_types(goal=str, warnings=list[str], llm_calls=int)
    async def run_async(self, query: str, history: list[Any] | None = None, summary: str = "") -> dict[str, Any]:
        """Do as `run`, without blocking the event loop."""
        asked = self._asked(query, history, summary)
        reply = await ask_llm_async(*asked.request, raise_on_failure=self.raise_on_failure) if asked.request else None
        return _read(reply, query, asked)

    def _asked(self, query: str, history: list[Any] | None, summary: str) -> "_Asked":
        turns, warnings = clean_history(history, max_turns=LAST_TURNS)
        if not turns or not query.strip() or self.chat_generator is None:
            return _Asked(turns, warnings, goal=_by_rule(query, turns))
        if not is_available(self.chat_generator):
            return _Asked(turns, [*warnings, _NO_LLM])
        summary = neutral_text(summary[-_LONGEST_SUMMARY:])
        return _Asked(turns, warnings, (self.chat_generator, _prompt(query, turns, summary)), summary)


@dataclass(frozen=True)
class _Asked:
    """What a goal is made of: the turns, and the model with its prompt, if there is anything to ask one."""

    turns: list[ChatMessage]
    warnings: list[str]
    request: tuple[ChatGenerator, list[ChatMessage]] | None = None
    summary: str = ""
    goal: str = ""


def _prompt(query: str, turns: list[ChatMessage], summary: str) -> list[ChatMessage]:
    return render_prompt(
        "goal_restater",
        query=neutral_text(query),
        language=detect_language(query),
        summary=summary,
        history=[{"role": turn.role.value, "text": turn.text} for turn in turns],
    )


def _by_rule(query: str, turns: list[ChatMessage]) -> str:
    """Put beside a follow-up what it goes on from."""
    before = next((turn.text or "" for turn in reversed(turns) if turn.role.value == "user"), "")
    if not before or not needs_context(query):
        return ""
    before = " ".join(before.split())[:_LONGEST_BEFORE]
    return f"{query}（接着“{before}”问）" if detect_language(query) == "zh" else f'{query} (going on from "{before}")'


def _read(reply: LlmReply | None, query: str, asked: _Asked) -> dict[str, Any]:
    if reply is None:
        return {"goal": asked.goal or query, "warnings": asked.warnings, "llm_calls": 0}
    goal, fault = "", reply.failure
    if not fault:
        goal = _goal_in(reply.text)
        fault = fault_of_goal(goal, query, "\n".join([asked.summary, *(turn.text or "" for turn in asked.turns)]))
    if fault:
        warning = f"The goal was not restated ({fault}): it is the question itself."
        return {"goal": query, "warnings": [*asked.warnings, warning], "llm_calls": 1}
    return {"goal": goal, "warnings": asked.warnings, "llm_calls": 1}


def _goal_in(reply: str) -> str:
    found = json_object(reply, "goal")
    text = found.get("goal") if found else None
    if found is None and len(reply) <= _LONGEST_RAW_REPLY and "{" not in reply:
        text = reply
    if not isinstance(text, str):
        return ""
    line = neutral_text(cleaned_question(text))
    # A semicolon ends a Chinese sentence for retrieval, but not a goal.
    ends = (end for _, end in sentence_spans(line) if line[end - 1] not in "；;")
    return line[: next(ends, len(line))]
