"""Takes off a reply what a language model puts around its answer, and what would act where the answer is shown."""

import html
import re

from shiguan.llm.json_replies import THOUGHT
from shiguan.llm.source_blocks import TAG_NAMES
from shiguan.text.questions import folded, is_question
from shiguan.text.sentences import sentence_spans
from shiguan.text.terminal import printable

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
_NUMBER = r"\d{1,2}[.)、][ \t]*"
_LEAD_IN = re.compile(
    rf"^[ \t>*_]*(?:{_NUMBER})?[*_]{{0,3}}(?:"
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
_ITEM = re.compile(rf"\A[ \t*_]*{_NUMBER}")
# Whoever says a sentence of this many bytes again, some seven Han characters or twenty letters, goes round in circles.
_LONG = 20
_SPACES, _BLANK_LINES = re.compile(r"(?<=\S)[ \t]{2,}(?=\S)"), re.compile(r"\n(?:[ \t]*\n){2,}")


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
        sentence = folded(_ITEM.sub("", text[start:end]))
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
