"""Scores the passages that were found, and asks once for a better search where they do not answer the question."""

from dataclasses import replace
from typing import Any, Literal, get_args

from haystack import Document, component
from haystack.components.generators.chat.types import ChatGenerator

from shiguan.llm.calls import LlmReply, ask_llm, ask_llm_async, is_available, warm_up_generator
from shiguan.retrieval.relevance import (
    Relevance,
    read_relevance,
    relevance_by_scores,
    relevance_by_words,
    relevance_messages,
)
from shiguan.text.languages import detect_language

Method = Literal["llm", "scores", "words"]


@component
class RelevanceGrader:
    """
    Decides whether the passages are worth reading, before an answer is written from them.

    Stands behind the ranker. Every passage gets a score from 0 to 10, and all together one: by one batched call of a
    language model (`llm`), from the ranker's scores (`scores`, 0 to 1), or from the question's words that a passage has
    (`words`). Below the threshold, and only once for a question, the output `retry` fires instead of `documents`: the
    state of the same attempt with another query. It goes into the `BranchJoiner` at the head of the loop.

    The model is asked for JSON: `{"passages": [{"number": 1, "score": 7, "reason": "…"}], "overall": 7, "better_query":
    "…"}`. Without a model, or with a broken reply, the scores of the ranker or the words stand in, with a warning.

    Example:
    ```python
    RelevanceGrader(method="words").run(documents=documents, query="When did An Lushan rise?")["relevance"]
    # {"method": "words", "overall": 8.0, "passages": [{"id": "…", "score": 8.0, "reason": ""}], "reformulated": ""}
    ```
    """

    tenant_role = "retries"

    def __init__(
        self,
        chat_generator: ChatGenerator | None = None,
        *,
        method: Method = "llm",
        fallback: Literal["scores", "words"] = "words",
        threshold: float = 4.0,
        keep_from: float = 0.0,
        raise_on_failure: bool = False,
    ) -> None:
        """
        Set how to score and what is enough.

        :param chat_generator: The judge for the method `llm`; None, or one that is not available, for the fallback.
        :param method: `llm`, `scores` or `words`.
        :param fallback: What stands in for a model: `scores` where a cross-encoder ranks before, else `words`.
        :param threshold: The overall score, 0 to 10, below which the question is put once more in other words.
        :param keep_from: Passages below this score are left out, unless all are; 0 keeps all.
        :param raise_on_failure: Raise when the model cannot be called; by default the fallback stands in.
        :raises ValueError: If an argument is out of its range.
        """
        if method not in get_args(Method):
            raise ValueError(f"`method` must be one of {', '.join(get_args(Method))}, got `{method}`.")
        if fallback not in ("scores", "words"):
            raise ValueError(f"`fallback` must be `scores` or `words`, got `{fallback}`.")
        for name, value in (("threshold", threshold), ("keep_from", keep_from)):
            if not 0 <= value <= 10:
                raise ValueError(f"`{name}` must be 0 to 10, got {value}.")
        self.chat_generator = chat_generator
        self.method = method
        self.fallback = fallback
        self.threshold = threshold
        self.keep_from = keep_from
        self.raise_on_failure = raise_on_failure

    def warm_up(self) -> None:
        """Look for the judge; a second call does nothing."""
        warm_up_generator(self.chat_generator)

    @component.output_types(
        documents=list[Document],
        retry=dict[str, Any],
        relevance=dict[str, Any],
        warnings=list[str],
        llm_calls=int,
    )
    def run(
        self,
        documents: list[Document],
        query: str,
        *,
        state: dict[str, Any] | None = None,
        language: str | None = None,
    ) -> dict[str, Any]:
        """
        Grade passages.

        :param documents: The passages, best first.
        :param query: The person's question, not the query of the round.
        :param state: The state of the loop's round; None outside a loop, where nothing is ever asked again.
        :param language: The question's language; None to tell from the question.
        :returns: `documents`, with `meta.relevance` and in the order of their scores where a model gave them; or
            `retry`, the state with another query. Beside them `relevance` (`method`, `overall`, `passages` with `id`,
            `score` and `reason`, `reformulated`), `warnings` and `llm_calls`.
        """
        self.warm_up()
        if self.chat_generator is None or not self._asks(documents):
            return self._graded(None, documents, query, state)
        messages = relevance_messages(documents, query, language or detect_language(query))
        reply = ask_llm(self.chat_generator, messages, raise_on_failure=self.raise_on_failure)
        return self._graded(reply, documents, query, state)

    @component.output_types(
        documents=list[Document],
        retry=dict[str, Any],
        relevance=dict[str, Any],
        warnings=list[str],
        llm_calls=int,
    )
    async def run_async(
        self,
        documents: list[Document],
        query: str,
        *,
        state: dict[str, Any] | None = None,
        language: str | None = None,
    ) -> dict[str, Any]:
        """
        Grade passages without blocking the event loop.

        :param documents: The passages, best first.
        :param query: The person's question, not the query of the round.
        :param state: The state of the loop's round; None outside a loop.
        :param language: The question's language; None to tell from the question.
        :returns: What `run` returns.
        """
        self.warm_up()
        if self.chat_generator is None or not self._asks(documents):
            return self._graded(None, documents, query, state)
        messages = relevance_messages(documents, query, language or detect_language(query))
        reply = await ask_llm_async(self.chat_generator, messages, raise_on_failure=self.raise_on_failure)
        return self._graded(reply, documents, query, state)

    def _asks(self, documents: list[Document]) -> bool:
        return self.method == "llm" and bool(documents) and is_available(self.chat_generator)

    def _graded(
        self, reply: LlmReply | None, documents: list[Document], query: str, state: dict[str, Any] | None
    ) -> dict[str, Any]:
        found = read_relevance(reply.text, len(documents)) if reply else None
        warnings = []
        if reply and found is None:
            why = reply.failure or "its reply was not the JSON that was asked for"
            warnings.append(f"The LLM did not grade the passages ({why}); they were graded by {self.fallback}.")
        elif reply is None and self.method == "llm" and documents:
            warnings.append(f"No LLM is configured: the passages were graded by {self.fallback}.")
        method = self.method if found or self.method != "llm" else self.fallback
        if found is None:
            found = relevance_by_scores(documents) if method == "scores" else relevance_by_words(documents, query)
        result: dict[str, Any] = {"warnings": warnings, "llm_calls": int(reply is not None)}
        again = found.overall < self.threshold and state is not None and not state["reformulated"]
        better = found.better_query.strip() or query
        result["relevance"] = {
            "method": method,
            "overall": round(found.overall, 2),
            "passages": [
                {"id": document.id, "score": score, "reason": reason}
                for document, score, reason in zip(documents, found.scores, found.reasons, strict=True)
            ],
            "reformulated": better if again else "",
        }
        # To search for the same words again would find the same passages.
        if again and state is not None and better.casefold() not in {known.casefold() for known in state["queries"]}:
            queries = [better, *state["queries"]]
            return {"retry": {**state, "query": better, "queries": queries, "reformulated": True}, **result}
        result["relevance"]["reformulated"] = ""
        return {"documents": self._kept(documents, found, reorder=method == "llm"), **result}

    def _kept(self, documents: list[Document], found: Relevance, *, reorder: bool) -> list[Document]:
        pairs = list(zip(documents, found.scores, strict=True))
        pairs = [pair for pair in pairs if pair[1] >= self.keep_from] or pairs
        if reorder:
            pairs.sort(key=lambda pair: -pair[1])
        return [replace(document, meta={**document.meta, "relevance": score}) for document, score in pairs]
