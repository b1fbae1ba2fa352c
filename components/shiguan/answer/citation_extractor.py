"""Turns replies into answers whose every claim is tied to a passage and checked against it."""

from collections.abc import Sequence
from functools import partial, wraps
from typing import Any, get_args

from haystack import Document, GeneratedAnswer, component
from haystack.dataclasses import ChatMessage
from haystack.document_stores.types import DocumentStore

from shiguan.answer.answerability import CLOSEST_BELOW, NOTHING_BELOW
from shiguan.answer.question_names import absent_names
from shiguan.answer.quotations import quotations, write_quotations
from shiguan.claims.checker import check_in_thread, checker_of, numbered_passages
from shiguan.claims.citations import (
    Format,
    citations_of,
    cite_claim,
    disagreements_of,
    escaped,
    verdicts_by_sentence,
    write_cited,
)
from shiguan.claims.claim_kinds import claim_kind
from shiguan.claims.claims import MOST_CHARACTERS, MOST_CLAIMS, split_claims
from shiguan.claims.nearness import ClaimMatcher
from shiguan.llm.calls import no_answer_error
from shiguan.llm.prompt_rendering import unwritten_answer
from shiguan.llm.prompts import not_found_sentence
from shiguan.text.languages import detect_language

_COPIED = ("model", "usage", "finish_reason", "prompt", "prompt_hash", "prompt_layers", "prompt_rendered", "grounding")


