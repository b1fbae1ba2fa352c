"""What a data folder says about itself: its format file, and the engine's configuration that follows from it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qdrant_edge import (
    Distance,
    EdgeConfig,
    EdgeOptimizersConfig,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    Memory,
    Modifier,
)

from shiguan.errors import StoreFormatError
from shiguan.resources import write_json
from shiguan.stores.embedded.points import BM25, DENSE

FORMAT_VERSION = 1
"""Raised with every change that old data cannot be read or searched by, of the payload, the terms or the weights."""

FORMAT_FILE = "shiguan.json"
"""The file in the data folder that names the format and the shard in use."""


@dataclass(frozen=True)
class ShardFormat:
    """What the data of a folder were written with; everything here is baked into them."""

    embedding_dim: int | None
    similarity: str
    embedding_model: str | None
    bm25: bool
    bm25_k1: float
    bm25_b: float
    bm25_average_length: float
    bm25_fields: list[str]


def engine_config(form: ShardFormat) -> EdgeConfig:
    """Give the engine's configuration for a format."""
    # Vectors are stored as they were given or normalised by us, so the dot product is the cosine, and the engine keeps
    # the given numbers. They are read where they lie: read in at opening, they would take 32 MB of the smallest
    # library, and searches are no faster for it.
    dense = EdgeVectorParams(size=form.embedding_dim or 0, distance=Distance.Dot, memory=Memory.Cold)
    vectors = {DENSE: dense} if form.embedding_dim else None
    return EdgeConfig(
        vectors=vectors,
        # The engine wants at least one kind of vector; a store without any leaves this one empty.
        sparse_vectors={BM25: EdgeSparseVectorParams(modifier=Modifier.Idf)},
        optimizers=EdgeOptimizersConfig(default_segment_number=1),
        # One query takes less than a millisecond; spreading it over threads costs three times its CPU.
        max_search_threads=1,
    )


def read_record(folder: Path) -> dict[str, Any] | None:
    """Read a folder's format file."""
    try:
        record = json.loads((folder / FORMAT_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise StoreFormatError(
            f"`{folder / FORMAT_FILE}` is damaged: {error}. Put a copy back, or ingest again into another folder."
        ) from error
    if not isinstance(record, dict):
        raise mismatch(folder, "format file", type(record).__name__, "object")
    return record


def write_record(folder: Path, record: dict[str, Any]) -> None:
    """Write a folder's format file; a kill leaves the old or the new one."""
    write_json(folder / FORMAT_FILE, record)


def mismatch(folder: Path, name: str, found: object, expected: object) -> StoreFormatError:
    """Make the error for data that were written with something else."""
    return StoreFormatError(
        f"The data in `{folder}` were written with {name} {found!r}, but {expected!r} was expected. "
        "Ingest again into another folder, or use the settings that they were written with."
    )


def is_model(found: str | None, wanted: str) -> bool:
    """Tell whether vectors are those of a model."""
    return found is not None and f"{found},".startswith(f"{wanted},")


def other_vectors(folder: Path, found: str | None, wanted: str) -> str:
    """Say that the vectors of a folder are another embedder's, and what to do."""
    return (
        f"The vectors in `{folder}` were made with {f'`{found}`' if found else 'an earlier embedder'} and not with "
        f"`{wanted}`, so passages are found by their words alone until `shiguan ingest --resume` makes them anew."
    )
