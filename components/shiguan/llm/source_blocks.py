"""The grammar of numbered sources in a prompt: how they are written between delimiters, and how they are read back."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from haystack import Document

from shiguan.llm.neutral_text import neutral_attribute, neutral_text

_OPEN, _CLOSE = "<sources>", "</sources>"
_QUESTION_OPEN, _QUESTION_CLOSE = "<question>", "</question>"
_ATTRIBUTES = ("file", "title", "section", "place")
_BLOCK = re.compile(r'<source number="(\d+)"((?: [a-z]+="[^"\n]*")*)>\n(.*?)\n</source>(?=\n)', re.DOTALL)
_ATTRIBUTE = re.compile(r' ([a-z]+)="([^"\n]*)"')


@dataclass(frozen=True)
class SourceBlock:
    """One numbered passage as the reader of the prompt sees it."""

    number: int
    text: str
    file: str = ""
    title: str = ""
    section: str = ""
    place: str = ""


def source_block(document: Document, text: str | None = None) -> SourceBlock:
    """Make a source of a numbered passage, with another text than its content if one is given."""
    meta = document.meta
    section = meta.get("section") or []
    headings = [section] if isinstance(section, str) else [str(heading) for heading in section]
    file, title = str(meta.get("source") or ""), str(meta.get("title") or "")
    return SourceBlock(
        number=meta["number"],
        text=(document.content or "") if text is None else text,
        file=file,
        title="" if title == file else title,
        section=" › ".join(headings),
        place=_place(meta),
    )


def render_block(block: SourceBlock) -> str:
    """
    Write one source with its header.

    Whatever in the passage looks like a delimiter, a citation mark or a role is made harmless, character by
    character, so that offsets in the rendered passage are offsets in the original.
    """
    attributes = "".join(
        f' {name}="{neutral_attribute(value)}"' for name in _ATTRIBUTES if (value := getattr(block, name))
    )
    return f'<source number="{block.number}"{attributes}>\n{neutral_text(block.text)}\n</source>'


def render_sources(blocks: Iterable[SourceBlock]) -> str:
    """Write all sources between their delimiters."""
    return "\n".join([_OPEN, *(render_block(block) for block in blocks), _CLOSE])


def parse_sources(prompt: str) -> list[SourceBlock] | None:
    """Read the sources back from a prompt, their passages as rendered; None if it has no such part."""
    span = _sources_span(prompt)
    if span is None:
        return None
    blocks = []
    for number, attributes, text in _BLOCK.findall(prompt[span[0] : span[1]] + "\n"):
        values = {name: value for name, value in _ATTRIBUTE.findall(attributes) if name in _ATTRIBUTES}
        blocks.append(SourceBlock(number=int(number), text=text, **values))
    return blocks


def parse_question(prompt: str) -> str:
    """
    Read the question from a prompt.

    The question stands after the sources between its own delimiters; in a template without them the last paragraph
    is taken. What looks like a question inside a source is never read.
    """
    span = _sources_span(prompt)
    rest = prompt[span[1] :] if span else prompt
    start = rest.find(_QUESTION_OPEN)
    end = rest.rfind(_QUESTION_CLOSE)
    if start >= 0:
        return rest[start + len(_QUESTION_OPEN) : end if end > start else len(rest)].strip()
    rest = rest.removeprefix(_CLOSE).strip()
    return rest.rsplit("\n\n", 1)[-1].strip() if rest else ""


def _place(meta: dict[str, Any]) -> str:
    anchor = meta.get("anchor")
    if not isinstance(anchor, dict):
        anchor = {}
    page = anchor.get("page", meta.get("page_number"))
    if page is not None:
        return f"page {page}"
    return str(anchor.get("href") or "")


def _sources_span(prompt: str) -> tuple[int, int] | None:
    # The delimiters count only as whole lines: an instruction may name them in running text.
    opening = re.search(rf"^{_OPEN}$", prompt, re.MULTILINE)
    if opening is None:
        return None
    closing = re.compile(rf"^{_CLOSE}$", re.MULTILINE).search(prompt, opening.end())
    return (opening.end(), closing.start() if closing else len(prompt))
