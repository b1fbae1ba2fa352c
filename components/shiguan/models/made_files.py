"""What is made once from the packaged weights and kept in a cache: the encoder's graph, the tokenizer's trie."""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import platformdirs
from haystack import logging

from shiguan.models.weights import SHA256, check_hash

logger = logging.getLogger(__name__)

RECIPE = 2
"""Raised with every change of the graph or of the trie: what another recipe made is never read."""


def cache_folder() -> Path:
    """Give the folder of everything that can be made again: `SHIGUAN_CACHE_DIR`, or the user's cache folder."""
    return Path(os.environ.get("SHIGUAN_CACHE_DIR") or platformdirs.user_cache_dir("shiguan"))


def made_file(name: str, weights: Path, make: Callable[[], bytes]) -> bytes:
    """
    Give the content of a file that is made from the weights, from the cache folder where that has it whole.

    Beside the file lies a record of its hash and of the weights' size and time when they were hashed. So the weights,
    72 MB, are hashed when something is made from them and after the package was installed again; at other starts only
    what was made. What does not fit its record is made again. Both files are written aside and renamed, and making is
    deterministic, so processes that make the same file at once write the same. Where nothing can be written, the
    content lives in memory alone.
    """
    folder = cache_folder() / f"e5-{SHA256[:12]}-{RECIPE}"
    record_path = folder / f"{name}.json"
    stamp = _stamp(weights)
    record = _record(record_path)
    try:
        content = (folder / name).read_bytes()
    except OSError:
        content = b""
    if content and record.get("weights") == stamp and record.get("sha256") == _hash(content):
        return content
    check_hash(weights)
    logger.info("Preparing `{file}`, once; this takes a few seconds.", file=str(folder / name))
    content = make()
    record = {"sha256": _hash(content), "weights": stamp}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _replace(folder / name, content)
        _replace(record_path, json.dumps(record, indent=2).encode())
    except OSError as error:
        logger.warning(
            "`{file}` could not be kept ({error}), so every start prepares it again. Make room, or point "
            "SHIGUAN_CACHE_DIR to a folder that can be written.",
            file=str(folder / name),
            error=str(error),
        )
    return content


def _stamp(weights: Path) -> dict[str, Any]:
    status = weights.stat()
    return {"path": str(weights), "size": status.st_size, "changed": status.st_mtime_ns}


def _record(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _replace(path: Path, content: bytes) -> None:
    descriptor, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(aside).replace(path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
