"""Lets a question on to the language model only where the passages are likely to hold its answer."""

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from haystack import Document, GeneratedAnswer, component, logging

from shiguan.answer.answerability import probability
from shiguan.answer.quotations import quotations, write_quotations, write_recalled
from shiguan.llm.calls import estimate_tokens, reserve_answer
from shiguan.llm.model_settings import read_model_roles
from shiguan.llm.prompts import not_found_sentence
from shiguan.text.languages import HAN, detect_language, fold_han
from shiguan.text.names import foreign_names, looks_like_name, sounds_of_text
from shiguan.text.passages import passage_text

logger = logging.getLogger(__name__)

_HAN_RUN = re.compile(f"[{HAN}]{{2,}}")
_LATIN_NAME = re.compile(r"(?<![\w'’-])[A-Z][^\W\d_]{3,}")
# Two of three letters that differ make another name; one of seven does not: Ismael is Ishmael.
_ALIKE = 0.8
# Two syllables sound alike too often.
_HAN_NAME_SIZES = (4, 3)


@component
class AnswerabilityGate:
    """
    Asks no model where nothing was found that answers, and quotes the sources where there is no model.

    Stands between the context and the prompt. From what the retrieval found it computes one probability, calibrated on
    public question sets, that the three passages that come first hold an answer (docs/quality.md shows how good it
    is). Then one of four things happens:

    - the question is about the conversation itself: the answer repeats what was said there, status `recalled`. What was
      said is no source, so no model is asked to tell it anew and nothing is cited;
    - nothing was found, or the risk is above `max_risk`: the answer is the mode's not-found sentence, status
      `not_found`;
    - no language model can be called, or the question's budget leaves no call for an answer: up to three quotations,
      status `quoted`. Each is a window of whole sentences around what is closest to the question, word for word, in the
      order of the retrieval; a passage that introduces whom the question asks about comes first. They are citations
      with the verdict `quoted`, the closest `sentence` and the question's `words` in it as places in the stored parent;
    - otherwise the context goes on to the prompt.

    Example:
    ```python
    gate = AnswerabilityGate(quote=True)
    answer = gate.run(context, documents=documents, query="Where did An Lushan rise?", nearest=children)["answers"][0]
    answer.meta["status"], answer.meta["confidence"], answer.meta["citations"][0]["quote"]
    # ("quoted", 0.83, "天寶十四載十一月，安祿山反於范陽。")
    ```
    """

    def __init__(
        self,
        mode: str = "simple",
        *,
        max_risk: float | None = 0.85,
        quote: bool | None = None,
        models: dict[str, Any] | None = None,
    ) -> None:
        """
        Set when to refuse and when to quote.

        :param mode: Whose not-found sentence to say: a mode of `prompts/not_found.yml`.
        :param max_risk: The risk, 0 to 1, that the passages do not answer, above which nothing is answered: 1 minus
            the probability. 1 refuses only where nothing was found, None not even there: for a mode that can ask
            elsewhere.
        :param quote: Whether to quote instead of asking a model; None for where no model can be called.
        :param models: The models that the generator has (docs/models.md); None for the endpoint that the environment
            names (`OPENAI_API_KEY`, `OPENAI_BASE_URL`).
        :raises ValueError: If `max_risk` is not between 0 and 1.
        """
        if max_risk is not None and not 0 <= max_risk <= 1:
            raise ValueError(f"`max_risk` must be 0 to 1, got {max_risk}.")
        not_found_sentence(mode, "en")
        self.mode = mode
        self.max_risk = max_risk
        self.quote = quote
        self.models = models
        self._roles = read_model_roles(models)

    @component.output_types(context=str, answers=list[GeneratedAnswer], confidence=float, warnings=list[str])
    def run(
        self,
        context: str,
        documents: list[Document],
        query: str,
        *,
        nearest: list[Document] | None = None,
        language: str | None = None,
        attempt: int = 1,
        recalled: list[Document] | None = None,
        answered: int = 0,
        confidence_threshold: float | None = None,
    ) -> dict[str, Any]:
        """
        Decide.

        :param context: The rendered passages, for the prompt.
        :param documents: The same passages, best first, with `meta.matches` where children matched.
        :param query: The question, standing alone.
        :param nearest: The children nearest by their vectors, scores being cosines; None where there are no vectors.
        :param language: The question's language; None to tell from the question.
        :param attempt: Which round of a loop this is, from 1: later rounds add to passages that came through once.
        :param recalled: What was said in the conversation, where that is the answer.
        :param answered: How many parts of the question have answers from the passages; with one, no risk is too high.
        :param confidence_threshold: The probability below which this question is refused, over `max_risk`.
        :returns: `confidence`, the probability, 0 to 1, and either `context` or `answers`, one answer with `status`,
            `confidence` and `citations` in its meta; `warnings` that offer a name of the passages for one of the
            question that none of them has.
        """
        confidence = round(probability(query, documents, nearest or []), 4)
        warnings = near_names(query, [passage_text(document) for document in documents])
        logger.debug("The passages answer with probability {confidence}", confidence=confidence)
        language = language or detect_language(query)
        quote = not self._roles.usable if self.quote is None else self.quote
        max_risk = self.max_risk if confidence_threshold is None else 1 - confidence_threshold
        goes_on = max_risk is None and not quote
        risk = 1.0 if max_risk is None else max_risk
        refused = not goes_on and (not documents or (attempt == 1 and not answered and 1 - confidence > risk))
        if not refused and not quote and not recalled and reserve_answer(estimate_tokens(context)):
            return {"context": context, "confidence": confidence, "warnings": warnings}
        quoted = [] if refused or recalled else quotations(documents, query)
        meta: dict[str, Any] = {"language": language, "format": "markdown", "claims": [], "model": "", "usage": {}}
        if recalled:
            text = write_recalled(recalled, language)
            meta |= {"status": "recalled", "citations": []}
        elif quoted:
            text, citations = write_quotations(quoted, language, confidence)
            meta |= {"status": "quoted", "citations": citations}
        else:
            text = not_found_sentence(self.mode, language)
            meta |= {"status": "not_found", "citations": []}
        meta["confidence"] = confidence
        answer = GeneratedAnswer(data=text, query=query, documents=[] if recalled else list(documents), meta=meta)
        return {"answers": [answer], "confidence": confidence, "warnings": warnings}


