"""Numbered sources in a prompt: made harmless and written between delimiters."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal

from haystack import Document

# Invisible characters (Unicode's Default_Ignorable_Code_Point), which could hide a delimiter.
_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
_LONGEST_TAG = 200
# Tags with a meaning in our prompts or in the chat formats of models.
TAG_NAMES = (
    "source sources background question task system user assistant human developer tool tool_call tool_response "
    "function instruction instructions context document documents haystack_content_part sys inst s think thinking "
    "reasoning thought "
    "answer goal feedback claims example examples history conversation memory summary start_of_turn end_of_turn "
    "message prompt character wishes pairs"
).split()


_TAG = re.compile(rf"[\s/<]*(?:(?:{'|'.join(TAG_NAMES)})(?![a-z0-9_-])|\|)")
_TAG_END = re.compile(r"(?<=\|)>")
_WORD = r"(?:sources?|docs?|documents?|passages?|来源|來源|资料|資料|出处|出處|文档|文檔|文献|引用)"
_MARK = re.compile(
    rf"([\[【〔])(\s{{0,4}}\^?(?:{_WORD})?[\s_#.:：-]{{0,4}}\d[\d\s,，、;；~〜–—‐-]{{0,60}}(?:{_WORD})?\s{{0,4}})([\]】〕])",
    re.IGNORECASE,
)
_BRACKETED_ROLE = re.compile(r"(\[)(\s*/?\s*(?:inst|system|user|assistant|系统|系統|用户|用戶|助手)\s*)(\])")
_ROLE = re.compile(
    r"^([ \t>#*_-]{0,12}(?:system|user|assistant|human|developer|tool|ai|系统|系統|用户|用戶|助手|人类|人類)"
    r"(?:[ _]?(?:prompt|message|提示|消息))?[ *_]{0,4})(:)",
    re.MULTILINE,
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class _Folding(dict[int, int]):
    """Maps a character to its compatibility form in lower case, where that is one character."""

    def __missing__(self, code: int) -> int:
        folded = unicodedata.normalize("NFKC", chr(code)).lower()
        self[code] = ord(folded) if len(folded) == 1 else code
        return self[code]


_FOLDING = _Folding()


@lru_cache(256)  # a passage is rendered to count its tokens, and again for the prompt
def neutral_text(text: str) -> str:
    """Replace what looks like a part of a prompt (delimiters, tags, marks, roles) by look-alikes of the same length."""
    characters = list(_CONTROL.sub(" ", text))
    shadow = "".join(characters).translate(_FOLDING)
    for match in re.finditer("<", shadow):
        inner = shadow[match.end() : match.end() + _LONGEST_TAG]
        if any(_TAG.match(_HIDDEN.sub(shown, inner)) for shown in ("", " ")):
            characters[match.start()] = "‹"
    for match in _TAG_END.finditer(shadow):
        characters[match.start()] = "›"
    seen = shadow
    places: Sequence[int] = range(len(shadow))
    if hidden := {at for found in _HIDDEN.finditer(shadow) for at in range(*found.span())}:
        seen, places = _HIDDEN.sub("", shadow), [at for at in places if at not in hidden]
    for pattern in (_MARK, _BRACKETED_ROLE):
        for match in pattern.finditer(seen):
            characters[places[match.start()]] = "("
            characters[places[match.end() - 1]] = ")"
    for match in _ROLE.finditer(seen):
        characters[places[match.end() - 1]] = "∶"
    return "".join(characters)


def neutral_attribute(text: str) -> str:
    """Make a file name, title or heading fit for a source's header: one line without quotes and angle brackets."""
    line = " ".join(neutral_text(text).split())
    return line.replace('"', "'").replace("<", "‹").replace(">", "›")


def numbered(document: Document, number: int) -> Document:
    """Set a passage's number, without vectors: the pipeline copies the inputs of every component."""
    return replace(document, meta={**document.meta, "number": number}, embedding=None, sparse_embedding=None)


SOURCE_END = "</source>"
SourceStyle = Literal["tags", "brackets"]


def source_header(document: Document, number: int, style: SourceStyle = "tags") -> str:
    """Write the line that begins a source, made harmless."""
    meta = document.meta
    anchor = found if isinstance(found := meta.get("anchor"), dict) else {}
    page = anchor.get("page", meta.get("page_number"))
    if style == "brackets":
        of_file: dict[str, str] = {"File": str(meta.get("source") or ""), "Page": "" if page is None else str(page)}
        of_file |= {"Shown": "summary"} if "summed_up" in meta else {}
        place = ", ".join(f"{name}: {neutral_attribute(value)}" for name, value in of_file.items() if value)
        return f"[Source {number}] ({place})" if place else f"[Source {number}]"
    section = meta.get("section") or []
    headings = [section] if isinstance(section, str) else [str(heading) for heading in section]
    file, title = str(meta.get("source") or ""), str(meta.get("title") or "")
    known = {
        "file": file,
        "title": "" if title == file else title,
        "section": " › ".join(headings),
        "place": f"page {page}" if page is not None else str(anchor.get("href") or ""),
        "shown": "summary" if "summed_up" in meta else "",
    }
    attributes = "".join(f' {name}="{neutral_attribute(value)}"' for name, value in known.items() if value)
    return f'<source number="{number}"{attributes}>'


def render_source(document: Document, style: SourceStyle = "tags") -> str:
    """Write one numbered passage with its header, made harmless; its text keeps its length."""
    header = source_header(document, document.meta["number"], style)
    text = f"{header}\n{neutral_text(document.content or '')}"
    return f"{text}\n{SOURCE_END}" if style == "tags" else text


def render_sources(
    documents: Iterable[Document], shown: Iterable[int] = (), style: SourceStyle = "tags", separator: str = "\n"
) -> str:
    """Write all sources between their delimiters; those `shown` in an earlier message by their numbers alone."""
    above = '<source number="{}" shown="above"/>' if style == "tags" else "[Source {}] (above)"
    lines = [(int(document.meta["number"]), render_source(document, style)) for document in documents]
    if named := [(number, above.format(number)) for number in shown]:
        lines = sorted([*lines, *named])
    sources = separator.join(line for _, line in lines)
    return "\n".join(["<sources>", *([sources] if lines else []), "</sources>"])
