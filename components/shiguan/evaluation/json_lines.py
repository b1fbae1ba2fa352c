"""Reads files of one JSON object a line, and says exactly which line is wrong."""

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shiguan.errors import RefusedError


def read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read a JSONL file, compressed by gzip or not."""
    if not path.is_file():
        raise RefusedError(f"{path} does not exist. Check the path.")
    number = 0
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield number, _object(line, f"{path}, line {number}")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise RefusedError(f"{path} cannot be read after line {number}: {error}. Restore the file.") from error


def field_of(row: dict[str, Any], names: tuple[str, ...], place: str) -> Any:
    """Take the first of several fields that a row has."""
    for name in names:
        if row.get(name) is not None:
            return row[name]
    wanted = " or ".join(f"`{name}`" for name in names)
    raise RefusedError(f"{place} has no {wanted}; its fields are {', '.join(row) or 'none'}. Add it to the line.")


def file_hash(path: Path) -> str:
    """Fingerprint a file, so that a result says what it was measured on."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _object(line: str, place: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"{place} is no JSON: {error}. Correct or remove the line.") from error
    if not isinstance(row, dict):
        raise RefusedError(f"{place} holds a {type(row).__name__}; expected an object. Correct the line.")
    return row
