"""Turns replies into answers whose every claim is tied to a passage and checked against it."""

from collections.abc import Sequence
from functools import partial, wraps
from itertools import groupby
from typing import Any

from haystack import Document, GeneratedAnswer, component
from haystack.core.component.types import GreedyVariadic
from haystack.dataclasses import ChatMessage
from haystack.document_stores.types import DocumentStore

from shiguan.answer.answerability_gate import CLOSEST_BELOW, NOTHING_BELOW, read_probability
from shiguan.answer.question_names import absent_names
from shiguan.answer.quotations import (
    LONGEST,
    Quotation,
    is_part,
    judged_quotations,
    refers_back,
    tells_no_origin,
    with_note,
    write_quotations,
)
from shiguan.claims.answer_check import AnswerCheck, answer_check
from shiguan.claims.checker import numbered_passages
from shiguan.claims.citations import citations_of, verdicts_by_sentence
from shiguan.claims.claim_kinds import claim_kind
from shiguan.claims.claims import MOST_CHARACTERS, MOST_CLAIMS, split_claims, whole_reply
from shiguan.llm.calls import Outcome, no_answer_error
from shiguan.llm.prompts import not_found_sentence
from shiguan.llm.run import check_in_thread, current_run
from shiguan.llm.source_blocks import neutral_text
from shiguan.reading.question import AskedChapter, read_question
from shiguan.reading.text import read_text
from shiguan.resources import read_texts
from shiguan.tenants import LibraryStore
from shiguan.text.passages import Span
from shiguan.text.terms import size_of

_COPIED = ("model", "usage", "finish_reason", "prompt", "prompt_hash", "prompt_layers", "prompt_rendered", "grounding")
_LONGEST_RECALLED = 600
# An outline of a chapter with fewer headings quotes each passage, and at most so many; shorter sentences tell little.
_FEWEST_HEADINGS, _LONGEST_OUTLINE, _TELLING = 3, 12, 60


