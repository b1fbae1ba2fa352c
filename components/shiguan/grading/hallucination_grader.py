"""Checks every claim of an answer against the passages, and sends the question round again where they do not agree."""

import asyncio
from dataclasses import replace
from typing import Any, Self, get_args

from haystack import Document, component, default_from_dict, default_to_dict, logging
from haystack.components.embedders.types import DocumentEmbedder
from haystack.components.generators.chat.types import ChatGenerator
from haystack.core.serialization import component_to_dict
from haystack.dataclasses import ChatMessage

from shiguan.errors import ModelMissingError
from shiguan.grading.claim_judge import judge_messages
from shiguan.grading.grading_round import GradingRound, OnUnsupported, open_round, settle, state_of, with_judgement
from shiguan.llm.calls import ask_llm, ask_llm_async, is_available, warm_up_generator
from shiguan.llm.prompts import not_found_sentence

logger = logging.getLogger(__name__)


@component
class HallucinationGrader:
    """
    Lets through only what the passages say.

    Stands behind the generator and before the citations. Every sentence that states something gets a verdict:
    `supported`, `partial`, `unsupported` or `contradicted`, with a score from 0 to 1, the supporting span and a reason.
    The local check weighs words by rarity, asks the embedder, and compares numbers, dates, names, opposites and denials
    exactly. With a `chat_generator` a language model judges all claims in one more call.

    If a claim is unsupported or contradicted and attempts are left, only the output `retry` fires: the state for the
    next round, with a query made of what lacked support, feedback for the prompt, and the passages read so far. Else
    `replies`, `documents` and `verdicts` fire, with the best attempt. What it still claims without support is marked,
    removed, or the whole answer refused. The reply's `meta["grounding"]` tells what happened: `status` (`accepted`,
    `marked`, `removed`, `refused`, `not_found`), `attempts`, `chosen`, `history`, `removed`, `llm_calls`.
    `verdicts` go to `CitationExtractor`, which shows them.

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
        chat_generator: ChatGenerator | None = None,
        max_attempts: int = 3,
        on_unsupported: OnUnsupported = "remove",
        mode: str = "precise",
        raise_on_failure: bool = False,
    ) -> None:
        """
        Set how strict to be.

        :param document_embedder: A document embedder for the similarity of claims and windows; None for words alone.
        :param chat_generator: A judge; None, or one that is not available, for the local check alone.
        :param max_attempts: How many answers may be generated for one question, 1 to 3.
        :param on_unsupported: What happens after the last attempt to claims without support: `mark` puts a sign behind
            them, `remove` leaves them out, `refuse` gives up the whole answer. Where nothing is left the answer is the
            mode's not-found sentence.
        :param mode: Whose not-found sentence: `simple`, `advanced` or `precise`.
        :param raise_on_failure: Raise when the embedder or the judge fails; by default the check does without them,
            with a warning.
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
        self.chat_generator = chat_generator
        self.max_attempts = max_attempts
        self.on_unsupported = on_unsupported
        self.mode = mode
        self.raise_on_failure = raise_on_failure

    def to_dict(self) -> dict[str, Any]:
        """
        Write the component's parameters; by itself Haystack leaves out what has no `to_dict` of its own.

        :returns: What `from_dict` takes.
        """
        parts = {"document_embedder": self.document_embedder, "chat_generator": self.chat_generator}
        return default_to_dict(
            self,
            **{name: part and component_to_dict(part, name) for name, part in parts.items()},
            max_attempts=self.max_attempts,
            on_unsupported=self.on_unsupported,
            mode=self.mode,
            raise_on_failure=self.raise_on_failure,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """
        Make the component from its parameters.

        :param data: What `to_dict` returned.
        :returns: The component.
        """
        return default_from_dict(cls, data)

    def warm_up(self) -> None:
        """Load the embedder and look for the judge; a second call does nothing."""
        try:
            warm_up_generator(self.document_embedder)
        except ModelMissingError as error:  # every check says that it did without
            logger.info("Answers are checked by words alone: {error}", error=str(error))
        warm_up_generator(self.chat_generator)

    @component.output_types(
        replies=list[ChatMessage],
        documents=list[Document],
        verdicts=list[dict[str, Any]],
        retry=dict[str, Any],
        warnings=list[str],
        llm_calls=int,
    )
    def run(
        self,
        replies: list[ChatMessage],
        documents: list[Document],
        query: str = "",
        *,
        attempt: int | None = None,
        state: dict[str, Any] | None = None,
        passages: list[Document] | None = None,
        grade: dict[str, Any] | None = None,
        language: str | None = None,
    ) -> dict[str, Any]:
        """
        Grade an answer.

        :param replies: What the generator said; the first one counts.
        :param documents: The numbered passages that it read.
        :param query: The person's question; the state's own if empty.
        :param attempt: Which attempt this is, from 1; None for the state's.
        :param state: The state of this round, from `AttemptReader`; None outside a loop.
        :param passages: The passages of this round as they were before the context cut and numbered them, to be read
            again in the next round; None for `documents`.
        :param grade: What `AnswerGrader` says: with `passed` false it asks for another attempt, too.
        :param language: The question's language; None to tell from the question.
        :returns: Either `retry`, the state of the next round; or `replies` (exactly one), its `documents` and its
            `verdicts`, one for each claim of the chosen attempt. Beside them `warnings` and `llm_calls`, the calls of
            the judge in all rounds so far.
        """
        self.warm_up()
        this = open_round(
            replies,
            documents,
            state_of(state, query, attempt),
            passages=passages,
            grade=grade,
            language=language,
            embedder=self.document_embedder,
            raise_on_failure=self.raise_on_failure,
        )
        if self._has_judge(this):
            this = with_judgement(this, ask_llm(*self._request(this), raise_on_failure=self.raise_on_failure))
        return self._settled(this)

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
        attempt: int | None = None,
        state: dict[str, Any] | None = None,
        passages: list[Document] | None = None,
        grade: dict[str, Any] | None = None,
        language: str | None = None,
    ) -> dict[str, Any]:
        """
        Grade an answer without blocking the event loop.

        :param replies: What the generator said; the first one counts.
        :param documents: The numbered passages that it read.
        :param query: The person's question; the state's own if empty.
        :param attempt: Which attempt this is, from 1; None for the state's.
        :param state: The state of this round, from `AttemptReader`; None outside a loop.
        :param passages: The passages of this round as they were before the context; None for `documents`.
        :param grade: What `AnswerGrader` says: with `passed` false it asks for another attempt, too.
        :param language: The question's language; None to tell from the question.
        :returns: What `run` returns.
        """
        self.warm_up()
        # The local check computes for up to a second.
        this = await asyncio.to_thread(
            open_round,
            replies,
            documents,
            state_of(state, query, attempt),
            passages=passages,
            grade=grade,
            language=language,
            embedder=self.document_embedder,
            raise_on_failure=self.raise_on_failure,
        )
        if self._has_judge(this):
            reply = await ask_llm_async(*self._request(this), raise_on_failure=self.raise_on_failure)
            this = with_judgement(this, reply)
        return self._settled(this)

    def _has_judge(self, this: GradingRound) -> bool:
        return bool(this.claims) and bool(this.documents) and is_available(self.chat_generator)

    def _request(self, this: GradingRound) -> tuple[ChatGenerator, list[ChatMessage]]:
        if self.chat_generator is None:
            raise ValueError("There is no judge to ask.")
        return self.chat_generator, judge_messages(this.claims, this.documents, this.state["question"], this.language)

    def _settled(self, this: GradingRound) -> dict[str, Any]:
        if self.chat_generator is not None and not is_available(self.chat_generator):
            this = replace(this, warnings=[*this.warnings, "No LLM is configured: the answer was checked locally."])
        return settle(this, max_attempts=self.max_attempts, on_unsupported=self.on_unsupported, mode=self.mode)
