"""Finds where a passage states a claim: where it has its words and means them."""

import re

from haystack import logging

from shiguan.claims.restatement import Places, places
from shiguan.errors import ModelMissingError
from shiguan.llm.run import raise_if_cancelled
from shiguan.models.factuality import factuality_reader
from shiguan.reading.text import read_text

# The log-odds below which a passage does not state what it has the words of (bench/judge/README.md).
_LEAST = 2.0
# So many places of a claim's words are read.
_PLACES = 3
# What stands in quotation marks is only said to be somebody's words.
_QUOTED = re.compile(r'\s*[“「『«"][^“”「」『』«»"]*[”」』»"]\W*')

logger = logging.getLogger(__name__)


def find_stated(claim: str, passage: str) -> tuple[tuple[int, int] | None, bool]:
    """
    Find where a passage states a claim in its words.

    :returns: The place, or None; and whether the passage has the words, but seems to report, suppose or deny them.
    """
    seen, is_quoted = list[Places](), _QUOTED.fullmatch(claim)
    for found in places(claim, passage):
        if found in seen:
            continue
        if is_quoted or _is_stated(passage, found):
            return (found[0][0], found[-1][1]), bool(seen)
        seen.append(found)
        if len(seen) == _PLACES:
            break
    return None, bool(seen)


def _is_stated(passage: str, found: Places) -> bool:
    known, key = read_text(passage).once(_odds_by_place), tuple(found)
    if key not in known:
        raise_if_cancelled()
        try:
            known[key] = factuality_reader().log_odds(passage, found)
        except ModelMissingError as error:
            logger.info("Whether a passage means what it says is not judged: {error}", error=str(error))
            return False
    return known[key] >= _LEAST


def _odds_by_place(_: str) -> dict[tuple[tuple[int, int], ...], float]:
    """Begin what is kept with a text: the log-odds of its stretches that were read."""
    return {}
