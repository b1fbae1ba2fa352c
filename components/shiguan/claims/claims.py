"""Splits an answer into claims, one per sentence, each with the numbers it cites in whatever spelling."""

import re
import unicodedata
from dataclasses import dataclass

from shiguan.text.sentences import sentence_spans

_SPACE = " \t\u3000"
_CALLED = (
    r"(?:sources?|src|docs?|documents?|passages?|refs?|references?"
    r"|来源|來源|资料|資料|出处|出處|文档|文檔|文献|文獻|引用|参考|參考)"
)
_DIGITS = r"[0-9０-９]{1,4}"
_RANGE = r"\s{0,3}(?:-|–|—|‐|‑|－|~|～|〜|至|到|to)\s{0,3}"
_ITEM = rf"(?:{_CALLED})?[\s_#.:：-]{{0,3}}{_DIGITS}(?:{_RANGE}(?:{_CALLED})?[\s_#]{{0,3}}{_DIGITS})?"
_LIST = rf"\s{{0,3}}{_ITEM}(?:\s{{0,3}}(?:,|，|、|;|；|&|and|和|与|與)\s{{0,3}}{_ITEM}){{0,30}}\s{{0,3}}"
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


def split_claims(answer: str) -> ClaimedText:
    """
    Take an answer apart into its text, its claims and its marks.

    A mark belongs to the sentence that it stands in or behind; one that opens a line belongs to the sentence that
    follows.
    """
    text, marks = _without_marks(answer, find_marks(answer))
    spans = [_without_bullet(text, span) for span in _cut_at_marks(text, sentence_spans(text), marks)]
    spans = [(start, end) for start, end in spans if _WORDS.search(text[start:end])]
    cited: list[list[int]] = [[] for _ in spans]
    # Some models put the mark before its sentence: then the first one opens the answer and none closes it.
    leading = bool(spans and marks and marks[0][0] <= spans[0][0] and marks[-1][0] < spans[-1][1])
    owners = tuple(_owner(text, spans, position, leading=leading) for position, _ in marks) if spans else ()
    for owner, (_, numbers) in zip(owners, marks, strict=False):
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
    return ClaimedText(text, tuple(claims), tuple(marks), owners)


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
    for start, end in spans:
        at = start
        for position, _ in marks:
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


def _owner(text: str, spans: list[tuple[int, int]], position: int, *, leading: bool) -> int:
    if leading:
        return next((index for index, (_, end) in enumerate(spans) if position < end), len(spans) - 1)
    before = [index for index, (start, _) in enumerate(spans) if start < position]
    if not before:
        return 0
    index = before[-1]
    end = spans[index][1]
    follows = index + 1 < len(spans) and position > end and "\n" in text[end:position]
    if follows and "\n" not in text[position : spans[index + 1][0]]:
        return index + 1
    return index
