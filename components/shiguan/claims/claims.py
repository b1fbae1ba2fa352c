"""Takes off a reply what is no answer, and splits the rest into claims with the numbers they cite in any spelling."""

import html
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Container
from dataclasses import dataclass

from shiguan.llm.json_replies import THOUGHT, without_thoughts
from shiguan.llm.source_blocks import TAG_NAMES, neutral_text
from shiguan.text.questions import folded, is_question
from shiguan.text.sentences import sentence_spans
from shiguan.text.terminal import printable

MOST_CHARACTERS, MOST_CLAIMS = 20_000, 200
"""What is read of an answer; nobody checks, and nobody reads, the rest of a reply that runs on and on."""

_BLANK = " \t\u3000"
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

_SPEAKER = "system|user|assistant|human|developer|tool|系统|系統|用户|用戶|助手"
_TAG = f"(?:{'|'.join(['response', *TAG_NAMES])})"
_MARKUP = re.compile(
    rf"[ \t]*(?:</?\s{{0,4}}{_TAG}(?:\s[^<>\n]{{0,500}})?/?>|<{_TAG}\s[^<>\n]{{0,500}}?=\"[^<>\n]{{0,500}}(?=\n|\Z)"
    rf"|<\|[^<>\n]{{0,40}}?\|>|\[/?(?:inst|{_SPEAKER})\]|<</?sys>>)[ \t]*"
    rf"(?:(?:model|{_SPEAKER})[ \t]*(?=\n|<\||\Z))?",
    re.IGNORECASE,
)
# Elements and comments of HTML, also without their end, which a browser forgives.
_ELEMENT = re.compile(
    r"<!--.*?(?:-->|\Z)|</?(?:a|abbr|area|audio|b|base|blockquote|body|br|button|canvas|center|code|del|details|div|em"
    r"|embed|font|form|frame|frameset|h[1-6]|head|hr|html|i|iframe|img|input|ins|label|li|link|marquee|math|meta|noscript"
    r"|object|ol|option|p|picture|pre|script|select|span|strong|style|sub|summary|sup|svg|table|tbody|td|template"
    r"|textarea|tfoot|th|thead|title|tr|u|ul|video)\b(?![ \t]*[=<])[^<>]{0,500}(?:>|(?=<)|\Z)",
    re.DOTALL | re.IGNORECASE,
)
# Where they lead nobody has checked, and an image is fetched without being asked for.
_PLACE = r"<?(?:(?:https?|ftp|file|mailto|data|javascript|vbscript|tel):|//|/|\#|\.{1,2}/)"
_LINK = re.compile(
    rf"^ {{0,3}}\[[^\[\]\n]{{1,200}}\]:[ \t]*{_PLACE}[^\n]*$"
    rf"|!?\[([^\[\]\n]{{0,200}})\](?: ?\(\s{{0,3}}{_PLACE}(?:[^()\n]|\([^()\n]{{0,100}}\)){{0,500}}\))",
    re.MULTILINE | re.IGNORECASE,
)
_IMAGE = re.compile(r"!(?=\[[^\[\]\n]{0,200}\][(\[])")
_ESCAPED_MARK = re.compile(r"\\\[([^\[\]\\\n]{0,20}\d[^\[\]\\\n]{0,20})\\\]")
# What shows nothing and could stand between the letters of a mark or a role.
_HIDDEN = re.compile("[\u00ad\u200b\u2060-\u2064\ufeff]|(?<![^\\W_])[\u200c-\u200f]+|[\u200c-\u200f]+(?![^\\W\\d_])")
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_PASSES = 4
# A model that plays on writes the next turn itself, or the question before its answer.
_ROLE = re.compile(
    rf"^(?:[ \t>#*_-]{{0,8}}(?:{_SPEAKER})[ \t*_]{{0,4}}[:：∶][ \t*_]*)+",
    re.IGNORECASE | re.MULTILINE,
)
_QUESTION = re.compile(r"\A[\s>#*_]{0,8}(?:question|问题?|問題?)[ \t*_]{0,4}[:：][^\n]*(?:\n|\Z)", re.IGNORECASE)
_LIST_NUMBER = r"\d{1,2}[.)、][ \t]*"
_LEAD_IN = re.compile(
    rf"^[ \t>*_]*(?:{_LIST_NUMBER})?[*_]{{0,3}}(?:"
    r"(?:the |my |a )?(?:correct |final |short |best |brief )?(?:answer|response|reply)"
    r"(?: to (?:the|this|your) (?:question|query))?(?: (?:is|would be|would therefore be))?(?: as follows)?"
    r"|the (?:sources?|passages?|documents?|answer|information) (?:that )?you (?:requested|asked for|need)"
    r"(?: (?:is|are))?"
    r"|(?:本|该|該|此|这个|這個|上述)?(?:问题|問題)?的?(?:最终|最終|正确|正確)?(?:答案|回答|答复|答覆)(?:是|为|為|如下)?|答"
    r")[ \t*_]{0,4}[:：][ \t*_]*",
    re.IGNORECASE | re.MULTILINE,
)
# A list begins with 1; what begins with another number goes on with the rules of the prompt, or is a date
# ("12. November 1918").
_STRAY_NUMBER = re.compile(r"\A[ \t*_]*(?!1[.)、])\d{1,2}[.)、][ \t]+(?=\D)(?!\S+[ \t]\d{3,4}\b)")
_LIST_ITEM = re.compile(rf"\A[ \t*_]*{_LIST_NUMBER}")
# Whoever says a sentence of this many bytes again, some seven Han characters or twenty letters, goes round in circles.
_LONG = 20
_SPACES, _BLANK_LINES = re.compile(r"(?<=\S)[ \t]{2,}(?=\S)"), re.compile(r"\n(?:[ \t]*\n){2,}")


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


