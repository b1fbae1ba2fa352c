"""Passes a question to the language model only if something was found, and estimates how likely it holds the answer."""

from typing import Any

from haystack import Document, component, logging

from shiguan.answer.answerability import probability
from shiguan.answer.question_names import near_names
from shiguan.llm.calls import Outcome
from shiguan.reading.question import read_question

logger = logging.getLogger(__name__)


@component
class AnswerabilityGate:
    """
    Asks no model where nothing was found, and estimates how likely the passages hold an answer.

    It comes before the context. Where no passage was found the answer is the mode's not-found sentence, status
    `not_found`, and no model is asked: an `Outcome` goes to `CitationExtractor`, which writes every answer. Otherwise
    the passages go on: whether they answer is decided by the model that reads them. The probability, computed from what
    the retrieval found and calibrated on public question sets (docs/quality.md shows how good it is), is for
    `CitationExtractor`, which decides by it what to quote where there is no model, and for a caller who only wants
    answers above a threshold.

    Example:
    ```python
    gate = AnswerabilityGate()
    gate.run(documents, query="Where did An Lushan rise?", nearest=children)["confidence"]  # 0.83
    gate.run([], query="Where did An Lushan rise?")["outcome"].reason  # "nothing_found"
    ```
    """

    def __init__(self, *, needs_documents: bool = True) -> None:
        """
        Set what is refused.

        :param needs_documents: Whether to stop where nothing was found; False for a mode that can search elsewhere.
        """
        self.needs_documents = needs_documents

    @component.output_types(documents=list[Document], outcome=Outcome, confidence=float, warnings=list[str])
    def run(
        self,
        documents: list[Document],
        query: str,
        *,
        nearest: list[Document] | None = None,
        confidence_threshold: float | None = None,
    ) -> dict[str, Any]:
        """
        Decide whether the passages go on to the model.

        :param documents: The passages, best first.
        :param query: The standalone question.
        :param nearest: The children nearest by their vectors, with cosines as score or, where that is scaled, as
            `meta.raw_score`; None where there are no vectors.
        :param confidence_threshold: The probability below which this question is not answered. It is ignored for
            passages that passed the gate before, which have a number.
        :returns: `confidence`, the probability, 0 to 1, and either `documents`, unchanged, or `outcome`, that nothing
            was found or that it is below the threshold; `warnings` that suggest a name of the passages for a name of
            the question that none of them has, and that name dates of the question which do not exist.
        """
        confidence = round(probability(query, documents, nearest or []), 4)
        warnings = near_names(query, documents)
        warnings += [f"{date.label} does not exist: {date.fault}." for date in read_question(query).dates if date.fault]
        logger.debug("The passages answer with probability {confidence}", confidence=confidence)
        read = any("number" in document.meta for document in documents)
        unlikely = confidence_threshold is not None and confidence < confidence_threshold and not read
        if (documents or not self.needs_documents) and not unlikely:
            return {"documents": documents, "confidence": confidence, "warnings": warnings}
        ended = Outcome("not_found", "below_threshold" if documents else "nothing_found", documents=tuple(documents))
        return {"outcome": ended, "confidence": confidence, "warnings": warnings}
