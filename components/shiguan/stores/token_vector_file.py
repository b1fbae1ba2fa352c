"""The token vectors of a store's documents, in one SQLite file beside the engine's data."""

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import numpy as np
from haystack import logging

from shiguan.errors import StoreError, StoreFormatError
from shiguan.stores import token_vector_tables as tables
from shiguan.stores.token_vector_tables import VERSION, About
from shiguan.support.packed_tokens import PackedTokens, rotation, unpack
from shiguan.support.token_vectors import TokenVectors

logger = logging.getLogger(__name__)

VECTOR_FILE = "token-vectors.sqlite"
"""The file in the data folder; a folder without one has no token vectors, and works."""


class TokenVectorFile:
    """
    Keeps the token vectors of documents, by the engine's ids.

    Vectors come before their documents: `stage` writes them as soon as they are made, unseen by readers, and `publish`
    lets them be seen once the documents are in the engine. What a kill left staged is decided on at the next opening:
    documents that the engine has get theirs, the rest is thrown away. Taking out goes the other way round, vectors
    first. So no vectors stay without a document, whatever happens in between.

    The file also counts how many published children have each token, in the same transactions, so that the counts are
    always those of the vectors in it.

    :param folder: The data folder, which its opener has locked.
    :param exists: Tells which of some ids are in the engine, to finish what a kill interrupted.
    """

    def __init__(self, folder: Path, exists: Callable[[list[str]], set[str]]) -> None:
        self.path = folder / VECTOR_FILE
        self._using = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._about: About | None = None
        self._frequencies = np.zeros(0, dtype=np.int32)
        self._children = 0
        self._outdated = True
        self._closed = False
        self._damage: str | None = None
        if self.path.exists():
            try:
                self._open(exists)
            except StoreError as error:
                # The passages are worth more than their ranking.
                logger.warning("Passages are not ranked by their token vectors. {error}", error=str(error))
                self._disconnect()
                self._damage = str(error)

    def stage(self, documents: dict[str, PackedTokens]) -> None:
        """
        Write vectors of documents that will be written next.

        :param documents: The vectors by the engine's ids.
        :raises StoreFormatError: If the file holds those of another model.
        :raises StoreError: If the file cannot be written.
        """
        if not documents:
            return
        with self._using, self._reported("written"):
            for model, dimensions in {(packed.model, packed.dimensions) for packed in documents.values()}:
                self._begin(model, dimensions)
            with self._engine() as connection:
                tables.stage(connection, {tables.key(point): packed for point, packed in documents.items()})

    def publish(self, ids: list[str]) -> None:
        """
        Let the vectors of documents be seen that are in the engine now; those of an earlier writing go.

        A failure is logged and leaves the documents unranked until the next opening: they are stored already.

        :param ids: The engine's ids of all documents of a write.
        """
        self._change(lambda connection: tables.publish(connection, [*map(tables.key, ids)]))

    def delete(self, ids: list[str]) -> None:
        """
        Take vectors out, before their documents go. A failure is logged and leaves waste.

        :param ids: The engine's ids.
        """
        with self._using:
            done = self._change(lambda connection: tables.remove(connection, [*map(tables.key, ids)], "children"))
            if done and not tables.count(self._engine(), "children") and not tables.count(self._engine(), "staged"):
                # An empty store may be filled anew, with another model.
                self._discard()

    def read(self, ids: dict[str, str], model: str) -> TokenVectors | None:
        """
        Give the vectors of documents.

        :param ids: The documents' own ids by the engine's.
        :param model: The embedder that they are wanted of.
        :returns: Their vectors; `None` if the file has none at all.
        :raises StoreFormatError: If they are those of another model.
        :raises StoreError: If the file is damaged.
        """
        names = {tables.key(point): name for point, name in ids.items()}
        with self._using, self._reported("read"):
            if self._damage:
                raise StoreError(self._damage)
            if self._connection is None or self._about is None:
                return None
            if self._outdated:
                self._children = tables.count(self._connection, "children")
                self._frequencies = tables.read_frequencies(self._connection)
                self._outdated = False
            if not self._children:
                return None
            self._check_model(self._about, model)
            found = tables.read_vectors(self._connection, [*names])
            dimensions, frequencies, children = self._about.dimensions, self._frequencies, self._children
        kept = [key for key in names if key in found]
        bounds, values, scales = unpack([found[key] for key in kept], dimensions)
        documents = [names[key] for key in kept]
        return TokenVectors(documents, bounds, values, scales, rotation(dimensions), frequencies, children)

    def close(self) -> None:
        """Close the file for good; safe to call twice."""
        with self._using:
            self._closed = True
            self._disconnect()

    def _open(self, exists: Callable[[list[str]], set[str]]) -> None:
        with self._reported("opened"):
            connection = self._connection = tables.connect(self.path)
            if not tables.created(connection):
                return  # a kill came before the first vectors; `_begin` makes the file anew
            about = tables.read_about(connection)
            if about.version != VERSION:
                raise StoreFormatError(
                    f"`{self.path}` has the version {about.version} of token vectors, but {VERSION} was expected. "
                    "Ingest again into another folder, or delete the file: passages are then found without it."
                )
            staged = [str(UUID(bytes=key)) for key in tables.staged_keys(connection)]
            if staged:
                stored = exists(staged)
                with connection:
                    tables.publish(connection, [tables.key(point) for point in staged if point in stored])
                    tables.remove(connection, [tables.key(point) for point in staged if point not in stored], "staged")
            self._about = about

    def _begin(self, model: str, dimensions: int) -> None:
        """Make the file if there is none, and refuse vectors that do not belong to those in it."""
        if self._damage:
            raise StoreError(self._damage)
        if self._closed:
            raise StoreError(f"`{self.path}` has been closed. Make a new store object to open it again.")
        if self._about is None:
            self._discard()
            connection = self._connection = tables.connect(self.path)
            about = About(VERSION, model, dimensions)
            tables.create(connection, about)
            self._about = about
        self._check_model(self._about, model)
        if dimensions != self._about.dimensions:
            raise StoreFormatError(
                f"The token vectors in `{self.path}` have {self._about.dimensions} numbers, but those of `{model}` "
                f"have {dimensions} now. Ingest again into another folder, or put the old model back."
            )

    def _check_model(self, about: About, model: str) -> None:
        if model != about.model:
            raise StoreFormatError(
                f"The token vectors in `{self.path}` are those of the model `{about.model}`, but `{model}` was asked "
                "for. Use the model that the library was ingested with, or ingest again into another folder."
            )

    def _change(self, action: Callable[[sqlite3.Connection], None]) -> bool:
        """Change what readers see; give whether that was done."""
        with self._using:
            if self._about is None:
                return False
            self._outdated = True
            try:
                with self._engine() as connection:
                    action(connection)
            except sqlite3.Error as error:
                logger.warning(
                    "The token vectors in {path} could not be kept up with the passages, which are stored: {error}",
                    path=str(self.path),
                    error=str(error),
                )
                return False
            return True

    def _discard(self) -> None:
        self._disconnect()
        for suffix in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    def _disconnect(self) -> None:
        connection, self._connection, self._about = self._connection, None, None
        if connection is not None:
            connection.close()

    def _engine(self) -> sqlite3.Connection:
        assert self._connection is not None  # noqa: S101 - where `_about` is known, the file is open
        return self._connection

    @contextlib.contextmanager
    def _reported(self, action: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, TypeError, ValueError) as error:
            raise StoreError(
                f"The token vectors in `{self.path}` could not be {action}: {error}. No passage is lost. Make room on "
                "the disk if it is full; if the file is damaged, delete it, and passages are found without it."
            ) from error