def clean_reply(reply: str, question: str = "") -> str:
    """
    Give the answer in a reply, each sentence once and without the question over again.

    What has been read of a reply that is still being written is cleaned as the whole will be, but for a tag or a
    lead-in at its very end.
    """
    text = _HIDDEN.sub("", printable(_LINE_ENDS.sub("\n", html.unescape(reply))))
    if "<" in text or "[" in text:
        text = _without_markup(text)
    text = _QUESTION.sub("", text)
    text = _LEAD_IN.sub("", _ROLE.sub("", text))
    text = _STRAY_NUMBER.sub("", _without_repetitions(text, question if is_question(question) else ""))
    if text == reply:
        return reply
    return _BLANK_LINES.sub("\n\n", _SPACES.sub(" ", text)).strip()


def _without_markup(text: str) -> str:
    text = _ESCAPED_MARK.sub(r"[\1]", text)
    for _ in range(_PASSES):
        before = text
        text = _MARKUP.sub(_between, THOUGHT.sub(" ", text))
        text = _LINK.sub(_linked, _IMAGE.sub("", _ELEMENT.sub("", text)))
        if text == before:
            return text
    # Nobody writes by accident what becomes markup again and again.
    return text.replace("<", "‹")


def _without_repetitions(text: str, question: str) -> str:
    said, kept, at = {folded(question)}, [], 0
    for start, end in sentence_spans(text):
        sentence = folded(_LIST_ITEM.sub("", text[start:end]))
        if len(sentence.encode()) < _LONG or sentence not in said:
            kept.append(text[at:end])
            said.add(sentence)
        at = end
    found = "".join([*kept, text[at:]])
    return found if len(found) == len(text) else found.lstrip()


def _linked(link: re.Match[str]) -> str:
    text = link[1] or ""
    return f"[{text}]" if text[-1:].isdigit() else text


def _between(markup: re.Match[str]) -> str:
    return " " if markup.string[markup.end() : markup.end() + 1].isalnum() else ""
