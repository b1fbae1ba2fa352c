"""Decides whether a question goes to the library, to the conversation, or to both."""

from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from haystack import component
from haystack.components.generators.chat.types import ChatGenerator
from haystack.dataclasses import ChatMessage

from shiguan.llm.calls import LlmReply, ask_llm, ask_llm_async, is_available, warm_up_generator
from shiguan.llm.json_replies import json_object
from shiguan.llm.prompt_rendering import LAST_TURNS, clean_history, render_prompt
from shiguan.llm.source_blocks import neutral_text
from shiguan.resources import read_patterns
from shiguan.text.languages import detect_language
from shiguan.text.questions import cleaned_question, fault_of_rewrite, needs_context, question_part, salient_terms

SOURCES = ("database", "both", "history")
_LONGEST_SUMMARY = 2_000
_LONGEST_MEMORY_QUERY = 200
_NO_LLM = "No LLM is configured: where to search was decided by rules."


@dataclass(frozen=True)
class Route:
    """Where a question is answered from, and what each place is searched for."""

    source: str
    query: str
    memory_query: str

    def result(self, warnings: list[str], calls: int) -> dict[str, Any]:
        """Give what `MemoryRouter.run` returns."""
        return {**asdict(self), "warnings": warnings, "llm_calls": calls}


@dataclass(frozen=True)
class _Asked:
    """The route by rules, and what a model is asked with, if it is."""

    route: Route
    turns: list[ChatMessage]
    warnings: list[str]
    messages: list[ChatMessage] = field(default_factory=list)


@component
class MemoryRouter:
    """
    Sends a question to the library, to the conversation, or to both.

    Stands first among what reads a question. `database`: a new question, for the library alone. `both`: a follow-up, or
    one that doubts an earlier answer. `history`: one about the conversation itself. Rules decide without a model: what
    leans on the turns before it, and a table of phrases about the conversation. A follow-up is then searched with the
    words that tell most of these turns, which is what finds its passages in `simple`. With a model there is one small
    call; after a lost call or a bad reply the rules' route stays, and a warning says so.

    Reply of the model: an object with `source`, `query` and `memory_query`.

    Example:
    ```python
    history = [{"role": "user", "content": "安禄山是谁？"}, {"role": "assistant", "content": "范阳节度使。"}]
    MemoryRouter().run(query="我们刚才聊到哪了？", history=history)["source"]   # "history"
    MemoryRouter().run(query="他后来怎么样了？", history=history)["source"]     # "both"
    ```
    """

    def __init__(self, chat_generator: ChatGenerator | None = None, *, raise_on_failure: bool = False) -> None:
        """
        Set who is asked.

        :param chat_generator: The model; None for the rules alone.
        :param raise_on_failure: Let an error of the model through.
        """
        self.chat_generator = chat_generator
        self.raise_on_failure = raise_on_failure

    def warm_up(self) -> None:
        """Prepare the nested generator; a second call does nothing."""
        warm_up_generator(self.chat_generator)

    @component.output_types(source=str, query=str, memory_query=str, warnings=list[str], llm_calls=int)
    def run(self, query: str, history: list[Any] | None = None, summary: str = "") -> dict[str, Any]:
        """
        Route a question.

        :param query: The question.
        :param history: The turns before it, `ChatMessage`s or `{"role", "content"}`; without any it is `database`.
        :param summary: What the conversation was about until then.
        :returns: `source`, one of database, both, history; `query`, for the library; `memory_query`, for the
            conversation; `warnings`; `llm_calls`, 0 or 1.
        """
        asked = self._asked(query, history, summary)
        if not asked.messages or self.chat_generator is None:
            return asked.route.result(asked.warnings, 0)
        return _read(ask_llm(self.chat_generator, asked.messages, raise_on_failure=self.raise_on_failure), query, asked)

    @component.output_types(source=str, query=str, memory_query=str, warnings=list[str], llm_calls=int)
    async def run_async(self, query: str, history: list[Any] | None = None, summary: str = "") -> dict[str, Any]:
        """Do as `run`, without blocking the event loop."""
        asked = self._asked(query, history, summary)
        if not asked.messages or self.chat_generator is None:
            return asked.route.result(asked.warnings, 0)
        raising = self.raise_on_failure
        return _read(await ask_llm_async(self.chat_generator, asked.messages, raise_on_failure=raising), query, asked)

    def _asked(self, query: str, history: list[Any] | None, summary: str) -> _Asked:
        turns, warnings = clean_history(history, max_turns=LAST_TURNS)
        route = route_by_rules(query, turns)
        if not turns or not query.strip() or self.chat_generator is None:
            return _Asked(route, turns, warnings)
        if not is_available(self.chat_generator):
            return _Asked(route, turns, [*warnings, _NO_LLM])
        messages = render_prompt(
            "memory_router",
            query=neutral_text(query),
            language=detect_language(query),
            summary=neutral_text(summary[:_LONGEST_SUMMARY]),
            history=[{"role": turn.role.value, "text": turn.text} for turn in turns],
        )
        return _Asked(route, turns, warnings, messages)


@cache
def _phrases() -> dict[str, Any]:
    return read_patterns(Path(__file__).with_name("conversation_phrases.yaml"))


def route_by_rules(query: str, turns: list[ChatMessage]) -> Route:
    """Route a question without a model."""
    text = " ".join(query.split())
    if not turns or not text:
        return Route("database", query, query)
    table = "zh" if detect_language(text) in ("zh", "ja") else "en"
    found = {name for name, patterns in _phrases().items() if patterns[table].search(text)}
    if "history" in found and "checked" not in found:
        return Route("history", query, query)
    if not found and not needs_context(text):
        return Route("database", query, query)
    words = " ".join([query, *salient_terms(query, turns)])
    return Route("both", words, words)


def _read(reply: LlmReply, query: str, asked: _Asked) -> dict[str, Any]:
    fault = reply.failure
    if not fault:
        route, fault = read_route(reply.text, query, asked)
        if route is not None:
            more = [f"The LLM's rewording was not used ({fault})."] if fault else []
            return route.result([*asked.warnings, *more], 1)
    warning = f"The LLM did not say where to search ({fault}): rules decided."
    return asked.route.result([*asked.warnings, warning], 1)


def read_route(reply: str, query: str, asked: Any) -> tuple[Route | None, str]:
    """Read the model's route; the second part says what could not be used of it."""
    found = json_object(reply, "source") or {}
    source = str(found.get("source", "")).strip().casefold()
    if source not in SOURCES:
        return None, "the reply names none of database, both, history"
    remembered = found.get("memory_query")
    memory_query = (
        neutral_text(cleaned_question(remembered))[:_LONGEST_MEMORY_QUERY] if isinstance(remembered, str) else ""
    )
    if source != "both":
        return Route(source, query, memory_query or query), ""
    given = found.get("query")
    reworded = question_part(cleaned_question(given)) if isinstance(given, str) else ""
    fault = fault_of_rewrite(reworded, query, "\n".join(turn.text or "" for turn in asked.turns))
    searched = asked.route.query if fault else reworded
    return Route(source, searched, memory_query or searched), fault
