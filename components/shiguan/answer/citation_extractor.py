"""Turns replies into answers whose every claim is tied to a passage and checked against it."""

from collections.abc import Sequence
from typing import Any, get_args

from haystack import Document, GeneratedAnswer, component, logging
from haystack.dataclasses import ChatMessage

from shiguan.claims.cited_claims import check_claim, citations_of, claim_record, numbered_passages
from shiguan.claims.cited_text import Format, write_cited
from shiguan.claims.claims import ClaimedText, split_claims
from shiguan.claims.graded_claims import graded_claims
from shiguan.claims.not_found_reply import is_not_found
from shiguan.llm.prompts import not_found_sentence
from shiguan.text.languages import detect_language

logger = logging.getLogger(__name__)

_COPIED = ("model", "usage", "finish_reason", "prompt", "prompt_hash", "prompt_layers", "grounding")


@component
class CitationExtractor:
    """
    Checks an answer sentence by sentence and says which passage stands behind each.

    Stands last in the flow. It does not depend on the language model's formatting: marks in many spellings are read
    and written uniformly, numbers that do not exist are removed and reported, a sentence without a mark is matched to
    the passages and gets a citation if one supports it. Each citation carries the exact span of the stored passage
    (`parent.content[start:end] == quote`), a confidence from 0 to 1, and a verdict by a local check of words, numbers,
    dates, names and negation. A not-found answer has no citations.

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

    def __init__(self, format: Format = "markdown", *, mode: str = "simple", raise_on_failure: bool = False) -> None:  # noqa: A002
        """
        Choose the format of the answers.

        :param format: `markdown` (marks as `[1]`), `html` (escaped, marks are links to `#source-1`) or `plain` (no
            marks; the citations still have the numbers).
        :param mode: Whose not-found sentence stands for an empty reply: `simple`, `advanced` or `precise`.
        :param raise_on_failure: Raise when the extraction fails; by default the answer is given without citations and
            with a warning.
        :raises ValueError: If the format is unknown.
        """
        if format not in get_args(Format):
            raise ValueError(f"`format` must be one of {', '.join(get_args(Format))}, got `{format}`.")
        not_found_sentence(mode, "en")
        self.format = format
        self.mode = mode
        self.raise_on_failure = raise_on_failure

    @component.output_types(answers=list[GeneratedAnswer], warnings=list[str])
    def run(
        self,
        replies: list[ChatMessage],
        documents: list[Document] | None = None,
        query: str = "",
        language: str | None = None,
    ) -> dict[str, Any]:
        """
        Check the replies.

        :param replies: What the generator said; each becomes an answer.
        :param documents: The numbered passages that it read, in any order. `meta.number` counts; without it, the place
            in the list. `meta.cut` says which part of the stored parent the content is.
        :param query: The question.
        :param language: Its language; None to tell from the question.
        :returns: `answers`, at least one. Their meta has `status` (`answered` or `not_found`), `language`,
            `citations`, `claims`, `model` and `usage`. `warnings` says what was removed or could not be supported.
        """
        language = language or detect_language(query)
        numbered = numbered_passages(documents or [])
        warnings: list[str] = []
        answers = []
        for reply in replies or [ChatMessage.from_assistant("")]:
            try:
                answers.append(self._answer(reply, numbered, query, language, warnings))
            except Exception as error:
                if self.raise_on_failure:
                    raise
                logger.warning("Citations could not be extracted: {error}", error=repr(error))
                warnings.append(f"The citations could not be extracted ({error}); the answer is shown without them.")
                answers.append(self._generated(reply.text or "", reply, numbered, query=query, language=language))
        return {"answers": answers, "warnings": list(dict.fromkeys(warnings))}

    def _answer(
        self, reply: ChatMessage, numbered: dict[int, Document], query: str, language: str, warnings: list[str]
    ) -> GeneratedAnswer:
        if reply.meta.get("finish_reason") == "length":
            warnings.append("The answer was cut off at the model's length limit. Raise its limit or ask more narrowly.")
        text = (reply.text or "").strip()
        parts = split_claims(text)
        if not parts.claims or is_not_found(text):
            if not parts.claims:
                warnings.append("The generator's reply had no text, so the question counts as not answered.")
            sentence = parts.text.strip() if parts.claims else not_found_sentence(self.mode, language)
            shown, _ = write_cited(ClaimedText(sentence, (), ()), frozenset(), {}, self.format)
            return self._generated(shown, reply, numbered, status="not_found", query=query, language=language)
        unknown = sorted({number for _, numbers in parts.marks for number in numbers} - numbered.keys())
        if unknown:
            warnings.append(
                f"The answer cited {', '.join(f'[{number}]' for number in unknown)}, but there are only "
                f"{len(numbered)} sources; these marks were removed."
            )
        graded = graded_claims(reply.meta)
        checked = [check_claim(claim, numbered, graded) for claim in parts.claims]
        added = {index: tuple(number for number, _ in one.found) for index, one in enumerate(checked) if one.added}
        shown, places = write_cited(parts, frozenset(numbered), added, self.format)
        weak = sum(one.best.verdict in ("unsupported", "contradicted") for one in checked if one.claim.checkable)
        if weak:
            total = sum(one.claim.checkable for one in checked)
            warnings.append(f"{weak} of the answer's {total} sentences are not supported by the sources.")
        citations = citations_of(checked, places, numbered)
        claims = [
            claim_record(one, place, shown) for one, place in zip(checked, places, strict=True) if one.claim.checkable
        ]
        return self._generated(
            shown, reply, numbered, citations=citations, claims=claims, query=query, language=language
        )

    def _generated(
        self,
        text: str,
        reply: ChatMessage,
        numbered: dict[int, Document],
        *,
        status: str = "answered",
        citations: Sequence[dict[str, Any]] = (),
        claims: Sequence[dict[str, Any]] = (),
        query: str,
        language: str,
    ) -> GeneratedAnswer:
        meta: dict[str, Any] = {
            "status": status,
            "language": language,
            "format": self.format,
            "citations": list(citations),
            "claims": list(claims),
        }
        meta.update({name: reply.meta[name] for name in _COPIED if name in reply.meta})
        meta.setdefault("model", "")
        meta.setdefault("usage", {})
        return GeneratedAnswer(data=text, query=query, documents=list(numbered.values()), meta=meta)
