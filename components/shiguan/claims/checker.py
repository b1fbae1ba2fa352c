"""The one check of all modes, the stream and the evaluation: what the passages say to the claims of an answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from haystack import Document

from shiguan.claims.claim_kinds import is_not_found, stated_part
from shiguan.claims.claim_support import Support, judge, plain_claim
from shiguan.claims.claims import Claim, ClaimedText
from shiguan.claims.evidence import Evidence, Reading
from shiguan.text.languages import detect_language
from shiguan.text.sentences import sentence_spans

_FOREIGN_SCORE = 0.5


@dataclass(frozen=True)
class ReadClaim:
    """One claim of an answer with what the passages have of it."""

    index: int
    claim: Claim
    stated: str
    reading: Reading


@dataclass(frozen=True)
class CheckedClaim:
    """One claim of an answer with what stands behind it."""

    index: int
    claim: Claim
    stated: str
    support: Support
    quote: str

    @property
    def is_grounded(self) -> bool:
        """Whether the passages support it at least in part."""
        return self.support.verdict in ("supported", "partial")


def numbered_passages(documents: Sequence[Document]) -> dict[int, Document]:
    """Put the passages that an answer was written from under their numbers."""
    numbered: dict[int, Document] = {}
    for place, document in enumerate(documents, start=1):
        number = document.meta.get("number")
        numbered.setdefault(number if isinstance(number, int) and number > 0 else place, document)
    return dict(sorted(numbered.items()))


def stated_claim(claim: Claim) -> str:
    """
    Give what a sentence of an answer states and needs a source for, as it is compared with passages.

    Headings, courtesies, questions and sentences that admit a gap state nothing.
    """
    return stated_part(plain_claim(claim.text)) if claim.checkable and not is_not_found(claim.text) else ""


class ClaimChecker:
    """
    Checks the claims of one answer against its numbered passages.

    A claim's verdict is about all passages and does not depend on the rest of the answer; only its score leans on it.
    What a single passage says to a claim, and so whether a mark is true, is judged by the same rules from that passage
    alone.
    """

    def __init__(self, passages: Mapping[int, str]) -> None:
        """Take the passages under their numbers."""
        self.numbers = tuple(passages)
        self._texts = tuple(passages.values())
        self._evidence = Evidence(self._texts)
        self._relations: dict[tuple[str, int], Support] = {}

    def read(self, parts: ClaimedText) -> list[ReadClaim]:
        """Read what the passages have of every sentence that states something."""
        stated = ((index, claim, stated_claim(claim)) for index, claim in enumerate(parts.claims))
        return [ReadClaim(*one, self._evidence.read(one[-1])) for one in stated if one[-1]]

    def windows(self, read: Sequence[ReadClaim]) -> list[tuple[str, list[str]]]:
        """Pair each claim with the texts of its windows, for an embedder to compare."""
        return [
            (one.reading.claim, [self._texts[w.passage][w.start : w.end] for w in one.reading.windows]) for one in read
        ]

    def judge(
        self, read: Sequence[ReadClaim], similarities: Sequence[float | None] | None = None
    ) -> list[CheckedClaim]:
        """Judge the claims of one answer, with the highest similarity of a window where an embedder gave one."""
        supports = judge([one.reading for one in read], similarities or [None] * len(read))
        checked = []
        for one, support in zip(read, supports, strict=True):
            found = self._together(one.claim, one.stated, _across_languages(one.reading, self._evidence, support))
            checked.append(CheckedClaim(one.index, one.claim, one.stated, found, self.quote(found)))
        return checked

    def check(self, parts: ClaimedText) -> list[CheckedClaim]:
        """Check every sentence of an answer that states something, by words alone."""
        return self.judge(self.read(parts))

    def verdict(self, claim: Claim, stated: str) -> Support:
        """Judge one claim by itself: with the verdict that it has in its answer."""
        if len(self.numbers) == 1:
            return self.relation(stated, self.numbers[0])
        return self._together(claim, stated, _judged(self._evidence, stated))

    def relation(self, stated: str, number: int) -> Support:
        """Judge what one passage says to a claim by itself."""
        place = self.numbers.index(number)
        known = self._relations.get((stated, place))
        if known is None:
            found = _judged(self._evidence if len(self._texts) == 1 else _alone(self._texts[place]), stated)
            known = self._relations[stated, place] = replace(found, passage=place) if found.passage >= 0 else found
        return known

    def by(self, stated: str, numbers: Sequence[int]) -> Support:
        """Judge what some passages say to a claim: the best of them, or what each has of it read in one piece."""
        if not numbers:
            return Support(0.0, "unsupported", "nothing is cited")
        found = [self.relation(stated, number) for number in numbers]
        best = max(found, key=lambda one: (one.verdict == "supported", one.score))
        if len(found) == 1 or best.verdict == "supported":
            return best
        pieces = "\n\n".join(self.quote(one) for one in found)
        together = _judged(Evidence([pieces], widest=len(sentence_spans(pieces))), stated)
        return replace(best, score=max(best.score, together.score), verdict=together.verdict, reason=together.reason)

    def supporting(self, stated: str, likely: Support) -> int | None:
        """Find a passage that supports a claim by itself, the likely one first."""
        order = sorted(range(len(self.numbers)), key=lambda place: place != likely.passage)
        numbers = (self.numbers[place] for place in order)
        return next((number for number in numbers if self.relation(stated, number).verdict == "supported"), None)

    def quote(self, support: Support) -> str:
        """Give the words in which the support stands."""
        return self._texts[support.passage][support.start : support.end] if support.passage >= 0 else ""

    def _together(self, claim: Claim, stated: str, support: Support) -> Support:
        """Let passages support a claim that none of them supports alone, where it cites them all."""
        cited = [number for number in claim.numbers if number in self.numbers]
        if len(cited) < 2 or support.verdict not in ("partial", "unsupported"):
            return support
        found = self.by(stated, cited)
        if found.verdict != "supported":
            return support
        return replace(support, score=max(support.score, found.score), verdict="supported", reason=found.reason)


@lru_cache(maxsize=64)
def _alone(text: str) -> Evidence:
    return Evidence([text])


def _judged(evidence: Evidence, stated: str) -> Support:
    reading = evidence.read(stated)
    return _across_languages(reading, evidence, judge([reading], [None])[0])


def _across_languages(reading: Reading, evidence: Evidence, support: Support) -> Support:
    """Say of a claim in a language that no passage has what can be told without words: are its numbers there."""
    if not reading.windows or reading.verbatim or detect_language(reading.claim) in evidence.languages:
        return support
    if reading.foreign_numbers:
        missing = ", ".join(reading.foreign_numbers[:3])
        return replace(support, verdict="unsupported", reason=f"no passage has {missing}")
    reason = "the passages are in another language, so only its numbers could be compared"
    return replace(support, score=max(support.score, _FOREIGN_SCORE), verdict="partial", reason=reason)
