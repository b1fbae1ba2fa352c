"""What follows from a graded answer: another attempt with better queries, or the best answer so far."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import compress, groupby
from typing import Any, Literal

from haystack import Document
from haystack.dataclasses import ChatMessage

from shiguan.claims.checker import CheckedClaim, stated_claim
from shiguan.claims.citations import UNSUPPORTED_MARK, change_record
from shiguan.claims.claims import ClaimedText
from shiguan.grading.attempts import Attempt, GradedAnswer
from shiguan.llm.calls import budget_allows, no_answer_error
from shiguan.llm.prompts import not_found_sentence
from shiguan.llm.source_blocks import neutral_text
from shiguan.text.languages import HAN, detect_language
from shiguan.text.terms import is_wide, question_subject, terms

OnUnsupported = Literal["mark", "remove", "refuse"]
MOST_ATTEMPTS = 3
MOST_CALLS = 4
"""Successive model calls within the loop; with a reworded question and a hypothetical passage before it, six."""

# At this probability that the passages answer, "the sources do not say" is not accepted at first.
_CONFIDENT = 0.5
_MODE = "precise"  # whose not-found sentence is used
_MOST_CLAIMS, _LONGEST_CLAIM, _LONGEST_WISH = 6, 300, 600
_FEEDBACK = {
    "en": ("The sources do not support these sentences of it:", "What it lacked: ", "“{claim}” ({reason})"),
    "zh": ("下列句子没有资料支持：", "所缺：", "“{claim}”（{reason}）"),
}
_TOKEN = re.compile(rf"[{HAN}]+|[^\W_{HAN}]+")
_EMPTY_ITEM = re.compile(r"^[ \t]*(?:[-*+•·]|\d{1,2}[.)、])[ \t]*(?:\[[\d\],\[ ]*\][ \t]*)?$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n{3,}")
_SPACES = re.compile(r"(?<=\S)[ \t]{2,}(?=\S)")
# What may follow the end of a sentence's last claim.
_CLOSING = re.compile(r"(?:[)）\]】\"”’」』.。!！?？…]|[*_]+(?![*_\w]))*")
_BESIDE = "its sentence also says what the sources do not support"
# Where an English sentence may end early: at a sign that sets clauses apart, or before a conjunction; a Chinese one at
# any clause of so many characters. What is left has to have a verb.
_JOINT = re.compile(
    r"\s*(?:[;；:(（\n]|[—–]|-\s|,?\s*(?:and|but|while|whereas|though|although|yet|so|because|then)\b)", re.IGNORECASE
)
_LONGEST_JOINT, _FEWEST_CHARACTERS = 10, 6
# A clause that needs another one, and how that one begins.
_DEPENDENT = re.compile(
    r"[\s*_>-]*(?:(?:if|when|whenever|although|though|because|since|while|after|before|as|unless|until|whereas|once)\b"
    r"|若|如果|倘|虽|雖|因为|因為|由于|由於|当|當|自从|自從|要是|即使|只要|除非|尽管|儘管)",
    re.IGNORECASE,
)
_FOLLOWING = re.compile(r"[\s，,；;]*(?:则|則|就|便|才|却|卻|也|仍|故|所以|于是|於是)")
_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|do|does|did|can|could|will|would|shall|should|may|might|must|cannot|[a-z]{2,}ed"
    r"|came|went|took|gave|held|fell|rose|led|sent|made|said|saw|found|left|lost|won|fought|began|became|brought|built|broke"
    r"|chose|drew|fled|got|grew|kept|knew|laid|let|meant|met|paid|put|ran|set|shot|sold|spent|stood|struck|told|thought"
    r"|threw|wrote|wore|bore|bought|caught|drove|ate|hung|heard|hid|hit|lay|lit|sat|shook|slew|spoke|spread|stole|swore"
    r"|taught|tore|understood|ate|cost|bound|burnt|dealt|dug|fed|hold|holds|says|stands)\b",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^(?:#{1,6}\s.*|\*\*[^*\n]+\*\*[:：]?|[^\n.!?。！？]{0,80}[:：])$")


def decide(
    this: GradedAnswer,
    attempt: Attempt,
    on_unsupported: OnUnsupported,
    *,
    in_loop: bool,
    sent: Sequence[ChatMessage],
    confidence: float | None,
) -> dict[str, Any]:
    """Return the answer, or start another attempt."""
    doubtful = this.is_not_found and this.number == 1 and (confidence or 0.0) >= _CONFIDENT
    # Of two equally good attempts the later one wins: it had feedback on what the first one lacked.
    best = this if attempt.best is None or this.value >= attempt.best.value else attempt.best
    attempt = replace(
        attempt,
        history=(*attempt.history, this.record(attempt.query)),
        best=best,
        llm_calls=attempt.llm_calls + this.llm_calls,
        warnings=tuple(dict.fromkeys([*attempt.warnings, *this.warnings])),
    )
    # Another attempt takes one more call, and another one to grade it.
    needed = this.number + attempt.llm_calls + (2 if this.grade else 1)
    good = this.is_accepted and not doubtful
    if not in_loop or good or this.number >= MOST_ATTEMPTS or needed > MOST_CALLS or not budget_allows():
        return finished(best, attempt, on_unsupported)
    retry = _next(attempt, this, sent, reworded=doubtful)
    return {"retry": retry, "llm_calls": attempt.llm_calls, "warnings": list(attempt.warnings)}


def _next(attempt: Attempt, this: GradedAnswer, sent: Sequence[ChatMessage], *, reworded: bool) -> Attempt:
    queries = retry_queries(attempt.question, this.documents, this.ungrounded, str(this.grade.get("missing") or ""))
    if reworded and len(queries) == 1:
        # The content words, without those that make them a question.
        subject = " ".join(word for word in question_subject(attempt.question).split() if terms(word))
        queries = tuple(dict.fromkeys([attempt.question, subject or queries[0]]))
    grounded = (claim.support.passage for claim in this.claims if claim.is_grounded)
    useful = {this.documents[passage].id for passage in grounded if passage >= 0}
    documents = {document.id: document for document in this.documents}
    wishes = [str(this.grade.get("feedback") or ""), *this.grade.get("suggestions", ())]
    return replace(
        attempt,
        number=this.number + 1,
        queries=queries,
        documents=tuple(sorted(documents.values(), key=lambda document: document.id not in useful)),
        feedback=feedback_text(this.ungrounded, this.language, wishes),
        messages=(*sent, ChatMessage.from_assistant(this.reply.text or "…")) if sent else (),
        shown=tuple(this.documents) if sent else attempt.shown,
    )


def retry_queries(
    question: str, passages: Sequence[Document], refused: Sequence[CheckedClaim], missing: str
) -> tuple[str, ...]:
    """Search next for words of the question that no passage has and what a grader misses, never for a refused claim."""
    read = set[str]().union(*(terms(passage.content or "") for passage in passages))
    uncovered = [word for word in _TOKEN.findall(question_subject(question)) if not read.issuperset(terms(word))]
    asked = set(terms(question))
    invented = set[str]().union(*(terms(claim.stated) for claim in refused)) - asked
    wanted = " ".join(_without(missing[:_LONGEST_CLAIM], invented).split())
    queries = [question, " ".join(uncovered), wanted if set(terms(wanted)) - asked else ""]
    return tuple(dict.fromkeys(query for query in queries if terms(query))) or (question,)


def _without(text: str, invented: set[str]) -> str:
    """Remove words from a text: Latin ones, and Han characters in pairs."""
    kept = list(text)
    for token in _TOKEN.finditer(text):
        size = min(2, len(token[0])) if is_wide(token[0][0]) else len(token[0])
        for at in range(token.start(), token.end() - size + 1):
            if any(term in invented for term in terms(text[at : at + size])[-1:]):
                kept[at : at + size] = " " * size
    return "".join(kept)


def feedback_text(claims: Sequence[CheckedClaim], language: str, lacks: Sequence[str]) -> str:
    """Write what was wrong with an answer, quoted as data, and how a grader would improve it, for the generator."""
    intro, lacked, item = _FEEDBACK["zh" if language == "zh" else "en"]
    lines = [intro] if claims else []
    for claim in claims[:_MOST_CLAIMS]:
        text = neutral_text(" ".join(claim.claim.text.split()))[:_LONGEST_CLAIM]
        lines.append("- " + item.format(claim=text, reason=neutral_text(claim.support.reason)))
    wishes = [neutral_text(" ".join(text.split()))[:_LONGEST_WISH] for text in lacks if text.strip()]
    return "\n".join([*lines, *(f"- {text}" if at else lacked + text for at, text in enumerate(wishes))])


def finished(best: GradedAnswer, attempt: Attempt, on_unsupported: OnUnsupported) -> dict[str, Any]:
    """Return the best answer so far, its unsupported claims marked or removed, or withhold it."""
    reply, grade, history = best.reply, best.grade, list(attempt.history)
    if not any(map(str.isalpha, reply.text or "")):
        raise no_answer_error(reply)
    text, status, warning = (reply.text or "").strip(), "accepted", ""
    refused = {claim.index: claim for claim in best.ungrounded}
    tries = f"{len(history)} {'attempt' if len(history) == 1 else 'attempts'}"
    count = f"{len(refused)} {'sentence' if len(refused) == 1 else 'sentences'}"
    withheld = f"The answer was withheld after {tries}: "
    if best.is_not_found:
        status = "not_found"
    elif not best.claims:
        text, status, warning = "", "refused", f"{withheld}it states nothing."
    elif not grade.get("answers", True):
        text, status, warning = "", "refused", f"{withheld}it does not answer the question."
        refused = {claim.index: claim for claim in best.claims}
    elif refused and on_unsupported == "mark":
        status, warning = "marked", f"{count} marked {UNSUPPORTED_MARK}: the sources do not support them."
    elif refused:
        gone = with_their_sentences(best.parts, refused, {claim.index for claim in best.claims if best.stands(claim)})
        refused = {claim.index: claim for claim in best.claims if claim.index in gone}
        text = (
            without_claims(best.parts, gone) if on_unsupported == "remove" and len(refused) < len(best.claims) else ""
        )
        status, warning = "removed", f"{count} removed from the answer: the sources do not support them."
        if not text:
            status, warning = "refused", f"{withheld}the sources do not support {count} of it."
    elif not best.is_accepted:
        warning = "The answer stayed below the grader's threshold after its last attempt."
    removed = refused.values() if status in ("removed", "refused") else ()
    failed = {claim.index for claim in best.ungrounded}
    grounding = {
        "status": status,
        "attempts": len(history),
        "chosen": best.number,
        "history": history,
        "removed": [
            change_record(claim.claim, "removed", (), claim.support.reason if claim.index in failed else _BESIDE)
            for claim in removed
        ],
        "llm_calls": attempt.llm_calls,
        "grade": {name: value for name, value in grade.items() if name not in ("feedback", "suggestions", "missing")},
    }
    verdicts = best.verdicts()
    meta = {**reply.meta, "grounding": grounding, "verdicts": verdicts, "pairs": best.pairs}
    final = ChatMessage.from_assistant(text or not_found_sentence(_MODE, best.language), meta=meta)
    return {
        "replies": [final],
        "documents": best.documents,
        "verdicts": verdicts,
        "llm_calls": attempt.llm_calls,
        "warnings": [*attempt.warnings, *([warning] if warning else [])],
    }


def with_their_sentences(parts: ClaimedText, failed: Collection[int], good: Collection[int]) -> set[int]:
    """Return the claims that go with some: all of their sentences, except whole clauses that stand before them."""
    gone = set(failed)
    for sentence in _sentences(parts):
        bad = next((at for at, index in enumerate(sentence) if index in gone), None)
        if bad is None or _is_row(parts, sentence):
            continue
        kept = sentence[:bad]
        whole = any(index in good for index in kept)
        gone.update(sentence[bad:] if whole and _may_end(parts, kept[0], kept[-1], sentence[bad]) else sentence)
    return gone


def _sentences(parts: ClaimedText) -> list[list[int]]:
    """Group the claims of an answer, by index, into its sentences."""
    return [list(group) for _, group in groupby(range(len(parts.claims)), key=lambda at: parts.claims[at].sentence)]


def _is_row(parts: ClaimedText, sentence: Sequence[int]) -> bool:
    """Return whether a sentence is a row of a table, in which a cell may be empty."""
    start = parts.claims[sentence[0]].sentence
    return parts.text[parts.text.rfind("\n", 0, start) + 1 :].lstrip().startswith("|")


def _may_end(parts: ClaimedText, first: int, last: int, following: int) -> bool:
    """Return whether a sentence may end after one of its clauses and still be whole."""
    kept = parts.text[parts.claims[first].start : parts.claims[last].end]
    between = parts.text[parts.claims[last].end : parts.claims[following].start + _LONGEST_JOINT]
    if _DEPENDENT.match(kept) and not re.search(r"[,，]", kept):
        return False
    if detect_language(kept) == "zh":
        return len(kept) >= _FEWEST_CHARACTERS and not _FOLLOWING.match(between)
    return bool(_JOINT.match(between)) and bool(_VERB.search(kept))


def without_claims(parts: ClaimedText, removed: Collection[int]) -> str:
    """Write an answer without some claims, their marks, and list items and headings that become empty."""
    left = [claim for index, claim in enumerate(parts.claims) if index not in removed]
    if not any(stated_claim(claim) for claim in left):
        return ""
    alive = bytearray(b"\1" * len(parts.text))
    stops: dict[int, str] = {}
    for sentence in _sentences(parts):
        gone = [index for index in sentence if index in removed]
        if gone and gone == sentence[-len(gone) :] and not _is_row(parts, sentence):
            start, end = parts.claims[gone[0]].start, _end(parts, gone[-1])
            if len(gone) < len(sentence):
                start = parts.claims[sentence[-len(gone) - 1]].end
                stops[start] = "。" if is_wide(parts.text[start - 1]) else "."
            alive[start:end] = bytes(end - start)
        else:
            for index in gone:
                start, end = parts.claims[index].start, _end(parts, index)
                alive[start:end] = bytes(end - start)
    pieces: list[str] = []
    at = 0
    for place, numbers in sorted([*parts.marks, *((place, ()) for place in stops), (len(parts.text), ())]):
        pieces.extend(compress(parts.text[at:place], alive[at:place]))
        if not place or alive[place - 1]:
            pieces.extend(f"[{number}]" for number in numbers)
            pieces.append(stops.pop(place, ""))
        at = place
    return _tidy("".join(pieces))


def _end(parts: ClaimedText, index: int) -> int:
    """Return the position up to which what follows a claim belongs to it: what closes its sentence, and its marks."""
    end = parts.claims[index].end
    following = parts.claims[index + 1].start if index + 1 < len(parts.claims) else len(parts.text)
    if index + 1 == len(parts.claims) or parts.claims[index + 1].sentence != parts.claims[index].sentence:
        end = min(following, _CLOSING.match(parts.text, end).end())  # type: ignore[union-attr]  # it matches the empty string
    own = [at for at, _ in parts.marks if end <= at <= following and not parts.text[end:at].strip()]
    # A mark right before the next sentence belongs to that sentence only if it begins a new line.
    return max((at for at in own if "\n" not in parts.text[end:at]), default=end)


def _tidy(text: str) -> str:
    lines = _EMPTY_ITEM.sub("", _SPACES.sub(" ", text)).split("\n")
    kept: list[str] = []
    for line in reversed(lines):
        below = next((other for other in reversed(kept) if other.strip()), "")
        # A heading over nothing, or over the next heading, announces what was removed.
        if _HEADING.match(line.strip()) and line.strip() and (not below or _HEADING.match(below.strip())):
            continue
        kept.append(line.rstrip())
    return _BLANK_LINES.sub("\n\n", "\n".join(reversed(kept))).strip()
