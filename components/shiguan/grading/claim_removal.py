"""Takes sentences out of an answer and leaves the rest as it was written."""

import re
from collections.abc import Collection
from itertools import compress

from shiguan.claims.checker import stated_claim
from shiguan.claims.claims import ClaimedText

_EMPTY_ITEM = re.compile(r"^[ \t]*(?:[-*+•·]|\d{1,2}[.)、])[ \t]*(?:\[[\d\],\[ ]*\][ \t]*)?$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n{3,}")
_SPACES = re.compile(r"(?<=\S)[ \t]{2,}(?=\S)")
_HEADING = re.compile(r"^(?:#{1,6}\s.*|\*\*[^*\n]+\*\*[:：]?|[^\n.!?。！？]{0,80}[:：])$")


def without_claims(parts: ClaimedText, removed: Collection[int]) -> str:
    """
    Write an answer without some of its claims.

    Their marks go with them, and so do list items and headings that are left with nothing.
    """
    left = [claim for index, claim in enumerate(parts.claims) if index not in removed]
    if not any(stated_claim(claim) for claim in left):
        return ""
    alive = bytearray(b"\1" * len(parts.text))
    for index, claim in enumerate(parts.claims):
        if index in removed:
            end = _end(parts, index)
            alive[claim.start : end] = bytes(end - claim.start)
    pieces: list[str] = []
    at = 0
    for place, numbers in [*parts.marks, (len(parts.text), ())]:
        pieces.extend(compress(parts.text[at:place], alive[at:place]))
        if not place or alive[place - 1]:
            pieces.extend(f"[{number}]" for number in numbers)
        at = place
    return _tidy("".join(pieces))


def _end(parts: ClaimedText, index: int) -> int:
    """Give the place up to which the marks behind a claim belong to it."""
    end = parts.claims[index].end
    following = parts.claims[index + 1].start if index + 1 < len(parts.claims) else len(parts.text)
    own = [at for at, _ in parts.marks if end <= at <= following and not parts.text[end:at].strip()]
    # A mark right before the next sentence is that sentence's only if the line is a new one.
    return max((at for at in own if "\n" not in parts.text[end:at]), default=end)


def _tidy(text: str) -> str:
    lines = _EMPTY_ITEM.sub("", _SPACES.sub(" ", text)).split("\n")
    kept: list[str] = []
    for line in reversed(lines):
        below = next((other for other in reversed(kept) if other.strip()), "")
        # A heading over nothing, or over the next heading, announces what was taken out.
        if _HEADING.match(line.strip()) and line.strip() and (not below or _HEADING.match(below.strip())):
            continue
        kept.append(line.rstrip())
    return _BLANK_LINES.sub("\n\n", "\n".join(reversed(kept))).strip()
