"""Splits an answer into claims, one per sentence, each with the numbers it cites in whatever spelling."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Container
from dataclasses import dataclass

from shiguan.claims.reply_cleaning import clean_reply
from shiguan.llm.json_replies import without_thoughts
from shiguan.llm.source_blocks import neutral_text
from shiguan.text.sentences import sentence_spans

MOST_CHARACTERS, MOST_CLAIMS = 20_000, 200
"""What is read of an answer; nobody checks, and nobody reads, the rest of a reply that runs on and on."""

_SPACE = " \t\u3000"
_CALLED = (
    r"(?:sources?|src|docs?|documents?|passages?|refs?|references?"
    r"|来源|來源|资料|資料|出处|出處|文档|文檔|文献|文獻|引用|参考|參考)"
)
_DIGITS = r"[0-9０-９]{1,4}"
_RANGE = r"\s{0,3}(?:-|–|—|‐|‑|－|~|～|〜|至|到|to)\s{0,3}"
_ITEM = rf"(?:{_CALLED})?[\s_#.:：-]{{0,3}}{_DIGITS}(?:{_RANGE}(?:{_CALLED})?[\s_#]{{0,3}}{_DIGITS})?"
_AND = r"\s{0,3}(?:,|，|、|;|；|&|and|和|与|與)\s{0,3}"
# Assistants write 【7†source】.
_LIST = rf"\s{{0,3}}{_ITEM}(?:{_AND}{_ITEM}){{0,30}}\s{{0,3}}(?:†[^\[\]【】\n]{{0,60}})?"
_MARK = re.compile(rf"(?:\[\^?{_LIST}\]|【{_LIST}】|［{_LIST}］|〔{_LIST}〕)", re.IGNORECASE)
_NUMBERS = re.compile(rf"({_DIGITS})(?:{_RANGE}(?:{_CALLED})?[\s_#]*({_DIGITS}))?", re.IGNORECASE)
# A Markdown link or link definition is no citation.
_NO_MARK_AFTER = re.compile(r"\s?\((?:https?:|/|#|mailto:)")
# So many sources are never in a prompt; a longer range is a mistake, such as years in brackets.
_LONGEST_RANGE = 50
_WORDS = re.compile(r"[^\W_]")
# Headings, and lines that only announce what follows, claim nothing.
_ANNOUNCES = re.compile(r"[:：][*_\s]*$")
_HEADING = re.compile(r"^#{1,6}\s")
# Courtesies and bare yes or no: the sentence that follows makes the claim.
_COURTESY = re.compile(
    r"^(?:(?:yes|no|sure|certainly|of course|okay|ok|hello|hi|thanks|thank you|you(?:'|’)re welcome|great question|"
    r"good question|absolutely|indeed|是的?|不是|对|對|没错|沒錯|当然|當然|好的?|您好|你好|谢谢|謝謝|不客气)"
    r"[\s,，、]*)+[\s.!！。,，:：]*$",
    re.IGNORECASE,
)
_STOP_BEFORE = re.compile(r"[.!?。！？…][\"'”’」』)）]{0,2}$")
_BULLET = re.compile(r"^(?:[-*+•·]|\d{1,2}[.)、])\s*")


@dataclass(frozen=True)
class Mark:
    """One bracket of citations."""

    start: int
    end: int
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Claim:
    """One sentence of an answer."""

    start: int
    end: int
    text: str
    numbers: tuple[int, ...]
    checkable: bool = True


@dataclass(frozen=True)
class ClaimedText:
    """An answer taken apart."""

    text: str
    claims: tuple[Claim, ...]
    marks: tuple[tuple[int, tuple[int, ...]], ...]
    owners: tuple[int, ...]
    """For each mark the place of its claim among the claims."""
    is_cut: bool = False
    """Whether the reply was longer than what is read of one."""


def find_marks(text: str) -> list[Mark]:
    """
    Find the citation marks of a text.

    Knows `[1]`, `[1][3]`, `[1, 3]`, `[1-3]`, `[^1]`, `【1】`, `[Source 1]`, `[来源1]` and `[doc_1]`, with full-width
    digits and punctuation. Links are left alone, and so are four-digit numbers, which are years in brackets.
    """
    marks = []
    for match in _MARK.finditer(text):
        if _NO_MARK_AFTER.match(text, match.end()):
            continue
        numbers: list[int] = []
        for first, last in _NUMBERS.findall(match[0]):
            low = int(unicodedata.normalize("NFKC", first))
            high = int(unicodedata.normalize("NFKC", last)) if last else low
            if low > high or high - low > _LONGEST_RANGE:
                numbers.extend([low, high])
            else:
                numbers.extend(range(low, high + 1))
        if max(numbers) < 1000:
            marks.append(Mark(match.start(), match.end(), tuple(dict.fromkeys(numbers))))
    return marks


def neutral_answer(text: str, known: Container[int]) -> str:
    """Make an answer harmless for another prompt, with its marks that name known passages."""
    parts, at = [], 0
    for mark in find_marks(text):
        parts += [neutral_text(text[at : mark.start]), *(f"[{number}]" for number in mark.numbers if number in known)]
        at = mark.end
    return "".join([*parts, neutral_text(text[at:])]).strip()


def split_claims(answer: str, question: str = "") -> ClaimedText:
    """
    Take an answer apart into its text, its claims and its marks, without what is no part of the answer.

    A mark belongs to the sentence that it stands in or behind; one that opens a line belongs to the sentence that
    follows.
    """
    answer = without_thoughts(answer)  # which may be longer than any answer
    answer, is_cut = clean_reply(answer[:MOST_CHARACTERS], question), len(answer) > MOST_CHARACTERS
    text, marks = _without_marks(answer, find_marks(answer))
    spans = [_without_bullet(text, span) for span in _cut_at_marks(text, sentence_spans(text), marks)]
    spans = [(start, end) for start, end in spans if _WORDS.search(text[start:end])]
    if len(spans) > MOST_CLAIMS:
        text, is_cut, spans = text[: spans[MOST_CLAIMS - 1][1]], True, spans[:MOST_CLAIMS]
        marks = marks[: bisect_right(marks, len(text), key=lambda mark: mark[0])]
    cited: list[list[int]] = [[] for _ in spans]
    # Some models put the mark before its sentence: then the first one opens the answer and none closes it.
    leading = bool(spans and marks and marks[0][0] <= spans[0][0] and marks[-1][0] < spans[-1][1])
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    marks = marks if spans else []
    owners = tuple(_owner(text, starts, ends, position, leading=leading) for position, _ in marks)
    for owner, (_, numbers) in zip(owners, marks, strict=True):
        cited[owner].extend(numbers)
    claims = []
    for (start, end), numbers_of_claim in zip(spans, cited, strict=True):
        sentence = text[start:end]
        empty = _ANNOUNCES.search(sentence) or _HEADING.match(sentence) or _COURTESY.match(sentence)
        claims.append(
            Claim(
                start,
                end,
                sentence,
                tuple(dict.fromkeys(numbers_of_claim)),
                checkable=bool(numbers_of_claim) or not empty,
            )
        )
    return ClaimedText(text, tuple(claims), tuple(marks), owners, is_cut)


def _without_marks(answer: str, marks: list[Mark]) -> tuple[str, list[tuple[int, tuple[int, ...]]]]:
    pieces: list[str] = []
    placed = []
    length = at = 0
    for mark in marks:
        piece = answer[at : mark.start]
        after = answer[mark.end : mark.end + 1]
        # The space before a mark goes with it, unless it separates two words.
        stripped = piece.rstrip(_SPACE)
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
    """End a sentence where a mark stands behind its stop, also where the stop alone does not tell (`said I. [1]`)."""
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
    bullet = _BULLET.match(text[start:end])
    return (start + bullet.end(), end) if bullet and bullet.end() < end - start else span


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
