"""Checks every claim of an answer against the passages, and sends the question round again where they do not agree."""

from dataclasses import replace
from typing import Any, get_args

from haystack import Document, component, logging
from haystack.components.embedders.types import DocumentEmbedder
from haystack.dataclasses import ChatMessage

from shiguan.claims.checker import check_in_thread
from shiguan.errors import ModelMissingError
from shiguan.grading.answer_grader import AnswerGrader, check_answer
from shiguan.grading.grading_round import GradingRound, OnUnsupported, settle, state_of
from shiguan.llm.calls import blocking, warm_up_generator
from shiguan.llm.prompts import not_found_sentence
from shiguan.serialization import Serializable

logger = logging.getLogger(__name__)


@component
class HallucinationGrader(Serializable):
    """
    Lets through only what the passages say.

    Stands behind the generator and before the citations. Every sentence that states something gets a verdict:
    `supported`, `partial`, `unsupported` or `contradicted`, with a score from 0 to 1, the supporting span and a reason.
    The local check weighs words by rarity, asks the embedder, and compares numbers, dates, names, opposites and denials
    exactly. With an `answer_grader` a language model decides the claims that the local check is unsure of, and says
    whether the answer answers the question, in one more call.

    If a claim is unsupported or contradicted, or the answer does not pass, and attempts are left, only the output
    `retry` fires: the state for the next round, with a query made of what the question lacks (never of the refused
    claim), feedback and suggestions for the prompt, and the passages read so far. Else `replies`, `documents` and
    `verdicts` fire, with the best attempt. What it still claims without support is left for `CitationExtractor` to
    mark, removed, or the whole answer refused; an answer that does not answer is refused. The reply's
    `meta["grounding"]` tells what happened: `status` (`accepted`, `marked`, `removed`, `refused`, `not_found`),
    `attempts`, `chosen`, `history`, `removed`, `grade`, `llm_calls`. `verdicts` go to `CitationExtractor`, which shows
    them.

    All attempts and grades together are at most four calls of a model, one after the other.

    The attempt travels in the state and not in the component, so that one grader serves many questions at once.

    Example:
    ```python
    grader = HallucinationGrader(max_attempts=1)
    reply = ChatMessage.from_assistant("He rose in 755 [1]. He had three eyes [1].")
    grader.run(replies=[reply], documents=documents)
    # {"replies": [ChatMessage("He rose in 755[1].")], "documents": […], "verdicts": [{"verdict": "supported", …}, …]}
    ```
    """

    tenant_role = "retries"

    def __init__(
        self,
        document_embedder: DocumentEmbedder | None = None,
        *,
        answer_grader: AnswerGrader | None = None,
        max_attempts: int = 3,
        on_unsupported: OnUnsupported = "remove",
        mode: str = "precise",
    ) -> None:
        """
        Set how strict to be.

        :param document_embedder: A document embedder for the similarity of claims and windows; None for words alone.
        :param answer_grader: Grades each attempt; None to check its claims alone.
        :param max_attempts: How many answers may be generated for one question, 1 to 3.
        :param on_unsupported: What happens after the last attempt to claims without support: `mark` leaves them
            to be marked, `remove` leaves them out, `refuse` gives up the whole answer. Where nothing is left the answer
            is the mode's not-found sentence.
        :param mode: Whose not-found sentence: `simple`, `advanced` or `precise`.
        :raises ValueError: If an argument is out of its range.
        """
        if not 1 <= max_attempts <= 3:
            raise ValueError(f"`max_attempts` must be 1 to 3, got {max_attempts}.")
        if on_unsupported not in get_args(OnUnsupported):
            raise ValueError(
                f"`on_unsupported` must be one of {', '.join(get_args(OnUnsupported))}, got `{on_unsupported}`."
            )
        not_found_sentence(mode, "en")
        self.document_embedder = document_embedder
        self.answer_grader = answer_grader
        self.max_attempts = max_attempts
        self.on_unsupported = on_unsupported
        self.mode = mode

    def warm_up(self) -> None:
        """Load the embedder and look for the judge; a second call does nothing."""
        try:
            warm_up_generator(self.document_embedder)
        except ModelMissingError as error:  # every check says that it did without
            logger.info("Answers are checked by words alone: {error}", error=str(error))
        warm_up_generator(self.answer_grader)

    @component.output_types(
        replies=list[ChatMessage],
        documents=list[Document],
        verdicts=list[dict[str, Any]],
        retry=dict[str, Any],
        warnings=list[str],
        llm_calls=int,
    )
    async def run_async(
        self,
        replies: list[ChatMessage],
        documents: list[Document],
        query: str = "",
        *,
        state: dict[str, Any] | None = None,
        passages: list[Document] | None = None,
        language: str | None = None,
        sent: list[ChatMessage] | None = None,
    ) -> dict[str, Any]:
        """
        Grade an answer.

        :param replies: What the generator said; the first one counts.
        :param documents: The numbered passages that it read.
        :param query: The person's question; the state's own if empty.
        :param state: The state of this round, from `AttemptReader`; None outside a loop.
        :param passages: The passages of this round as they were before the context cut and numbered them, to be read
            again in the next round; None for `documents`.
        :param language: The question's language; None to tell from the question.
        :param sent: What the generator was sent; the next round's prompt goes on behind it and the reply.
        :returns: Either `retry`, the state of the next round; or `replies` (exactly one), its `documents` and its
            `verdicts`, one for each claim of the chosen attempt. Beside them `warnings` and `llm_calls`, the calls of
            the judge in all rounds so far.
        """
        self.warm_up()
        round_state = state_of(state, query)
        reply = replies[0] if replies else ChatMessage.from_assistant("")
        question, embedder = round_state["question"], self.document_embedder
        answer, warnings = await check_in_thread(
            lambda: check_answer(reply, documents, question, language, embedder=embedder)
        )
        read = list(documents if passages is None else passages)
        this = GradingRound(round_state, reply, read, answer, warnings=warnings, sent=list(sent or []))
        if self.answer_grader is not None:
            grade, answer, more, calls = await self.answer_grader.graded(answer)
            grade = {**grade, "claims": len(answer.claims)}
            this = replace(this, answer=answer, grade=grade, warnings=[*warnings, *more], llm_calls=calls)
        return settle(this, max_attempts=self.max_attempts, on_unsupported=self.on_unsupported, mode=self.mode)

    run = blocking(run_async)
