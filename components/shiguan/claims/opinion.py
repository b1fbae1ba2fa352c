"""Asks the packaged judge whether passages say what a claim says in other words."""

from collections.abc import Sequence
from functools import lru_cache

from shiguan.errors import ModelMissingError
from shiguan.models.judge import Verdict, judge

SAYS, MAY_SAY = 0.9, 0.5
"""The probabilities from which a window says what a claim says, and from which it may."""
_WRONG = 0.7
_CLAIMS = 2_048


def opinion(claim: str, windows: Sequence[str]) -> Verdict | None:
    """Return the judge's verdict on the window that supports a claim best; None where there is no judge."""
    verdicts = [verdict for window in windows if (verdict := _verdict(claim, window)) is not None]
    return max(verdicts, key=lambda verdict: verdict.supported, default=None)


@lru_cache(maxsize=_CLAIMS)
def _verdict(claim: str, window: str) -> Verdict | None:
    try:
        return judge().verdicts([(claim, window)])[0]
    except ModelMissingError:
        return None


def doubted_words(claim: str, verdict: Verdict) -> str:
    """Return the words of a claim that its passage does not say, from the first to the last one next to it."""
    wrong = [word for word in verdict.words if word.unsupported >= _WRONG]
    if not wrong:
        return ""
    worst = max(wrong, key=lambda word: word.unsupported)
    start, end = worst.start, worst.end
    for word in wrong:
        if word.start <= end + 1 and start <= word.end + 1:
            start, end = min(start, word.start), max(end, word.end)
    while start and claim[start - 1].isalnum() and claim[start - 1].isascii():
        start -= 1
    while end < len(claim) and claim[end].isalnum() and claim[end].isascii():
        end += 1
    return claim[start:end].strip()
