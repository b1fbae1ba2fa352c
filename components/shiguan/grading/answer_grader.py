"""Grades an answer as a reader would: is it supported, does it answer, is it whole, is it clear."""

from typing import Any

from haystack import Document, component
from haystack.components.generators.chat.types import ChatGenerator
from haystack.dataclasses import ChatMessage

from shiguan.claims.checker import check_in_thread
from shiguan.grading.answer_grade import (
    SURE_RELEVANCE,
    CheckedAnswer,
    Grade,
    check_answer,
    grade_messages,
    local_grade,
    read_grade,
)
from shiguan.llm.calls import LlmReply, ask_llm, ask_llm_async, is_available, warm_up_generator


@component
class AnswerGrader:
    """
    Gives an answer four marks from 0 to 10, with at most one call of a language model.

    `support` (do the passages say so), `relevance` (does it answer what was asked), `completeness` (does it give every
    point that bears on the question) and `clarity` (is it plain and without repetition). The local check comes first:
    only where it is unsure, of a claim or of the answer's relevance, a model is asked, once for all of it: for the
    marks, for the verdicts on the unsure claims, for what is missing and how to do better. Below the threshold on
    average, or far below it in one aspect, an answer does not pass; one that is far below it in relevance does not
    answer. `HallucinationGrader` has one inside and does what follows from its grade.

    The model is asked for JSON: `{"claims": [{"id": 1, "verdict": "supported", "source": 1, "quote": "…", "reason":
    "…"}], "support": 9, "relevance": 8, "completeness": 7, "clarity": 8, "missing": "…", "feedback": "…",
    "suggestions": ["…"]}`. Without a model, or with a broken reply, the marks are those of the local check; they are
    coarse, carry `judge: "local"`, and never fail an answer.

    Example:
    ```python
    grader = AnswerGrader(chat_generator=OpenAIChatGenerator())
    grader.run(replies=replies, documents=documents, query="When did An Lushan rise?")["grade"]
    # {"judge": "llm", "judged": 1, "passed": True, "answers": True, "overall": 8.5, "support": 9.0, "relevance": 10.0,
    #  "completeness": 7.0, "clarity": 8.0, "missing": "", "feedback": "…", "suggestions": []}
    ```
    """

    def __init__(
        self, chat_generator: ChatGenerator | None = None, *, threshold: float = 7.0, raise_on_failure: bool = False
    ) -> None:
        """
        Set how good is good enough.

        :param chat_generator: The judge; None, or one that is not available, for the local marks.
        :param threshold: The average, 0 to 10, from which an answer passes.
        :param raise_on_failure: Raise when the model cannot be called; by default the local marks stand in.
        :raises ValueError: If the threshold is out of its range.
        """
        if not 0 <= threshold <= 10:
            raise ValueError(f"`threshold` must be 0 to 10, got {threshold}.")
        self.chat_generator = chat_generator
        self.threshold = threshold
        self.raise_on_failure = raise_on_failure

    def warm_up(self) -> None:
        """Look for the judge; a second call does nothing."""
        warm_up_generator(self.chat_generator)

    @component.output_types(grade=dict[str, Any], warnings=list[str], llm_calls=int)
    def run(
        self, replies: list[ChatMessage], documents: list[Document], query: str, *, language: str | None = None
    ) -> dict[str, Any]:
        """
        Grade an answer.

        :param replies: What the generator said; the first one counts.
        :param documents: The numbered passages that it read.
        :param query: The question.
        :param language: Its language; None to tell from the question.
        :returns: `grade`: `judge` (`llm` or `local`), `judged` (how many claims the model decided), `passed`,
            `answers`, `overall` (the average), the four marks, `missing`, `feedback` and `suggestions`; `warnings`;
            `llm_calls`, 0 or 1.
        """
        answer, _ = check_answer(_first(replies), documents, query, language)
        return self._output(self.graded(answer, self.ask(answer)))

    @component.output_types(grade=dict[str, Any], warnings=list[str], llm_calls=int)
    async def run_async(
        self, replies: list[ChatMessage], documents: list[Document], query: str, *, language: str | None = None
    ) -> dict[str, Any]:
        """Do as `run`, without blocking the event loop."""
        answer, _ = await check_in_thread(lambda: check_answer(_first(replies), documents, query, language))
        return self._output(self.graded(answer, await self.ask_async(answer)))

    def ask(self, answer: CheckedAnswer) -> LlmReply | None:
        """Ask the model, where there is one and the local check is unsure."""
        if not self._asks(answer) or self.chat_generator is None:
            return None
        return ask_llm(self.chat_generator, grade_messages(answer), raise_on_failure=self.raise_on_failure)

    async def ask_async(self, answer: CheckedAnswer) -> LlmReply | None:
        """Ask the model without blocking the event loop."""
        if not self._asks(answer) or self.chat_generator is None:
            return None
        return await ask_llm_async(self.chat_generator, grade_messages(answer), raise_on_failure=self.raise_on_failure)

    def graded(self, answer: CheckedAnswer, reply: LlmReply | None) -> tuple[Grade, CheckedAnswer, list[str], int]:
        """Grade an answer by what a model replied and by the local check."""
        grade, warnings = local_grade(answer), []
        if reply is None:
            if self.chat_generator is not None and answer.claims and not is_available(self.chat_generator):
                warnings.append("No LLM is configured: the answer was checked locally.")
            return grade, answer, warnings, 0
        found = read_grade(reply.text, answer, grade)
        if found is None:
            why = reply.failure or "its reply was not the JSON that was asked for"
            return grade, answer, [f"The LLM did not grade the answer ({why}); it was checked locally."], 1
        return *found, warnings, 1

    def record(self, grade: Grade) -> dict[str, Any]:
        """Write a grade as plain data."""
        by_model, lowest = grade.judge == "llm", min(grade.marks.values())
        passed = not by_model or (grade.overall >= self.threshold and lowest >= self.threshold / 2)
        return {
            "judge": grade.judge,
            "judged": grade.judged,
            "passed": passed,
            "answers": not by_model or grade.marks["relevance"] >= self.threshold / 2,
            "overall": round(grade.overall, 2),
            **grade.marks,
            "missing": grade.missing,
            "feedback": grade.feedback,
            "suggestions": list(grade.suggestions),
        }

    def _asks(self, answer: CheckedAnswer) -> bool:
        self.warm_up()
        if not answer.parts.claims or answer.is_not_found or not is_available(self.chat_generator):
            return False
        return bool(answer.unsure) or local_grade(answer).marks["relevance"] < SURE_RELEVANCE

    def _output(self, graded: tuple[Grade, CheckedAnswer, list[str], int]) -> dict[str, Any]:
        grade, _, warnings, llm_calls = graded
        return {"grade": self.record(grade), "warnings": warnings, "llm_calls": llm_calls}


def _first(replies: list[ChatMessage]) -> ChatMessage:
    return replies[0] if replies else ChatMessage.from_assistant("")
