"""Checks every claim of an answer against the passages, and starts another attempt where they do not agree."""

from dataclasses import replace
from functools import partial
from typing import Any, get_args

from haystack import Document, component
from haystack.dataclasses import ChatMessage

from shiguan.grading.answer_grader import AnswerGrader, check_answer
from shiguan.grading.attempts import Attempt, OnUnsupported, decide, finished
from shiguan.llm.calls import blocking, warm_up_generator
from shiguan.llm.run import check_in_thread
from shiguan.serialization import Serializable


@component
class HallucinationGrader(Serializable):
    """
    Lets through only what the passages say.

    It comes after the generator and before the citations. Every sentence that states something gets a verdict:
    `supported`, `partial`, `unsupported` or `contradicted`, with a score from 0 to 1, the supporting span and a reason.
    The local check weights words by rarity, asks the embedder, and compares numbers, dates, names, opposites and
    denials exactly. With an `answer_grader` a language model decides what it is unsure of, in one more call.

    In a loop, if a claim is unsupported or contradicted, or the answer does not pass, up to the third attempt only the
    output `retry` is sent: the next `Attempt`, with queries made of what is missing for the question (never of the
    refused claim), feedback for the prompt, and the passages read so far. This also happens once if the first answer
    is that the sources do not say, though the passages seem to. Otherwise, and always outside a loop, the best attempt
    is sent. Its unsupported claims are left for `CitationExtractor` to mark, or their sentences are removed, or the
    whole answer is refused; an answer that does not answer is refused. Except where claims are marked, a claim that is
    only supported in part stands if a judge has read it: otherwise its words alone were compared. Where a sentence is
    removed, a whole clause before the unsupported one may stay; where no whole sentence is left, it is refused. The
    reply's `meta["grounding"]` shows what happened: `status` (`accepted`, `marked`, `removed`, `refused`,
    `not_found`), `attempts`, `chosen`, `history`, `removed`, `grade`, `llm_calls`. All attempts and grades together
    take at most four successive model calls.

    Example:
    ```python
    grader = HallucinationGrader()
    reply = ChatMessage.from_assistant("He rose in 755 [1]. He had three eyes [1].")
    grader.run(replies=[reply], documents=documents)
    # {"replies": [ChatMessage("He rose in 755[1].")], "documents": […], "verdicts": [{"verdict": "supported", …}, …]}
    ```
    """

    def __init__(
        self,
        *,
        answer_grader: AnswerGrader | None = None,
        on_unsupported: OnUnsupported = "remove",
    ) -> None:
        """
        Set how strict to be.

        :param answer_grader: Grades each attempt; None to check only its claims.
        :param on_unsupported: What happens after the last attempt to claims without support: `mark` leaves them
            to be marked, `remove` removes them, `refuse` withholds the whole answer. Where nothing is left the answer
            is the not-found sentence of `precise`.
        :raises ValueError: If `on_unsupported` is unknown.
        """
        if on_unsupported not in get_args(OnUnsupported):
            raise ValueError(f"`on_unsupported` must be mark, remove or refuse, got `{on_unsupported}`.")
        self.answer_grader = answer_grader
        self.on_unsupported = on_unsupported

    def warm_up(self) -> None:
        warm_up_generator(self.answer_grader)

    @component.output_types(
        replies=list[ChatMessage],
        documents=list[Document],
        verdicts=list[dict[str, Any]],
        retry=Attempt,
        warnings=list[str],
        llm_calls=int,
    )
    async def run_async(
        self,
        replies: list[ChatMessage],
        documents: list[Document],
        query: str = "",
        *,
        attempt: Attempt | None = None,
        language: str | None = None,
        sent: list[ChatMessage] | None = None,
        confidence: float | None = None,
    ) -> dict[str, Any]:
        """
        Grade an answer.

        :param replies: The generator's replies; the first one counts. If empty, the best attempt so far is returned.
        :param documents: The numbered passages that it read.
        :param query: The user's question; that of the attempt if empty.
        :param attempt: The round of the loop, from `AttemptLoop`; None outside a loop.
        :param language: The question's language; None to detect it.
        :param sent: The messages that the generator was sent; the next round's prompt continues them and the reply.
        :param confidence: The probability that the passages hold an answer, from `AnswerabilityGate`.
        :returns: Either `retry`, the attempt of the next round; or `replies` (one, or none if there was no reply), its
            `documents` and its `verdicts`, one for each claim of the chosen attempt. Besides these, `warnings` and
            `llm_calls`, the calls of the judge in all rounds so far.
        """
        self.warm_up()
        this = attempt or Attempt(query, (query,), {})
        if not replies and this.best is not None:
            return finished(this.best, this, self.on_unsupported)
        if not replies:
            return {"replies": [], "documents": documents, "verdicts": [], "warnings": [], "llm_calls": 0}
        answer = await check_in_thread(partial(check_answer, replies[0], documents, query or this.question, language))
        if self.answer_grader is not None:
            answer = await self.answer_grader.graded(answer)
        read = bool(answer.grade) and (answer.grade["judge"] == "llm" or answer.grade["judged"] > 0)
        answer = replace(answer, number=this.number, partial_stands=read or self.on_unsupported == "mark")
        in_loop, sent = attempt is not None, sent or []
        return decide(answer, this, self.on_unsupported, in_loop=in_loop, sent=sent, confidence=confidence)

    run = blocking(run_async)
