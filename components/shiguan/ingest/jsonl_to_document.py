"""Converts rows of JSONL files to documents, one each."""

import gzip
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

from haystack import Document, component
from haystack.dataclasses import ByteStream

from shiguan.errors import SourceError
from shiguan.ingest.archives import MAX_RATIO, MAX_UNPACKED_BYTES, RATIO_FLOOR_BYTES
from shiguan.ingest.file_types import Converter, Reports
from shiguan.tenants import odd_value
from shiguan.text.passages import ENGINE_META, SharedDocument
from shiguan.text.works import plain_line

_SURROGATE = re.compile("[\ud800-\udfff]")
_LONGEST_ROW = 16 * 1024 * 1024
_DEEPEST_META = 20
# At most this many rows of a file are listed in `skipped`, the rest as a number.
_REPORTED = 100
_KEYS = frozenset(("id", "title", "text", "meta"))
# So many of the keys that are not read are named, each cut to this length.
_NAMED, _LONGEST_KEY = 10, 60


@component
class JSONLToDocument(Converter):
    """
    Reads `.jsonl` and `.jsonl.gz` files with one object `{"id", "title", "text", "meta"}` per line.

    Every row is a source of its own: its id is kept as `meta.record_id`, its text unchanged, and the keys of its `meta`
    under their own names, so that filters find them; a key of the engine's is renamed to `user_<name>`. A row that
    cannot be used, or is longer than 16 MiB, is listed with its line in `skipped`, at most a hundred per file, and the
    others are read; a compressed file that is damaged, or unpacks beyond 512 MiB or a hundredfold, is refused whole.

    Example:
    ```python
    source = ByteStream(b'{"id": "7", "title": "An Lushan", "text": "He rebelled."}', meta={"file_name": "a.jsonl"})
    JSONLToDocument().run([source])["documents"][0].meta["record_id"]   # "7"
    ```
    """

    def _read(self, source: ByteStream, name: str, reports: Reports) -> list[Document]:
        base = {"file_path": name, **source.meta, "source": name}
        documents: list[Document] = []
        faults: list[SourceError] = []
        renamed: Counter[str] = Counter()
        unread: Counter[str] = Counter()
        lines_of: dict[str, int] = {}
        for number, line in enumerate(_lines(source.data, name), start=1):
            try:
                row = _parse(line)
                if row is None:
                    continue
                record = _record_id(row)
                if record in lines_of:
                    cause = f"its id `{record}` is that of line {lines_of[record]}"
                    raise _RowError(cause, "Give every row an id of its own")
                meta = _meta(row, renamed)
            except _RowError as fault:
                cause, next_step = fault.args
                faults.append(SourceError(name, f"line {number}: {cause}", next_step))
                continue
            unread.update(sorted(row.keys() - _KEYS))
            meta |= base
            if record:
                meta["record_id"], lines_of[record] = record, number
            else:
                meta["line"] = number
            if title := (row.get("title") or "").strip():
                meta["title"] = title
            documents.append(SharedDocument(content=row["text"], meta=meta))
        if not documents and not faults:
            raise SourceError(name, "the file holds no rows", "Write one object a line")
        if len(faults) > _REPORTED:
            cause = f"{len(faults) - _REPORTED:,} more rows could not be used"
            faults[_REPORTED:] = [SourceError(name, cause, "Mend the rows named here first and run again")]
        reports.skipped.extend(fault.record for fault in faults)
        reports.warnings.extend(
            f"{name}: {count:,} rows have `{key}`, a name that is ours, in their meta; it is kept as `user_{key}`."
            for key, count in sorted(renamed.items())
        )
        if unread:
            several = ", ".join(
                f"`{plain_line(key, _LONGEST_KEY)}` ({count:,} rows)" for key, count in unread.most_common(_NAMED)
            )
            more = f" and {len(unread) - _NAMED:,} more" if len(unread) > _NAMED else ""
            reports.warnings.append(
                f"{name}: keys that are not read: {several}{more}; what belongs to a row goes into `meta`."
            )
        return documents


