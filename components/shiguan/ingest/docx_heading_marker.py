"""Writes the headings of DOCX files as Markdown, so that Haystack's converter keeps them."""

import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import docx
from docx.oxml.ns import qn
from docx.text.paragraph import Paragraph
from haystack import component
from haystack.components.converters.utils import get_bytestream_from_source
from haystack.dataclasses import ByteStream

from shiguan.errors import SourceError
from shiguan.ingest.file_types import identify

_HEADING_STYLE = re.compile(r"heading ([1-9])$", re.IGNORECASE)
_DEEPEST = 6
# A style is based on another; in a broken file these may form a circle.
_MOST_BASES = 12
# Tables of word processors have at most this many.
_MOST_COLUMNS = 63


@component
class DocxHeadingMarker:
    """
    Marks headings in DOCX files before Haystack's `DOCXToDocument` reads them.

    That converter returns only the paragraphs' words, one per line, so a book would lose its chapters. Here a heading
    gets `#` signs by its level, in a copy in memory, and every paragraph a blank line after it;
    `MarkdownSectionSplitter` reads both.
    """

    tenant_role = "inspects"

    @component.output_types(sources=list[ByteStream], skipped=list[dict[str, str]])
    def run(self, sources: list[str | Path | ByteStream]) -> dict[str, Any]:
        """
        Mark headings.

        :param sources: DOCX files.
        :returns: `sources`: the files with marked headings, in the same order; `skipped`, those that cannot be opened.
        """
        marked: list[ByteStream] = []
        skipped: list[dict[str, str]] = []
        for source in map(get_bytestream_from_source, sources):
            try:
                marked.append(_marked(source))
            except MemoryError:
                raise
            except Exception:  # whatever a damaged file causes in the parser
                step = "Open it in a word processor and save it again"
                skipped.append(SourceError(identify(source)[1], "the DOCX is damaged", step).record)
        return {"sources": marked, "skipped": skipped}


def _marked(source: ByteStream) -> ByteStream:
    document = docx.Document(io.BytesIO(source.data))
    levels: dict[str | None, int] = {}
    for paragraph in document.paragraphs:
        # Cached, because looking up a style searches all of them.
        style = paragraph._p.style
        if style not in levels:
            levels[style] = _level(paragraph)
        level = levels[style]
        if level and paragraph.text.strip():
            first = paragraph.runs[0] if paragraph.runs else paragraph.add_run("")
            first.text = "#" * level + " " + first.text
        paragraph.add_run("\n")
    for span in document.element.body.iter(qn("w:gridSpan")):
        # The converter writes the cell once for each column that it spans.
        columns = span.get(qn("w:val"), "")[:9]
        if columns.isdecimal() and int(columns) > _MOST_COLUMNS:
            span.set(qn("w:val"), str(_MOST_COLUMNS))
    marked = io.BytesIO()
    document.save(marked)
    return replace(source, data=marked.getvalue())


def _level(paragraph: Paragraph) -> int:
    """Return the heading level of a paragraph, 0 for none, by its style and the styles that this is based on."""
    style: Any = paragraph.style
    for _ in range(_MOST_BASES):
        if style is None:
            break
        name = style.name or ""
        if name == "Title":
            return 1
        found = _HEADING_STYLE.match(name)
        if found:
            return min(int(found[1]), _DEEPEST)
        style = style.base_style
    return 0