def near_names(question: str, passages: Sequence[str]) -> list[str]:
    """
    Say of each name of a question that no passage has which one was probably meant.

    Latin names are compared by their letters, names in Han characters by their sound (安路山 is 安禄山).
    """
    text = "\n".join(passages)
    pairs = [*_latin(question, text), *_han(fold_han(question), fold_han(text))]
    return [f"No passage has “{name}”. Did you mean “{other}”?" for name, other in dict(pairs).items()]


def _latin(question: str, text: str) -> Iterator[tuple[str, str]]:
    missing = [match[0] for name in foreign_names(question, text) if (match := _LATIN_NAME.match(name))]
    known = {name.lower(): name for name in _LATIN_NAME.findall(text)} if missing else {}
    for name in missing:
        for close in get_close_matches(name.lower(), known, n=1, cutoff=_ALIKE):
            # African is no slip of Africa.
            if not (name.lower().startswith(close) or close.startswith(name.lower())):
                yield name, known[close]


def _han(question: str, text: str) -> Iterator[tuple[str, str]]:
    said: set[str] = set()
    for size in _HAN_NAME_SIZES:
        missing = [name for name in _names(question, size) if name[:2] not in text and name not in said]
        if not missing:
            continue
        known = {_sound(name): name for name in _names(text, size)}
        for name in missing:
            if other := known.get(_sound(name)):
                said |= {name[at : at + width] for width in _HAN_NAME_SIZES for at in range(size)}
                yield name, other


def _names(text: str, size: int) -> Iterator[str]:
    """Give the pieces of some length that look like a name, as they stand side by side."""
    for run in _HAN_RUN.findall(text):
        yield from (run[at : at + size] for at in range(len(run) - size + 1) if looks_like_name(run[at : at + size]))


def _sound(name: str) -> tuple[str, ...]:
    return tuple(sounds_of_text(name))
