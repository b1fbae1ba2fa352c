"""Scores an answer as a reader would: does it answer, is it right, is it whole, is it cited."""

from typing import Any

from haystack import Document, component
from haystack.components.generators.chat.types import ChatGenerator
from haystack.dataclasses import ChatMessage

from shiguan.grading.answer_grade import ASPECTS, grade_messages, local_grade, read_grade
from shiguan.llm.calls import LlmReply, ask_llm, ask_llm_async, is_available, warm_up_generator
from shiguan.text.languages import detect_language


@component
class AnswerGrader:
    """
    Gives an answer four marks from 0 to 10, in one call of a language model.

    `relevance` (does it answer what was asked), `accuracy` (does it agree with the passages), `completeness` (does it
    give every point that bears on the question) and `citation_quality` (does every sentence cite a passage that
    supports it). Below the threshold on average, or far below it in one aspect, the answer does not pass.
    `HallucinationGrader` takes the `grade` and asks for another attempt with its feedback.

    The model is asked for JSON: `{"relevance": 8, "accuracy": 9, "completeness": 7, "citation_quality": 8, "feedback":
    "…", "suggestions": ["…"]}`. Without a model, or with a broken reply, the marks come from the local check of claims
    and from shared words; they are coarse, carry `judge: "local"`, and never fail an answer.

    Example:
    ```python
    grader = AnswerGrader(chat_generator=OpenAIChatGenerator())
    grader.run(replies=replies, documents=documents, query="When did An Lushan rise?")["grade"]
    # {"judge": "llm", "passed": True, "overall": 8.5, "relevance": 10.0, "accuracy": 9.0, "completeness": 7.0,
    #  "citation_quality": 8.0, "feedback": "…", "suggestions": []}
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
        :returns: `grade`: `judge` (`llm` or `local`), `passed`, `overall` (the average), the four marks, `feedback` and
            `suggestions`; `warnings`; `llm_calls`, 0 or 1.
        """
        self.warm_up()
        answer = _text(replies)
        if self.chat_generator is None or not answer or not is_available(self.chat_generator):
            return self._graded(None, answer, documents, query)
        messages = grade_messages(answer, documents, query, language or detect_language(query))
        reply = ask_llm(self.chat_generator, messages, raise_on_failure=self.raise_on_failure)
        return self._graded(reply, answer, documents, query)

    @component.output_types(grade=dict[str, Any], warnings=list[str], llm_calls=int)
    async def run_async(
        self, replies: list[ChatMessage], documents: list[Document], query: str, *, language: str | None = None
    ) -> dict[str, Any]:
        """
        Grade an answer without blocking the event loop.

        :param replies: What the generator said; the first one counts.
        :param documents: The numbered passages that it read.
        :param query: The question.
        :param language: Its language; None to tell from the question.
        :returns: What `run` returns.
        """
        self.warm_up()
        answer = _text(replies)
        if self.chat_generator is None or not answer or not is_available(self.chat_generator):
            return self._graded(None, answer, documents, query)
        messages = grade_messages(answer, documents, query, language or detect_language(query))
        reply = await ask_llm_async(self.chat_generator, messages, raise_on_failure=self.raise_on_failure)
        return self._graded(reply, answer, documents, query)

    def _graded(self, reply: LlmReply | None, answer: str, documents: list[Document], query: str) -> dict[str, Any]:
        grade = read_grade(reply.text) if reply else None
        warnings = []
        if reply and grade is None:
            why = reply.failure or "its reply was not the JSON that was asked for"
            warnings.append(f"The LLM did not grade the answer ({why}); its marks come from the local check.")
        elif reply is None and self.chat_generator is not None and answer:
            warnings.append("No LLM is configured: the answer's marks come from the local check.")
        judge = "llm" if grade else "local"
        grade = grade or local_grade(answer, documents, query)
        overall = sum(grade[aspect] for aspect in ASPECTS) / len(ASPECTS)
        passed = judge == "local" or (
            overall >= self.threshold and min(grade[aspect] for aspect in ASPECTS) >= self.threshold / 2
        )
        return {
            "grade": {"judge": judge, "passed": passed, "overall": round(overall, 2), **grade},
            "warnings": warnings,
            "llm_calls": int(reply is not None),
        }


def _text(replies: list[ChatMessage]) -> str:
    return (replies[0].text or "").strip() if replies else ""
