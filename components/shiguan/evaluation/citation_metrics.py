"""
Whether the citations of an answer hold, in the sense of ALCE.

Gao et al., "Enabling Large Language Models to Generate Text with Citations" (2023), section 4.3. A claim is *recalled*
if the passages that it cites support it, all of them together. A citation is *precise* if its claim is recalled, and
the passage either supports the claim by itself or cannot be left out: the others do not support it without it.

Where ALCE asks a language model (TRUE) whether a passage entails a claim, the local check of `precise` decides here:
its verdict must be `supported`. docs/quality.md tells how often it agrees with people. No language model is needed, so
the numbers are free and the same every time. Two departures: headings, courtesies and sentences that admit a gap state
nothing and are left out, where ALCE counts every sentence; and a claim in another language than its passages is at most
supported in part, so that it counts as not recalled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shiguan.claims.answer_check import CheckedClaim, check_answer
from shiguan.claims.claims import Claim, ClaimedText, split_claims


@dataclass(frozen=True)
class CitationScores:
    """How the citations of one answer stand."""

    claims: int
    recalled: int
    citations: int
    precise: int
    lowest: float

    @property
    def recall(self) -> float:
        """The share of claims that are recalled, 0 to 1; 0 where nothing is claimed."""
        return self.recalled / self.claims if self.claims else 0.0

    @property
    def precision(self) -> float:
        """The share of citations that are precise, 0 to 1; 0 without citations."""
        return self.precise / self.citations if self.citations else 0.0


def score_citations(answer: str, passages: Mapping[int, str]) -> CitationScores:
    """Check every claim of an answer against exactly the passages that it cites."""
    parts = split_claims(answer)
    stated = {one.index for one in check_answer(parts, list(passages.values()))}
    recalled = citations = precise = 0
    lowest = 1.0
    for index in stated:
        claim = parts.claims[index]
        cited = [number for number in claim.numbers if number in passages]
        citations += len(claim.numbers)
        supported, score = _support(claim, [passages[number] for number in cited])
        lowest = min(lowest, score)
        if not supported:
            continue
        recalled += 1
        for number in cited:
            others = [passages[other] for other in cited if other != number]
            alone = len(cited) == 1 or _support(claim, [passages[number]])[0]
            precise += alone or not _support(claim, others)[0]
    return CitationScores(len(stated), recalled, citations, precise, lowest if stated else 0.0)


def _support(claim: Claim, passages: Sequence[str]) -> tuple[bool, float]:
    """Tell whether passages support a claim together, and how well the best of them does, 0 to 1."""
    if not passages:
        return False, 0.0
    found = [_checked(claim, [passage]) for passage in passages]
    if len(found) > 1 and not any(one.support.verdict == "supported" for one in found if one):
        # Support that is spread over passages: what each of them has, read in one piece.
        found.append(_checked(claim, ["\n".join(one.quote for one in found if one)]))
    known = [one.support for one in found if one]
    return any(one.verdict == "supported" for one in known), max((one.score for one in known), default=0.0)


def _checked(claim: Claim, passages: Sequence[str]) -> CheckedClaim | None:
    alone = ClaimedText(claim.text, (Claim(0, len(claim.text), claim.text, ()),), ())
    return next(iter(check_answer(alone, passages)), None)
