"""Grades an answer as a reader would: is it supported, does it answer the question, is it complete, is it clear."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from haystack import Document, component
from haystack.components.embedders.types import DocumentEmbedder
from haystack.components.generators.chat.types import ChatGenerator
from haystack.dataclasses import ChatMessage

from shiguan.claims.checker import CheckedClaim, ClaimChecker, check_in_thread, checker_of, numbered_passages
from shiguan.claims.citations import cited_place, compared_places
from shiguan.claims.claim_kinds import is_not_found
from shiguan.claims.claim_support import Verdict
from shiguan.claims.claims import ClaimedText
from shiguan.claims.verbatim import find_verbatim
from shiguan.grading.window_similarity import try_similarities
from shiguan.llm.calls import NO_LLM, ask_llm_async, blocking, is_available, warm_up_generator
from shiguan.llm.json_replies import json_number, json_object
from shiguan.llm.prompt_rendering import render_prompt
from shiguan.llm.source_blocks import SourceBlock, neutral_text, render_sources
from shiguan.text.languages import detect_language
from shiguan.text.names import foreign_names
from shiguan.text.passages import passage_terms
from shiguan.text.questions import has_shape, question_shapes
from shiguan.text.terms import covered, question_weights, terms

_ASPECTS = ("support", "relevance", "completeness", "clarity")
# At or above these local scores no model is asked: of claims from 0 to 1, of relevance from 0 to 10. However low the
# score of a claim, the passages may say it in other words.
_SURE, _SURE_RELEVANCE = 0.8, 8.0
_SCORES: dict[Verdict, float] = {"supported": 0.9, "partial": 0.5, "unsupported": 0.15, "contradicted": 0.05}
_MOST_SUGGESTIONS, _MOST_PAIRS, _LONGEST, _LONGEST_REASON = 3, 8, 500, 300


@dataclass(frozen=True)
class CheckedAnswer:
    """A reply with what the local check found."""

    question: str
    language: str
    parts: ClaimedText
    documents: list[Document]
    claims: list[CheckedClaim]
    pairs: tuple[dict[str, Any], ...] = ()
    """Cited places that may disagree, those first of which the rule is sure; each with what it or the model says."""

    @property
    def is_not_found(self) -> bool:
        return not self.claims and is_not_found(self.parts.text)

    @property
    def unsure(self) -> list[CheckedClaim]:
        """The claims that the local check cannot decide: neither compared exactly nor clearly supported."""
        claims = (claim for claim in self.claims if not claim.support.exact)
        return [claim for claim in claims if claim.support.foreign or claim.support.score < _SURE]


@component
class AnswerGrader:
    """
    Gives an answer four marks from 0 to 10, with at most one call of a language model.

    The marks are `support` (do the passages say so), `relevance` (does it answer the question), `completeness` (does it
    give every relevant point) and `clarity` (is it plain and without repetition). Only where the local check is unsure
    about a claim or the answer's relevance, or cited sources seem to disagree, is a model asked, once for everything:
    the marks, the verdicts on the unsure claims, whether sources that seem to or may disagree do, what is missing and
    how to do better. An answer whose average is below the threshold, or any mark below half of it, does not pass; one
    whose relevance is below half of it does not answer. `HallucinationGrader` acts on this grade. Without a model, or
    with a broken reply, the marks are those of the local check; they are coarse, have `judge: "local"`, and never fail
    an answer.

    The model is asked for JSON: `{"claims": [{"id": 1, "verdict": "supported", "source": 1, "quote": "…", "reason":
    "…"}], "support": 9, "relevance": 8, "completeness": 7, "clarity": 8, "missing": "…", "feedback": "…",
    "suggestions": ["…"]}`, and where sources may disagree for `"pairs": [{"id": 1, "disagree": true}]` as well.

    Example:
    ```python
    grader = AnswerGrader(chat_generator=OpenAIChatGenerator())
    grader.run(replies=replies, documents=documents, query="When did An Lushan rise?")["grade"]
    # {"judge": "llm", "judged": 1, "passed": True, "answers": True, "overall": 8.5, "support": 9.0, "relevance": 10.0,
    #  "completeness": 7.0, "clarity": 8.0, "missing": "", "feedback": "…", "suggestions": []}
    ```
    """

    def __init__(self, chat_generator: ChatGenerator | None = None, *, threshold: float = 7.0) -> None:
        """
        Set the judge and the threshold.

        :param chat_generator: The judge; None, or one that is not available, for the local marks.
        :param threshold: The average, 0 to 10, at which an answer passes.
        :raises ValueError: If the threshold is out of its range.
        """
        if not 0 <= threshold <= 10:
            raise ValueError(f"`threshold` must be 0 to 10, got {threshold}.")
        self.chat_generator = chat_generator
        self.threshold = threshold

    def warm_up(self) -> None:
        warm_up_generator(self.chat_generator)

    @component.output_types(grade=dict[str, Any], warnings=list[str], llm_calls=int)
    async def run_async(
        self, replies: list[ChatMessage], documents: list[Document], query: str, *, language: str | None = None
    ) -> dict[str, Any]:
        """
        Grade an answer.

        :param replies: The generator's replies; the first one counts.
        :param documents: The numbered passages that it read.
        :param query: The question.
        :param language: Its language; None to detect it.
        :returns: `grade`: `judge` (`llm` or `local`), `judged` (how many claims the model decided), `passed`,
            `answers`, `overall` (the average), the four marks, `missing`, `feedback` and `suggestions`; `warnings`;
            `llm_calls`, 0 or 1.
        """
        reply = replies[0] if replies else ChatMessage.from_assistant("")
        self.warm_up()
        paired = is_available(self.chat_generator)
        answer, _ = await check_in_thread(lambda: check_answer(reply, documents, query, language, paired=paired))
        grade, _, warnings, llm_calls = await self.graded(answer)
        return {"grade": grade, "warnings": warnings, "llm_calls": llm_calls}

    run = blocking(run_async)

    async def graded(self, answer: CheckedAnswer) -> tuple[dict[str, Any], CheckedAnswer, list[str], int]:
        """Return the grade, the answer with the model's verdicts, warnings, and the number of calls."""
        self.warm_up()
        local = local_marks(answer)
        if not is_available(self.chat_generator):
            asked = self.chat_generator is not None and answer.claims
            warnings = [f"{NO_LLM}: the answer was checked locally."] if asked else []
            return self._grade(local), answer, warnings, 0
        empty = not answer.parts.claims or answer.is_not_found
        seem = any(pair["disagree"] for pair in answer.pairs)
        if empty or not (answer.unsure or seem or local["relevance"] < _SURE_RELEVANCE):
            return self._grade(local), answer, [], 0
        reply = await ask_llm_async(self.chat_generator, grade_messages(answer), helper=False)
        found = read_grade(reply.text, answer)
        if found is None:
            why = reply.failure or "its reply was not the JSON that was asked for"
            warning = f"The LLM did not grade the answer ({why}); it was checked locally."
            return self._grade(local), answer, [warning], 1
        marks, words, answer = found
        return self._grade(marks or local, by_model=bool(marks), **words), answer, [], 1

    def _grade(self, marks: dict[str, float], *, by_model: bool = False, **words: Any) -> dict[str, Any]:
        """Write a grade: marks from 0 to 10, who gave them, and what the answer lacks."""
        overall, least = sum(marks.values()) / len(marks), self.threshold / 2
        return {
            "judge": "llm" if by_model else "local",
            "judged": 0,
            "passed": not by_model or (overall >= self.threshold and min(marks.values()) >= least),
            "answers": not by_model or marks["relevance"] >= least,
            "overall": round(overall, 2),
            **marks,
            "missing": "",
            "feedback": "",
            "suggestions": [],
            **words,
        }


