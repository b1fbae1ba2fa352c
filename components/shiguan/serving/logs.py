"""What the server writes to its log: lines for people or JSON for programs, each with the id of its request."""

import json
import logging
import sys
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from shiguan.text.terminal import printable

current_request_id: ContextVar[str | None] = ContextVar("current_request_id", default=None)


class _TextLines(logging.Formatter):
    """Lines for people, which cannot steer their terminal."""

    def format(self, record: logging.LogRecord) -> str:
        line, request_id = printable(super().format(record)), current_request_id.get()
        return line if request_id is None or request_id in line else f"{line} [request {request_id}]"


class JsonLines(logging.Formatter):
    """One JSON object a record; of an exception its type and place, never its message, which may quote a question."""

    def format(self, record: logging.LogRecord) -> str:
        message, error = record.getMessage(), record.exc_info[1] if record.exc_info else None
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            # Below its first line the event loop quotes the exception of a task.
            "message": message if error is None else message.partition("\n")[0],
            "request_id": current_request_id.get(),
        }
        if error is not None:
            frames = traceback.extract_tb(error.__traceback__)
            place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else None
            line["error"] = {"type": type(error).__name__, "place": place}
        return json.dumps(line)


def log_handler(form: str) -> logging.Handler:
    """Make what writes lines to standard error; JSON has no level of debugging, which may quote texts."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.INFO if form == "json" else logging.NOTSET)
    handler.setFormatter(JsonLines() if form == "json" else _TextLines(logging.BASIC_FORMAT))
    return handler


def write_logs(form: str) -> None:
    """Let all parts log in one form, in place of what `shiguan` set up; handlers of somebody else stay."""
    root = logging.getLogger()
    others = [handler for handler in root.handlers if type(handler) is not logging.StreamHandler]
    if form == "json" or len(others) < len(root.handlers):
        root.handlers[:] = [*others, log_handler(form)]
