"""Ties the claims of an answer to passages: its citations, its marks, and both in the text that is shown."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, isnan
from typing import Any

from haystack import Document

from shiguan.claims.checker import ClaimChecker
from shiguan.claims.claim_support import Support
from shiguan.claims.claims import Claim, ClaimedText
from shiguan.reading.passage import Passage
from shiguan.text.places import place_of
from shiguan.text.terms import is_wide, terms

# Confidence = 0.4 document score + 0.4 similarity + 0.2 frequency of the passage in the answer (three times is often).
_SCORE_SHARE, _SIMILARITY_SHARE, _FREQUENCY_SHARE, _OFTEN = 0.4, 0.4, 0.2, 3
# The score of a passage that has none: neither good nor bad.
_UNKNOWN = 0.5
_GROUNDED = ("supported", "partial")
_NOTHING_STATED = "it makes no claim"
_STOP = re.compile(r"[.!?。！？…;；:：\"”’」』)）\]】*_\x60]*$")


UNSUPPORTED_MARK = "⚠"
"""The mark at the end of a sentence that nothing supports."""


@dataclass(frozen=True)
class CitedClaim:
    """A sentence, its support (None where it states nothing), and the support that each cited passage gives it."""

    claim: Claim
    support: Support | None
    found: tuple[tuple[int, Support], ...] = ()
    dropped: tuple[str, ...] = ()
    against: Mapping[str, Any] | None = None
    """The place of the passage that contradicts it, of another source if it is supported, with that of the `words`."""

    @property
    def numbers(self) -> list[int]:
        return [number for number, _ in self.found]

    @property
    def is_unsupported(self) -> bool:
        return self.support is not None and self.support.verdict in ("unsupported", "contradicted")

    @property
    def change(self) -> str:
        """How it was changed: `marked` as unsupported, its marks `added`, `replaced` or `dropped`; else empty."""
        was = list(self.claim.numbers)
        if self.is_unsupported:
            return "marked"
        if self.numbers == was:
            return ""
        return "dropped" if set(self.numbers) < set(was) else "replaced" if was else "added"

    def changes(self) -> list[dict[str, Any]]:
        if not self.change:
            return []
        own = self.support is not None and self.change in ("marked", "added")
        reason = self.support.reason if self.support and own else "; ".join(self.dropped)
        return [change_record(self.claim, self.change, self.numbers, reason)]

    def record(self, place: tuple[int, int], shown: str) -> dict[str, Any]:
        """Write the claim with its verdict, in the form of the answer object."""
        support = self.support or Support(0.0, "unsupported", _NOTHING_STATED)
        return {
            "start": place[0],
            "end": place[1],
            "text": shown[place[0] : place[1]],
            "numbers": self.numbers,
            "verdict": support.verdict,
            "score": round(support.score, 4),
            "reason": support.reason,
            "change": self.change,
            **({"against": self.against} if self.against else {}),
        }


def change_record(claim: Claim, kind: str, numbers: Sequence[int], reason: str) -> dict[str, Any]:
    """Write how a sentence was changed: the marks that it had, and those that it has now."""
    return {"claim": claim.text, "kind": kind, "was": list(claim.numbers), "numbers": list(numbers), "reason": reason}


def verdicts_by_sentence(verdicts: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Map sentences to a grader's verdicts; the keys do not change when marks are added or removed."""
    return {_plain(verdict["text"]): verdict for verdict in verdicts}


def cite_claim(
    claim: Claim,
    checker: ClaimChecker,
    numbered: Mapping[int, Document],
    graded: Mapping[str, Mapping[str, Any]] | None = None,
) -> CitedClaim:
    """Check a claim and its marks: a mark whose passage does not support the claim is replaced by one that does."""
    stated = checker.stated(claim)
    if not stated:
        return CitedClaim(claim, None, dropped=(_NOTHING_STATED,))
    verdict = (graded or {}).get(_plain(claim.text))
    support = checker.verdict(claim, stated) if verdict is None else _graded(verdict, Support(0.0, "unsupported", ""))
    named = verdict["number"] if verdict and verdict["number"] in numbered else None

    def support_by(number: int) -> Support:
        own = checker.relation(stated, number)
        return _graded(verdict or {}, own, Passage(numbered[number]).offset) if number == named else own

    found = {number: support_by(number) for number in claim.numbers if number in numbered}
    true = _true_marks(stated, support, found, checker)
    judged = named is not None and support_by(named).verdict in _GROUNDED
    if named is not None and support_by(named).verdict == "supported":
        true = [number for number in true if found[number].verdict == "supported"]
    if not true and support.verdict in _GROUNDED:
        likely = named if judged else None
        likely = checker.nearest_to(stated, support) if likely is None else likely
        if likely is not None:
            found, true = found | {likely: support_by(likely)}, [likely]
        if not true:
            support = replace(support, verdict="unsupported", reason="no passage says it by itself")
    support = _below_the_library(_limited(support, [found[number] for number in true]), stated, true, checker, numbered)
    reasons = {n: found[n].reason if n in found else "there is no such source" for n in claim.numbers}
    dropped = tuple(f"[{number}]: {reason}" for number, reason in reasons.items() if number not in true)
    against = _place_against(support, named, checker, numbered)
    if support.verdict == "supported" and (other := said_otherwise(stated, true, checker, numbered)) is not None:
        words, against = other
        support = replace(support, reason=f"{support.reason}; {words}: [{against['number']}]")
    return CitedClaim(claim, support, tuple((number, found[number]) for number in true), dropped, against)