def check_answer(
    reply: ChatMessage,
    documents: Sequence[Document],
    question: str,
    language: str | None,
    *,
    embedder: DocumentEmbedder | None = None,
    paired: bool = True,
) -> tuple[CheckedAnswer, list[str]]:
    """
    Check a reply by words and, where that does not decide every verdict, by meaning if there is an embedder.

    Places that may disagree are paired for a judge; without one `CitationExtractor` decides, by the same rule.
    """
    numbered = numbered_passages(documents)
    checker = checker_of(numbered, question)
    parts = checker.split((reply.text or "").strip())
    read = [] if checker.says_nothing(parts) else checker.read(parts)
    # All claims or none, because the score of a claim depends on those of the others.
    wanted = checker.windows(read) if checker.needs_similarities(read, _SURE) else []
    similarities, warnings = try_similarities(embedder, wanted)
    claims = checker.judge(read, similarities)
    language = language or detect_language(question)
    passages = list(numbered.values())
    cited = _cited(claims, numbered, checker) if paired else []
    pairs = compared_places(cited, passages, doubtful=True)[:_MOST_PAIRS]
    return CheckedAnswer(question, language, parts, passages, claims, tuple(pairs)), warnings


def _cited(claims: Sequence[CheckedClaim], numbered: Mapping[int, Document], checker: ClaimChecker) -> list[Any]:
    """Give the places of the passages that the marks of claims name, and those that support them best."""
    found = [(n, checker.relation(claim.stated, n)) for claim in claims for n in claim.claim.numbers if n in numbered]
    found += [(checker.numbers[claim.support.passage], claim.support) for claim in claims if claim.support.passage >= 0]
    known = ((number, support) for number, support in found if support.verdict in ("supported", "partial"))
    return [{"number": number, **cited_place(numbered[number], (s.start, s.end))} for number, s in known]


