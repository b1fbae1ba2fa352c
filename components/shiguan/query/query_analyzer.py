"""Says what kind of question was asked, so that the stages after it spend no more on it than it needs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from haystack import component
from haystack.components.generators.chat.types import ChatGenerator
from haystack.dataclasses import ChatMessage

from shiguan.llm.calls import LlmReply, ask_llm, ask_llm_async, is_available, warm_up_generator
from shiguan.llm.json_replies import json_object
from shiguan.llm.prompt_rendering import clean_history, render_prompt
from shiguan.llm.source_blocks import neutral_text
from shiguan.query.question_analysis import QuestionAnalysis, analyse_question, choose_method, with_model_reply
from shiguan.text.questions import needs_context

# From this complexity on a hypothetical passage is worth its call.
_HYDE_FROM = 6
_NO_LLM = "No LLM is configured: the question was analysed by rules alone."


@component
class QueryAnalyzer:
    """
    Finds the type, difficulty, language, task and scope of a question, and what is worth doing with it.

    Stands first in `advanced` and `precise`. Rules for Chinese and English decide, in well under a millisecond and
    without a call; a model is asked only where one is given as `chat_generator`, and overrides the rules field by
    field where its reply is usable. In other languages the rules see little and call most things simple.

    - `type`: simple_fact, complex_reasoning, multi_hop, comparison, aggregation or open_ended
    - `complexity`: 1 to 10; `language`: ISO 639-1; `task`: qa, summarize, compare or code
    - `scope`: local (exact details) or global (a synthesis)
    - `use_hyde`: from complexity 6, where the answer is prose; names, dates and lists gain nothing from an imagined
      passage that guesses them
    - `method` for `QueryRewriter`: none up to complexity 3; decompose from 7 and for multi-hop; multi_query for
      comparison, aggregation and open questions; step_back for reasoning; expand else; contextualize for a question
      that leans on the history

    Reply of the model: an object with `type`, `complexity`, `task` and `scope`.

    Example:
    ```python
    QueryAnalyzer().run(query="安史之乱为什么会爆发？")["analysis"]
    # {"type": "complex_reasoning", "complexity": 6, "language": "zh", "task": "qa", "scope": "global",
    #  "use_hyde": True, "method": "step_back", "reasons": ["complex_reasoning: why"]}
    ```
    """

    def __init__(self, chat_generator: ChatGenerator | None = None, *, raise_on_failure: bool = False) -> None:
        """
        Set who is asked.

        :param chat_generator: A model to ask for its opinion; None for the rules alone.
        :param raise_on_failure: Let an error of the model through; otherwise the rules' analysis and a warning.
        """
        self.chat_generator = chat_generator
        self.raise_on_failure = raise_on_failure

    def warm_up(self) -> None:
        """Prepare the nested generator; a second call does nothing."""
        warm_up_generator(self.chat_generator)

    @component.output_types(
        analysis=dict[str, Any], use_hyde=bool, language=str, task=str, scope=str, warnings=list[str], llm_calls=int
    )
    def run(
        self,
        query: str,
        history: list[Any] | None = None,
        task: str | None = None,
        language: str | None = None,
        scope: str | None = None,
    ) -> dict[str, Any]:
        """
        Analyse a question.

        :param query: The question.
        :param history: The turns before it, `ChatMessage`s or `{"role", "content"}`.
        :param task: What the person asks for, if they said so; it goes before what the question sounds like.
        :param language: The language in which to answer, if they said so.
        :param scope: `local` or `global`, if they said so; None or `auto` for what the question sounds like.
        :returns: `analysis`, a plain dict; `use_hyde`, `language`, `task` and `scope` once more on their own, for the
            components that need only these; `warnings`; `llm_calls`, 0 or 1.
        """
        analysis, follow_up, warnings, request = self._open(query, history)
        reply = ask_llm(*request, raise_on_failure=self.raise_on_failure) if request else None
        return _result(analysis, reply, warnings, (task, language, scope), follow_up=follow_up)

    @component.output_types(
        analysis=dict[str, Any], use_hyde=bool, language=str, task=str, scope=str, warnings=list[str], llm_calls=int
    )
    async def run_async(
        self,
        query: str,
        history: list[Any] | None = None,
        task: str | None = None,
        language: str | None = None,
        scope: str | None = None,
    ) -> dict[str, Any]:
        """Do as `run`, without blocking the event loop."""
        analysis, follow_up, warnings, request = self._open(query, history)
        reply = await ask_llm_async(*request, raise_on_failure=self.raise_on_failure) if request else None
        return _result(analysis, reply, warnings, (task, language, scope), follow_up=follow_up)

    def _open(
        self, query: str, history: list[Any] | None
    ) -> tuple[QuestionAnalysis, bool, list[str], tuple[ChatGenerator, list[ChatMessage]] | None]:
        analysis, (turns, warnings) = analyse_question(query), clean_history(history)
        follow_up = needs_context(query, has_history=bool(turns))
        if self.chat_generator is None or not query.strip():
            return analysis, follow_up, warnings, None
        if not is_available(self.chat_generator):
            return analysis, follow_up, [*warnings, _NO_LLM], None
        messages = render_prompt("query_analyzer", query=neutral_text(query), language=analysis.language)
        return analysis, follow_up, warnings, (self.chat_generator, messages)


def _result(
    analysis: QuestionAnalysis,
    reply: LlmReply | None,
    warnings: list[str],
    said: tuple[str | None, str | None, str | None],
    *,
    follow_up: bool,
) -> dict[str, Any]:
    analysis, more = (analysis, []) if reply is None else _merged(analysis, reply)
    analysis = _as_said(analysis, *said)
    use_hyde = analysis.imaginable and analysis.complexity >= _HYDE_FROM
    method = "contextualize" if follow_up else choose_method(analysis)
    fields = analysis.as_dict()
    fields.pop("imaginable")
    reasons = fields.pop("reasons")
    return {
        "analysis": {**fields, "use_hyde": use_hyde, "method": method, "reasons": reasons},
        "use_hyde": use_hyde,
        "language": analysis.language,
        "task": analysis.task,
        "scope": analysis.scope,
        "warnings": [*warnings, *more],
        "llm_calls": 0 if reply is None else 1,
    }


def _as_said(analysis: QuestionAnalysis, task: str | None, language: str | None, scope: str | None) -> QuestionAnalysis:
    """Let what the person said stand before what the question seems to be."""
    said = analysis.scope if scope in (None, "", "auto") else str(scope)
    return replace(analysis, task=task or analysis.task, language=language or analysis.language, scope=said)


def _merged(analysis: QuestionAnalysis, reply: LlmReply) -> tuple[QuestionAnalysis, list[str]]:
    if reply.failure:
        return analysis, [f"The LLM could not analyse the question ({reply.failure}): the rules' analysis is used."]
    found: Mapping[str, Any] | None = json_object(reply.text, "type")
    if found is None:
        return analysis, ["The LLM's analysis was no JSON object: the rules' analysis is used."]
    merged, broken = with_model_reply(analysis, dict(found))
    if not broken:
        return merged, []
    names = ", ".join(f"`{name}`" for name in broken)
    return merged, [f"The LLM's analysis had no usable {names}: there the rules decide."]
