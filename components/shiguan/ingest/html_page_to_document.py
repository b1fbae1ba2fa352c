"""Converts HTML pages to documents, one per paragraph, quote, caption, table or note."""

import codecs

from haystack import Document, component
from haystack.dataclasses import ByteStream

from shiguan.ingest.epub.reader import page_documents
from shiguan.ingest.file_types import Converter, Reports

_MARK = codecs.BOM_UTF8


@component
class HtmlPageToDocument(Converter):
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

    def _read(self, source: ByteStream, name: str, reports: Reports) -> list[Document]:
        # The inspector recoded the page; with a mark the encoding that it states is ignored.
        return page_documents(_MARK + source.data.removeprefix(_MARK), source, name, reports, {})
