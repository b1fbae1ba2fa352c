"""Answers the parts of a question one by one, each from its own passages, before the whole is answered."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, Literal

from haystack import Document, component, logging
from haystack.components.generators.chat.types import ChatGenerator

from shiguan.claims.claim_kinds import claim_kind, is_not_found
from shiguan.claims.claims import split_claims
from shiguan.claims.marks import find_marks, neutral_answer
from shiguan.claims.reply_cleaning import clean_reply
from shiguan.llm.calls import ask_llm_async, blocking, is_available, run_nested_async, warm_up_generator
from shiguan.llm.json_replies import json_object
from shiguan.llm.prompts import not_found_sentence, render_prompt, written_pairs
from shiguan.llm.source_blocks import neutral_text, numbered, render_sources
from shiguan.query.sub_questions import filled, levels
from shiguan.reading.text import read_text
from shiguan.serialization import Serializable

logger = logging.getLogger(__name__)

_LONGEST_ANSWER, _LONGEST_KEY = 1200, 80
# How many passages a sub-question is answered from.
_PASSAGES = 3


@dataclass
class _Part:
    """A sub-question with its query, in which placeholders are filled, its passages, and its answer."""

    sub: dict[str, Any]
    query: str
    passages: list[Document] = field(default_factory=list)
    status: Literal["answered", "not_found", "failed"] = "not_found"
    answer: str = ""
    key: str = ""
    numbers: list[int] = field(default_factory=list)

    def record(self) -> dict[str, Any]:
        """Write it in the form of the answer object and the stream."""
        own = [document for document in self.passages if document.meta["number"] in self.numbers]
        return {
            "number": self.sub["number"],
            "question": self.query,
            "needs": self.sub["needs"],
            "status": self.status,
            "answer": self.answer,
            "numbers": self.numbers,
            "passages": [{"number": document.meta["number"], "id": document.id} for document in own],
        }


@component
class SubQuestionAnswerer(Serializable):
    """
    Answers the sub-questions of a plan, and adds the passages that the answers cite to those of the whole question.

    It comes after the ranker of the whole question and takes the plan from `QueryRewriter`. Sub-questions that need no
    other one are answered concurrently; one that needs another comes after it, with the key of that answer in place of
    `{1}`, and the model gets the questions and answers that it needs. Without a plan or a model the passages are passed
    on unchanged.

    A passage has one number for the whole question. Sub-answers are not sources: the answer is checked against
    passages, and names a sub-question without an answer as missing; one whose call fails leaves a warning.

    Source: the prompts of LangChain's "RAG from scratch" on decomposition; Press et al., "Measuring and Narrowing the
    Compositionality Gap in Language Models" (2023), https://arxiv.org/abs/2210.03350.

    Reply of the model: an object with `answer`, cited, empty if the passages do not say, and `key`, the name or value
    that it comes down to.

    Example:
    ```python
    plan = [{"number": 1, "text": "Who took Caizhou?", "needs": []},
            {"number": 2, "text": "Who was the father of {1}?", "needs": [1]}]
    answerer.run(documents, plan=plan, filters=filters)["sub_answers"][1]
    # {"number": 2, "question": "Who was the father of Li Su?", "needs": [1], "status": "answered",
    #  "answer": "Li Sheng was [3].", "numbers": [3], "passages": [{"number": 3, "id": "…"}]}
    ```
    """

    def __init__(self, chat_generator: ChatGenerator | None = None, *, retriever: Any, ranker: Any = None) -> None:
        """
        Set the parts, which are those of the whole question.

        :param chat_generator: The model that answers sub-questions; None for none.
        :param retriever: Finds passages for a `query` under `filters`, like `PassageRetriever`.
        :param ranker: Ranks passages for a query, like Haystack's rankers; None for the order of the retriever.
        """
        self.chat_generator = chat_generator
        self.retriever = retriever
        self.ranker = ranker

    def warm_up(self) -> None:
        """Prepare the parts; a second call does nothing."""
        for part in (self.retriever, self.ranker, self.chat_generator):
            warm_up_generator(part)

    @component.output_types(
        documents=list[Document],
        sub_answers=list[dict[str, Any]],
        warnings=list[str],
    )
    async def run_async(
        self,
        documents: list[Document],
        plan: list[dict[str, Any]] | None = None,
        filters: dict[str, Any] | None = None,
        language: str | None = None,
        *,
        shown: list[Document] | None = None,
    ) -> dict[str, Any]:
        """
        Answer the sub-questions.

        :param documents: The passages found for the whole question, best first.
        :param plan: Its sub-questions, from `QueryRewriter`; empty where it is not decomposed.
        :param filters: What may be found, from `TenantFilter`.
        :param language: The language of the sub-answers; None for that of each sub-question.
        :param shown: The passages that already have a number, as `meta.number`, from `ConversationReader`.
        :returns: `documents`, first those that sub-answers cite, then the given ones, in total as many as were given or
            are cited, with their numbers; `sub_answers`, for the prompt: each with `number`, `question`, `needs`,
            `status`, `answer`, `numbers` and `passages`; `warnings`.
        """
        if not plan or not is_available(self.chat_generator):
            return {"documents": list(documents), "sub_answers": [], "warnings": []}
        self.warm_up()
        warnings: list[str] = []
        numbers = {document.id: document.meta["number"] for document in shown or []}
        done: dict[int, _Part] = {}
        for level in levels(plan):
            keys = {number: part.key for number, part in done.items()}
            parts = [_Part(sub, filled(sub["text"], plan, keys)) for sub in level]
            found = await asyncio.gather(*(self._passages(part.query, filters) for part in parts))
            for part, (passages, problem) in zip(parts, found, strict=True):
                part.passages = [_numbered(document, numbers) for document in passages]
                if problem:
                    part.status = "failed"
                    warnings.append(_failure(part, problem))
            warnings += filter(None, await asyncio.gather(*(self._answer(part, done, language) for part in parts)))
            done |= {part.sub["number"]: part for part in parts}
        ready = [done[sub["number"]] for sub in plan]
        return {
            "documents": _read_first(ready, documents, numbers),
            "sub_answers": [part.record() for part in ready],
            "warnings": warnings,
        }

    run = blocking(run_async)

    async def _passages(self, query: str, filters: dict[str, Any] | None) -> tuple[list[Document], str]:
        try:
            found = (await run_nested_async(self.retriever, query=query, filters=filters))["documents"]
            if self.ranker is not None:
                found = (await run_nested_async(self.ranker, query=query, documents=found))["documents"]
        except Exception as error:  # the whole question has been searched, so only this part is lost
            logger.warning("A sub-question could not be searched: {error}", error=repr(error))
            return [], f"searching for it failed ({type(error).__name__})"
        return found[:_PASSAGES], ""

    async def _answer(self, part: _Part, done: Mapping[int, _Part], language: str | None) -> str:
        """Ask the model, and return a warning if that failed."""
        not_found = not_found_sentence("simple", language or read_text(part.query).language)
        part.answer = not_found
        if not part.passages or self.chat_generator is None:
            return ""
        messages = render_prompt(
            "sub_question_answerer",
            context=render_sources(part.passages),
            pairs=written_pairs([(done[need].query, done[need].answer) for need in part.sub["needs"]]),
            query=neutral_text(part.query),
            language=language or read_text(part.query).language,
        )
        reply = await ask_llm_async(self.chat_generator, messages)
        problem = reply.failure or _read(reply.text, part)
        if problem:
            part.status = "failed"
        return _failure(part, problem) if problem else ""


def _read(reply: str, part: _Part) -> str:
    """Read answer, marks and key from a reply, or return what is wrong; a reply without JSON is itself the answer."""
    found = json_object(reply, "answer")
    if found is None and "{" in reply:
        return "the reply was not in the form asked for"
    text = found.get("answer") if found is not None else reply
    line = " ".join(clean_reply(text if isinstance(text, str) else "", part.query).split())[:_LONGEST_ANSWER]
    claims = split_claims(line).claims
    if is_not_found(line) or all(claim_kind(claim.text) == "silence" for claim in claims):
        return ""
    known = {document.meta["number"] for document in part.passages}
    marked = (number for mark in find_marks(line) for number in mark.numbers if number in known)
    part.status, part.answer, part.numbers = "answered", neutral_answer(line, known), list(dict.fromkeys(marked))
    key = found.get("key") if found is not None else None
    key = " ".join(key.split()) if isinstance(key, str) else ""
    texts = [line, *(document.content or "" for document in part.passages)]
    if not key or len(key) > _LONGEST_KEY or not any(key.casefold() in text.casefold() for text in texts):
        key = claims[0].text[:_LONGEST_KEY]
    part.key = neutral_text(key).rstrip(".。 ")
    return ""


def _numbered(document: Document, numbers: dict[str, int]) -> Document:
    """Set the number that a passage has for the whole question."""
    return numbered(document, numbers.setdefault(document.id, max(numbers.values(), default=0) + 1))


def _read_first(parts: Sequence[_Part], documents: Sequence[Document], numbers: dict[str, int]) -> list[Document]:
    """Put the passages that sub-answers cite, one of each part in turn, before those of the whole question."""
    cited = [
        [document for document in part.passages if document.meta["number"] in part.numbers] or part.passages[:1]
        for part in parts
        if part.status == "answered"
    ]
    first = {passage.id: passage for turn in zip_longest(*cited) for passage in turn if passage is not None}
    more = [document for document in documents if document.id not in first]
    rest = more[: max(0, len(documents) - len(first))]
    chosen = [*first.values(), *(_numbered(document, numbers) for document in rest)]
    # The context sorts by score if every passage has one; scores of different searches cannot be compared.
    return [replace(document, score=1.0 - place / len(chosen)) for place, document in enumerate(chosen)]


def _failure(part: _Part, reason: str) -> str:
    return f"The sub-question {part.sub['number']} was not answered ({reason}): {part.query}"
