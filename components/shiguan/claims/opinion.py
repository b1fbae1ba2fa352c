"""Asks the packaged judge whether passages say what a claim says in other words."""

from collections.abc import Sequence
from functools import lru_cache

from shiguan.errors import ModelMissingError
from shiguan.models.judge import judge

SAYS, MAY_SAY = 2.0, 0.5
"""The probabilities from which a window says what a claim says, and from which it may."""
_CLAIMS = 2_048


def opinion(claim: str, windows: Sequence[str]) -> float:
    """Return the probability that the window which supports a claim best supports it; 0 where there is no judge."""
    return max((_supported(claim, window) for window in windows), default=0.0)


@lru_cache(maxsize=_CLAIMS)
def _supported(claim: str, window: str) -> float:
    try:
        return judge().verdicts([(claim, window)])[0].supported
    except ModelMissingError:
        return 0.0
