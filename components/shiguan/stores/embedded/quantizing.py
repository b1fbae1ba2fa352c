"""
Quantize the vectors of a shard, in its own process.

The engine's own `optimize` blocks the interpreter until it is done, so no thread could run it beside searches. This
file is the process's script, too, and imports only the engine: `python -P quantizing.py FOLDER DIMENSIONS`.
"""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from qdrant_edge import (
    Distance,
    EdgeConfig,
    EdgeOptimizersConfig,
    EdgeShard,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    HnswIndexConfig,
    Modifier,
    TurboQuantBitSize,
    TurboQuantQuantizationConfig,
)


def start(folder: Path, dimensions: int) -> "subprocess.Popen[bytes]":
    """Start the process that quantizes a folder; what it says on stderr is why it failed."""
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-P", __file__, str(folder), str(dimensions)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def quantize(folder: str, dimensions: int) -> None:
    """Merge a shard's segments into one, and put four bits of every number of its vectors beside them."""
    dense = EdgeVectorParams(
        size=dimensions,
        distance=Distance.Dot,
        quantization_config=TurboQuantQuantizationConfig(bits=TurboQuantBitSize.Bits4),
        hnsw_config=HnswIndexConfig(m=0, ef_construct=16, full_scan_threshold=10),  # no graph
    )
    config = EdgeConfig(
        vectors={"dense": dense},
        sparse_vectors={"bm25": EdgeSparseVectorParams(modifier=Modifier.Idf)},
        # In kilobytes: whether there are enough vectors is decided before this runs.
        optimizers=EdgeOptimizersConfig(default_segment_number=1, indexing_threshold=1),
    )
    shard = EdgeShard.load(folder, config)
    shard.optimize()
    shard.flush()
    shard.close()


if __name__ == "__main__":
    os.umask(0o077)
    with contextlib.suppress(AttributeError, OSError):
        os.nice(10)
    quantize(sys.argv[1], int(sys.argv[2]))
