"""Conversations in one SQLite file beside the embedded library."""

import json
import os
import secrets
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from shiguan.conversations import (
    LONGEST_TITLE,
    Conversation,
    ConversationStore,
    SummaryNode,
    Turn,
    kept_turn,
    read_nodes,
    read_turns,
)
from shiguan.errors import StoreError, StoreFormatError, StoreFullError, StoreLockedError
from shiguan.resources import data_folder
from shiguan.serialization import Serializable
from shiguan.text.works import plain_line

_FORMAT = 1
_PATIENCE = 10.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS conversations (tenant TEXT, conversation TEXT, birth TEXT, title TEXT, created REAL,
    updated REAL, last INTEGER, PRIMARY KEY (tenant, conversation));
CREATE TABLE IF NOT EXISTS turns (tenant TEXT, conversation TEXT, number INTEGER, created REAL, content TEXT,
    PRIMARY KEY (tenant, conversation, number));
CREATE TABLE IF NOT EXISTS nodes (tenant TEXT, conversation TEXT, level INTEGER, first_turn INTEGER, last_turn INTEGER,
    text TEXT, opens INTEGER, embedding BLOB, PRIMARY KEY (tenant, conversation, level, first_turn));
CREATE INDEX IF NOT EXISTS turns_by_age ON turns (created);
"""
_WHOSE = "tenant = :tenant AND conversation = :conversation"
_HEADS = """
SELECT conversation, title, created, updated,
    (SELECT COUNT(*) FROM turns WHERE tenant = :tenant AND conversation = conversations.conversation), birth
    FROM conversations WHERE tenant = :tenant