def said_otherwise(
    stated: str, true: Sequence[int], checker: ClaimChecker, numbered: Mapping[int, Document]
) -> tuple[str, dict[str, Any]] | None:
    """
    Find a passage of another source that says what a supported claim says, but with other words in one place.

    :param true: The passages that support the claim.
    :returns: What it has in the place of what, and where.
    """
    sources = {numbered[number].meta.get("source") for number in true}
    for number, document in numbered.items():
        if document.meta.get("source") in sources or not checker.may_contradict(stated, number):
            continue
        own = checker.relation(stated, number)
        if own.instead_of and stated.count(own.instead_of) == 1:
            there = stated.replace(own.instead_of, own.differs)
            place = _place_against(own, number, checker, numbered)
            if place is not None and checker.relation(there, number).verdict == "supported":
                return f"another source has “{own.differs}” in the place of “{own.instead_of}”", place
    return None


def _place_against(
    support: Support, named: int | None, checker: ClaimChecker, numbered: Mapping[int, Document]
) -> dict[str, Any] | None:
    """Describe the place that contradicts a claim; a claim that is not contradicted has none."""
    if support.verdict != "contradicted" or (named is None and support.passage < 0):
        return None
    number = checker.numbers[support.passage] if named is None else named
    document, (start, end) = numbered[number], (support.start, support.end)
    at = (document.content or "").find(support.differs, start, end) if support.differs else -1
    begin = Passage(document).offset + at
    words = [[begin, begin + len(support.differs)]] if at >= 0 else []
    return {"number": number, **cited_place(document, (start, end)), "words": words}


def _below_the_library(
    support: Support, stated: str, true: Sequence[int], checker: ClaimChecker, numbered: Mapping[int, Document]
) -> Support:
    """Lower the verdict of a claim that only tools support where the library, which has precedence, contradicts it."""
    if support.verdict != "supported" or not true or not all(is_of_tool(numbered[number]) for number in true):
        return support
    library = (number for number, document in numbered.items() if not is_of_tool(document))
    against = next((number for number in library if checker.relation(stated, number).verdict == "contradicted"), None)
    if against is None:
        return support
    reason = f"only a tool says so, and the library, which goes before it, may say otherwise in [{against}]"
    return replace(support, verdict="partial", reason=reason)


def _limited(support: Support, found: Sequence[Support]) -> Support:
    """Lower the verdict and the score of a claim to those of the best passage that it cites."""
    if support.verdict not in _GROUNDED:
        return support
    best = max(found, key=lambda own: (own.verdict == "supported", own.score))
    score = min(support.score, best.score)
    if best.verdict == support.verdict:
        return replace(support, score=score)
    return replace(support, score=score, verdict=best.verdict, reason=best.reason)


def _true_marks(stated: str, support: Support, found: Mapping[int, Support], checker: ClaimChecker) -> list[int]:
    """Choose the marks of a claim whose passages support it by themselves or, failing that, in part."""
    if support.verdict == "unsupported":
        return []
    whole = [number for number, own in found.items() if own.verdict == "supported"]
    if support.verdict == "contradicted":
        return whole
    partly = [number for number, own in found.items() if own.verdict == "partial"]
    nearest = checker.nearest_to(stated, support) if partly and not whole else None
    best = checker.relation(stated, nearest) if nearest is not None else None
    if whole or best is None or best.verdict == "supported":
        return whole
    least = checker.unnamed(stated, best)
    # Where another passage names whom or what the claim is about, one that does not is no place to look it up.
    return [number for number in partly if checker.unnamed(stated, found[number]) <= least]


def citations_of(
    cited: Sequence[CitedClaim], places: Sequence[tuple[int, int]], numbered: Mapping[int, Document]
) -> list[dict[str, Any]]:
    """Write the citations of an answer, in the form of the answer object."""
    scores = scaled_scores({number: document.score for number, document in numbered.items()})
    frequency = Counter(number for claim in cited for number in claim.numbers)
    return [
        {
            "number": number,
            "claim": {"start": start, "end": end},
            **cited_place(numbered[number], (support.start, support.end)),
            "confidence": round(
                _SCORE_SHARE * scores[number]
                + _SIMILARITY_SHARE * support.similarity
                + _FREQUENCY_SHARE * min(frequency[number] / _OFTEN, 1.0),
                4,
            ),
            "verdict": support.verdict,
            **({"origin": "tool"} if is_of_tool(numbered[number]) else {}),
        }
        for claim, (start, end) in zip(cited, places, strict=True)
        for number, support in claim.found
    ]


