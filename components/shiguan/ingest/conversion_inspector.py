"""Reports the files that their converters could not read, and why."""

import io
import re
from pathlib import PurePath
from typing import Any

import pypdf
from haystack import Document, component
from haystack.dataclasses import ByteStream
from pypdf.errors import PyPdfError

from shiguan.errors import SourceError
from shiguan.ingest.file_types import DOCX, MARKDOWN, PDF, TEXT
from shiguan.text.passages import SharedDocument
from shiguan.text.places import page_label
from shiguan.text.works import work_of

# The errors of a damaged PDF.
_DAMAGED = (
    PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, OSError, RecursionError,
    NotImplementedError, ArithmeticError, AssertionError,
)  # fmt: skip
# The kinds whose converters do not report what they leave out.
_SILENT = frozenset(kind.mime_type for kind in (PDF, DOCX, MARKDOWN, TEXT))


@component
class ConversionInspector:
    """
    Compares the converters' inputs with their outputs.

    Haystack's converters log a file that they cannot read and go on. This component comes after them, drops documents
    without text, and lists each such file in `skipped`: a damaged or locked PDF, one that is only pictures of pages, a
    broken DOCX, a text without words. Pages of a PDF without text, in a file that has others, give a warning. A PDF
    gets the labels of its pages (`page_labels`) and its bibliographic data (`work`).
    """

    @component.output_types(documents=list[Document], skipped=list[dict[str, str]], warnings=list[str])
    def run(self, documents: list[Document], sources: list[ByteStream]) -> dict[str, Any]:
        """
        Compare.

        :param documents: The converters' documents.
        :param sources: The sources that `SourceInspector` passed to them.
        :returns: The `documents` with text; `skipped` files; `warnings`.
        """
        readable = [document for document in documents if document.content and document.content.strip()]
        read = {document.meta.get("source_key") for document in readable}
        skipped = [
            SourceError(_name(source.meta), *_reason(source)).record
            for source in sources
            if source.mime_type in _SILENT and source.meta.get("source_key") not in read
        ]
        warnings = []
        pdfs = {source.meta.get("source_key"): source for source in sources if source.mime_type == PDF.mime_type}
        for at, document in enumerate(readable):
            if document.meta.get("source_key") not in pdfs:
                continue
            if own := _of_pdf(pdfs[document.meta["source_key"]]):
                readable[at] = SharedDocument(content=document.content, meta={**document.meta, **own})
            pages = (document.content or "").split("\f")
            empty = sum(not page.strip() for page in pages)
            if empty:
                warnings.append(
                    f"{_name(document.meta)}: {empty} of {len(pages)} pages have no text; run text recognition "
                    "on the file if they are pictures."
                )
        return {"documents": readable, "skipped": skipped, "warnings": warnings}


def _name(meta: dict[str, Any]) -> str:
    return PurePath(str(meta.get("file_path") or "a file without a name")).name


def _of_pdf(source: ByteStream) -> dict[str, Any]:
    """Read the page labels and metadata of a PDF; if these are damaged, the rest of it still counts."""
    try:
        reader = pypdf.PdfReader(io.BytesIO(source.data))
        labels = [page_label(str(label)) for label in reader.page_labels]
        given: Any = reader.metadata or {}
        stated = {name: str(given.get(key) or "") for name, key in (("title", "/Title"), ("author", "/Author"))}
    except _DAMAGED:
        return {}
    work = work_of({**stated, "author": re.split(r"\s*;\s*", stated["author"])})
    return {"page_labels": labels} | ({"work": work} if work else {})


def _reason(source: ByteStream) -> tuple[str, str]:
    if source.mime_type == DOCX.mime_type:
        return "the DOCX is damaged or holds no text", "Open it in a word processor and save it again"
    if source.mime_type != PDF.mime_type:
        return "no text was found in it", "Check that it holds running text, or convert it to plain text"
    try:
        reader = pypdf.PdfReader(io.BytesIO(source.data))
        if reader.is_encrypted and not reader.decrypt(""):
            return "the PDF is locked by a password", "Remove the password and ingest it again"
        pages = len(reader.pages)
    except _DAMAGED:
        return "the PDF is damaged", "Get another copy, or print it to a new PDF"
    if pages == 0:
        return "the PDF has no pages", "Get another copy"
    return f"none of the PDF's {pages} pages has text, so it is probably a scan", "Run text recognition (OCR) on it"
