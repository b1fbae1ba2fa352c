"""Keeps readers' judgements of answers by tenant: one per reader and receipt, the newest 100,000."""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, get_args

from shiguan.engine.receipts import Receipt
from shiguan.errors import RefusedError, StoreError
from shiguan.resources import check_free_space, utc_time
from shiguan.text.terminal import one_line

Kind = Literal["right", "wrong", "wrong_citation", "missing"]
LONGEST_NOTE = 2_000

_MOST = 100_000
_LONGEST_ANSWER, _LONGEST_QUOTE, _MOST_QUOTES = 4_000, 500, 5
_SCHEMA = """
CREATE TABLE IF NOT EXISTS feedback (number INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT, receipt TEXT, reader TEXT,
    content TEXT, UNIQUE (tenant, receipt, reader));
CREATE INDEX IF NOT EXISTS feedback_by_tenant ON feedback (tenant, number);
"""


class FeedbackFile:
    """Judgements in `<folder>/feedback.sqlite`, with question, answer and quotes, since receipts are removed sooner."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "feedback.sqlite"

    def give(self, receipt: Receipt, kind: str, note: str = "", *, reader: str) -> dict[str, Any]:
        """Keep a judgement, its note as one line without control characters, and return it as it is kept."""
        if kind not in get_args(Kind):
            raise RefusedError(
                f"`{one_line(kind)[:40]}` is not a kind of feedback. Expected {', '.join(get_args(Kind))}."
            )
        if len(note) > LONGEST_NOTE:
            raise RefusedError(f"The note has {len(note):,} characters. Expected at most {LONGEST_NOTE:,}; shorten it.")
        tenant, answer = receipt.tenant_id, receipt.answer.model_dump()
        quotes = dict.fromkeys((cited["source"], cited["quote"][:_LONGEST_QUOTE]) for cited in answer["citations"])
        content = {
            "receipt": receipt.id, "kind": kind, "note": one_line(note),
            "written": utc_time(),
            **{name: answer.get(name) for name in ("query", "mode", "status", "conversation_id")},
            "answer": str(answer.get("answer", ""))[:_LONGEST_ANSWER],
            "citations": [{"source": source, "quote": quote} for source, quote in list(quotes)[:_MOST_QUOTES]],
        }  # fmt: skip
        text = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace").decode()
        with self._open(writing=True) as run:
            run(
                "INSERT OR REPLACE INTO feedback (tenant, receipt, reader, content) VALUES (?, ?, ?, ?)",
                (tenant, receipt.id, reader, text),
            )
            run(
                "DELETE FROM feedback WHERE tenant = ? AND number <= "
                "(SELECT number FROM feedback WHERE tenant = ? ORDER BY number DESC LIMIT 1 OFFSET ?)",
                (tenant, tenant, _MOST),
            )
        kept: dict[str, Any] = json.loads(text)
        return kept

    def forget(self, tenant_id: str, *, receipt: str | None = None, days: int | None = None) -> int:
        """Delete a tenant's judgements of a receipt, or those older than some days, and return how many."""
        if not self.path.is_file():
            return 0
        given = (tenant_id, receipt, None if days is None else utc_time(days=-days))
        chosen = "DELETE FROM feedback WHERE tenant = ? AND (receipt = ? OR json_extract(content, '$.written') < ?)"
        with self._open() as run:
            return int(run(chosen, given).rowcount)

    @contextmanager
    def _open(self, *, writing: bool = False) -> Iterator[Any]:
        """Open a transaction and yield the function that executes its statements; writers wait for one another."""
        try:
            if writing:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                check_free_space(self.path.parent)
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            with closing(sqlite3.connect(self.path, timeout=10)) as database, database:
                with suppress(sqlite3.OperationalError):  # locked: another process sets the mode, or the next one will
                    database.execute("PRAGMA journal_mode = WAL")
                database.executescript(_SCHEMA)
                yield database.execute
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{self.path} cannot be used: {error}. Try again, or put a copy back.") from error
