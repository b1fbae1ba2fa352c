"""Finds where a passage states a claim: where it has its words and means them."""

import re

from haystack import logging

from shiguan.claims.restatement import Places, places
from shiguan.errors import ModelMissingError
from shiguan.llm.run import raise_if_cancelled
from shiguan.models.factuality import factuality_reader
from shiguan.reading.text import read_text

# The log-odds below which a passage does not state what it has the words of (bench/judge/README.md): what is cut out
# of a sentence is more often made false by the rest of it than a whole sentence by its neighbours.
_LEAST, _LEAST_WHOLE = 1.75, -1.0
# So many places of a claim's words are read.
_PLACES = 3
# What stands in quotation marks is only said to be somebody's words.
_QUOTED = re.compile(r'\s*[“「『«"][^“”「」『』«»"]*[”」』»"]\W*')
_WORD = re.compile(r"\w")

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
    return known[key] >= _LEAST or (known[key] >= _LEAST_WHOLE and _is_whole(passage, found))


def _is_whole(passage: str, found: Places) -> bool:
    """Return whether what stands there is a sentence of the passage."""
    (start, end), *others = found
    text = read_text(passage)
    return not others and any(
        a <= start and end <= b and not _WORD.search(passage, a, start) and not _WORD.search(passage, end, b)
        for a, b in text.sentences
    )


def _odds_by_place(_: str) -> dict[tuple[tuple[int, int], ...], float]:
    """Begin what is kept with a text: the log-odds of its stretches that were read."""
    return {}
