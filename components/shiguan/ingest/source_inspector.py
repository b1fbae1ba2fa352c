"""Checks every file before anything reads it, and says in a sentence what is wrong."""

import email
import email.policy
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

from haystack import component
from haystack.dataclasses import ByteStream

from shiguan.errors import SourceError
from shiguan.ingest.file_types import (
    HTML,
    JSONL,
    MARKDOWN,
    TABLE,
    TEXT,
    FileType,
    declared_encoding,
    decode_text,
    identify,
    left_out_sentence,
    may_be_damaged,
    opened,
    type_by_name,
)

MAX_BYTES = 512 * 1024 * 1024
"""The largest file that is read."""

_SUPPORTED = ".epub, .pdf, .docx, .html, .md, .txt, .jsonl or .jsonl.gz"
_ADVICE: dict[str, str] = {suffix: advice for advice, suffixes in TABLE["advice"].items() for suffix in suffixes}
_MAGIC = [(mark.encode("latin-1"), phrase) for mark, phrase in TABLE["magic"].items()]
_HEAD = 1024
_MHTML = re.compile(rb"\s*(?:From|Snapshot-Content-Location|Subject|Date|MIME-Version|Content-Type):", re.IGNORECASE)
_MHTML_TYPE = re.compile(rb"^Content-Type:\s*(?:multipart/|text/html)", re.IGNORECASE | re.MULTILINE)
# In the order in which they are left out; the group is what stays. A Chinese 《title》 is in no kana.
_AOZORA = {
    "notation of the text": re.compile(
        r"^-{20,}\r?\n【テキスト中に現れる記号について】.{0,4000}?^-{20,}\r?\n()", re.M | re.S
    ),
    "codes of terminals": re.compile(r"(?:\x1b\[[0-9;]{0,20}[A-Za-z]|[^\n]\x08)()"),  # a letter struck over is bold
    "remarks on type": re.compile(r"［＃[^］\n]{0,200}］()"),
    "ruby readings": re.compile(
        r"(?:[｜|](?=[^《》｜|\n]{1,40}《))?((?<=[｜|])[^《》｜|\n]{1,40}|[\u3400-\u9fff々〆ヶ\uf900-\ufaff\U00020000-\U0003ffff])《[\u3040-\u30ff\u30fc・]{1,30}》"
    ),
}
# A character that Shift_JIS lacks, by its place in JIS X 0213 (plane, row, cell) or in Unicode.
_NAMED_CHARACTER = re.compile(
    r"※［＃[^［］\n]{0,99}(?:(?<!\d)([12])-(\d{1,2})-(\d{1,2})|U\+([0-9A-F]{4,5})(?:、[^［］\n]{0,20})?)］"
)
_AGAIN = "Copy or download the file again"


@component
class SourceInspector:
    """
    Turns paths and byte streams into typed, checked sources, and explains those that cannot be read.

    It comes first in the index pipeline, before the file router. Missing and empty files, folders, wrong extensions,
    unknown kinds, text in an uncertain encoding and files above the limit are left out and listed in `skipped`; the
    rest goes on. Text in an encoding other than UTF-8 is recoded, with a warning, so that every converter reads UTF-8.

    The meta of every source that goes on has `file_path` as given and `source_key`, by which `SourceStamper` recognizes
    the file: the resolved absolute path, or the name of a byte stream.

    Example:
    ```python
    SourceInspector().run(["missing.epub"])["skipped"]
    # [{"source": "missing.epub", "cause": "there is no such file", "next_step": "Check the path"}]
    ```
    """

    tenant_role = "inspects"

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
            try:
                stream = self._inspect(source, warnings)
            except SourceError as error:
                skipped.append(error.record)
                continue
            if stream.meta["source_key"] in seen:
                warnings.append(f"{identify(source)[1]}: listed twice; read once.")
                continue
            seen.add(stream.meta["source_key"])
            checked.append(stream)
        return {"sources": checked, "skipped": skipped, "warnings": warnings}

    def _inspect(self, source: str | Path | ByteStream, warnings: list[str]) -> ByteStream:
        path, name, meta = identify(source)
        stream = source if isinstance(source, ByteStream) else None
        if stream is not None and not path:
            raise SourceError(name, "the byte stream has no name", 'Set meta["file_name"] to name the source')
        meta.pop("encoding", None)
        # A byte stream that has only a name is recognized by that.
        unplaced = "\0" in path or (stream is not None and not stream.meta.get("file_path"))
        key = path if unplaced else str(Path(path).resolve())
        kind = type_by_name(path, stream.mime_type if stream else None)
        with opened(source, name) as file:
            if kind is None:
                suffix = Path(name).suffix
                what = f"files of the kind `{suffix}` cannot be read" if suffix else "its name has no known ending"
                advice = _ADVICE.get(suffix.lower(), f"Convert it to one of {_SUPPORTED}")
                raise SourceError(name, what, advice)
            size = file.seek(0, os.SEEK_END)
            if size > MAX_BYTES:
                raise SourceError(name, f"the file has {size:,} bytes, the limit is {MAX_BYTES:,}", "Split it")
            file.seek(0)
            data = file.read()
        if not data.strip(b" \t\r\n\0"):
            raise SourceError(name, "the file is empty" if not data else "the file holds no characters", _AGAIN)
        _check_content(data, name, kind)
        stated = ""
        if kind is HTML and _MHTML.match(data[:_HEAD]) and _MHTML_TYPE.search(data[: 8 * _HEAD]):
            data, stated = _page_of_archive(data, name, warnings)
        if kind.is_text:
            data, left_out = _as_utf8(data, name, kind, stated, warnings)
            meta |= {"left_out": dict(left_out)} if left_out else {}
        return ByteStream(data, meta={**meta, "file_path": path, "source_key": key}, mime_type=kind.mime_type)


