"""Removes from a model's reply what is not part of its answer."""

import html
import re
from functools import partial
from pathlib import Path

from shiguan.claims.marks import find_marks, lowered_marks, uniform_marks
from shiguan.claims.talk import is_talk, without_self
from shiguan.llm.json_replies import THOUGHT
from shiguan.llm.source_blocks import TAG_NAMES
from shiguan.resources import read_patterns
from shiguan.text.questions import folded, is_question
from shiguan.text.sentences import sentence_spans
from shiguan.text.terminal import printable

_SPEAKER = "system|user|assistant|human|developer|tool|系统|系統|用户|用戶|助手"
_TAG = f"(?:{'|'.join(['response', *TAG_NAMES])})"
_MARKUP = re.compile(
    rf"(?:(?<![ \t])[ \t]*+)?"
    rf"(?:</?\s{{0,4}}{_TAG}(?:\s[^<>\n]{{0,500}})?/?>|<{_TAG}\s[^<>\n]{{0,500}}?=\"[^<>\n]{{0,500}}(?=\n|\Z)"
    rf"|<\|[^<>\n]{{0,40}}?\|>|\[/?(?:inst|{_SPEAKER})\]|<</?sys>>)[ \t]*"
    rf"(?:(?:model|final|{_SPEAKER})[ \t]*(?=\n|<\||\Z))?",
    re.IGNORECASE,
)
# Invisible characters, which could stand between the letters of a mark or a role.
_HIDDEN = re.compile("[\u00ad\u200b\u2060-\u2064\ufeff]|(?<![^\\W_])[\u200c-\u200f]+|[\u200c-\u200f]+(?![^\\W\\d_])")
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_PASSES = 4
# A repeated sentence of at least this many bytes, some seven Han characters or twenty letters, shows a looping model.
_LONG = 20
_MARK, _LETTER = re.compile(r"\[\d{1,3}\]"), re.compile(r"[^\W\d_]")
_RULE_AT_END = re.compile(r"(?:\n[-*_ ]*)+\Z")
_SPACES, _BLANK_LINES = re.compile(r"(?<=\S)[ \t]{2,}(?=\S)"), re.compile(r"\n(?:[ \t]*\n){2,}")
_patterns = partial(read_patterns, Path(__file__).with_name("reply_cleaning.yaml"))


def clean_reply(reply: str, question: str = "") -> str:
    """Return the answer in a reply, without repeated sentences and without a repetition of the question."""
    text = _HIDDEN.sub("", printable(_LINE_ENDS.sub("\n", html.unescape(reply))))
    patterns = _patterns()
    text = lowered_marks(_without_fences(patterns["footnote"].sub("", text)))
    if "<" in text or "[" in text:
        text = _without_markup(text)
    text = patterns["lead"].sub("", patterns["role"].sub("", patterns["question"].sub("", text)))
    text = uniform_marks(patterns["address"].sub(lambda found: f"`{found[1] or found[2]}`", text))
    text = _without_talk(text, question)
    text = _without_sources(patterns["definition"].sub(r"\1:", text))
    text = patterns["number"].sub("", _without_repetitions(text, question if is_question(question) else ""))
    if text == reply:
        return reply
    return _BLANK_LINES.sub("\n\n", _SPACES.sub(" ", text)).strip()


def _without_markup(text: str) -> str:
    patterns = _patterns()
    text = patterns["escaped"].sub(r"[\1]", text)
    for _ in range(_PASSES):
        before = text
        text = _MARKUP.sub(lambda tag: " " * tag.string[tag.end() : tag.end() + 1].isalnum(), THOUGHT.sub(" ", text))
        text = patterns["link"].sub(_linked, patterns["image"].sub("", patterns["element"].sub("", text)))
        if text == before:
            return text
    # Text that becomes markup again after every pass was not written by accident.
    return text.replace("<", "‹")


def _without_fences(text: str) -> str:
    """Remove the fences of a block of prose, whether it is whole or not."""
    patterns = _patterns()
    first = patterns["fence"].search(text)
    if (
        first is None
        or not patterns["prose"].fullmatch(first[1])
        or not (first[1] or not text[: first.start()].strip())
    ):
        return text
    return str(patterns["fence"].sub(lambda fence: "" if patterns["prose"].fullmatch(fence[1]) else fence[0], text))


def _without_sources(text: str) -> str:
    """Remove lists of sources; what a line is depends on the lines before it, never on those behind it."""
    patterns = _patterns()
    text = patterns["bracketed"].sub(lambda found: "".join(_MARK.findall(found[0])), text)
    kept: list[str] = []
    listed = cited = False
    for line in text.split("\n"):
        if patterns["heading"].fullmatch(line) or patterns["listing"].fullmatch(line):
            listed = bool(line.strip())
        elif not line.strip() or not (
            (listed and patterns["entry"].fullmatch(line)) or (cited and patterns["title"].fullmatch(line))
        ):
            listed = listed and not line.strip()
            letter = None if cited else _LETTER.search(line)
            cited = cited or bool(letter and _MARK.search(line, letter.end()))
            kept.append(line)
    return _RULE_AT_END.sub("", "\n".join(kept)) if len(kept) <= text.count("\n") else text


def _without_talk(text: str, question: str) -> str:
    """Remove the remarks of a reply: sentences, and clauses that open one."""
    pieces: list[str] = []
    at = 0
    for start, end in sentence_spans(text):
        sentence = text[start:end]
        plain = without_self(sentence)
        if not is_talk(plain, question):
            pieces += [text[at:start], plain]
        at = end
    left = "".join([*pieces, text[at:]])
    return left if len(left) == len(text) else left.strip()


def _without_repetitions(text: str, question: str) -> str:
    seen, kept, at = {folded(question)}, [], 0
    for start, end in sentence_spans(text):
        sentence = folded(_patterns()["item"].sub("", text[start:end]))
        if len(sentence.encode()) < _LONG or sentence not in seen:
            kept.append(text[at:end])
            seen.add(sentence)
        at = end
    found = "".join([*kept, text[at:]])
    return found if len(found) == len(text) else found.lstrip()


def _linked(link: re.Match[str]) -> str:
    text = link[1] or ""
    if _patterns()["word"].fullmatch(text):
        return ""
    return f"[{text}]" if find_marks(f"[{text}]") else text
