"""Takes unsupported sentences out of an answer, so that whole sentences are left."""

import re
from collections.abc import Collection, Sequence
from functools import partial
from itertools import compress, groupby
from pathlib import Path

from shiguan.claims.checker import stated_claim
from shiguan.claims.claims import ClaimedText
from shiguan.reading.text import read_text
from shiguan.resources import read_patterns
from shiguan.text.terms import is_wide

# What may follow the end of a sentence's last claim.
_CLOSING = re.compile(r"(?:[)）\]】\"”’」』.。!！?？…]|[*_]+(?![*_\w]))*")
# Characters that are read of what follows a clause, and the fewest of a Chinese clause that stands alone.
_LONGEST_JOINT, _FEWEST_CHARACTERS = 10, 6
_EMPTY_ITEM = re.compile(r"^[ \t]*(?:[-*+•·]|\d{1,2}[.)、])[ \t]*(?:\[[\d\],\[ ]*\][ \t]*)?$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n{3,}")
_SPACES = re.compile(r"(?<=\S)[ \t]{2,}(?=\S)")
_HEADING = re.compile(r"^(?:#{1,6}\s.*|\*\*[^*\n]+\*\*[:：]?|[^\n.!?。！？]{0,80}[:：])$")
_patterns = partial(read_patterns, Path(__file__).with_suffix(".yaml"))


def with_their_sentences(parts: ClaimedText, failed: Collection[int], good: Collection[int]) -> set[int]:
    """Return the claims that go with some: all of their sentences, except whole clauses that stand before them."""
    gone = set(failed)
    for every in _sentences(parts):
        sentence = _behind_label(parts, every, gone)
        bad = next((at for at, index in enumerate(sentence) if index in gone), None)
        if bad is None or _is_row(parts, sentence):
            continue
        kept = sentence[:bad]
        whole = any(index in good for index in kept)
        gone.update(sentence[bad:] if whole and _may_end(parts, kept[0], kept[-1], sentence[bad]) else sentence)
    return gone


def _behind_label(parts: ClaimedText, sentence: list[int], gone: Collection[int]) -> list[int]:
    """Return the claims of a sentence without a label that goes, such as `**Guo Ziyi the Gambler**:`."""
    lead = next((at for at, index in enumerate(sentence) if index not in gone), 0)
    first = parts.claims[sentence[lead]]
    before = parts.text[max(0, first.start - _LONGEST_JOINT) : first.start].rstrip(" *_")
    return sentence[lead:] if before.endswith((":", "：")) and not first.text[:1].islower() else sentence


def _sentences(parts: ClaimedText) -> list[list[int]]:
    """Group the claims of an answer, by index, into its sentences."""
    return [list(group) for _, group in groupby(range(len(parts.claims)), key=lambda at: parts.claims[at].sentence)]


def _is_row(parts: ClaimedText, sentence: Sequence[int]) -> bool:
    """Return whether a sentence is a row of a table, in which a cell may be empty."""
    start = parts.claims[sentence[0]].sentence
    return parts.text[parts.text.rfind("\n", 0, start) + 1 : start + 1].lstrip().startswith("|")


def _may_end(parts: ClaimedText, first: int, last: int, following: int) -> bool:
    """Return whether a sentence may end after one of its clauses and still be whole."""
    kept = parts.text[parts.claims[first].start : parts.claims[last].end]
    between = parts.text[parts.claims[last].end : parts.claims[following].start + _LONGEST_JOINT]
    patterns = _patterns()
    if patterns["dependent"].match(kept) and not re.search(r"[,，]", kept):
        return False
    if read_text(kept).language == "zh":
        return len(kept) >= _FEWEST_CHARACTERS and not patterns["following"].match(between)
    return bool(patterns["joint"].match(between)) and bool(patterns["verb"].search(kept))


def without_claims(parts: ClaimedText, removed: Collection[int]) -> str:
    """Write an answer without some claims, their marks, and list items and headings that become empty."""
    left = [claim for index, claim in enumerate(parts.claims) if index not in removed]
    if not any(stated_claim(claim) for claim in left):
        return ""
    alive = bytearray(b"\1" * len(parts.text))
    stops: dict[int, str] = {}
    for sentence in _sentences(parts):
        kept = [index for index in sentence if index not in removed]
        cuts = [(parts.claims[index].start, _end(parts, index)) for index in sentence if index in removed]
        if cuts and not kept:
            cuts = [(cuts[0][0], cuts[-1][1])]
        elif cuts and not _is_row(parts, sentence):
            first, last = parts.claims[kept[0]], parts.claims[kept[-1]]
            if cuts[0][0] < first.start:  # a label, with its emphasis
                cuts.append((len(parts.text[: cuts[0][0]].rstrip("*_")), first.start))
            if sentence[-1] in removed:
                cuts.append((last.end, _end(parts, sentence[-1])))
                stops[last.end] = "。" if is_wide(parts.text[last.end - 1]) else "."
        for start, end in cuts:
            alive[start:end] = bytes(end - start)
    pieces: list[str] = []
    at = 0
    for place, numbers in sorted([*parts.marks, *((place, ()) for place in stops), (len(parts.text), ())]):
        pieces.extend(compress(parts.text[at:place], alive[at:place]))
        if not place or alive[place - 1]:
            pieces.extend(f"[{number}]" for number in numbers)
            pieces.append(stops.pop(place, ""))
        at = place
    return _tidy("".join(pieces))


def _end(parts: ClaimedText, index: int) -> int:
    """Return the position up to which what follows a claim belongs to it: what closes its sentence, and its marks."""
    end = parts.claims[index].end
    following = parts.claims[index + 1].start if index + 1 < len(parts.claims) else len(parts.text)
    if index + 1 == len(parts.claims) or parts.claims[index + 1].sentence != parts.claims[index].sentence:
        end = min(following, _CLOSING.match(parts.text, end).end())  # type: ignore[union-attr]  # it matches the empty string
    own = [at for at, _ in parts.marks if end <= at <= following and not parts.text[end:at].strip()]
    # A mark right before the next sentence belongs to that sentence only if it begins a new line.
    return max((at for at in own if "\n" not in parts.text[end:at]), default=end)


def _tidy(text: str) -> str:
    lines = _EMPTY_ITEM.sub("", _SPACES.sub(" ", text)).split("\n")
    kept: list[str] = []
    for line in reversed(lines):
        below = next((other for other in reversed(kept) if other.strip()), "")
        # A heading over nothing, or over the next heading, announces what was removed.
        if _HEADING.match(line.strip()) and line.strip() and (not below or _HEADING.match(below.strip())):
            continue
        kept.append(line.rstrip())
    return _BLANK_LINES.sub("\n\n", "\n".join(reversed(kept))).strip()
