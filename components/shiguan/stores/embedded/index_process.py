"""
Quantize the vectors of a shard, in its own process.

Run as a script, so that it imports only the engine: `python -P index_process.py FOLDER DIMENSIONS`.
"""

import contextlib
import os
import sys

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


def build(folder: str, dimensions: int) -> None:
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
    build(sys.argv[1], int(sys.argv[2]))
