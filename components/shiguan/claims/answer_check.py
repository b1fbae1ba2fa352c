"""Checks a whole answer against its passages: which of its sentences claim something, and what stands behind each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count

from shiguan.claims.claim_kinds import stated_part
from shiguan.claims.claim_support import Support, judge, plain_claim
from shiguan.claims.claims import Claim, ClaimedText
from shiguan.claims.evidence import Evidence, Reading
from shiguan.claims.not_found_reply import is_not_found
from shiguan.text.languages import detect_language

Similarity = Callable[[Sequence[tuple[str, Sequence[str]]]], Sequence[float | None]]
"""Gives for each claim with its windows the highest cosine similarity, or None where it cannot tell."""

_FOREIGN_SCORE = 0.5


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

    def judged(self, support: Support, quote: str) -> "CheckedClaim":
        """Give the claim with another judgement."""
        return replace(self, support=support, quote=quote)


def check_answer(
    parts: ClaimedText, passages: Sequence[str], similarity: Similarity | None = None
) -> list[CheckedClaim]:
    """
    Check every sentence of an answer that states something.

    Headings, courtesies, questions and sentences that admit a gap need no source and are left out. Where the claims
    are in a language that no passage has, words cannot be compared: only numbers are, and the rest counts as supported
    in part.
    """
    read = read_claims(parts, passages)
    readings = [reading for _, _, _, reading in read]
    similarities: Sequence[float | None] = [None] * len(readings)
    if similarity is not None and readings:
        similarities = similarity(windows_of(readings, passages))
    languages = {detect_language(passage) for passage in passages}
    checked = []
    for (index, claim, stated, reading), support in zip(read, judge(readings, similarities), strict=True):
        if passages and not reading.verbatim and detect_language(stated) not in languages:
            support = _across_languages(reading, support)  # noqa: PLW2901
        quote = passages[support.passage][support.start : support.end] if support.passage >= 0 else ""
        checked.append(CheckedClaim(index, claim, stated, support, quote))
    return checked


def read_claims(parts: ClaimedText, passages: Sequence[str]) -> list[tuple[int, Claim, str, Reading]]:
    """Read what the passages have of every sentence that states something."""
    evidence = Evidence(passages)
    read = []
    for index, claim in zip(count(), parts.claims, strict=False):
        stated = stated_part(plain_claim(claim.text)) if claim.checkable and not is_not_found(claim.text) else ""
        if stated:
            read.append((index, claim, stated, evidence.read(stated)))
    return read


def windows_of(readings: Sequence[Reading], passages: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Pair each claim with the texts of its windows, for an embedder to compare."""
    return [
        (one.claim, [passages[window.passage][window.start : window.end] for window in one.windows]) for one in readings
    ]


def _across_languages(reading: Reading, support: Support) -> Support:
    if reading.foreign_numbers:
        return replace(
            support, verdict="unsupported", reason=f"no passage has {', '.join(reading.foreign_numbers[:3])}"
        )
    reason = "the passages are in another language, so only its numbers could be compared"
    return replace(support, score=max(support.score, _FOREIGN_SCORE), verdict="partial", reason=reason)