"""


class SQLiteConversationStore(Serializable, ConversationStore):
    """
    Keeps the conversations of the embedded deployment in `<path>/conversations.sqlite`, made at the first use.

    What a method has written survives the end of the process at any moment. Writers wait for one another: of two turns
    at once both are kept, one after the other. Deleted data are overwritten in the file.
    """

    def __init__(self, path: str | None = None, *, retention_days: float | None = None) -> None:
        """Describe the store in a folder, by default SHIGUAN_DATA_DIR or the user's; nothing is opened yet."""
        super().__init__(retention_days)
        self.path = path
        self._lock = threading.RLock()
        self._database: sqlite3.Connection | None = None

    @property
    def file(self) -> Path:
        """The database, as the parameters and the environment have it now."""
        return data_folder(self.path).expanduser().resolve() / "conversations.sqlite"

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None

    def append(self, tenant_id: str, conversation_id: str, turn: Turn) -> int:
        self._sweep()
        kept = kept_turn(turn)
        with self._writing(tenant_id, conversation_id) as run:
            run(
                "INSERT OR IGNORE INTO conversations VALUES (:tenant, :conversation, :birth, :title, :now, :now, 0)",
                birth=secrets.token_hex(8),
                title=plain_line(turn.question, LONGEST_TITLE),
                now=kept["created"],
            )
            ((number,),) = run(
                "UPDATE conversations SET last = last + 1, updated = :now WHERE {whose} RETURNING last",
                now=kept["created"],
            )
            run(
                "INSERT INTO turns VALUES (:tenant, :conversation, :number, :now, :content)",
                number=number,
                now=kept["created"],
                content=json.dumps(kept | {"number": number}, ensure_ascii=False),
            )
            if self.retention_days:
                self._trim(run)
        return int(number)

    def find(self, tenant_id: str, conversation_id: str) -> Conversation | None:
        with self._reading(tenant_id, conversation_id) as run:
            rows = run(_HEADS + "AND conversation = :conversation")
        return Conversation(*rows[0]) if rows else None

    def turns(self, tenant_id: str, conversation_id: str, *, last: int | None = None, after: int = 0) -> list[Turn]:
        with self._reading(tenant_id, conversation_id) as run:
            rows = run(
                "SELECT content FROM turns WHERE {whose} AND number > :after ORDER BY number DESC LIMIT :most",
                after=after,
                most=-1 if last is None else last,
            )
        return read_turns(_decoded(content) for (content,) in reversed(rows))

    def conversations(self, tenant_id: str) -> list[Conversation]:
        with self._reading(tenant_id) as run:
            return [Conversation(*row) for row in run(_HEADS + "ORDER BY updated DESC, conversation")]

    def rename(self, tenant_id: str, conversation_id: str, title: str) -> bool:
        with self._writing(tenant_id, conversation_id) as run:
            return bool(
                run(
                    "UPDATE conversations SET title = :title WHERE {whose} RETURNING 1",
                    title=plain_line(title, LONGEST_TITLE),
                )
            )

    def delete(self, tenant_id: str, conversation_id: str) -> bool:
        with self._writing(tenant_id, conversation_id) as run:
            run("DELETE FROM turns WHERE {whose}")
            run("DELETE FROM nodes WHERE {whose}")
            gone = bool(run("DELETE FROM conversations WHERE {whose} RETURNING 1"))
        self._forget()
        return gone

    def nodes(self, tenant_id: str, conversation_id: str, *, vectors: bool = True) -> list[SummaryNode]:
        with self._reading(tenant_id, conversation_id) as run:
            rows = run(
                "SELECT level, first_turn, last_turn, text, opens, CASE WHEN :vectors THEN embedding ELSE X'' END "
                "FROM nodes WHERE {whose} ORDER BY level, first_turn",
                vectors=vectors,
            )
        return read_nodes(rows)

    def add_node(self, tenant_id: str, conversation_id: str, node: SummaryNode, *, birth: str) -> bool:
        with self._writing(tenant_id, conversation_id) as run:
            added = run(
                "INSERT OR IGNORE INTO nodes SELECT tenant, conversation, :level, :first, :last, :text, :opens, "
                ":vector FROM conversations WHERE {whose} AND birth = :birth AND EXISTS "
                "(SELECT 1 FROM turns WHERE {whose} AND number = :first) RETURNING 1",
                level=node.level,
                first=node.first_turn,
                last=node.last_turn,
                text=node.text,
                opens=node.opens,
                vector=node.embedding,
                birth=birth,
            )
        return bool(added)

    def expire(self) -> None:
        with self._lock, self._reporting():
            old = self._connection().execute(
                "SELECT DISTINCT tenant, conversation FROM turns WHERE created < ?", (self._oldest(),)
            )
            whose = old.fetchall()
        for tenant, conversation in whose:
            with self._writing(tenant, conversation) as run:
                self._trim(run)
        if whose:
            self._forget()

    def _trim(self, run: Any) -> None:
        """Remove the turns that may not be kept, and every summary of one of them."""
        gone = run("DELETE FROM turns WHERE {whose} AND created < :oldest RETURNING number", oldest=self._oldest())
        if not gone:
            return
        run("DELETE FROM nodes WHERE {whose} AND first_turn <= :gone", gone=max(number for (number,) in gone))
        run("DELETE FROM conversations WHERE {whose} AND NOT EXISTS (SELECT 1 FROM turns WHERE {whose})")

    @contextmanager
    def _reading(self, tenant: str, conversation: str | None = None) -> Iterator[Any]:
        """Provide a function that runs statements for one tenant, or one conversation of it, and refuses any other."""
        with self._lock, self._reporting():
            database = self._connection()
            whose = {"tenant": tenant} if conversation is None else {"tenant": tenant, "conversation": conversation}

            def run(statement: str, **values: Any) -> list[Any]:
                statement = statement.replace("{whose}", _WHOSE)
                if not all(f":{name}" in statement for name in whose):
                    raise StoreError(f"A statement does not say whose conversation it is about: {statement}.")
                return database.execute(statement, {**values, **whose}).fetchall()

            yield run

    @contextmanager
    def _writing(self, tenant: str, conversation: str) -> Iterator[Any]:
        """Do the same as one transaction, which begins by waiting for other writers."""
        with self._reading(tenant, conversation) as run:
            database = self._connection()
            database.execute("BEGIN IMMEDIATE")
            try:
                yield run
                database.execute("COMMIT")
            except BaseException:
                # On a full disk SQLite may have ended the transaction itself.
                with suppress(sqlite3.Error):
                    database.execute("ROLLBACK")
                raise

    def _forget(self) -> None:
        """Overwrite deleted data in the write-ahead log too, unless somebody is reading."""
        with self._lock, suppress(sqlite3.Error):
            self._connection().execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _connection(self) -> sqlite3.Connection:
        if self._database is None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self.file, os.O_CREAT | os.O_RDWR, 0o600))
            database = sqlite3.connect(self.file, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
            try:
                with suppress(sqlite3.OperationalError):  # locked: another process sets the mode, or the next one will
                    database.execute("PRAGMA journal_mode = WAL")
                database.executescript("PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON;")
                (found,) = database.execute("PRAGMA user_version").fetchone()
                if found not in (0, _FORMAT):
                    raise StoreFormatError(
                        f"{self.file} has the format {found}, expected {_FORMAT}. Use the Shiguan that wrote it, or "
                        "move the file away."
                    )
                if found == 0:  # two processes may be here at once, and both do the same
                    database.executescript(f"{_SCHEMA} PRAGMA user_version = {_FORMAT};")
            except BaseException:
                database.close()
                raise
            self._database = database
            weakref.finalize(self, database.close)
        return self._database

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            text = str(error)
            if "full" in text or "No space" in text:
                raise StoreFullError(
                    f"There is no room for the conversation in {self.file}: {text}. Earlier turns are kept. Free "
                    "space and ask again."
                ) from error
            if "locked" in text:
                raise StoreLockedError(f"Another writer held {self.file} for {_PATIENCE:g} s. Try again.") from error
            kind = StoreFormatError if "not a database" in text or "malformed" in text else StoreError
            raise kind(f"{self.file} cannot be used: {text}. Put a copy back, or move it away.") from error


def _decoded(content: Any) -> Any:
    try:
        return json.loads(content)
    except (ValueError, TypeError, RecursionError):
        return None
