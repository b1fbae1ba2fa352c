"""Turns one question into the queries that find its answer, with at most one model call."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from haystack import GeneratedAnswer, component
from haystack.components.generators.chat.types import ChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.document_stores.types import DocumentStore

from shiguan.llm.calls import NO_LLM, LlmReply, ask_llm_async, blocking, is_available, warm_up_generator
from shiguan.llm.json_replies import json_object, json_strings
from shiguan.llm.prompt_rendering import LAST_TURNS, clean_history, recalled_answer, render_prompt
from shiguan.llm.prompts import in_language, read_examples
from shiguan.llm.source_blocks import neutral_text
from shiguan.query.query_analyzer import analyse_question, choose_method
from shiguan.query.sub_questions import MOST, SubQuestion, read_plan
from shiguan.tenants import require_filters
from shiguan.text.follow_ups import needs_context, salient_terms
from shiguan.text.languages import DETECTED, detect_language
from shiguan.text.name_forms import named_text, names_of
from shiguan.text.questions import (
    cleaned_question,
    fault_of_rewrite,
    question_part,
    usable_queries,
)

Retrieval = Literal["hybrid", "words", "vectors"]
"""Whether passages are searched by words, by vectors, or by both."""
METHODS = ("none", "multi_query", "step_back", "decompose", "expand", "contextualize")

_HYDE = "hyde"
_LONGEST_RAW_REPLY = 300
_QUERIES, _MOST_QUERIES = 3, 5
_MOST_LANGUAGES = 3
_WITH_EXAMPLES = ("step_back", "decompose")
_STEP_BACK_QUERIES = 1
_EXPANSION_TERMS = 8
_OUTPUTS: dict[str, Any] = {
    "answers": list[GeneratedAnswer],
    "query": str,
    "queries": list[str],
    "word_queries": list[str],
    "vector_queries": list[str],
    "analysis": dict[str, Any],
    "method": str,
    "plan": list[dict[str, Any]],
    "use_hyde": bool,
    "warnings": list[str],
    "llm_calls": int,
}


@dataclass(frozen=True)
class _Plan:
    """What one run is going to do: the question, its method, the turns that it depends on, and warnings."""

    query: str
    method: str
    turns: list[ChatMessage] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    use_hyde: bool = False
    translates: bool = False
    languages: tuple[str, ...] = ()
    wordings: int = _QUERIES
    analysis: dict[str, Any] = field(default_factory=dict)
    retrieval: str = "hybrid"
    may_recall: bool = False


@component
class QueryRewriter:
    """
    Rewords a question for the search, by the method that its analysis suggests.

    It comes after `QueryAnalyzer` and before the retrievers. With `method: auto` it uses the analysis's method, or
    chooses one by rules if there is no analysis. In any case the question itself stays first among the queries; a
    follow-up that depends on the conversation is first made standalone, in the same call.

    - `none`: the question unchanged
    - `multi_query`: the question and three others, up to five on request, from different angles (RAG-Fusion)
    - `step_back`: and a more general question (Zheng et al. 2023, Take a Step Back, https://arxiv.org/abs/2310.06117)
    - `decompose`: the question unchanged, and a `plan` of two to four sub-questions for `SubQuestionAnswerer`
    - `expand`: and the question with synonyms and aliases appended
    - `contextualize`: the question made standalone by the history

    Where the library has books in languages that the question is not in, one wording in each of them, at most three,
    is searched as well; it is requested in the same call, with every method but an explicit `none` or `hyde`.

    With a history the model also says where to look for the answer (`source`): a question that is complete by itself is
    left unchanged, and one about the conversation itself (`history`), if it has no name that was not mentioned, is
    answered by what was said last, status `recalled`, without a search. A reworded follow-up is checked before it
    replaces the question: it must be a question, in the question's language, not too long, about the same thing,
    and without names or numbers that nobody mentioned.
    Without a model, after an error and after a bad reply the question is searched alone, a follow-up together with the
    most informative words of the turns before it; a warning says so. On the last turns of MT-RAG's conversations the
    question alone finds passages with an nDCG@10 of .82, with such words of .89 (docs/quality.md).

    Reply of the model: an object with `source` and `query` (the standalone question; only with a history) and
    `queries`; for `decompose` with `questions`, each with `text` and `needs`, the numbers of those whose answers it
    depends on; for other languages with `translations`, by language.

    Example:
    ```python
    rewriter = QueryRewriter(ConfiguredChatGenerator())
    rewriter.run(query="他是何时起兵的？", history=[ChatMessage.from_user("安禄山是谁？")])
    # {"queries": ["安禄山是何时起兵的？"], "query": "安禄山是何时起兵的？", "method": "contextualize",
    #  "plan": [], "use_hyde": False, "warnings": [], "llm_calls": 1}
    ```
    """

    def __init__(
        self,
        chat_generator: ChatGenerator | None = None,
        *,
        method: str = "auto",
        document_store: DocumentStore | None = None,
    ) -> None:
        """
        Set how questions are reworded.

        :param chat_generator: The model; None for none.
        :param method: One of the methods above for every question, or `auto`.
        :param document_store: The library into whose languages the question is translated; only Shiguan's stores report
            theirs. None for the question's own language alone.
        :raises ValueError: If the method is unknown.
        """
        if method not in (*METHODS, "auto"):
            raise ValueError(f"`method` must be auto or one of {', '.join(METHODS)}, got {method!r}.")
        self.chat_generator = chat_generator
        self.method = method
        self.document_store = document_store

    def warm_up(self) -> None:
        """Prepare the nested generator; a second call does nothing."""
        warm_up_generator(self.chat_generator)

    @component.output_types(**_OUTPUTS)
    async def run_async(
        self,
        query: str,
        analysis: dict[str, Any] | None = None,
        history: list[Any] | None = None,
        method: str | None = None,
        *,
        filters: dict[str, Any] | None = None,
        wordings: int | None = None,
        retrieval: Retrieval = "hybrid",
    ) -> dict[str, Any]:
        """
        Reword a question.

        :param query: The question.
        :param analysis: The analysis of `QueryAnalyzer`; None to analyse the question here.
        :param history: The turns before it, `ChatMessage`s or `{"role", "content"}`.
        :param method: The method for this call instead of the component's own. With `hyde` a hypothetical passage is
            requested and the question is not reworded; with any other but `auto` no such passage is.
        :param filters: What may be found, from `TenantFilter`, for the languages of the library.
        :param wordings: How many others `multi_query` writes, 1 to 5; it is then the method unless another is named.
        :param retrieval: `words` or `vectors` to search in only one way: the other retriever then gets no queries.
        :returns: `query`, the question or its standalone form; `queries`, that and its other wordings, and the same for
            the retrievers as `word_queries` and `vector_queries`, absent for a retriever that is not to search;
            `analysis`, unchanged but for `use_hyde`; `method`, the method used; `plan`, the sub-questions, each with
            `number`, `text` and `needs`; `use_hyde`, from the analysis, never with a plan; `warnings`; `llm_calls`, 0
            or 1. Where the conversation answers, `answers` instead of the queries.
        :raises ValueError: If the method is unknown, or `wordings` out of its range.
        """
        plan = self._plan(query, analysis, history, method, wordings=wordings)
        languages = self._languages(query, filters) if plan.translates else ()
        may_recall = method in (None, "auto")
        plan = replace(plan, languages=languages, analysis=analysis or {}, retrieval=retrieval, may_recall=may_recall)
        if plan.method == "none" and (not plan.languages or not is_available(self.chat_generator)):
            return _done(plan, [])  # no model, or no wordings in other languages were requested
        if not is_available(self.chat_generator):
            return self._fallback(plan, NO_LLM, calls=0)
        reply = await ask_llm_async(self.chat_generator, _prompt(plan))
        return _recalled(plan, reply) if _is_about_the_conversation(reply.text, plan) else self._read(plan, reply)

    run = blocking(run_async)

    def _languages(self, query: str, filters: dict[str, Any] | None) -> tuple[str, ...]:
        """Return the languages of the library other than the question's, the most frequent first."""
        count = getattr(self.document_store, "count_languages", None)
        passages = count(require_filters(filters, type(self).__name__)) if count else {}
        most_first = sorted(passages, key=lambda code: (-passages[code], code))
        known = (detect_language(query), "und", "None", "")
        return tuple([code for code in most_first if code not in known][:_MOST_LANGUAGES])

    def _plan(
        self,
        query: str,
        analysis: dict[str, Any] | None,
        history: list[Any] | None,
        method: str | None,
        *,
        wordings: int | None = None,
    ) -> _Plan:
        if wordings is not None and not 1 <= wordings <= _MOST_QUERIES:
            raise ValueError(f"`wordings` must lie between 1 and {_MOST_QUERIES}, got {wordings}.")
        if wordings is not None and method in (None, "auto"):
            method = "multi_query"
        wanted = self.method if method is None else method
        translates = wanted not in ("none", _HYDE)
        hyde = bool((analysis or {}).get("use_hyde")) if method in (None, "auto") else method == _HYDE
        if method == _HYDE:
            wanted = "contextualize"
        if wanted not in (*METHODS, "auto"):
            raise ValueError(f"`method` must be auto, {_HYDE} or one of {', '.join(METHODS)}, got {wanted!r}.")
        turns, warnings = clean_history(history, max_turns=LAST_TURNS)
        if not query.strip():
            return _Plan(query, "none", warnings=warnings)
        # Every method but a plain `none` reads a follow-up with its history: its words alone would find nothing.
        if wanted == "none" or not needs_context(query, has_history=bool(turns)):
            turns = []
        suggested = (analysis or {}).get("method")
        if wanted == "auto" and suggested in METHODS:
            wanted = suggested
        if wanted in ("auto", "contextualize"):
            wanted = "none" if wanted == "contextualize" else choose_method(analyse_question(query))
        if turns and wanted == "none":
            wanted = "contextualize"
        return _Plan(query, wanted, turns, warnings, hyde, translates, wordings=wordings or _QUERIES)

    def _read(self, plan: _Plan, reply: LlmReply) -> dict[str, Any]:
        if reply.failure:
            return self._fallback(plan, reply.failure)
        question, warnings = plan.query, list(plan.warnings)
        if plan.turns:
            question, fault = _stand_alone(reply.text, plan)
            if fault:
                return self._fallback(plan, f"The LLM's rewording was not used, because {fault}")
            if plan.method == "contextualize" and question == plan.query:
                plan = replace(plan, method="none")
        translated, missing = _translations(reply.text, plan)
        if missing:
            warnings.append(f"The LLM sent no usable wording in {', '.join(missing)}: there the question is as it was.")
        if plan.method in ("contextualize", "none"):
            if not missing:
                reply.keep()
            return _done(plan, translated, question=question, warnings=warnings, calls=1)
        if plan.method == "decompose":
            subs = read_plan(reply.text, question)
            if not subs:
                warnings.append("The LLM did not take the question apart: it was answered as a whole.")
            else:
                reply.keep()
            return _done(plan, translated, question=question, subs=subs, warnings=warnings, calls=1)
        queries = _wordings(reply.text, plan, question)
        if not queries:
            warnings.append("The LLM sent no usable queries: the question was searched as it is.")
        else:
            reply.keep()
        return _done(plan, [*queries, *translated], question=question, warnings=warnings, calls=1)

    def _fallback(self, plan: _Plan, reason: str, calls: int = 1) -> dict[str, Any]:
        question, done = plan.query, "it was searched as it is"
        if words := salient_terms(plan.query, plan.turns):
            question = f"{plan.query} {' '.join(words)}"
            done = f"it was searched together with words of the conversation ({', '.join(words)})"
        warning = f"{reason}: the question was not rewritten, {done}."
        method = plan.method if question != plan.query else "none"
        return _done(plan, [], question=question, warnings=[*plan.warnings, warning], calls=calls, method=method)


def _wordings(reply: str, plan: _Plan, question: str) -> list[str]:
    found = json_strings(reply, "queries")
    if plan.method == "expand":
        return _expanded(question, found)
    return usable_queries(found, question, most=_STEP_BACK_QUERIES if plan.method == "step_back" else plan.wordings)


def _prompt(plan: _Plan) -> list[ChatMessage]:
    counts = {"step_back": _STEP_BACK_QUERIES, "decompose": MOST, "expand": _EXPANSION_TERMS}
    language = detect_language(plan.query)
    # The examples have no history, so a follow-up gets none of them.
    shown = plan.method if plan.method in _WITH_EXAMPLES and not plan.turns else None
    return render_prompt(
        "query_rewriter",
        query=neutral_text(plan.query),
        language=language,
        method=plan.method,
        count=counts.get(plan.method, plan.wordings),
        history=[{"role": turn.role.value, "text": turn.text} for turn in plan.turns],
        languages=list(plan.languages),
        examples=in_language(read_examples(shown), language),
    )


def _stand_alone(reply: str, plan: _Plan) -> tuple[str, str]:
    found = json_object(reply, "query")
    if found and str(found.get("source", "")).strip().casefold() == "database":
        return plan.query, ""
    text = found.get("query") if found else None
    if found is None and len(reply) <= _LONGEST_RAW_REPLY and "{" not in reply:
        # A model that forgot the JSON but wrote the question.
        text = reply
    if not isinstance(text, str):
        return "", "it was not in the form asked for"
    question = question_part(cleaned_question(text))
    context = "\n".join(turn.text or "" for turn in plan.turns)
    return question, fault_of_rewrite(question, plan.query, context)


def _is_about_the_conversation(reply: str, plan: _Plan) -> bool:
    """Return whether the model says so; a question with a name that was not mentioned is about something else."""
    if not plan.turns or not plan.may_recall:
        return False
    source = str((json_object(reply, "source") or {}).get("source", "")).strip().casefold()
    mentioned = named_text("\n".join(turn.text or "" for turn in plan.turns))
    return source == "history" and all(mentioned.has(name) for name in names_of(plan.query))


def _recalled(plan: _Plan, reply: LlmReply) -> dict[str, Any]:
    reply.keep()
    answer = recalled_answer(plan.query, [turn.text or "" for turn in plan.turns], detect_language(plan.query))
    return {
        "answers": [answer],
        "analysis": plan.analysis,
        "method": "none",
        "warnings": plan.warnings,
        "llm_calls": 1,
    }


def _translations(reply: str, plan: _Plan) -> tuple[list[str], list[str]]:
    """Return the usable wordings in other languages, and the languages without one."""
    found = (json_object(reply, "translations") or {}).get("translations")
    texts = found if isinstance(found, dict) else {}
    kept: dict[str, str] = {}
    for code in plan.languages:
        for query in usable_queries([text] if isinstance(text := texts.get(code), str) else [], plan.query, most=1):
            if detect_language(query) in (code, "und") or code not in DETECTED:
                kept[code] = query
    return list(kept.values()), [code for code in plan.languages if code not in kept]


def _expanded(question: str, found: list[str]) -> list[str]:
    terms = [cleaned_question(term) for term in found]
    new = [term for term in terms if 0 < len(term) <= 60 and term.casefold() not in question.casefold()]
    return [f"{question} {' '.join(new[:_EXPANSION_TERMS])}"] if new else []


def _done(
    plan: _Plan,
    more: list[str],
    *,
    question: str | None = None,
    subs: Sequence[SubQuestion] = (),
    warnings: list[str] | None = None,
    calls: int = 0,
    method: str | None = None,
) -> dict[str, Any]:
    asked = plan.query if question is None else question
    queries = [asked, *more]
    ways = {"word_queries": ("hybrid", "words"), "vector_queries": ("hybrid", "vectors")}
    return {
        "query": asked,
        "queries": queries,
        **{name: queries for name, retrievals in ways.items() if plan.retrieval in retrievals},
        "analysis": {**plan.analysis, "use_hyde": plan.use_hyde and not subs},
        "method": plan.method if method is None else method,
        "plan": [sub.as_dict() for sub in subs],
        "use_hyde": plan.use_hyde and not subs,
        "warnings": plan.warnings if warnings is None else warnings,
        "llm_calls": calls,
    }
