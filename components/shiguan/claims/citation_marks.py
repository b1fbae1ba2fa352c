"""Finds the citation marks in an answer, in all the spellings that language models use."""

import re
import unicodedata
from dataclasses import dataclass

_WORD = (
    r"(?:sources?|src|docs?|documents?|passages?|refs?|references?"
    r"|来源|來源|资料|資料|出处|出處|文档|文檔|文献|文獻|引用|参考|參考)"
)
_DIGITS = r"[0-9０-９]{1,4}"
_RANGE = r"\s{0,3}(?:-|–|—|‐|‑|－|~|～|〜|至|到|to)\s{0,3}"
_ITEM = rf"(?:{_WORD})?[\s_#.:：-]{{0,3}}{_DIGITS}(?:{_RANGE}(?:{_WORD})?[\s_#]{{0,3}}{_DIGITS})?"
_LIST = rf"\s{{0,3}}{_ITEM}(?:\s{{0,3}}(?:,|，|、|;|；|&|and|和|与|與)\s{{0,3}}{_ITEM}){{0,30}}\s{{0,3}}"
_MARK = re.compile(rf"(?:\[\^?{_LIST}\]|【{_LIST}】|［{_LIST}］|〔{_LIST}〕)", re.IGNORECASE)
_NUMBERS = re.compile(rf"({_DIGITS})(?:{_RANGE}(?:{_WORD})?[\s_#]*({_DIGITS}))?", re.IGNORECASE)
# A Markdown link or link definition is no citation.
_NO_MARK_AFTER = re.compile(r"\s?\((?:https?:|/|#|mailto:)")
# So many sources are never in a prompt; a longer range is a mistake, such as years in brackets.
_LONGEST_RANGE = 50


@dataclass(frozen=True)
class Mark:
    """One bracket of citations."""

    start: int
    end: int
    numbers: tuple[int, ...]


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
