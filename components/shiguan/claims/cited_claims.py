"""Checks the sentences of an answer against numbered passages, and writes what it found as citations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from haystack import Document

from shiguan.claims.agreement import Agreement, agreement
from shiguan.claims.anchors import anchor_at
from shiguan.claims.claims import Claim
from shiguan.claims.graded_claims import plain_sentence
from shiguan.claims.not_found_reply import is_not_found
from shiguan.claims.score_scaling import scaled_scores

# Confidence = 0.4 document score + 0.4 similarity + 0.2 frequency of the passage in the answer (three times is often).
_SCORE_SHARE, _SIMILARITY_SHARE, _FREQUENCY_SHARE, _OFTEN = 0.4, 0.4, 0.2, 3


@dataclass(frozen=True)
class CitedClaim:
    """One claim with what each of its passages says to it."""

    claim: Claim
    found: tuple[tuple[int, Agreement], ...]
    best: Agreement
    added: bool


def numbered_passages(documents: Sequence[Document]) -> dict[int, Document]:
    """Put the passages that an answer was written from under their numbers."""
    numbered: dict[int, Document] = {}
    for place, document in enumerate(documents, start=1):
        number = document.meta.get("number")
        numbered.setdefault(number if isinstance(number, int) and number > 0 else place, document)
    return dict(sorted(numbered.items()))


def check_claim(
    claim: Claim, numbered: Mapping[int, Document], graded: Mapping[str, Mapping[str, Any]] | None = None
) -> CitedClaim:
    """Check a claim against the passages that it cites, or find one that supports it."""
    one = _checked(claim, numbered)
    verdict = (graded or {}).get(plain_sentence(one.claim.text))
    if verdict is None or not one.claim.checkable:
        return one
    judged = {name: verdict[name] for name in ("verdict", "score", "reason")}
    found = tuple(
        (number, replace(support, **judged) if number == verdict["number"] else support)
        for number, support in one.found
    )
    return replace(one, found=found, best=replace(one.best, **judged))


def _checked(claim: Claim, numbered: Mapping[int, Document]) -> CitedClaim:
    nothing = Agreement(0.0, 0.0, 0, 0, "unsupported", "no passage supports it")
    if not claim.checkable or is_not_found(claim.text):
        return CitedClaim(Claim(claim.start, claim.end, claim.text, (), checkable=False), (), nothing, added=False)
    cited = [number for number in claim.numbers if number in numbered]
    found = [(number, agreement(claim.text, _content(numbered[number]))) for number in cited or numbered]
    if not found:
        return CitedClaim(claim, (), nothing, added=False)
    number, best = max(found, key=lambda pair: (pair[1].score, -pair[0]))
    if not cited:
        supported = best.verdict == "supported"
        return CitedClaim(claim, ((number, best),) if supported else (), best, added=supported)
    if len(cited) > 1 and best.verdict != "supported":
        # Two passages may support a claim that neither supports alone.
        quotes = [_content(numbered[n])[one.start : one.end] for n, one in found]
        together = agreement(claim.text, "\n\n".join(quotes))
        if together.score > best.score:
            best = together
    return CitedClaim(claim, tuple(found), best, added=False)


def citations_of(
    checked: Sequence[CitedClaim], places: Sequence[tuple[int, int]], numbered: Mapping[int, Document]
) -> list[dict[str, Any]]:
    """Write the citations of an answer."""
    scores = scaled_scores({number: document.score for number, document in numbered.items()})
    frequency: dict[int, int] = {}
    for one in checked:
        for number, _ in one.found:
            frequency[number] = frequency.get(number, 0) + 1
    citations = []
    for one, (start, end) in zip(checked, places, strict=True):
        for number, support in one.found:
            document = numbered[number]
            offset = (document.meta.get("cut") or [0])[0]
            confidence = (
                _SCORE_SHARE * scores[number]
                + _SIMILARITY_SHARE * support.similarity
                + _FREQUENCY_SHARE * min(frequency[number] / _OFTEN, 1.0)
            )
            section = document.meta.get("section") or []
            citations.append(
                {
                    "number": number,
                    "claim": {"start": start, "end": end},
                    "parent_id": document.id,
                    "source": document.meta.get("source", ""),
                    "title": document.meta.get("title", ""),
                    "section": [section] if isinstance(section, str) else list(section),
                    "anchor": anchor_at(document.meta, offset + support.start),
                    "start": offset + support.start,
                    "end": offset + support.end,
                    "quote": _content(document)[support.start : support.end],
                    "confidence": round(confidence, 4),
                    "verdict": support.verdict,
                }
            )
    return citations


def claim_record(one: CitedClaim, place: tuple[int, int], shown: str) -> dict[str, Any]:
    """Write a claim with its verdict."""
    return {
        "start": place[0],
        "end": place[1],
        "text": shown[place[0] : place[1]],
        "numbers": [number for number, _ in one.found],
        "verdict": one.best.verdict,
        "score": round(one.best.score, 4),
        "reason": one.best.reason,
        "added": one.added,
    }


def _content(document: Document) -> str:
    return document.content or ""