@component
class CitationExtractor:
    """
    Checks an answer sentence by sentence and cites the passage that supports each.

    It is the last stage, and writes every answer. It does not depend on the language model's formatting: prompt markup
    and lead-ins are removed, marks in many spellings are read and written uniformly. A mark is true or it is not there:
    one whose passage does not exist or does not support its sentence is replaced by one that does, or else dropped; a
    sentence without a mark gets that of a passage that supports it; a sentence that nothing supports is shown with `⚠`.
    Each citation has the exact span of the stored passage (`parent.content[start:end] == quote`), a confidence from 0
    to 1, and the verdict of its passage on the claim; the claim has the verdict of all passages. Verdicts of
    `HallucinationGrader` count where it runs before. What states nothing (a heading, a courtesy, an admitted gap) has
    no verdict and no mark.

    Without a reply, because there is no model, none could be reached, its key was refused or the budget is spent, the
    answer says so and is up to three quotations, status `quoted`: windows of whole sentences around what is closest to
    the question, word for word, in the order of the retrieval; a passage that introduces the person or thing asked
    about comes first. Of a chapter that is to be summed up, the beginning under each heading is quoted. They are
    citations with the verdict `quoted`, the closest `sentence` and the question's `words`
    in it as places in the stored parent. Where it is doubtful that they answer, or a name of the question occurs
    nowhere in the library, the status is `closest`; where both hold, or nothing is near, it is `not_found`. Both say
    why: `absent`, the names that occur nowhere, with names like them, and `waiting`, how many passages have no vector
    yet. An `Outcome` in the place of replies, of a stage that ends the question earlier, becomes an answer as well.

    The answer's `data` is Markdown, and `claim` offsets are offsets in it.

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

    def __init__(
        self,
        *,
        mode: str = "simple",
        document_store: DocumentStore | None = None,
        closest_below: float = CLOSEST_BELOW,
    ) -> None:
        """
        Set what is said where there is no reply.

        :param mode: The mode of `prompts/not_found.yml` whose not-found sentence is used without a reply.
        :param document_store: The store of the children, in which the names of a question are looked up; None to do
            without.
        :param closest_below: The probability, 0 to 1, below which passages are only shown as the closest ones; 0 where
            none was fitted to the embedder, to quote whatever was found.
        :raises ValueError: If `closest_below` is not between 0 and 1.
        """
        if not 0 <= closest_below <= 1:
            raise ValueError(f"`closest_below` must be 0 to 1, got {closest_below}.")
        not_found_sentence(mode, "en")
        self.mode = mode
        self.document_store = document_store
        self.closest_below = closest_below

    @component.output_types(answers=list[GeneratedAnswer], warnings=list[str])
    def run(
        self,
        replies: GreedyVariadic[list[ChatMessage] | list[str] | Outcome],
        documents: list[Document] | None = None,
        query: str = "",
        *,
        filters: dict[str, Any] | None = None,
        language: str | None = None,
        confidence: float | None = None,
    ) -> dict[str, Any]:
        """
        Check the replies.

        :param replies: The generator's replies, messages or texts, each of which becomes an answer; or the `Outcome` of
            a stage that ended the question. Whatever comes first is answered. The verdicts of
            `HallucinationGrader` on claims, in a reply's meta, replace a check here; where the meta names sub-questions
            without an answer and the answer admits no gap, they are added to it.
        :param documents: The numbered passages that it read, in any order. `meta.number` is the number; without it, the
            place in the list is. `meta.cut` says which part of the stored parent the content is.
        :param query: The question.
        :param filters: The filters that the passages were found under, for the `document_store`.
        :param language: The question's language; None to detect it.
        :param confidence: The probability, 0 to 1, that the passages hold an answer, from `AnswerabilityGate`.
        :returns: `answers`, at least one. Their meta has `status` (`answered`, `quoted`, `closest`, `not_found`, or
            `refused` where the grader withheld the answer), `language`, `citations`, `claims`, `changes` (to sentences
            and marks), `confidence`, `model` and `usage`; without a reply `reason`, `absent` and `waiting` as well.
            `warnings` lists what was removed or could not be supported.
        :raises AnswerError: If a reply has no text: that is a failure of the model, not an answer.
        """
        language = language or read_text(query).language
        documents = list(documents or [])
        # In a pipeline they come in a list of what each sender sent.
        given = [one for some in replies for one in (some if isinstance(some, list) else [some])]
        ended = next((one for one in given if isinstance(one, Outcome)), None)
        told = [one for one in given if not isinstance(one, Outcome)]
        messages = [ChatMessage.from_assistant(one) if isinstance(one, str) else one for one in told]
        if ended is not None or not messages:
            ended = ended or Outcome("unanswered", _reason(), documents=tuple(documents))
            return {"answers": [self._unwritten(ended, query, language, confidence, filters)], "warnings": []}
        numbered, check = numbered_passages(documents), answer_check(documents, query)
        answers, warnings = [], dict[str, None]()
        for reply in messages:
            message = _naming_gaps(whole_reply(reply), language)
            text, meta, more = self._checked(message, numbered, check, language)
            meta = self._meta(message, language) | meta | {"confidence": confidence}
            answers.append(GeneratedAnswer(data=text, query=query, documents=list(numbered.values()), meta=meta))
            warnings |= dict.fromkeys(more)
        return {"answers": answers, "warnings": list(warnings)}

    @wraps(run)
    async def run_async(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Run outside the event loop; the check stops if the question is cancelled meanwhile."""
        return await check_in_thread(partial(self.run, *args, **kwargs))

    def _checked(
        self, reply: ChatMessage, numbered: dict[int, Document], check: AnswerCheck, language: str
    ) -> tuple[str, dict[str, Any], list[str]]:
        """Return the text that is shown, what the check found, and warnings; nothing is found in a not-found answer."""
        warnings = []
        if reply.meta.get("finish_reason") == "length":
            warnings.append(
                "The answer was cut off at the model's length limit; its last, unfinished sentence is left out. Raise "
                "the limit, or ask more narrowly."
            )
        checked = check.close(reply.text or "", verdicts_by_sentence(reply.meta.get("verdicts") or []))
        parts = checked.parts
        not_found = not_found_sentence(self.mode, language)
        if not parts.claims:
            if not any(map(str.isalpha, reply.text or "")):
                raise no_answer_error(reply)
            warnings.append(
                "The model's reply held no answer, only markup or the question. Ask again, or take another model."
            )
            return not_found, {}, warnings
        if parts.is_cut:
            warnings.append(
                f"The reply was too long; only its first {MOST_CLAIMS} sentences or {MOST_CHARACTERS:,} characters are "
                "shown. Ask more narrowly, or lower the model's `max_tokens`."
            )
        if not checked.cited:
            # "The sources do not say why he did that" claims that he did.
            claims_more = any(map(check.checker.stated, parts.claims))
            return not_found if claims_more else split_claims(reply.text or "").text.strip(), {}, warnings
        unknown = sorted({number for _, numbers in parts.marks for number in numbers} - numbered.keys())
        if unknown:
            warnings.append(
                f"The answer cited {', '.join(f'[{number}]' for number in unknown)}, but there are only "
                f"{len(numbered)} sources; these marks were removed."
            )
        stated = [pair for pair in zip(checked.cited, checked.places, strict=True) if pair[0].support]
        weak = sum(claim.is_unsupported for claim in checked.cited)
        if weak:
            warnings.append(f"{weak} of the answer's {len(stated)} sentences are not supported by the sources.")
        removed = (reply.meta.get("grounding") or {}).get("removed", ())
        found = {
            "status": "answered",
            "citations": citations_of(checked.cited, checked.places, numbered),
            "claims": [claim.record(place, checked.text) for claim, place in stated],
            "changes": [*removed, *(change for claim in checked.cited for change in claim.changes())],
        }
        return checked.text, found, warnings

    def _meta(self, reply: ChatMessage, language: str) -> dict[str, Any]:
        """Describe a not-found answer with what the reply brings."""
        grounding = reply.meta.get("grounding") or {}
        meta: dict[str, Any] = {
            "status": "refused" if grounding.get("status") == "refused" else "not_found",
            "language": language,
            "citations": [],
            "claims": [],
            "changes": [*grounding.get("removed", ())],
            "model": "",
            "usage": {},
        }
        return meta | {name: reply.meta[name] for name in _COPIED if name in reply.meta}

    def _unwritten(
        self, outcome: Outcome, query: str, language: str, confidence: float | None, filters: dict[str, Any] | None
    ) -> GeneratedAnswer:
        """
        Write the answer to a question that ended without a reply.

        Where passages were found the closest places are quoted, status `quoted`, or `closest` where it is doubtful that
        they answer; `not_found` where nothing is near. The last two name what the library lacks (`absent`) and how many
        of its passages have no vector yet (`waiting`).
        """
        found, store = list(outcome.documents), self.document_store
        meta: dict[str, Any] = {
            "status": outcome.kind, "reason": outcome.reason, "language": language, "citations": [], "claims": [],
            "changes": [], "confidence": confidence, "absent": [], "waiting": 0, "model": "", "usage": {},
            **outcome.meta,
        }  # fmt: skip
        if outcome.kind == "unanswered":
            # Passages that come only from earlier turns have no score.
            found = [document for document in found if document.score is not None] or found
            found.sort(key=lambda document: -(document.score or 0.0))
        if outcome.kind in ("unanswered", "not_found"):
            chapter = read_question(query).chapter
            outline = _chapter_outline(found, chapter) if chapter is not None else []
            judged = judged_quotations(found, query) if outcome.kind == "unanswered" and not outline else []
            if confidence is not None:
                odds = [odds for _, odds in judged if odds is not None]
                confidence = round(read_probability(confidence, query, found, odds), 4)
            absent = absent_names(query, found, store, filters) if store is not None and filters else []
            nowhere = any(not name["near"] for name in absent)
            sure = confidence is None or confidence >= self.closest_below
            nothing = not sure and (nowhere or (confidence or 0.0) < NOTHING_BELOW)
            nowhere = nowhere or tells_no_origin(query, found)
            quoted = outline or ([] if nothing else [one for one, _ in judged])
            status = "not_found" if not quoted else "quoted" if outline or (sure and not nowhere) else "closest"
            chapters = {chapter.place(one.document.meta) for one in outline} if chapter is not None else ()
            kind = "outlines" if len(chapters) > 1 else "outline" if outline else status
            opening = _opening(status, outcome, self.mode, language, kind)
            text, citations = write_quotations(quoted, opening, confidence or 0.0)
            meta |= {"status": status, "citations": citations, "confidence": confidence, "absent": absent}
            if filters and status != "quoted" and isinstance(store, LibraryStore):
                meta["waiting"] = store.count_without_vector(filters)
        else:
            text = _recalled(outcome.texts, language) if outcome.kind == "recalled" else " ".join(outcome.texts)
        return GeneratedAnswer(data=text, query=query, documents=found, meta=meta)