def _check_content(data: bytes, name: str, kind: FileType) -> None:
    head = data[:_HEAD]
    found = next((phrase for mark, phrase in _MAGIC if head.startswith(mark)), None)
    if found is None and b"%PDF-" in head:
        found = "a PDF"
    if found is None and head.lstrip(b"\xef\xbb\xbf \t\r\n")[:14].lower().startswith((b"<!doctype html", b"<html")):
        found = "an HTML page"
    if head[60:68] == b"BOOKMOBI":
        found = "a Kindle book"
    if found not in kind.content:
        cause = f"its name says {kind.name}, but its content is {found or 'something else'}"
        raise SourceError(name, cause, "Give it the ending that fits its content, or get the right file")


def _as_utf8(data: bytes, name: str, kind: FileType, stated: str, warnings: list[str]) -> tuple[bytes, Counter[str]]:
    left_out: Counter[str] = Counter()
    if kind is JSONL and not data.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        return data, left_out  # one bad row must not cost the others: JSONLToDocument reads row by row
    decoded = decode_text(data, declared_encoding(data) or stated if kind is HTML else "")
    if decoded is None and 0 < (nul := data.count(b"\0")) <= may_be_damaged(data):
        warnings.append(f"{name}: {nul:,} NUL characters were removed.")
        decoded = decode_text(data.replace(b"\0", b""))
    if decoded is None or "\0" in decoded.text:
        cause = (
            "it holds NUL bytes, so it is not text" if b"\0" in data else "its encoding is not UTF-8 and not certain"
        )
        raise SourceError(name, cause, "Save it as UTF-8 text")
    text = decoded.text
    if decoded.damaged:
        line = text.count("\n", 0, text.find("\ufffd")) + 1
        places = f"{decoded.damaged:,} places are not {decoded.encoding} and are shown as \ufffd"
        warnings.append(f"{name}: {places}, the first in line {line:,}.")
    if decoded.encoding != "utf-8":
        warnings.append(f"{name}: read as {decoded.encoding}, which was guessed; save it as UTF-8 if words look wrong.")
    if kind in (TEXT, MARKDOWN):
        text, left_out = _without_aozora(text if "\n" in text else text.replace("\r", "\n"))
        warnings.extend([left_out_sentence(name, left_out)] if left_out else [])
    return text.encode("utf-8", "replace"), left_out


def _without_aozora(text: str) -> tuple[str, Counter[str]]:
    """Leave out the notation of Aozora Bunko, a Japanese archive: readings 《…》, remarks ［＃…］ on type."""
    left_out: Counter[str] = Counter()
    text = _NAMED_CHARACTER.sub(_character, text)
    for kind, pattern in _AOZORA.items():

        def counted(found: re.Match[str], kind: str = kind) -> str:
            left_out[kind] += len(found[0]) - len(found[1] or "")
            return found[1] or ""

        text = pattern.sub(counted, text)
    return text, left_out


def _character(named: re.Match[str]) -> str:
    """Return the character that a remark names, or the remark where there is none."""
    plane, row, cell, code = named.groups()
    if code:
        character = chr(int(code, 16))
    else:
        place = bytes(0xA0 + min(int(number), 95) for number in (row, cell))
        character = (b"\x8f" * (plane == "2") + place).decode("euc_jis_2004", "ignore")
    return character if len(character) == 1 and character.isprintable() else named[0]


def _page_of_archive(data: bytes, name: str, warnings: list[str]) -> tuple[bytes, str]:
    """Take the page out of a web archive (MHTML), as browsers save pages, and the encoding that this states for it."""
    try:
        message = email.message_from_bytes(data, policy=email.policy.default)
        pages = [part for part in message.walk() if part.get_content_type() == "text/html"]
        found = pages[0].get_payload(decode=True) if pages else None
        content, stated = found if isinstance(found, bytes) else b"", pages[0].get_content_charset("") if pages else ""
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise SourceError(name, "the web archive is damaged", "Save the page again") from error
    if not content.strip():
        raise SourceError(name, "the web archive holds no page", "Save the page again, as HTML")
    if len(pages) > 1:
        warnings.append(f"{name}: {len(pages) - 1:,} frames of the page were not read.")
    return content, stated
