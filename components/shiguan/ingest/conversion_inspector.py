"""Names the files that their converters could not read, and says why."""

import io
from pathlib import PurePath
from typing import Any

import pypdf
from haystack import Document, component
from haystack.dataclasses import ByteStream
from pypdf.errors import PyPdfError

from shiguan.errors import SourceError
from shiguan.ingest.file_types import DOCX, MARKDOWN, PDF, TEXT

# The other converters report what they leave out themselves.
_SILENT = frozenset(kind.mime_type for kind in (PDF, DOCX, MARKDOWN, TEXT))


@component
class ConversionInspector:
    """
    Compares what went into the converters with what came out.

    Haystack's converters log a file that they cannot read and go on. Stands behind them, drops documents without text,
    and names each such file in `skipped`: a damaged or locked PDF, one that is only pictures of pages, a broken DOCX, a
    text without words. Pages of a PDF without text, in a file that has others, give a warning.
    """

    @component.output_types(documents=list[Document], skipped=list[dict[str, str]], warnings=list[str])
    def run(self, documents: list[Document], sources: list[ByteStream]) -> dict[str, Any]:
        """
        Compare.

        :param documents: What the converters made.
        :param sources: What `SourceInspector` passed to them.
        :returns: The `documents` that hold text; `skipped` files; `warnings`.
        """
        readable = [document for document in documents if document.content and document.content.strip()]
        read = {document.meta.get("source_key") for document in readable}
        skipped = [
            SourceError(_name(source.meta), *_reason(source)).record
            for source in sources
            if source.mime_type in _SILENT and source.meta.get("source_key") not in read
        ]
        warnings = []
        pdfs = {source.meta.get("source_key") for source in sources if source.mime_type == PDF.mime_type}
        for document in readable:
            if document.meta.get("source_key") not in pdfs:
                continue
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
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError, NotImplementedError):
        return "the PDF is damaged", "Get another copy, or print it to a new PDF"
    if pages == 0:
        return "the PDF has no pages", "Get another copy"
    return f"none of the PDF's {pages} pages has text, so it is probably a scan", "Run text recognition (OCR) on it"
