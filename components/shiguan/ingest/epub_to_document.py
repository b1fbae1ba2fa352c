"""Converts EPUB books to documents, one per paragraph, quote, caption, table or note."""

from pathlib import Path
from typing import Any

from haystack import Document, component
from haystack.dataclasses import ByteStream

from shiguan.ingest.archives import SafeArchive
from shiguan.ingest.epub.reader import read_book
from shiguan.ingest.file_types import Converter, Reports

_OWN_KEYS = frozenset(("source", "section", "kind", "anchor", "notes", "pages", "cfi", "work", "left_out"))


@component
class EPUBToDocument(Converter):
    """
    Reads EPUB 2 and 3 books into blocks with their headings and their place.

    So that readers can check citations, every block keeps the headings above it (`section`) and its place (`anchor`),
    and a footnote is put where the text refers to it, as `[Note: …]` or `[脚注：…]`. Nothing is fetched, and no picture
    is opened.

    Parts that are not text of the book (covers, contents, indexes, imprints, notes about the author) are left out and
    named in `warnings`, by the cues in `epub/roles.yaml`. A stated role (`epub:type`, `role`, guide) is enough; titles
    and words alone remove only short files at either end of the book, and never most of it. MathML formulas are read as
    TeX; of a picture its description is read, unless that is a placeholder.

    It comes after the file router and before `SourceStamper` and `ParentChildSplitter`.

    The meta of a document:

    - `source`, `file_path`, `title`, `author`, `language` (ISO 639-1; absent where the book states none, or states it
      for text in another script)
    - `section`: headings, outermost first
    - `kind`: `text`, `quote`, `footnote` (if nothing refers to it), `caption`, `table`, `list` (of places in the book:
      links or names with pages)
    - `anchor`: `href` (name of the file inside the archive), `spine` (index in the reading order), `path` (an XPath of
      local names in that file: `/html/body/section[1]/p[2]`) and `offset` (code points into that element's text as
      `shiguan.ingest.epub.trees.element_text` defines it: white space in single spaces, without ruby readings).
      The offset is the place of the block's first character.
    - `notes`: where notes were inserted, `{"start", "end", "anchor"}` with offsets into the content and the note's own
      place; absent without notes
    - `pages`: where printed pages begin, as offset into the content and label, by the book's page list (EPUB 3 and 2),
      its page breaks, or ids such as `page_63`; absent where the book has none
    - `cfi`: where the stretches of the content are in the file, for EPUB CFIs (see `shiguan.text.places.Run`); absent
      where the file had to be repaired
    - `left_out`: what was skipped, in characters by kind; absent where nothing was
    - `work`: `title`, `author`, `editor`, `translator`, `edition`, `year`, `publisher`, `identifier`, as in the book

    ```python
    result = EPUBToDocument().run(sources=["book.epub"])
    result["documents"][0].meta["section"]   # ['Part One', 'Chapter 3', 'The siege']
    ```
    """

    def __init__(self, include_front_matter: bool = False) -> None:
        """
        Create the converter.

        :param include_front_matter: also keep cover, title page, contents, imprint, index, notes about the author,
            running heads and files outside the reading order (`linear="no"`).
        """
        self.include_front_matter = include_front_matter

    def _read(self, source: ByteStream, name: str, reports: Reports) -> list[Document]:
        archive = SafeArchive(source.data, source=name)
        book, blocks = read_book(archive, include_front_matter=self.include_front_matter)
        reports.warnings.extend(book.warnings)
        base: dict[str, Any] = {"source": name, "title": book.title or Path(name).stem}
        if book.authors:
            base["author"] = ", ".join(book.authors)
        if book.work:
            base["work"] = book.work
        if book.left_out:
            base["left_out"] = dict(book.left_out)
        base |= {key: value for key, value in source.meta.items() if key not in _OWN_KEYS}
        return [Document(content=block.content, meta=base | block.meta) for block in blocks]
