"""Finds where a passage states a claim: where it has its words and means them."""

from haystack import logging

from shiguan.claims.restatement import restates
from shiguan.errors import ModelMissingError
from shiguan.llm.run import raise_if_cancelled
from shiguan.models.factuality import factuality_reader
from shiguan.models.judge import JUDGED
from shiguan.reading.text import read_text

# The log-odds below which a passage does not state what it has the words of (bench/judge/README.md).
_LEAST = -2.5
# Where the first place does not state it, so many others are looked at.
_PLACES = 3

logger = logging.getLogger(__name__)


def find_stated(claim: str, passage: str) -> tuple[tuple[int, int] | None, bool]:
    """
    Find where a passage states a claim in its words.

    :returns: The place, or None; and whether the passage has the words, but seems to report, suppose or deny them.
    """
    doubted = False
    for _ in range(_PLACES):
        found = restates(claim, passage)
        if found is None or _is_stated(passage, found):
            return found, doubted
        doubted = True
        passage = passage[: found[0]] + " " * (found[1] - found[0]) + passage[found[1] :]
    return None, doubted


def _is_stated(passage: str, place: tuple[int, int]) -> bool:
    text = read_text(passage)
    if text.language not in JUDGED:
        return True
    known = text.once(_odds_by_place)
    if place not in known:
        raise_if_cancelled()
        try:
            known[place] = factuality_reader().log_odds(passage, *place)
        except ModelMissingError as error:
            logger.info("Whether a passage means what it says is judged by rules alone: {error}", error=str(error))
            return True
    return known[place] >= _LEAST


def _odds_by_place(_: str) -> dict[tuple[int, int], float]:
    """Begin what is kept with a text: the log-odds of its stretches that were read."""
    return {}
