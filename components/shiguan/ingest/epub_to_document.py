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

    A footnote is put where the text refers to it, as `[Note: …]` or `[脚注：…]`; formulas are read as TeX, pictures by
    their descriptions. Parts that are not text of the book (covers, contents, indexes, imprints, notes on the author)
    are left out and named in `warnings`, by the cues in `epub/roles.yaml`: a stated role (`epub:type`, `role`, guide)
    is enough, titles and words alone remove only short files at either end of the book. Nothing is fetched.

    The meta of a document:

    - `source`, `file_path`, `title`, `author`, `language` (ISO 639-1, if the book states that of its script)
    - `section`: headings, outermost first
    - `kind`: `text`, `quote`, `footnote` (if nothing refers to it), `caption`, `table`, `list` (of places in the book:
      links or names with pages)
    - `anchor`: the place of the block: `href` (name of the file inside the archive), `spine` (index in the reading
      order), `path` (an XPath of local names: `/html/body/section[1]/p[2]`) and `offset` (code points into that
      element's text as `shiguan.ingest.epub.trees.element_text` defines it)
    - if there are any: `notes`, inserted at `start` to `end` from their own `anchor`; `pages`, the offset and label of
      each printed page; `cfi`, for EPUB CFIs (see `shiguan.text.places.Run`); `left_out`, in characters by kind; `work`

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
        more = {"author": ", ".join(book.authors), "work": book.work, "left_out": dict(book.left_out)}
        base: dict[str, Any] = {"source": name, "title": book.title or Path(name).stem}
        base |= {key: value for key, value in more.items() if value}
        base |= {key: value for key, value in source.meta.items() if key not in _OWN_KEYS}
        return [Document(content=block.content, meta=base | block.meta) for block in blocks]