def _lines(data: bytes, source: str) -> Iterator[bytes]:
    if not data.startswith(b"\x1f\x8b"):
        yield from io.BytesIO(data)
        return
    total = 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            while line := file.readline(_LONGEST_ROW + 1):
                total += len(line)
                if total > MAX_UNPACKED_BYTES or (total > RATIO_FLOOR_BYTES and total > MAX_RATIO * len(data)):
                    cause = f"it unpacks to more than {MAX_UNPACKED_BYTES // 2**20} MiB or a hundredfold"
                    raise SourceError(source, cause, "Split it into smaller files")
                if len(line) > _LONGEST_ROW:
                    cause = f"a row is longer than {_LONGEST_ROW:,} bytes"
                    raise SourceError(source, cause, "Split it into several rows")
                yield line
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(source, f"the gzip archive is damaged ({error})", "Copy or download it again") from error


class _RowError(Exception):
    """A row that cannot be used: what is wrong with it, and what to do next."""


def _parse(line: bytes) -> dict[str, Any] | None:
    if len(line) > _LONGEST_ROW:
        raise _RowError(f"the row is longer than {_LONGEST_ROW:,} bytes", "Split its text into several rows")
    if not line.strip():
        return None
    try:
        row = json.loads(line.decode("utf-8-sig"), parse_constant=_refuse_constant, object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        raise _RowError("it is not UTF-8", "Save the file as UTF-8") from error
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "beyond what JSON readers take"
        raise _RowError(f"it is not valid JSON ({reason})", "Write one JSON object a line") from error
    if not isinstance(row, dict):
        raise _RowError("it is JSON, but not an object", 'Write an object such as {"id": …, "text": …}')
    text = row.get("text")
    if not isinstance(text, str):
        fields = ", ".join(f"`{plain_line(key, _LONGEST_KEY)}`" for key in sorted(row)[:_NAMED])
        cause = (
            "its `text` is not a string" if "text" in row else f"it has no `text`; its fields are {fields or 'none'}"
        )
        raise _RowError(cause, "Name the field that holds its text `text`, and make it a string")
    if not text.strip():
        raise _RowError("its `text` is empty", "Fill in the text or remove the row")
    if "\0" in text:
        raise _RowError("its `text` holds NUL characters", "Remove them")
    if not isinstance(row.get("title"), str | None):
        raise _RowError("its `title` is not a string", "Use a string")
    # In UTF-8 they can only come from an escape.
    if b"\\u" in line and _SURROGATE.search(json.dumps(row, ensure_ascii=False)):
        raise _RowError("it holds half of a character (a lone surrogate such as \\ud83d)", "Write whole characters")
    return row


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise _RowError(f"it has `{plain_line(twice, _LONGEST_KEY)}` twice", "Keep one of the two")
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"JSON has no {name}")


def _record_id(row: dict[str, Any]) -> str:
    value = "" if row.get("id") is None else row["id"]
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _RowError("its `id` is neither a string nor a number", "Use a string")
    try:
        return str(value)
    except ValueError as error:
        raise _RowError("its `id` is a number of thousands of digits", "Use a string") from error


def _meta(row: dict[str, Any], renamed: Counter[str]) -> dict[str, Any]:
    given = {} if row.get("meta") is None else row["meta"]
    if not isinstance(given, dict):
        raise _RowError("its `meta` is not an object", "Write an object, or leave it out")
    level: list[Any] = [given]
    for _ in range(_DEEPEST_META):
        level = [inner for outer in level for inner in (outer.values() if isinstance(outer, dict) else outer)]
        odd = next(filter(None, map(odd_value, level)), "")
        if odd:
            raise _RowError(f"its `meta` holds {odd}", "Write it as a text")
        level = [inner for inner in level if isinstance(inner, dict | list)]
    if level:
        raise _RowError(f"its `meta` is nested more than {_DEEPEST_META} levels deep", "Write it flat")
    renamed.update(given.keys() & ENGINE_META)
    return {f"user_{key}" if key in ENGINE_META else key: value for key, value in given.items()}