def _chapter_outline(documents: Sequence[Document], chapter: AskedChapter) -> list[Quotation]:
    """Quote the beginning under each heading of a chapter, or a place of each passage; of several chapters alike."""
    inside = [one for one in documents if chapter.contains(one.meta)]
    inside.sort(key=lambda one: (str(one.meta.get("source_id")), int(one.meta.get("position") or 0)))
    headed: dict[Any, Document] = {}
    for document in inside:
        headed.setdefault((document.meta.get("source_id"), *document.meta["section"]), document)
    chosen = list(headed.values()) if len(headed) >= _FEWEST_HEADINGS else inside
    chapters = [list(own) for _, own in groupby(chosen, key=lambda one: chapter.place(one.meta))][:_LONGEST_OUTLINE]
    found = []
    for document in [one for own in chapters for one in own[: _LONGEST_OUTLINE // len(chapters)]]:
        begins = any(document is one for one in headed.values())
        if window := _telling(document.content or "", document.meta["section"], begins=begins):
            found.append(Quotation(document, window, window))
    return found


def _telling(text: str, headings: Sequence[str], *, begins: bool) -> Span | None:
    """Find where a passage begins, up to a sentence that tells something; one that goes on begins at a new thought."""
    spans = [span for span in read_text(text).sentences if text[slice(*span)].strip("# \n") not in headings]
    if not begins:
        spans = [span for span in spans if not refers_back(text[slice(*span)])] or spans
    for start, end in spans:
        if _TELLING <= size_of(text[start:end]) <= LONGEST:
            last = next((b for a, b in spans if a >= start and not is_part(text[a:b])), end)
            first = spans[0][0] if begins and size_of(text[spans[0][0] : last]) <= LONGEST else start
            return with_note(text, (first, last))
    return with_note(text, spans[0]) if spans and (begins or size_of(text[slice(*spans[0])]) <= LONGEST) else None


def _reason() -> str:
    """Return why the model that answers gave no reply; outside a run of ours there can only be none."""
    run = current_run()
    return (run.unanswered if run else "") or "no_model"


def _naming_gaps(reply: ChatMessage, language: str) -> ChatMessage:
    """Add the sub-questions without an answer to a reply, unless it admits a gap by itself."""
    missing = (reply.meta.get("asked") or {}).get("missing") or []
    claims = split_claims(reply.text or "").claims if missing else ()
    if not claims or any(claim_kind(claim.text) == "silence" for claim in claims):
        return reply
    opening = "资料没有说明：" if language == "zh" else "The sources do not say: "
    return ChatMessage.from_assistant(f"{reply.text}\n\n{opening}{' '.join(missing)}", meta=reply.meta)


def _opening(status: str, outcome: Outcome, mode: str, language: str, kind: str) -> str:
    """Write what stands before the quotations; without a model in the setup, doubtful ones need no cause."""
    texts = read_texts("quotations")["zh" if language == "zh" else "en"]
    text = not_found_sentence(mode, language) if status == "not_found" else texts[kind]
    if outcome.kind != "unanswered" or (outcome.reason == "no_model" and status != "quoted"):
        return text
    return f"{text}{'' if language == 'zh' else ' '}{texts['causes'][outcome.reason]}"


def _recalled(messages: tuple[str, ...], language: str) -> str:
    """Quote earlier messages of a conversation."""
    sentences: dict[str, str] = read_texts("recalled")
    text = sentences.get(language, sentences["en"])
    for message in map(neutral_text, messages):
        shown = message if len(message) <= _LONGEST_RECALLED else f"{message[:_LONGEST_RECALLED]}…"
        text += "\n\n" + "\n".join(f"> {line}".rstrip() for line in shown.splitlines())
    return text