def cited_place(document: Document, span: tuple[int, int]) -> dict[str, Any]:
    """Describe a place of a passage as citations do; in a cut passage, positions are those of the stored parent."""
    meta, passage, (start, end) = document.meta, Passage(document), span
    offset = passage.offset
    return {
        "parent_id": document.id,
        "source": meta.get("source", ""),
        "title": meta.get("title", ""),
        "section": passage.section,
        "anchor": anchor_at(meta, offset + start),
        "start": offset + start,
        "end": offset + end,
        "quote": (document.content or "")[start:end],
        **place_of(meta, document.content or "", span, offset),
    }


def write_cited(parts: ClaimedText, cited: Sequence[CitedClaim]) -> tuple[str, list[tuple[int, int]]]:
    """Write an answer with the marks that its claims shall have, and return the place of each claim."""
    marks: dict[int, list[int]] = {}
    missing = [list(claim.numbers) for claim in cited]
    homes = [claim.claim.end for claim in cited]
    for (position, found), owner in reversed(list(zip(parts.marks, parts.owners, strict=True))):
        if owner < len(cited):
            marks[position] = [n for n in found if n in cited[owner].numbers] + marks.get(position, [])
            missing[owner] = [number for number in missing[owner] if number not in found]
            homes[owner] = position
    for home, more in zip(homes, missing, strict=True):
        marks.setdefault(home, []).extend(more)
    # The sign stands before the stop; the pattern matches the empty string.
    signs = {own.claim.start + _STOP.search(own.claim.text).start() for own in cited if own.is_unsupported}  # type: ignore[union-attr]
    out: list[str] = []
    length = at = 0
    start_of: dict[int, int] = {}
    end_of: dict[int, int] = {}
    edges = {edge for own in cited for edge in (own.claim.start, own.claim.end)}
    for place in sorted({*marks, *edges, *signs, len(parts.text)}):
        mark = "".join(f"[{number}]" for number in dict.fromkeys(marks.get(place, [])))
        sign = UNSUPPORTED_MARK if place in signs else ""
        if (sign or mark) and place and not parts.text[place - 1].isspace() and not is_wide(parts.text[place - 1]):
            sign, mark = (" " + sign, mark) if sign else (sign, " " + mark)
        out += [parts.text[at:place], sign, mark]
        at, end_of[place] = place, length + len(out[-3]) + len(sign)
        length = end_of[place] + len(mark)
        start_of[place] = length
    return "".join(out), [(start_of[own.claim.start], end_of[own.claim.end]) for own in cited]


def is_of_tool(document: Document) -> bool:
    return document.meta.get("origin") == "tool"


def anchor_at(meta: Mapping[str, Any], start: int) -> dict[str, Any] | None:
    """Return the anchor of the place in the book where a citation starts."""
    for block in meta.get("blocks") or []:
        if isinstance(block, dict) and block.get("start", 0) <= start < block.get("end", 0):
            return _moved(block.get("anchor") or meta.get("anchor"), start - block["start"])
    return _moved(meta.get("anchor"), 0)


def scaled_scores(scores: Mapping[int, float | None]) -> dict[int, float]:
    """Scale scores to 0..1: by the largest above 1, or from lowest to highest if some are negative (logits)."""
    known = [score for score in scores.values() if score is not None and isfinite(score)]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)

    def scaled(score: float | None) -> float:
        if score is None or isnan(score) or low == high < 0:
            return _UNKNOWN
        # Halved, because the difference of two floats may overflow.
        value = (score / 2 - low / 2) / (high / 2 - low / 2) if low < 0 else score / max(high, 1.0)
        return min(max(value, 0.0), 1.0)

    return {number: scaled(score) for number, score in scores.items()}


def _plain(sentence: str) -> str:
    return " ".join(terms(sentence))


def _graded(verdict: Mapping[str, Any], support: Support, offset: int = 0) -> Support:
    """Replace a verdict and its span by those of a grader."""
    found = {name: verdict[name] for name in ("verdict", "score", "reason")}
    span = {name: place - offset for name, place in (verdict.get("support") or {}).items()}
    return replace(support, **found, **span)


def _moved(anchor: Any, by: int) -> dict[str, Any] | None:
    if not isinstance(anchor, dict):
        return None
    if isinstance(anchor.get("offset"), int):
        return {**anchor, "offset": anchor["offset"] + by}
    return dict(anchor)
