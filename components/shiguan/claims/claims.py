"""Splits an answer into claims with the numbers that they cite."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from haystack.dataclasses import ChatMessage

from shiguan.claims.marks import Mark, find_marks
from shiguan.claims.reply_cleaning import clean_reply
from shiguan.llm.json_replies import without_thoughts
from shiguan.text.languages import HAN
from shiguan.text.sentences import sentence_spans

MOST_CHARACTERS, MOST_CLAIMS = 20_000, 200
"""How much of an answer is read; the rest of a reply that never ends is neither checked nor shown."""

_BLANK = " \t\u3000"
_WORDS, _LETTERS = re.compile(r"[^\W_]"), re.compile(r"[^\W\d_]")
_STOP_BEFORE = re.compile(r"[.!?。！？…][\"'”’」』)）]{0,2}$")
# Where one clause ends and another begins: at a sign or a line that sets them apart, or at a comma.
_APART = re.compile(
    r"(?<!\s)\s*(?:[;；|\n]|——)|(?<!\s)\s+[—–-](?=\s)|(?<=\w)—(?=\w)|(?::[*_]*(?=\s|[^\x00-\x7f])|(?:(?<!\d)：|：(?!\d))[*_]*)"
    r"|(?<!\s)\s*(?=[(（\[［【〔][^()（）\[\]［］【】〔〕]{5,300}[)）\]］】〕])|(?<=[^()（）\[\]［］【】〔〕]{5}[)）\]］】〕])(?=\s*\w)"
)
COMMA = re.compile(rf",(?=\s)|，|,(?=[{HAN}])")
# How a sentence ends that is whole; a number may go on behind its point.
_WHOLE = re.compile(r"(?:(?<!\d)\.|[!?。！？…])[\"'”’」』)）*_]{0,4}(?:\s?[\[【][^\[\]【】\n]{0,60}[\]】]){0,20}\s*$")
_SEPARATING = re.compile(r"(?:[\s,，、;；:：—–|-]|\*+(?=\s))*")
# What opens a line of Markdown before its sentence: the fence of a block of code, a quotation, an item. An asterisk
# that touches a word is emphasis.
_BULLET = re.compile(
    r"(?:(?:`{3,}|~{3,})[^\n]*\n\s*)?(?:>[ \t]?)*"
    rf"(?:(?:[-*+](?=\s)|-(?=[{HAN}])|[•·]|[(（]?\d{{1,2}}(?:[)）、]|\.(?!\d))|[a-z][.)]\s|[(（]?[一二三四五六七八九十]{{1,3}}[)）、])\s*)?"
)
_FENCE_BEHIND = re.compile(r"\s*\n[ \t]*(?:`{3,}|~{3,})[`~\s]*\Z")
# A row of a table, and below the first one the line that makes it the head: only the head's claim begins with `|`.
_ROW = re.compile(r"(?m)^[ \t]{0,8}(?P<row>\|[^\n]*)(?P<under>\n[ \t]{0,8}\|?[ \t]*:?-[-:| \t]*$)?")
_SPACES = re.compile(r"\s*")
_CELL = re.compile(r"[ \t]*\|?[ \t]*")


@dataclass(frozen=True)
class Claim:
    """One sentence of an answer."""

    start: int
    end: int
    text: str
    numbers: tuple[int, ...]
    sentence: int = 0
    """Where its sentence begins: the claim is that sentence or a clause of it."""


@dataclass(frozen=True)
class ClaimedText:
    """An answer split into claims and citation marks."""

    text: str
    claims: tuple[Claim, ...]
    marks: tuple[tuple[int, tuple[int, ...]], ...]
    owners: tuple[int, ...]
    """For each mark, the index of its claim."""
    is_cut: bool = False
    """Whether the reply was longer than the limit and has been cut."""


def whole_reply(reply: ChatMessage) -> ChatMessage:
    """Return a reply without its last, unfinished sentence if it was cut at its length limit."""
    if reply.meta.get("finish_reason") != "length" or reply.meta.get("shortened"):
        return reply
    return ChatMessage.from_assistant(whole_sentences(reply.text or ""), meta={**reply.meta, "shortened": True})


def whole_sentences(text: str) -> str:
    """Remove the sentence that a text ends in the middle of, unless there is no other; then the check has to tell."""
    text = without_thoughts(text).rstrip()
    spans = sentence_spans(text)
    return text if len(spans) < 2 or _WHOLE.search(text, spans[-1][0]) else text[: spans[-1][0]].rstrip()


def split_claims(answer: str, question: str = "") -> ClaimedText:
    """Split an answer into claims; a mark belongs to the sentence before it, or after it if it opens a line."""
    answer = without_thoughts(answer)  # before the cut: thoughts may be longer than any answer
    answer, is_cut = clean_reply(answer[:MOST_CHARACTERS], question), len(answer) > MOST_CHARACTERS
    text, marks = _without_marks(answer, find_marks(answer))
    spans = _whole_rows(text, _cut_at_marks(text, sentence_spans(text), marks))
    spans = [_without_bullet(text, span) for span in spans]
    spans = [(start, end) for start, end in spans if _WORDS.search(text[start:end])]
    if len(spans) > MOST_CLAIMS:
        text, is_cut, spans = text[: spans[MOST_CLAIMS - 1][1]], True, spans[:MOST_CLAIMS]
        marks = marks[: bisect_right(marks, len(text), key=lambda mark: mark[0])]
    cited: list[list[int]] = [[] for _ in spans]
    # Some models put each mark before its sentence: then a mark opens the answer and none closes it.
    leading = bool(spans and marks and marks[0][0] <= spans[0][0] and marks[-1][0] < spans[-1][1])
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    marks = marks if spans else []
    owners = tuple(_owner(text, starts, ends, position, leading=leading) for position, _ in marks)
    for owner, (_, numbers) in zip(owners, marks, strict=True):
        cited[owner].extend(numbers)
    claims = [
        Claim(start, end, text[start:end], tuple(dict.fromkeys(numbers)), start)
        for (start, end), numbers in zip(spans, cited, strict=True)
    ]
    return ClaimedText(text, tuple(claims), tuple(marks), owners, is_cut)


def clause_spans(sentence: str, *between: re.Pattern[str]) -> list[tuple[int, int]]:
    """Find the clauses of a sentence, without the signs between them; further patterns may separate clauses too."""
    cuts = {match.start() for pattern in (_APART, *between) for match in pattern.finditer(sentence)}
    edges = sorted({0, len(sentence), *cuts})
    found = []
    for edge, end in pairwise(edges):
        start = edge + len(_SEPARATING.match(sentence[edge:end])[0])  # type: ignore[index]  # it matches the empty string
        kept = sentence[start:end].rstrip(" \t\n,，、;；:：—–-|")
        if _LETTERS.search(kept):
            found.append((start, start + len(kept)))
        elif kept and found:  # a number alone belongs to what it counts
            found[-1] = (found[-1][0], start + len(kept))
    return found


def with_clauses(parts: ClaimedText, clauses: Mapping[int, Sequence[tuple[int, int]]]) -> ClaimedText:
    """Replace claims by their clauses, given as spans within the claim; each keeps the numbers of the whole claim."""
    claims: list[Claim] = []
    first: list[int] = []
    for index, claim in enumerate(parts.claims):
        first.append(len(claims))
        for start, end in clauses.get(index) or [(0, len(claim.text))]:
            text = claim.text[start:end]
            claims.append(replace(claim, start=claim.start + start, end=claim.start + end, text=text))
    first.append(len(claims))
    owners = []
    for (position, _), owner in zip(parts.marks, parts.owners, strict=True):
        before = [at for at in range(first[owner], first[owner + 1]) if claims[at].start < position]
        owners.append(before[-1] if before else first[owner])
    return replace(parts, claims=tuple(claims), owners=tuple(owners))


def _without_marks(answer: str, marks: list[Mark]) -> tuple[str, list[tuple[int, tuple[int, ...]]]]:
    pieces: list[str] = []
    placed = []
    length = at = 0
    for mark in marks:
        piece = answer[at : mark.start]
        after = answer[mark.end : mark.end + 1]
        # The space before a mark goes with it, unless it separates two words.
        stripped = piece.rstrip(_BLANK)
        if stripped != piece and (not after or not after.isalnum()):
            piece = stripped
        pieces.append(piece)
        length += len(piece)
        placed.append((length, mark.numbers))
        at = mark.end
    pieces.append(answer[at:])
    return "".join(pieces), placed


def _cut_at_marks(
    text: str, spans: list[tuple[int, int]], marks: list[tuple[int, tuple[int, ...]]]
) -> list[tuple[int, int]]:
    """End a sentence where a mark follows its stop, even if the stop alone would not end it (`said I. [1]`)."""
    cut = []
    positions = [position for position, _ in marks]
    for start, end in spans:
        at = start
        for position in positions[bisect_right(positions, start) : bisect_left(positions, end)]:
            goes_on = text[position:end].lstrip()[:1].islower()
            if at < position < end and not goes_on and _STOP_BEFORE.search(text[max(at, position - 4) : position]):
                cut.append((at, position))
                at = position
                while at < end and text[at].isspace():
                    at += 1
        if at < end:
            cut.append((at, end))
    return cut


def _without_bullet(text: str, span: tuple[int, int]) -> tuple[int, int]:
    start, end = span
    if "\n" in text[start:end]:
        end = start + len(_FENCE_BEHIND.sub("", text[start:end]))
    opened = start + _BULLET.match(text[start:end]).end()  # type: ignore[union-attr]  # it matches the empty string
    return (opened, end) if opened < end else (start, end)


def _whole_rows(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Make one claim of each row of a table, whatever stops are in its cells; only the head's begins with `|`."""
    rows = list(_ROW.finditer(text)) if "|" in text else []
    whole: list[tuple[int, int]] = []
    spans, at = list(spans), 0
    for row in rows:
        start, end = row.span()
        while at < len(spans) and spans[at][0] < start:
            whole.append((spans[at][0], min(spans[at][1], start)))
            at += 1
        first = at
        while at < len(spans) and spans[at][0] < end:
            at += 1
        if at > first:
            if spans[at - 1][1] > end:  # what follows the table without a blank line
                at -= 1
                spans[at] = (end + len(_SPACES.match(text, end)[0]), spans[at][1])  # type: ignore[index]
            if not row["under"]:
                start = _CELL.match(text, start).end()  # type: ignore[union-attr]
            whole.append((start, start + len(text[start : row.end("row")].rstrip("| \t"))))
    return [*whole, *spans[at:]]


def _owner(text: str, starts: list[int], ends: list[int], position: int, *, leading: bool) -> int:
    if leading:
        return min(bisect_right(ends, position), len(ends) - 1)
    index = bisect_left(starts, position) - 1
    if index < 0:
        return 0
    follows = index + 1 < len(starts) and position > ends[index] and "\n" in text[ends[index] : position]
    if follows and "\n" not in text[position : starts[index + 1]]:
        return index + 1
    return index
