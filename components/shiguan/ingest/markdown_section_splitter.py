"""Cuts Markdown texts at their headings, and keeps the headings as the sections' names."""

import re
from collections.abc import Iterator
from typing import Any

from haystack import Document, component

from shiguan.ingest.markdown_conventions import read_markdown

_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_NO_TITLE = re.compile(r" {0,3}(?:[-*+>|]|\d{1,9}[.)][ \t])|\s*$| {4}|\t")
_MARKUP = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}")
# Longer lines are text, whatever they begin with.
_LONGEST_HEADING = 500


@component
class MarkdownSectionSplitter:
    r"""
    Cuts Markdown into sections, one document each, with its headings in `section`.

    It comes after the converters that produce Markdown. Notes are put where the text first refers to them, as
    `[Note: …]` or `[脚注：…]`; front matter, comments, definitions of links and attributes (`{#id .class}`) are left
    out. The text of a section is an exact slice of what remains, without the heading's own line; `start` in its meta is
    where the slice begins. Headings in code blocks do not count. A document without any of this passes through
    unchanged. `title` is that of the front matter, else the first heading. If the text has page breaks (form feeds),
    each section's anchor has its first page.

    Example:
    ```python
    result = MarkdownSectionSplitter().run([Document(content="# Tang\n\nIntro.\n\n## Rebellion\n\nIn 755.\n")])
    [(d.meta["section"], d.content) for d in result["documents"]]
    # [(["Tang"], "Intro."), (["Tang", "Rebellion"], "In 755.")]
    ```
    """

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """
        Cut documents at their headings.

        :param documents: Markdown texts.
        :returns: One document for every section with text, in reading order.
        """
        found: list[Document] = []
        for document in documents:
            text, notes, work = read_markdown(document.content or "")
            sections = list(_sections(text))
            names = [headings for *_, headings in sections if headings]
            if not names and text == document.content:
                found.append(document)
                continue
            title = document.meta.get("title") or work.get("title") or (names[0][0] if names else "")
            common = document.meta | ({"work": work} if work else {})
            for *span, headings in sections:
                start, end = _trimmed(text, *span)
                if start < end:
                    meta: dict[str, Any] = {**common, "title": title, "section": headings, "start": start}
                    inside = [{"start": a - start, "end": b - start} for a, b in notes if start <= a and b <= end]
                    meta |= {"notes": inside} if inside else {}
                    if "\f" in text:
                        meta["anchor"] = {"page": text.count("\f", 0, start) + 1, "offset": 0}
                    found.append(Document(content=text[start:end], meta=meta))
        return {"documents": found}


def _sections(text: str) -> Iterator[tuple[int, int, list[str]]]:
    """Find sections: where they begin and end, and the headings above them."""
    path: list[tuple[int, str]] = []
    start = 0
    for line_start, line_end, level, title in _headings(text, start):
        yield start, line_start, [name for _, name in path]
        while path and path[-1][0] >= level:
            path.pop()
        if title:
            path.append((level, title))
        start = line_end
    yield start, len(text), [name for _, name in path]


def _headings(text: str, start: int) -> Iterator[tuple[int, int, int, str]]:
    """Find headings: where their lines begin and end, their levels and their words."""
    fence = ""
    title: tuple[int, str] | None = None
    for match in _LINE.finditer(text, start):
        line = match[0].rstrip("\r\n").strip("\f")
        # The line above, if it can be an underlined heading.
        above, title = title, None
        fenced = _FENCE.match(line)
        if fence:
            closed = fenced and line.strip().startswith(fence) and not line.strip().strip(fence[0])
            fence = "" if closed else fence
        elif fenced:
            fence = fenced[1]
        elif len(line) > _LONGEST_HEADING:
            continue
        elif atx := _ATX.match(line):
            yield match.start(), match.end(), len(atx[1]), _plain(atx[2] or "")
        elif above is not None and (underline := _SETEXT.match(line)):
            yield above[0], match.end(), 1 if underline[1][0] == "=" else 2, _plain(above[1])
        elif not _NO_TITLE.match(line):
            # Only a paragraph of a single line can be an underlined heading; a longer one is a paragraph above a rule.
            alone = match.start() == 0 or text.endswith(("\n\n", "\n\r\n", "\f"), 0, match.start())
            title = (match.start(), line) if alone else None


def _plain(title: str) -> str:
    return _MARKUP.sub(lambda match: match[1] or "", title).strip()


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace() and text[start] != "\f":
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end