def local_marks(answer: CheckedAnswer) -> dict[str, float]:
    """Mark an answer coarsely without a model: relevance is the share of the question's words, weighted by rarity."""
    if not answer.parts.claims or answer.is_not_found:
        return dict.fromkeys(_ASPECTS, 0.0)
    weights = question_weights(answer.question)
    words = set(terms(answer.parts.text)).union(*(terms(claim.quote) for claim in answer.claims))
    share = covered(weights, words) if weights else 1.0
    shapes = question_shapes(answer.question)
    if shapes and not has_shape(answer.parts.text, shapes[0], answer.question):
        share /= 2
    scores = [claim.support.score for claim in answer.claims]
    sentences = [" ".join(terms(claim.text)) for claim in answer.parts.claims]
    marks = (sum(scores) / len(scores) if scores else 1.0, share, share, len(set(sentences)) / len(sentences))
    return {aspect: round(10 * mark, 1) for aspect, mark in zip(_ASPECTS, marks, strict=True)}


def grade_messages(answer: CheckedAnswer) -> list[ChatMessage]:
    """Write the prompt that asks for the marks and for the verdicts on the claims that the local check is unsure of."""
    blocks = [
        SourceBlock(number=place, text=document.content or "", file=str(document.meta.get("source") or ""))
        for place, document in enumerate(answer.documents, start=1)
    ]
    return render_prompt(
        "answer_grader",
        context=render_sources(blocks),
        question=neutral_text(answer.question),
        answer=neutral_text(answer.parts.text),
        claims=[neutral_text(" ".join(claim.stated.split())) for claim in answer.unsure],
        pairs=[
            [
                neutral_text(" ".join(f"“{value}”: {place['quote']}".split()))
                for value, place in zip(pair["values"], pair["places"], strict=True)
            ]
            for pair in answer.pairs
        ],
        language=answer.language,
    )


def read_grade(reply: str, answer: CheckedAnswer) -> tuple[dict[str, float], dict[str, Any], CheckedAnswer] | None:
    """Read a model's marks, all of them or none, what the answer lacks, and its verdicts; None without marks or any."""
    found = json_object(reply, _ASPECTS[1]) or {}
    given = {aspect: json_number(found.get(aspect), low=0, high=10) for aspect in _ASPECTS}
    marks = {aspect: mark for aspect, mark in given.items() if mark is not None}
    marks = marks if len(marks) == len(_ASPECTS) else {}
    by_id, by_pair = (_by_id(found.get(name)) for name in ("claims", "pairs"))
    if not marks and not by_id:
        return None
    judged = {
        claim.index: _combined(claim, by_id[place], answer.documents)
        for place, claim in enumerate(answer.unsure, start=1)
        if place in by_id and str(by_id[place].get("verdict", "")).strip().lower() in get_args(Verdict)
    }
    decided = (by_pair.get(place, {}).get("disagree") for place in range(1, len(answer.pairs) + 1))
    pairs = tuple(
        {**pair, "disagree": said} if isinstance(said, bool) else pair
        for pair, said in zip(answer.pairs, decided, strict=True)
    )
    suggestions = found.get("suggestions")
    texts = map(_line, suggestions if isinstance(suggestions, list) else [suggestions])
    words = {
        "judged": len(judged),
        "missing": _line(found.get("missing")),
        "feedback": _line(found.get("feedback")),
        "suggestions": [text for text in texts if text][:_MOST_SUGGESTIONS],
    }
    claims = [judged.get(claim.index, claim) for claim in answer.claims]
    return marks, words, replace(answer, claims=claims, pairs=pairs)


def _by_id(items: Any) -> dict[int, dict[str, Any]]:
    known = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return {int(place): item for item in known if (place := json_number(item.get("id"), low=1, high=1e6)) is not None}


def _line(value: Any) -> str:
    return " ".join(value.split())[:_LONGEST] if isinstance(value, str) else ""


def _combined(claim: CheckedClaim, item: dict[str, Any], documents: Sequence[Document]) -> CheckedClaim:
    """Combine a model's verdict with the local one: support needs words of the sources, and no unknown names."""
    verdict: Any = str(item["verdict"]).strip().lower()
    reason, local = _line(item.get("reason"))[:_LONGEST_REASON], claim.support
    place, start, end = _quoted(item, documents)
    known = set[str]().union(*(passage_terms(document.content or "") for document in documents))
    if local.verdict == "unsupported" and not local.foreign and foreign_names(claim.stated, known):
        return claim
    if verdict == "supported" and place < 0 and local.verdict != "supported":
        verdict, reason = "partial", "the judge gave no words of the sources for it"
    if place < 0:
        place, start, end = local.passage, local.start, local.end
    score = (_SCORES[verdict] + local.score) / 2
    quote, reason = (documents[place].content or "")[start:end] if place >= 0 else "", reason or local.reason
    found = replace(local, score=score, verdict=verdict, reason=reason, passage=place, start=start, end=end)
    return replace(claim, support=found, quote=quote)


def _quoted(item: dict[str, Any], documents: Sequence[Document]) -> tuple[int, int, int]:
    """Find the words that a model quotes: the passage, the named one first, and the span in it."""
    quote, number = item.get("quote"), item.get("source")
    if isinstance(quote, str) and quote.strip():
        for place in sorted(range(len(documents)), key=lambda place: place + 1 != number):
            span = find_verbatim(quote.strip().strip("“”\"'…"), documents[place].content or "")
            if span:
                return place, *span
    return -1, 0, 0