@component
class CitationExtractor:
    """
    Checks an answer sentence by sentence and says which passage stands behind each.

    Stands last in the flow. It does not depend on the language model's formatting: markup of prompts and lead-ins are
    taken off, marks in many spellings are read and written uniformly. A mark is true or it is not there: one whose
    passage does not support its sentence, or that does not exist, is replaced by one that is, else dropped; a sentence
    without a mark gets that of a passage that supports it; one that nothing supports is shown with `⚠`. Each citation
    carries the exact span of the stored passage (`parent.content[start:end] == quote`), a confidence from 0 to 1, and
    what this passage says to the claim; the claim has the verdict of all passages. Both are judged by the check of
    `HallucinationGrader`, whose own verdicts count where it stands before. What states nothing (a heading, a courtesy,
    an admitted gap) has no verdict and no mark, and a not-found answer has no citations.

    Without a reply, because there is no model or none could be reached, the answer is up to three quotations, status
    `quoted`: windows of whole sentences around what is closest to the question, word for word, in the order of the
    retrieval; a passage that introduces whom the question asks about comes first. They are citations with the verdict
    `quoted`, the closest `sentence` and the question's `words` in it as places in the stored parent. Where it is
    doubtful that they answer, or a name of the question stands nowhere in the library, the status is `closest`; where
    both are so, or nothing is near, it is `not_found`. Both say why: `absent`, the names that stand nowhere, with those
    like them, and `waiting`, how many passages have no vector yet.

    Where cited or quoted places of different passages give different numbers, dates or names for the same thing, both
    are named in `disagreements`, by rule and without a model.

    The answer's `data` is the text in the chosen format, and `claim` offsets are offsets in it.

    Example:
    ```python
    extractor = CitationExtractor()
    result = extractor.run(replies=[ChatMessage.from_assistant("An Lushan rose in 755 [1].")], documents=documents)
    result["answers"][0].meta["citations"][0]
    # {"number": 1, "claim": {"start": 0, "end": 27}, "parent_id": "…", "source": "tang.epub", "title": "…",
    #  "section": ["…"], "anchor": {…}, "start": 120, "end": 164, "quote": "…", "confidence": 0.81,
    #  "verdict": "supported"}
    ```
    """

    tenant_readers = ("claim_matcher",)

    def __init__(
        self,
        format: Format = "markdown",  # noqa: A002
        *,
        mode: str = "simple",
        claim_matcher: ClaimMatcher | None = None,
        closest_below: float = CLOSEST_BELOW,
    ) -> None:
        """
        Choose the format of the answers.

        :param format: `markdown` (marks as `[1]`), `html` (escaped, marks are links to `#source-1`) or `plain` (no
            marks; the citations still have the numbers).
        :param mode: Whose not-found sentence stands where nobody replied: a mode of `prompts/not_found.yml`.
        :param claim_matcher: Compares claims with passages in another language, and knows the store in which names of a
            question are looked for; None to do without.
        :param closest_below: The probability, 0 to 1, below which passages are shown as the closest ones alone; 0 where
            none was fitted to the embedder, to quote whatever was found.
        :raises ValueError: If the format is unknown or `closest_below` is not between 0 and 1.
        """
        if format not in get_args(Format):
            raise ValueError(f"`format` must be one of {', '.join(get_args(Format))}, got `{format}`.")
        if not 0 <= closest_below <= 1:
            raise ValueError(f"`closest_below` must be 0 to 1, got {closest_below}.")
        not_found_sentence(mode, "en")
        self.format = format
        self.mode = mode
        self.claim_matcher = claim_matcher
        self.closest_below = closest_below

    @component.output_types(answers=list[GeneratedAnswer], warnings=list[str])
    def run(
        self,
        replies: list[ChatMessage] | list[str],
        documents: list[Document] | None = None,
        query: str = "",
        *,
        filters: dict[str, Any] | None = None,
        language: str | None = None,
        confidence: float | None = None,
    ) -> dict[str, Any]:
        """
        Check the replies.

        :param replies: What the generator said, messages or texts; each becomes an answer. The verdicts of
            `HallucinationGrader`, in a reply's meta, count instead of a check here; where sub-questions without an
            answer are named there, an answer that does not say of anything that it is missing is made to name them.
        :param documents: The numbered passages that it read, in any order. `meta.number` counts; without it, the place
            in the list. `meta.cut` says which part of the stored parent the content is.
        :param query: The question.
        :param filters: The filters that the passages were found under, for the `claim_matcher`.
        :param language: The question's language; None to tell from the question.
        :param confidence: The probability, 0 to 1, that the passages hold an answer, from `AnswerabilityGate`.
        :returns: `answers`, at least one. Their meta has `status` (`answered`, `quoted`, `closest`, `not_found`, or
            `refused` where the grader withheld the answer), `language`, `citations`, `claims`, `changes` (what was done
            to sentences and marks), `disagreements` (where cited places give different numbers, dates or names for
            the same thing), `confidence`, `model` and `usage`; without a reply `absent` and `waiting` as well.
            `warnings` says what was removed or could not be supported.
        :raises AnswerError: If a reply has no text: that is the model's failure and no answer.
        """
        language = language or detect_language(query)
        documents = list(documents or [])
        if not replies:
            answer = self._quoted(documents, query, language, filters, confidence=confidence)
            return {"answers": [answer], "warnings": []}
        if self.claim_matcher is not None and documents:
            documents = self.claim_matcher.compared(documents, filters)
        numbered = numbered_passages(documents)
        messages = [ChatMessage.from_assistant(one) if isinstance(one, str) else one for one in replies]
        found = [self._answer(_naming_gaps(reply, language), numbered, query, language) for reply in messages]
        warnings = [warning for _, more in found for warning in more]
        for answer, _ in found:
            answer.meta["confidence"] = confidence
        return {"answers": [answer for answer, _ in found], "warnings": list(dict.fromkeys(warnings))}

    @wraps(run)
    async def run_async(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Do as `run`, beside the event loop; a question that is cancelled meanwhile stops the check."""
        return await check_in_thread(partial(self.run, *args, **kwargs))

    def _answer(
        self,
        reply: ChatMessage,
        numbered: dict[int, Document],
        query: str,
        language: str,
    ) -> tuple[GeneratedAnswer, list[str]]:
        warnings = []
        graded = verdicts_by_sentence(reply.meta.get("verdicts") or [])
        if reply.meta.get("finish_reason") == "length":
            warnings.append("The answer was cut off at the model's length limit. Raise its limit or ask more narrowly.")
        checker = checker_of(numbered, query)
        parts = checker.split((reply.text or "").strip())
        if not parts.claims and not any(map(str.isalpha, reply.text or "")):
            raise no_answer_error(reply)
        if not parts.claims:
            warnings.append(
                "The model's reply held no answer, only markup or the question. Ask again, or take another model."
            )
            nobody = ChatMessage.from_assistant(not_found_sentence(self.mode, language), meta=reply.meta)
            return self._not_found(nobody, numbered, query, language), warnings
        if parts.is_cut:
            warnings.append(
                f"The reply was too long; only its first {MOST_CLAIMS} sentences or {MOST_CHARACTERS:,} characters are "
                "shown. Ask more narrowly, or lower the model's `max_tokens`."
            )
        if checker.says_nothing(parts):
            if any(map(checker.stated, parts.claims)):  # "the sources do not say why he did that": that he did it
                reply = ChatMessage.from_assistant(not_found_sentence(self.mode, language), meta=reply.meta)
            return self._not_found(reply, numbered, query, language), warnings
        unknown = sorted({number for _, numbers in parts.marks for number in numbers} - numbered.keys())
        if unknown:
            warnings.append(
                f"The answer cited {', '.join(f'[{number}]' for number in unknown)}, but there are only "
                f"{len(numbered)} sources; these marks were removed."
            )
        cited = [cite_claim(claim, checker, numbered, graded) for claim in parts.claims]
        shown, places = write_cited(parts, cited, self.format)
        verdicts = [one.support.verdict for one in cited if one.support]
        weak = sum(verdict in ("unsupported", "contradicted") for verdict in verdicts)
        if weak:
            warnings.append(f"{weak} of the answer's {len(verdicts)} sentences are not supported by the sources.")
        citations = [citation.to_dict() for citation in citations_of(cited, places, numbered)]
        cited_so = {
            "citations": citations,
            "claims": [one.record(place, shown) for one, place in zip(cited, places, strict=True) if one.support],
            "changes": [change for one in cited for change in one.changes()],
            "disagreements": disagreements_of(citations, list(numbered.values())),
        }
        return self._generated(shown, reply, numbered, query, language, cited=cited_so), warnings

    def _quoted(
        self,
        documents: Sequence[Document],
        query: str,
        language: str,
        filters: dict[str, Any] | None,
        *,
        confidence: float | None,
    ) -> GeneratedAnswer:
        """Quote what was found this time; passages that only earlier messages of a conversation show have no score."""
        found = [one for one in documents if one.score is not None] or list(documents)
        found.sort(key=lambda document: -(document.score or 0.0))
        sure = confidence is None or confidence >= self.closest_below
        store = self.claim_matcher.document_store if self.claim_matcher is not None else None
        absent = absent_names(query, found, store, filters) if store is not None and filters else []
        nowhere = any(not one["near"] for one in absent)
        nothing = not sure and (nowhere or (confidence or 0.0) < NOTHING_BELOW)
        sure = sure and not nowhere
        quoted = [] if nothing else quotations(found, query)
        status = "not_found" if not quoted else "quoted" if sure else "closest"
        if quoted:
            text, citations = write_quotations(quoted, status, language, confidence or 0.0, self.format)
        else:
            text, citations = escaped(not_found_sentence(self.mode, language), self.format), []
        waiting = _waiting(store, filters) if status != "quoted" else 0
        about = {"format": self.format, "citations": citations, "changes": [], "confidence": confidence}
        about["disagreements"] = disagreements_of(citations, found)
        return unwritten_answer(query, text, language, status, found, **about, absent=absent, waiting=waiting)

    def _not_found(
        self, reply: ChatMessage, numbered: dict[int, Document], query: str, language: str
    ) -> GeneratedAnswer:
        sentence = split_claims(reply.text or "").text.strip()
        return self._generated(escaped(sentence, self.format), reply, numbered, query, language)

    def _generated(
        self,
        text: str,
        reply: ChatMessage,
        numbered: dict[int, Document],
        query: str,
        language: str,
        *,
        cited: dict[str, list[dict[str, Any]]] | None = None,
    ) -> GeneratedAnswer:
        """Make the answer object; with None cited it is the not-found sentence."""
        empty: dict[str, list[dict[str, Any]]] = {"citations": [], "claims": [], "changes": [], "disagreements": []}
        grounding = reply.meta.get("grounding") or {}
        meta: dict[str, Any] = {
            "status": "answered" if cited else "refused" if grounding.get("status") == "refused" else "not_found",
            "language": language,
            "format": self.format,
            **(cited or empty),
        }
        meta["changes"] = [*grounding.get("removed", ()), *meta["changes"]]
        meta |= {name: reply.meta[name] for name in _COPIED if name in reply.meta}
        meta.setdefault("model", "")
        meta.setdefault("usage", {})
        return GeneratedAnswer(data=text, query=query, documents=list(numbered.values()), meta=meta)


def _naming_gaps(reply: ChatMessage, language: str) -> ChatMessage:
    """Let an answer say what it has no answer to, unless it admits a gap by itself."""
    missing = (reply.meta.get("asked") or {}).get("missing") or []
    claims = split_claims(reply.text or "").claims
    if not missing or not claims or any(claim_kind(claim.text) == "silence" for claim in claims):
        return reply
    opening = "资料没有说明：" if language == "zh" else "The sources do not say: "
    return ChatMessage.from_assistant(f"{reply.text}\n\n{opening}{' '.join(missing)}", meta=reply.meta)


def _waiting(store: DocumentStore | None, filters: dict[str, Any] | None) -> int:
    """Count the passages that a search by vectors does not find yet."""
    count = getattr(store, "count_without_vector", None)
    return int(count(filters)) if count is not None and filters else 0
