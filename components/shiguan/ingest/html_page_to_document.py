"""Converts HTML pages to documents, one per paragraph, quote, caption, table or note."""

import codecs
from pathlib import Path
from typing import Any

from haystack import Document, component
from haystack.dataclasses import ByteStream

from shiguan.errors import SourceError
from shiguan.ingest.epub.reader import read_page
from shiguan.ingest.file_types import Reports, converted
from shiguan.text.passages import SharedDocument

_MARK = codecs.BOM_UTF8


@component
class HtmlPageToDocument:
    """
    Reads an HTML page like the only chapter of a book, so that its structure is kept.

    Headings become `section`, quotes, tables and captions their own kinds, footnotes are put where the text refers to
    them, menus (`nav`), scripts and styles are left out, and every block has an `anchor`: its element's path and
    offset. Haystack's `HTMLToDocument` looks for the main article of a news page instead: on pages of Chinese text it
    dropped the headings and, on short pages, broke paragraphs at every bold word.

    ```python
    result = HtmlPageToDocument().run(sources=["page.html"])
    result["documents"][0].meta["section"]   # ['Old Book of Tang', 'Juan 200']
    ```
    """

    @component.output_types(documents=list[Document], skipped=list[dict[str, str]], warnings=list[str])
    def run(self, sources: list[str | Path | ByteStream]) -> dict[str, Any]:
        """
        Convert pages.

        :param sources: Paths or byte streams of pages in UTF-8.
        :returns: `documents` in reading order; `skipped`, one `{"source", "cause", "next_step"}` per page without
            text; `warnings`.
        """
        return converted(sources, _read)


def _read(source: ByteStream, name: str, reports: Reports) -> list[Document]:
    try:
        # The inspector recoded the page; with a mark the encoding that it states is ignored.
        page, blocks = read_page(_MARK + source.data.removeprefix(_MARK), name)
    except SourceError as error:
        next_step = "Check that it holds text and not only scripts or pictures"
        raise SourceError(name, "no text was found in the page", next_step) from error
    reports.warnings.extend(page.warnings)
    documents: list[Document] = []
    for block in blocks:
        meta = {**source.meta, **({"title": page.title} if page.title else {}), **block.meta}
        meta |= {"left_out": dict(page.left_out)} if page.left_out else {}
        # A page is one file, which needs no name and no place in a reading order.
        meta["anchor"] = {name: meta["anchor"][name] for name in ("path", "offset")}
        if block.meta.get("notes"):
            meta["notes"] = [{"start": note["start"], "end": note["end"]} for note in block.meta["notes"]]
        documents.append(SharedDocument(content=block.content, meta=meta))
    return documents
