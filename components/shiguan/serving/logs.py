"""What the server writes to its log: lines for people or JSON for programs, each with the id of its request."""

import json
import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from shiguan.text.terminal import printable

current_request_id: ContextVar[str | None] = ContextVar("current_request_id", default=None)
"""The id of the request that this code runs for."""


class _TextLines(logging.Formatter):
    """Lines for people, which cannot steer their terminal."""

    def __init__(self) -> None:
        super().__init__(logging.BASIC_FORMAT)

    def format(self, record: logging.LogRecord) -> str:
        line = printable(super().format(record))
        request_id = current_request_id.get()
        return line if request_id is None or request_id in line else f"{line} [request {request_id}]"


class JsonLines(logging.Formatter):
    """
    One JSON object a record: `time`, `level`, `logger`, `message`, `request_id`, and `error` where there is one.

    Of an exception its type and place are written, never its message, which may hold words of a question.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Write a record down."""
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
            line["error"] = {"type": type(error).__name__, "place": _place(error)}
        return json.dumps(line, ensure_ascii=True)


def _place(error: BaseException) -> str | None:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno}" if trace is not None else None


def log_handler(form: str) -> logging.Handler:
    """Make what writes lines to standard error; JSON has no level of debugging, which may quote texts."""
    handler = logging.StreamHandler(sys.stderr)
    if form == "json":
        handler.setLevel(logging.INFO)
        handler.setFormatter(JsonLines())
    else:
        handler.setFormatter(_TextLines())
    return handler


def write_logs(form: str) -> None:
    """Let all parts log in one form, in place of what `shiguan` set up; handlers of somebody else stay."""
    root = logging.getLogger()
    others = [handler for handler in root.handlers if type(handler) is not logging.StreamHandler]
    if form == "json" or len(others) < len(root.handlers):
        root.handlers[:] = [*others, log_handler(form)]
