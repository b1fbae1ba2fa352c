"""The tables of a token vector file, and the statements on them. A caller makes transactions of them."""

# ruff: noqa: S608 - statements are put together from names in this file and question marks alone

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import numpy as np

from shiguan.support.packed_tokens import PackedTokens, token_ids

VERSION = 1
"""Raised with every change that old vectors cannot be read by, that of the rotation among them."""

_SCHEMA = """
CREATE TABLE about (version INTEGER, model TEXT, dimensions INTEGER);
CREATE TABLE vectors (row INTEGER PRIMARY KEY, tokens BLOB, vectors BLOB);
CREATE TABLE children (id BLOB PRIMARY KEY, row INTEGER) WITHOUT ROWID;
CREATE TABLE staged (id BLOB PRIMARY KEY, row INTEGER) WITHOUT ROWID;
CREATE TABLE frequencies (token INTEGER PRIMARY KEY, children INTEGER);
"""
# Vectors of a child take a few pages of this size, in bytes; smaller ones cost reading time, larger ones space.
_PAGE = 4096
# How many ids go into one statement.
_IDS = 500


@dataclass(frozen=True)
class About:
    """What a file's vectors were written with."""

    version: int
    model: str
    dimensions: int


def key(point_id: str) -> bytes:
    """
    Give the key of a document.

    :param point_id: The engine's id, a UUID.
    :returns: Its 16 bytes.
    """
    return UUID(point_id).bytes


def connect(path: Path) -> sqlite3.Connection:
    """
    Open a file, making it if there is none.

    :param path: The file.
    :returns: A connection that any thread may use, one at a time.
    """
    connection = sqlite3.connect(path, check_same_thread=False)
    # A kill loses nothing; a power cut may lose the last transactions, which leaves passages unranked.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA page_size = {_PAGE}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA journal_size_limit = 4194304")
    return connection


def created(connection: sqlite3.Connection) -> bool:
    """
    Tell whether a file has its tables.

    :param connection: The file.
    :returns: Whether `create` was done.
    """
    return bool(connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'about'").fetchone()[0])


def create(connection: sqlite3.Connection, about: About) -> None:
    """
    Make the tables.

    :param connection: A new file.
    :param about: What its vectors will be written with.
    """
    with connection:
        connection.executescript(f"BEGIN; {_SCHEMA}")
        connection.execute("INSERT INTO about VALUES (?, ?, ?)", (about.version, about.model, about.dimensions))


def read_about(connection: sqlite3.Connection) -> About:
    """
    Read what the file says about itself.

    :param connection: The file.
    :returns: What its vectors were written with.
    """
    return About(*connection.execute("SELECT version, model, dimensions FROM about").fetchone())


def stage(connection: sqlite3.Connection, documents: dict[bytes, PackedTokens]) -> None:
    """
    Write vectors that readers do not see yet.

    :param connection: The file.
    :param documents: The vectors by key. Of a key that was staged before, the old ones go.
    """
    remove(connection, [*documents], "staged")
    for document, packed in documents.items():
        values = (packed.token_ids, packed.vectors)
        added = connection.execute("INSERT INTO vectors (tokens, vectors) VALUES (?, ?)", values)
        connection.execute("INSERT INTO staged VALUES (?, ?)", (document, added.lastrowid))


def publish(connection: sqlite3.Connection, keys: list[bytes]) -> None:
    """
    Let staged vectors be seen, in the place of those that the documents had; without staged ones these only go.

    :param connection: The file.
    :param keys: The keys of documents.
    """
    remove(connection, keys, "children")
    for chunk, marks in _chunks(keys):
        _count(connection, f"SELECT row FROM staged WHERE id IN ({marks})", chunk, 1)
        connection.execute(f"INSERT INTO children SELECT id, row FROM staged WHERE id IN ({marks})", chunk)
        connection.execute(f"DELETE FROM staged WHERE id IN ({marks})", chunk)


def remove(connection: sqlite3.Connection, keys: list[bytes], table: str) -> None:
    """
    Take vectors out.

    :param connection: The file.
    :param keys: The keys of documents; those that have none are no error.
    :param table: `children` or `staged`.
    """
    for chunk, marks in _chunks(keys):
        rows = f"SELECT row FROM {table} WHERE id IN ({marks})"
        if table == "children":
            _count(connection, rows, chunk, -1)
        connection.execute(f"DELETE FROM vectors WHERE row IN ({rows})", chunk)
        connection.execute(f"DELETE FROM {table} WHERE id IN ({marks})", chunk)


def read_vectors(connection: sqlite3.Connection, keys: list[bytes]) -> dict[bytes, bytes]:
    """
    Read packed vectors.

    :param connection: The file.
    :param keys: The keys of documents.
    :returns: What there is, by key.
    """
    found: dict[bytes, bytes] = {}
    for chunk, marks in _chunks(keys):
        query = f"SELECT id, vectors FROM children JOIN vectors USING (row) WHERE id IN ({marks})"
        found |= dict(connection.execute(query, chunk))
    return found


def staged_keys(connection: sqlite3.Connection) -> list[bytes]:
    """
    Name the documents whose vectors are staged.

    :param connection: The file.
    :returns: Their keys.
    """
    return [row[0] for row in connection.execute("SELECT id FROM staged")]


def count(connection: sqlite3.Connection, table: str) -> int:
    """
    Count documents.

    :param connection: The file.
    :param table: `children` or `staged`.
    :returns: How many there are.
    """
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def read_frequencies(connection: sqlite3.Connection) -> np.ndarray:
    """
    Read how many published children have each token.

    :param connection: The file.
    :returns: The counts by the token's id. Shape: (greatest id + 1,), int32.
    """
    rows = np.array(connection.execute("SELECT token, children FROM frequencies").fetchall(), dtype=np.int64)
    frequencies = np.zeros(rows[:, 0].max() + 1 if len(rows) else 0, dtype=np.int32)
    if len(rows):
        frequencies[rows[:, 0]] = rows[:, 1]
    frequencies.flags.writeable = False
    return frequencies


def _count(connection: sqlite3.Connection, rows: str, chunk: list[bytes], sign: int) -> None:
    """Add the tokens of some rows to the frequencies, or take them off."""
    blobs = [row[0] for row in connection.execute(f"SELECT tokens FROM vectors WHERE row IN ({rows})", chunk)]
    tokens, counts = np.unique(token_ids(b"".join(blobs)), return_counts=True)
    connection.executemany(
        "INSERT INTO frequencies VALUES (?, ?) ON CONFLICT DO UPDATE SET children = children + excluded.children",
        zip(tokens.tolist(), (sign * counts).tolist(), strict=True),
    )


def _chunks(keys: list[bytes]) -> Iterator[tuple[list[bytes], str]]:
    for start in range(0, len(keys), _IDS):
        chunk = keys[start : start + _IDS]
        yield chunk, ",".join("?" * len(chunk))
