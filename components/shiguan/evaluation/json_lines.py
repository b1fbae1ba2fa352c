"""Reads and writes JSON lines, and fingerprints values."""

import gzip
import json
import random
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from shiguan.errors import RefusedError, shown
from shiguan.resources import object_of, text_hash, write_whole


def read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield number and object of each line of a file, gzipped or not; an error names the line."""
    if not path.is_file():
        raise RefusedError(f"{path} does not exist. Check the path.")
    number = 0
    try:
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield number, _object(line, f"{path}, line {number}")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise RefusedError(f"{path} cannot be read after line {number}: {error}. Restore the file.") from error


def field_of(row: dict[str, Any], names: tuple[str, ...], place: str) -> Any:
    """Return the first of several fields that is not null; a row without any is refused."""
    for name in names:
        if row.get(name) is not None:
            return row[name]
    wanted = " or ".join(f"`{name}`" for name in names)
    raise RefusedError(f"{place} has no {wanted}; its fields are {', '.join(row) or 'none'}. Add it to the line.")


def name_of(row: dict[str, Any], name: str, place: str) -> str:
    """Return a field that names something, as a text or a whole number."""
    value = field_of(row, (name,), place)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RefusedError(f"{place}: `{name}` must be a text or a whole number, got {shown(value)}. Correct the line.")
    return str(value)


def unique_rows(path: Path, what: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield place, id and object of every line of a set; repeated ids and an empty file are refused."""
    seen: set[str] = set()
    for number, row in read_json_lines(path):
        place = f"{path}, line {number}"
        name = name_of(row, "id", place)
        if name in seen:
            raise RefusedError(f"{place} repeats the id `{name}`. Give every {what} its own id.")
        seen.add(name)
        yield place, name, row
    if not seen:
        raise RefusedError(f"{path} has no {what}s. Give a file with at least one.")


def write_json_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())


def write_review(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write one row in ten for a person to review, unless the file is there; the same ones every time."""
    if not path.exists():
        drawn = random.Random(0).sample(rows, min(len(rows), max(1, round(len(rows) / 10))))  # noqa: S311
        write_json_lines(path, ({"id": row["id"], "person": "", **row} for row in drawn))


def fingerprint(value: Any) -> str:
    """Return a short hash of a JSON value."""
    return text_hash(json.dumps(value, sort_keys=True, ensure_ascii=False))[:16]


def _object(line: str, place: str) -> dict[str, Any]:
    try:
        row = json.loads(line, object_pairs_hook=object_of)
        json.dumps(row, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"{place} is not JSON: {error}. Correct or remove the line.") from error
    if not isinstance(row, dict):
        raise RefusedError(f"{place} holds a {type(row).__name__}; expected an object. Correct the line.")
    return row
