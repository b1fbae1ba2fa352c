"""Converts PDFs to documents, one per file, with the places where its pages begin."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing

import pypdfium2
import pypdfium2.raw as pdfium
from haystack import Document, component
from haystack.dataclasses import ByteStream

from shiguan.errors import SourceError
from shiguan.ingest.file_types import Converter, Reports, left_out_sentence
from shiguan.ingest.pdf.decoding import Decoded, decode_pages
from shiguan.ingest.pdf.lines import PageLines, read_lines
from shiguan.ingest.pdf.pages import join_pages, remove_heads
from shiguan.text.places import page_label
from shiguan.text.works import work_of

_OCR = "Run text recognition (OCR) on it"
_NAMED = 20
_NO_COMMENTS = frozenset((pdfium.FPDF_ANNOT_LINK, pdfium.FPDF_ANNOT_POPUP, pdfium.FPDF_ANNOT_WIDGET))


@component
class PDFToDocument(Converter):
    """
    Reads PDFs with PDFium into one text in reading order, so that sentences are whole and every page can be cited.

    Lines are joined to paragraphs and words that are broken at a line's end to words; columns are read one after the
    other although the file may write them row by row; ligatures become letters. Running heads, feet and page numbers
    are left out: a sentence that crosses a page is one sentence. The number of a note that is raised behind a word or
    number stands in brackets, `755[1]`, an exponent as such, `km²`. Files that open without a password are read,
    encrypted or not.

    Pages whose text cannot be decoded, because their fonts do not say which characters they draw, are left out and
    named in `warnings`, as are pages without text. Bytes of a Chinese, Japanese or Korean encoding in a Latin font are
    decoded where that is certain.

    The meta of a document: `pages`, the offset of every page in the content and its label, from the file or as
    printed, empty where neither is known; `anchor`, `{"page": 1, "offset": 0}`; `work`, its title and author.

    ```python
    result = PDFToDocument().run(sources=["book.pdf"])
    result["documents"][0].meta["pages"]   # [[0, 'iv'], [1893, 'v'], …]
    ```
    """

    def _read(self, source: ByteStream, name: str, reports: Reports) -> list[Document]:
        with closing(_opened(source.data, name)) as file:
            if form := file.get_formtype():
                file.init_forms()  # draws the values of fields that the file does not draw
            count = len(file)
            own_labels = [page_label(_decoded(file.get_page_label, number)) for number in range(count)]
            title, author = (_decoded(file.get_metadata_value, key) for key in ("Title", "Author"))
            attached, skipped = file.count_attachments(), Counter[str]()
            read = [_page(file, number, skipped) for number in range(count)]
        pages = decode_pages(read)
        bodies, printed = remove_heads(pages.pages)
        text, starts = join_pages(bodies)
        reports.warnings.extend(f"{name}: {fault}." for fault in _faults(pages, sum(not page.lines for page in read)))
        if form == pdfium.FORMTYPE_XFA_FULL:
            reports.warnings.append(f"{name}: its form (XFA) was not read; print it to a new PDF.")
        if attached:
            reports.warnings.append(f"{name}: {attached:,} attached files were not read.")
        if left_out := dict(+skipped):
            reports.warnings.append(left_out_sentence(name, left_out))
        if not text and pages.failed:
            raise SourceError(name, _undecoded(pages), _OCR)
        work = work_of({"title": title, "author": re.split(r"\s*;\s*", author)})
        labels = own_labels if any(own_labels) else printed if any(printed) else map(str, range(1, count + 1))
        meta = source.meta | {
            "anchor": {"page": 1, "offset": 0},
            "pages": [list(pair) for pair in zip(starts, labels, strict=True)],
        }
        more = {"work": work, "left_out": left_out}
        return [Document(content=text, meta=meta | {key: value for key, value in more.items() if value})]


def _decoded(read: Callable[..., str], key: int | str) -> str:
    try:
        return read(key)
    except UnicodeDecodeError:
        return ""


def _faults(pages: Decoded, empty: int) -> Iterator[str]:
    count = len(pages.pages)
    if pages.failed:
        yield f"{_undecoded(pages)}; run text recognition (OCR) on the file"
    if empty:
        yield f"{empty} of {count} pages have no text; run text recognition on the file if they are pictures"
    if pages.unknown:
        yield f"{pages.unknown} characters cannot be decoded and are written as \ufffd"
    if pages.guessed:
        yield f"read as {pages.guessed}, which was guessed; check that the words are right"


def _undecoded(pages: Decoded) -> str:
    named = ", ".join(map(str, pages.failed[:_NAMED])) + (", …" if len(pages.failed) > _NAMED else "")
    return f"{len(pages.failed)} of {len(pages.pages)} pages have text that cannot be decoded ({named})"


def _opened(data: bytes, name: str) -> pypdfium2.PdfDocument:
    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if error.err_code == pdfium.FPDF_ERR_PASSWORD:
            raise SourceError(
                name, "the PDF is locked by a password", "Remove the password and ingest it again"
            ) from error
        cause = "the PDF is damaged or has no pages"
        raise SourceError(name, cause, "Get another copy, or print it to a new PDF") from error


def _page(file: pypdfium2.PdfDocument, number: int, skipped: Counter[str]) -> PageLines:
    try:
        page = file[number]
    except pypdfium2.PdfiumError:
        return PageLines([], 0)
    annotations = [_annotation(page, index) for index in range(pdfium.FPDFPage_GetAnnotCount(page))]
    skipped["comments"] += sum(words for _, words in annotations)
    if any(drawn for drawn, _ in annotations):
        # What is filled into forms and typed over a page becomes part of it.
        with closing(page):
            pdfium.FPDFPage_Flatten(page, pdfium.FLAT_NORMALDISPLAY)
        page = file[number]
    with closing(page):
        lines = read_lines(page)
    skipped.update(lines.unseen)
    return lines


def _annotation(page: pypdfium2.PdfPage, index: int) -> tuple[bool, int]:
    """Return whether an annotation is drawn on its page, and the number of characters in it that are not."""
    annotation = pdfium.FPDFPage_GetAnnot(page, index)
    subtype = pdfium.FPDFAnnot_GetSubtype(annotation)
    typed = subtype == pdfium.FPDF_ANNOT_FREETEXT and pdfium.FPDFAnnot_HasKey(annotation, b"AP")
    size = 0 if typed or subtype in _NO_COMMENTS else pdfium.FPDFAnnot_GetStringValue(annotation, b"Contents", None, 0)
    pdfium.FPDFPage_CloseAnnot(annotation)
    # In UTF-16, with a NUL at its end.
    return subtype not in (pdfium.FPDF_ANNOT_LINK, pdfium.FPDF_ANNOT_POPUP), max(size // 2 - 1, 0)
