"""Takes off a reply what a language model puts around its answer: markup of prompts, roles, and restated lead-ins."""

import re

from shiguan.llm.source_blocks import TAG_NAMES

# Thinking aloud, also where the reply ends in the middle of it.
_THOUGHT = re.compile(r"<(think|thinking|reasoning|thought)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_MARKUP = re.compile(
    rf"[ \t]*(?:</?\s{{0,4}}(?:{'|'.join(TAG_NAMES)})(?:\s[^<>\n]{{0,200}})?/?>"
    r"|<\|[^<>\n]{0,40}?\|>|\[/?inst\]|<</?sys>>)[ \t]*",
    re.IGNORECASE,
)
# A model that plays on writes the next turn itself, or the question before its answer.
_ROLE = re.compile(
    r"^[ \t>#*_]{0,8}(?:system|user|assistant|human|developer|tool|系统|系統|用户|用戶|助手)[ \t*_]{0,4}[:：][ \t*_]*",
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
_SPACES, _BLANK_LINES = re.compile(r"(?<=\S)[ \t]{2,}(?=\S)"), re.compile(r"\n(?:[ \t]*\n){2,}")


def clean_reply(reply: str) -> str:
    """
    Give the answer in a reply.

    What has been read of a reply that is still being written is cleaned as the whole will be, but for a tag or a
    lead-in at its very end.
    """
    text = reply
    if "<" in text or "[" in text:
        text = _MARKUP.sub(_between, _THOUGHT.sub(" ", text))
    text = _QUESTION.sub("", text)
    text = _LEAD_IN.sub("", _ROLE.sub("", text))
    text = _STRAY_NUMBER.sub("", text)
    if text == reply:
        return reply
    return _BLANK_LINES.sub("\n\n", _SPACES.sub(" ", text)).strip()


def _between(markup: re.Match[str]) -> str:
    return " " if markup.string[markup.end() : markup.end() + 1].isalnum() else ""
