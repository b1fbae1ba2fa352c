"""Keeps what each question gave as soon as it is there, so that a run that was killed goes on where it stopped."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from filelock import FileLock, Timeout

from shiguan.errors import RefusedError
from shiguan.resources import write_json

_RUN = "run.json"
_RECORDS = "questions.jsonl"


class RunStore:
    """
    The folder of one evaluation run.

    `run.json` says what the run is; `questions.jsonl` has a line for each question that is done. A record is on the
    disk before the next question begins, and a line that was cut off by a crash is dropped when the folder is opened
    again. A folder belongs to one configuration: numbers of two must never mix in one file.
    """

    def __init__(self, folder: Path, configuration: dict[str, Any]) -> None:
        """Name the folder; nothing is touched yet."""
        self.folder = folder
        self.configuration = configuration
        self.records: dict[str, dict[str, Any]] = {}
        self._lock = FileLock(str(folder / ".lock"))

    def __enter__(self) -> Self:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except Timeout as error:
            raise RefusedError(
                f"Another process is writing to {self.folder}. Wait until it is done, or name another `--output`."
            ) from error
        except OSError as error:
            raise RefusedError(f"{self.folder} cannot be written: {error}. Name another `--output`.") from error
        try:
            self._check_configuration()
            self.records = dict(self._read_records())
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, *raised: object) -> None:
        self._lock.release()

    def add(self, question_id: str, record: dict[str, Any]) -> None:
        """Keep what a question gave; it is on the disk when this returns."""
        line = json.dumps({"id": question_id, **record}, ensure_ascii=False) + "\n"
        with (self.folder / _RECORDS).open("ab") as file:
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())
        self.records[question_id] = record

    def _check_configuration(self) -> None:
        path = self.folder / _RUN
        configuration = json.loads(json.dumps(self.configuration))
        if not path.exists():
            if (self.folder / _RECORDS).exists():
                raise RefusedError(f"{self.folder} has {_RECORDS} but no {_RUN}. Name another `--output`.")
            write_json(path, configuration)
            return
        try:
            earlier = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise RefusedError(f"{path} cannot be read: {error}. Remove it, or name another `--output`.") from error
        if earlier != configuration:
            changed = ", ".join(_differences(earlier, configuration))
            raise RefusedError(
                f"{self.folder} holds a run with another configuration: {changed}. Name another `--output`, or remove "
                "the folder to measure anew."
            )

    def _read_records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        path = self.folder / _RECORDS
        if not path.exists():
            return
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            # The process was killed while it wrote this line; its question is asked again.
            with path.open("r+b") as file:
                file.truncate(whole)
        for number, line in enumerate(content[:whole].splitlines(), start=1):
            try:
                record = json.loads(line)
                yield str(record.pop("id")), record
            except (ValueError, AttributeError, KeyError) as error:
                raise RefusedError(
                    f"{path}, line {number} is broken: {error}. Remove the line to ask its question again."
                ) from error


def _differences(earlier: Any, now: Any, name: str = "") -> Iterator[str]:
    if isinstance(earlier, dict) and isinstance(now, dict):
        for key in sorted({*earlier, *now}):
            if earlier.get(key) != now.get(key):
                yield from _differences(earlier.get(key), now.get(key), f"{name}.{key}" if name else key)
        return
    yield f"`{name}` was {_short(earlier)} and is {_short(now)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:39] + "…"
