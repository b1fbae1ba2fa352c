"""
Whether the citations of an answer hold, in the sense of ALCE.

Gao et al., "Enabling Large Language Models to Generate Text with Citations" (2023), section 4.3. A claim is *recalled*
if the passages that it cites support it, all of them together. A citation is *precise* if its claim is recalled, and
the passage either supports the claim by itself or cannot be left out: the others do not support it without it.

Where ALCE asks a language model (TRUE) whether a passage entails a claim, the check of all modes decides here:
its verdict must be `supported`. docs/quality.md tells how often it agrees with people. No language model is needed, so
the numbers are free and the same every time. Two departures: headings, courtesies and sentences that admit a gap state
nothing and are left out, where ALCE counts every sentence; and a claim in another language than its passages is at most
supported in part, so that it counts as not recalled.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from shiguan.claims.checker import ClaimChecker
from shiguan.claims.claims import split_claims


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
    checker = ClaimChecker(passages)
    read = checker.read(split_claims(answer))
    recalled = citations = precise = 0
    lowest = 1.0
    for one in read:
        cited = [number for number in one.claim.numbers if number in passages]
        citations += len(one.claim.numbers)
        support = checker.by(one.stated, cited)
        lowest = min(lowest, support.score)
        if support.verdict != "supported":
            continue
        recalled += 1
        for number in cited:
            others = [other for other in cited if other != number]
            alone = checker.relation(one.stated, number).verdict == "supported"
            precise += alone or checker.by(one.stated, others).verdict != "supported"
    return CitationScores(len(read), recalled, citations, precise, lowest if read else 0.0)
