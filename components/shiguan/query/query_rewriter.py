"""Turns one question into the queries that find its answer, with at most one model call."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from haystack import component
from haystack.components.generators.chat.types import ChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.document_stores.types import DocumentStore

from shiguan.llm.calls import NO_LLM, LlmReply, Outcome, ask_llm_async, blocking, is_available, warm_up_generator
from shiguan.llm.json_replies import json_object, json_strings
from shiguan.llm.prompts import LAST_TURNS, clean_history, in_language, read_examples, render_prompt
from shiguan.llm.source_blocks import neutral_text
from shiguan.query.query_analyzer import analyse_question
from shiguan.query.sub_questions import MOST, read_plan
from shiguan.reading.text import read_text
from shiguan.tenants import LibraryStore, require_filters
from shiguan.text.follow_ups import asked_of_another, needs_context, salient_terms
from shiguan.text.languages import DETECTED
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


@component
class QueryRewriter:
    """
    Rewords a question for the search, by the method that its analysis suggests.

    It comes after `QueryAnalyzer` and before the retrievers. With `method: auto` it uses the analysis's method. In any
    case the question itself stays first among the queries; a follow-up that depends on the conversation is first made
    standalone, in the same call.

    - `none`: the question unchanged
    - `multi_query`: the question and three others, up to five on request, from different angles (RAG-Fusion)
    - `step_back`: and a more general question (Zheng et al. 2023, Take a Step Back, https://arxiv.org/abs/2310.06117)
    - `decompose`: the question unchanged, and a `plan` of two to four sub-questions for `SubQuestionAnswerer`
    - `expand`: and the question with synonyms and aliases appended
    - `contextualize`: the question made standalone by the history

    Where the library has books in languages that the question is not in, one wording in each of them, at most three,
    is requested in the same call, with every method but an explicit `none` or `hyde`.

    With a history the model also says where to look for the answer (`source`): a question that is complete by itself is
    left unchanged, and one about the conversation itself (`history`), if it has no name that was not mentioned, is
    answered by what was said last, status `recalled`, without a search. A reworded follow-up replaces the question only
    if it is a question about the same thing, in its language, without names or numbers that nobody mentioned.
    Without a model, after an error and after a bad reply the question is searched alone, a follow-up together with the
    most informative words of the turns before it (docs/quality.md); a warning says so.

    Reply of the model: an object with `source` and `query` (the standalone question; only with a history) and
    `queries`; for `decompose` with `questions`, each with `text` and `needs`, the numbers of those whose answers it
    depends on; for other languages with `translations`, by language.

    Example:
    ```python
    rewriter = QueryRewriter(ConfiguredChatGenerator())
    rewriter.run(query="他是何时起兵的？", history=[ChatMessage.from_user("安禄山是谁？")])
    # {"queries": ["安禄山是何时起兵的？"], "query": "安禄山是何时起兵的？", "method": "contextualize",
    #  "plan": [], "use_hyde": False, "warnings": []}
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

    @component.output_types(
        outcome=Outcome,
        query=str,
        queries=list[str],
        word_queries=list[str],
        vector_queries=list[str],
        analysis=dict[str, Any],
        method=str,
        plan=list[dict[str, Any]],
        use_hyde=bool,
        warnings=list[str],
    )
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
            `number`, `text` and `needs`; `use_hyde`, from the analysis, never with a plan; `warnings`.
            Where the conversation answers, `outcome` instead of the queries.
        :raises ValueError: If the method is unknown, or `wordings` out of its range.
        """
        if wordings is not None and not 1 <= wordings <= _MOST_QUERIES:
            raise ValueError(f"`wordings` must lie between 1 and {_MOST_QUERIES}, got {wordings}.")
        analysis, by_default = analysis or {}, method in (None, "auto")
        if wordings is not None and by_default:
            method = "multi_query"
        wanted = self.method if method is None else method
        if wanted not in (*METHODS, "auto", _HYDE):
            raise ValueError(f"`method` must be auto, {_HYDE} or one of {', '.join(METHODS)}, got {wanted!r}.")
        turns, warnings = clean_history(history, max_turns=LAST_TURNS)
        asked = _Rewriting(query, analysis, retrieval, warnings, wordings or _QUERIES, may_recall=by_default)
        if not query.strip():
            return asked.result()
        asked.use_hyde = bool(analysis.get("use_hyde")) if method in (None, "auto") else method == _HYDE
        asked.languages = self._languages(query, filters) if wanted not in ("none", _HYDE) else ()
        # Every method but a plain `none` reads a follow-up with its history: its words alone would find nothing.
        if wanted != "none" and needs_context(query, has_history=bool(turns)):
            asked.turns = turns
        if wanted == "auto":
            suggested = analysis.get("method")
            wanted = suggested if suggested in METHODS else str(analyse_question(query)["method"])
        if wanted in ("none", "contextualize", _HYDE):
            wanted = "contextualize" if asked.turns else "none"
        asked.method = wanted
        if not is_available(self.chat_generator):
            return asked.result() if wanted == "none" else asked.unchanged(NO_LLM)
        if wanted == "none" and not asked.languages:
            return asked.result()
        reply = await ask_llm_async(self.chat_generator, asked.prompt())
        return asked.read(reply)

    run = blocking(run_async)

    def _languages(self, query: str, filters: dict[str, Any] | None) -> tuple[str, ...]:
        """Return the languages of the library other than the question's, the most frequent first."""
        store = self.document_store
        if not isinstance(store, LibraryStore):
            return ()
        passages = store.count_languages(require_filters(filters, type(self).__name__))
        most_first = sorted(passages, key=lambda code: (-passages[code], code))
        known = (read_text(query).language, "und", "None", "")
        return tuple([code for code in most_first if code not in known][:_MOST_LANGUAGES])


@dataclass
class _Rewriting:
    """One question: what the model is asked about it, and what is made of the reply."""

    query: str
    analysis: dict[str, Any]
    retrieval: str
    warnings: list[str]
    wordings: int
    may_recall: bool
    method: str = "none"
    turns: list[ChatMessage] = field(default_factory=list)
    languages: tuple[str, ...] = ()
    use_hyde: bool = False

    def prompt(self) -> list[ChatMessage]:
        counts = {"step_back": _STEP_BACK_QUERIES, "decompose": MOST, "expand": _EXPANSION_TERMS}
        language = read_text(self.query).language
        # The examples have no history, so a follow-up gets none of them.
        shown = self.method if self.method in _WITH_EXAMPLES and not self.turns else None
        return render_prompt(
            "query_rewriter",
            query=neutral_text(self.query),
            language=language,
            method=self.method,
            count=counts.get(self.method, self.wordings),
            history=[{"role": turn.role.value, "text": turn.text} for turn in self.turns],
            languages=list(self.languages),
            examples=in_language(read_examples(shown), language),
        )

    def read(self, reply: LlmReply) -> dict[str, Any]:
        if reply.failure:
            return self.unchanged(reply.failure)
        if self._is_about_the_conversation(reply.text):
            outcome = Outcome("recalled", texts=tuple(turn.text or "" for turn in self.turns))
            return {"outcome": outcome, "analysis": self.analysis, "method": "none", "warnings": self.warnings}
        question = self.query
        if self.turns:
            question, fault = self._stand_alone(reply.text)
            if fault:
                return self.unchanged(f"The LLM's rewording was not used, because {fault}")
            if self.method == "contextualize" and question == self.query:
                self.method = "none"
        translated, missing = self._translations(reply.text)
        if missing:
            languages = ", ".join(missing)
            self.warnings.append(f"The LLM sent no usable wording in {languages}: the original question was used.")
        queries: list[str] = []
        plan: list[dict[str, Any]] = []
        problem = ""
        if self.method == "decompose":
            plan = read_plan(reply.text, question)
            problem = "" if plan else "The LLM did not take the question apart: it was answered as a whole."
        elif self.method not in ("contextualize", "none"):
            queries = self._queries(reply.text, question)
            problem = "" if queries else "The LLM sent no usable queries: the question was searched as it is."
        if problem:
            self.warnings.append(problem)
        return self.result([question, *queries, *translated], plan)

    def unchanged(self, reason: str) -> dict[str, Any]:
        """Return the question as it is, a follow-up with words of the conversation, and a warning."""
        question, done = self.query, "it was searched as it is"
        if other := asked_of_another(self.query, self.turns):
            question, done = other, f"it was searched as `{other}`"
        elif words := salient_terms(self.query, self.turns):
            question = f"{self.query} {' '.join(words)}"
            done = f"it was searched together with words of the conversation ({', '.join(words)})"
        else:
            self.method = "none"
        self.warnings.append(f"{reason}: the question was not rewritten, {done}.")
        return self.result([question])

    def result(self, queries: Sequence[str] = (), plan: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
        queries = list(queries) or [self.query]
        ways = {"word_queries": ("hybrid", "words"), "vector_queries": ("hybrid", "vectors")}
        use_hyde = self.use_hyde and not plan
        return {
            "query": queries[0],
            "queries": queries,
            **{name: queries for name, retrievals in ways.items() if self.retrieval in retrievals},
            "analysis": {**self.analysis, "use_hyde": use_hyde},
            "method": self.method,
            "plan": list(plan),
            "use_hyde": use_hyde,
            "warnings": self.warnings,
        }

    def _is_about_the_conversation(self, reply: str) -> bool:
        """Return whether the model says so; a question with a name that was not mentioned is about something else."""
        if not self.turns or not self.may_recall:
            return False
        source = str((json_object(reply, "source") or {}).get("source", "")).strip().casefold()
        mentioned = read_text("\n".join(turn.text or "" for turn in self.turns))
        return source == "history" and all(mentioned.has_name(name) for name in read_text(self.query).names)

    def _stand_alone(self, reply: str) -> tuple[str, str]:
        """Read the standalone question, or what is wrong with it."""
        found = json_object(reply, "query")
        if found and str(found.get("source", "")).strip().casefold() == "database":
            return self.query, ""
        text = found.get("query") if found else None
        if found is None and len(reply) <= _LONGEST_RAW_REPLY and "{" not in reply:
            text = reply  # a model that forgot the JSON but wrote the question
        if not isinstance(text, str):
            return "", "it was not in the form asked for"
        question = question_part(cleaned_question(text))
        return question, fault_of_rewrite(question, self.query, "\n".join(turn.text or "" for turn in self.turns))

    def _queries(self, reply: str, question: str) -> list[str]:
        found = json_strings(reply, "queries")
        if self.method != "expand":
            most = _STEP_BACK_QUERIES if self.method == "step_back" else self.wordings
            return usable_queries(found, question, most=most)
        terms = [cleaned_question(term) for term in found]
        new = [term for term in terms if 0 < len(term) <= 60 and term.casefold() not in question.casefold()]
        return [f"{question} {' '.join(new[:_EXPANSION_TERMS])}"] if new else []

    def _translations(self, reply: str) -> tuple[list[str], list[str]]:
        """Return the usable wordings in other languages, and the languages without one."""
        found = (json_object(reply, "translations") or {}).get("translations")
        texts = found if isinstance(found, dict) else {}
        kept: dict[str, str] = {}
        for code in self.languages:
            for query in usable_queries([text] if isinstance(text := texts.get(code), str) else [], self.query, most=1):
                if read_text(query).language in (code, "und") or code not in DETECTED:
                    kept[code] = query
        return list(kept.values()), [code for code in self.languages if code not in kept]
