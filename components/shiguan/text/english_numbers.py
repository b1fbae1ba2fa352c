"""Reads the numbers of English texts that are written in words."""

import re
from collections.abc import Iterable
from pathlib import Path

from shiguan.resources import read_table

_TABLE = read_table(Path(__file__).with_name("quantities.yaml"))
WORDS: dict[str, float] = _TABLE["words"]
ORDINALS = {word: value for value, word in enumerate(_TABLE["ordinals"].split(), start=1)}
SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "dozen": 12}


def any_of(words: Iterable[str]) -> str:
    """Write words as a pattern that tries only those with the right first letter: most words of a text have none."""
    rest: dict[str, list[str]] = {}
    for word in words:
        rest.setdefault(word[0], []).append(word[1:])
    words_of = (f"{first}(?:{'|'.join(ends)})" for first, ends in rest.items())
    return f"(?=[{''.join(rest)}])(?:{'|'.join(words_of)})"


CARDINAL, _ORDINAL, _THEN = any_of([*WORDS, *SCALES]), any_of(ORDINALS), r"[\s-]+(?:and[\s-]+)?"
# "The ninth and tenth" and "the first two" are two numbers each, not their sum.
ENGLISH = re.compile(
    rf"\b(?:{CARDINAL}\b(?:{_THEN}{CARDINAL}\b|[\s-]and[\s-]a[\s-]half\b)*(?:{_THEN}{_ORDINAL}\b)?|{_ORDINAL}\b)",
    re.IGNORECASE,
)
# Half a million, half an hour, a dozen; a million is as vague as many.
HALF = re.compile(rf"\bhalf an?(?: ({'|'.join(SCALES)})\b|(?= hour\b))|\ba (dozen)\b", re.IGNORECASE)


def english_value(words: str) -> float | None:
    """Read an English number; None for the vague ones."""
    parts = [part for part in re.split(r"[\s-]+", words) if part not in ("and", "a")]
    if parts in (["one"], ["first"], ["second"]) or all(part in SCALES for part in parts):
        return None
    total = current = 0.0
    for part in parts:
        if part in WORDS:
            current += WORDS[part]
        elif part in ORDINALS:
            current += ORDINALS[part]
        elif part == "half":
            current += 0.5
        elif part == "hundred":
            current = (current or 1) * 100
        else:
            total += (current or 1) * SCALES[part]
            current = 0.0
    return total + current
