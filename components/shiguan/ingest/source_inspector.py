"""Looks at every file before anything reads it, and says what is wrong in a sentence."""

import re
from pathlib import Path
from typing import Any

from haystack import component
from haystack.dataclasses import ByteStream

from shiguan.errors import SourceError
from shiguan.ingest.archives import SafeArchive
from shiguan.ingest.file_types import (
    DOCX,
    HTML,
    JSONL,
    SUPPORTED,
    FileType,
    advice,
    decode_text,
    disagreement,
    type_by_name,
)

_CHARSET = re.compile(rb"(?:charset|encoding)\s*=\s*[\"']?\s*([A-Za-z0-9_-]{2,20})")
_AGAIN = "Copy or download the file again"


@component
class SourceInspector:
    """
    Turns paths and byte streams into typed, checked sources, and explains those that cannot be read.

    Stands first in the index pipeline, before the file router. Missing and empty files, folders, wrong extensions,
    unknown kinds, text in no certain encoding and files above the limit are left out and named in `skipped`; the rest
    goes on. Text in another encoding than UTF-8 is recoded, with a warning, so that every converter reads UTF-8.

    Every source that goes on carries in its meta `file_path` as given and `source_key`, by which `SourceStamper` knows
    the file again: the resolved absolute path, or the name of a byte stream.

    Example:
    ```python
    SourceInspector().run(["missing.epub"])["skipped"]
    # [{"source": "missing.epub", "cause": "there is no such file", "next_step": "Check the path"}]
    ```
    """

    tenant_role = "inspects"

    def __init__(self, max_bytes: int = 512 * 1024 * 1024) -> None:
        """
        Keep the limit.

        :param max_bytes: Files larger than this are left out.
        :raises ValueError: If the limit is not positive.
        """
        if max_bytes < 1:
            raise ValueError(f"`max_bytes` must be positive, got {max_bytes}.")
        self.max_bytes = max_bytes

    @component.output_types(sources=list[ByteStream], skipped=list[dict[str, str]], warnings=list[str])
    def run(self, sources: list[str | Path | ByteStream]) -> dict[str, Any]:
        """
        Inspect files.

        :param sources: Paths, or byte streams with `file_path` or `file_name` in their meta.
        :returns: `sources` as byte streams with their MIME type; `skipped`, one `{"source", "cause", "next_step"}` for
            each that was left out; `warnings`.
        """
        checked: list[ByteStream] = []
        skipped: list[dict[str, str]] = []
        warnings: list[str] = []
        seen: set[str] = set()
        for source in sources:
            name = _name(source)
            try:
                stream = self._inspect(source, name, warnings)
            except SourceError as error:
                skipped.append(error.record)
                continue
            if stream.meta["source_key"] in seen:
                warnings.append(f"{name}: named twice; read once.")
                continue
            seen.add(stream.meta["source_key"])
            checked.append(stream)
        return {"sources": checked, "skipped": skipped, "warnings": warnings}

    def _inspect(self, source: str | Path | ByteStream, name: str, warnings: list[str]) -> ByteStream:
        if isinstance(source, ByteStream):
            data = source.data
            path = str(source.meta.get("file_path") or source.meta.get("file_name") or "")
            if not path:
                raise SourceError(name, "the byte stream has no name", 'Set meta["file_name"] to name the source')
            meta = {key: value for key, value in source.meta.items() if key not in ("file_name", "encoding")}
            kind = type_by_name(path, source.mime_type)
            key = str(Path(path).resolve()) if source.meta.get("file_path") and "\0" not in path else path
        else:
            path, meta = str(source), {}
            kind = type_by_name(path)
            data = self._read(Path(path), name, kind)
            key = str(Path(path).resolve())
        if kind is None:
            suffix = Path(name).suffix
            what = f"files of the kind `{suffix}` cannot be read" if suffix else "its name has no known ending"
            raise SourceError(name, f"{what}; readable are {SUPPORTED}", advice(name))
        if not data.strip(b" \t\r\n\0"):
            raise SourceError(name, "the file is empty" if not data else "the file holds no characters", _AGAIN)
        if len(data) > self.max_bytes:
            raise _too_large(name, len(data), self.max_bytes)
        _check_content(data, name, kind)
        if kind.is_text:
            data = _as_utf8(data, name, kind, warnings)
        return ByteStream(data, meta={**meta, "file_path": path, "source_key": key}, mime_type=kind.mime_type)

    def _read(self, path: Path, name: str, kind: FileType | None) -> bytes:
        try:
            if path.is_dir():
                raise SourceError(name, "it is a folder", "Name the files in it")
            if not path.exists():
                raise SourceError(name, "there is no such file", "Check the path")
            if not path.is_file():
                raise SourceError(name, "it is no ordinary file", "Copy its content to a file")
            size = path.stat().st_size
            if kind is not None and size > self.max_bytes:
                raise _too_large(name, size, self.max_bytes)
            return path.read_bytes() if kind is not None else b""
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise SourceError(name, f"it cannot be opened ({reason})", "Check the path and its permissions") from error


def _name(source: str | Path | ByteStream) -> str:
    if isinstance(source, ByteStream):
        source = str(source.meta.get("file_path") or source.meta.get("file_name") or "(bytes without a name)")
    return Path(source).name or str(source)


def _too_large(name: str, size: int, limit: int) -> SourceError:
    return SourceError(
        name,
        f"the file has {size:,} bytes, the limit is {limit:,}",
        "Split it, or raise `max_bytes` of SourceInspector in index.yml",
    )


def _check_content(data: bytes, name: str, kind: FileType) -> None:
    other = disagreement(data, kind)
    if other is not None:
        raise SourceError(
            name,
            f"its name says {kind.name}, but its content is {other}",
            "Give it the ending that fits its content, or get the right file",
        )
    if kind is DOCX:
        with SafeArchive(data, source=name) as archive:
            if archive.find("word/document.xml") is None:
                raise SourceError(name, "it is a zip archive, but no DOCX", "Save it as DOCX in a word processor")


def _as_utf8(data: bytes, name: str, kind: FileType, warnings: list[str]) -> bytes:
    if kind is JSONL and not data.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        return data  # one bad row must not cost the others: JSONLToDocument reads row by row
    declared = _CHARSET.search(data[:2048]) if kind is HTML else None
    decoded = decode_text(data, declared[1].decode("ascii") if declared else None)
    if decoded is None:
        cause = "it holds NUL bytes, so it is no text" if b"\0" in data else "its encoding is not UTF-8 and not certain"
        raise SourceError(name, cause, "Save it as UTF-8 text")
    if "\0" in decoded.text:
        raise SourceError(name, "it holds NUL bytes, so it is no text", "Save it as UTF-8 text")
    if decoded.encoding != "utf-8":
        warnings.append(f"{name}: read as {decoded.encoding}, which was guessed; save it as UTF-8 if words look wrong.")
    return decoded.text.encode("utf-8", "replace")
