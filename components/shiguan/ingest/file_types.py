"""Which kinds of file can be ingested, and what a file really is, whatever its name says."""

from pathlib import Path
from typing import NamedTuple

from shiguan.resources import read_table


class FileType(NamedTuple):
    """A kind of file: its MIME type, its name for people, and whether it is text."""

    mime_type: str
    name: str
    is_text: bool


EPUB = FileType("application/epub+zip", "EPUB", False)
PDF = FileType("application/pdf", "PDF", False)
DOCX = FileType("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "DOCX", False)
HTML = FileType("text/html", "HTML", True)
MARKDOWN = FileType("text/markdown", "Markdown", True)
TEXT = FileType("text/plain", "plain text", True)
JSONL = FileType("application/jsonl", "JSONL", True)
JSONL_GZ = FileType("application/gzip", "gzipped JSONL", False)

# Longer suffixes first.
_BY_SUFFIX = {
    ".jsonl.gz": JSONL_GZ,
    ".ndjson.gz": JSONL_GZ,
    ".jsonl": JSONL,
    ".ndjson": JSONL,
    ".epub": EPUB,
    ".pdf": PDF,
    ".docx": DOCX,
    ".html": HTML,
    ".htm": HTML,
    ".xhtml": HTML,
    ".md": MARKDOWN,
    ".markdown": MARKDOWN,
    ".txt": TEXT,
    ".text": TEXT,
}
SUPPORTED = ".epub, .pdf, .docx, .html, .md, .txt, .jsonl and .jsonl.gz"
"""The kinds that can be ingested, as a phrase."""

_TABLE = read_table(Path(__file__).with_name("file_types.yaml"))
_ADVICE: dict[str, str] = {suffix: advice for advice, suffixes in _TABLE["advice"].items() for suffix in suffixes}
_MAGIC = [(mark.encode("latin-1"), phrase) for mark, phrase in _TABLE["magic"].items()]
_HEAD = 1024


def type_by_name(name: str, mime_type: str | None = None) -> FileType | None:
    """Tell the kind by the file's name, or by a stated MIME type where the name has no known suffix."""
    lower = name.lower()
    for suffix, kind in _BY_SUFFIX.items():
        if lower.endswith(suffix):
            return kind
    return next((kind for kind in _BY_SUFFIX.values() if kind.mime_type == mime_type), None)


def advice(name: str) -> str:
    """Say what to do with a file that is not supported."""
    return _ADVICE.get(Path(name.lower()).suffix, f"Convert it to one of {SUPPORTED}")


def disagreement(data: bytes, kind: FileType) -> str | None:
    """Compare a file's first bytes with the kind that its name promises."""
    head = data[:_HEAD]
    found = next((phrase for mark, phrase in _MAGIC if head.startswith(mark)), None)
    if found is None and b"%PDF-" in head:
        found = "a PDF"
    if found is None and head.lstrip(b"\xef\xbb\xbf \t\r\n")[:14].lower().startswith((b"<!doctype html", b"<html")):
        found = "an HTML page"
    if head[60:68] == b"BOOKMOBI":
        found = "a Kindle book"
    expected = {
        EPUB: ("a zip archive", "an empty zip archive"),
        DOCX: ("a zip archive",),
        PDF: ("a PDF",),
        JSONL_GZ: ("a gzip archive",),
        HTML: ("an HTML page", None),
        # A text may begin with markup that it is about.
        MARKDOWN: ("an HTML page", None),
        TEXT: ("an HTML page", None),
        JSONL: (None,),
    }[kind]
    if found in expected:
        return None
    return found or "something else"
