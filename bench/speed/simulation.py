"""
Work out what ten million passages of a thousand tenants take on the cluster, from unit costs measured here.

    python -m bench.speed.simulation [--children 10000000] [--tenants 1000] [--dimensions 1024]

Measured on this machine, in CPU time of one thread: making the requests to both servers as the stores make them, what
Qdrant's own engine (the same code, in process) takes to store points and to make graphs, and a text's embedding by the
packaged model. What the servers' memory and disk take follows `deployment_sizes.py`. Not measured: Elasticsearch's own
indexing, `BAAI/bge-m3`, networks and disks; no server runs here.
"""

import argparse
import json
import math
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from bench.speed.deployment_sizes import CHILD_TEXT_BYTES, GIB, sizes

POINTS = 4_000
TEXTS = 64
_SOME = 500


@dataclass(frozen=True)
class UnitCosts:
    """CPU milliseconds of one thread, for one child."""

    words_request: float
    vectors_request: float
    stored: float
    graph_small: float
    graph_large: float
    packaged_embedder: float


def main(arguments: list[str] | None = None) -> int:
    """Measure, work out and print."""
    parser = argparse.ArgumentParser(description="Work out what a large library takes on the cluster.")
    parser.add_argument("--children", type=int, default=10_000_000)
    parser.add_argument("--tenants", type=int, default=1_000)
    parser.add_argument("--dimensions", type=int, default=1_024)
    parser.add_argument("--points", type=int, default=POINTS, help="how many points the unit costs are measured on")
    options = parser.parse_args(arguments)
    costs = measure(options.points, options.dimensions)
    print(json.dumps({"unit costs, CPU ms": asdict(costs)}, indent=1))
    print("\n".join(report(costs, options.children, options.tenants, options.points)))
    return 0


def report(costs: UnitCosts, children: int, tenants: int, points: int) -> list[str]:
    """Work out memory, disk and hours."""
    found = sizes(children)
    shares = [1 / rank for rank in range(1, tenants + 1)]
    largest = children / sum(shares)
    graphs = sum(graph_seconds(costs, points, share * largest) for share in shares)
    hours = {
        "requests, both servers": (costs.words_request + costs.vectors_request) * children / 3.6e6,
        "Qdrant stores": costs.stored * children / 3.6e6,
        "Qdrant makes graphs": graphs / 3_600,
        "embedding with the packaged model": costs.packaged_embedder * children / 3.6e6,
    }
    alone = sizes(int(largest))
    return [
        f"| {children:,} children, {tenants:,} tenants | |",
        "|---|---:|",
        f"| Qdrant memory, disk | {found.qdrant_memory / GIB:.1f} GiB, {found.qdrant_disk / GIB:.0f} GiB |",
        f"| Elasticsearch memory, disk | {found.elasticsearch_memory / GIB:.1f} GiB, "
        f"{found.elasticsearch_disk / GIB:.0f} GiB |",
        *(f"| {name}, CPU hours of one thread | {value:.1f} |" for name, value in hours.items()),
        f"| largest tenant: children, share | {largest:,.0f}, {1 / sum(shares):.0%} |",
        f"| its Qdrant memory, disk | {alone.qdrant_memory / GIB:.1f} GiB, {alone.qdrant_disk / GIB:.0f} GiB |",
        f"| its graph, CPU hours | {graph_seconds(costs, points, largest) / 3_600:.1f} |",
    ]


def graph_seconds(costs: UnitCosts, points: int, children: float) -> float:
    """Work out the CPU seconds of a tenant's graph: a point costs more the larger the graph, by its logarithm."""
    slope = max(costs.graph_large - costs.graph_small, 0.0) / math.log(4)
    each = max(costs.graph_small + slope * math.log(max(children, 1) / (points / 4)), 0.0)
    return each * children / 1_000


def measure(points: int = POINTS, dimensions: int = 1_024) -> UnitCosts:
    """Measure the unit costs."""
    words, vectors = _requests(dimensions)
    stored, small = _engine(points // 4, dimensions)
    _, large = _engine(points, dimensions)
    return UnitCosts(words, vectors, stored, small, large, _embedding())


def _requests(dimensions: int) -> tuple[float, float]:
    from haystack import Document
    from haystack_integrations.document_stores.qdrant.converters import convert_haystack_documents_to_qdrant_points

    meta = {"tenant_id": "t", "source_id": "s" * 32, "file_id": "f" * 32, "parent_id": "p" * 32, "start": 0, "end": 300}
    text = "x" * CHILD_TEXT_BYTES
    words = [Document(id=f"{n:032}", content=text, meta=meta) for n in range(_SOME)]
    vectors = [replace(document, embedding=_vector(n, dimensions)) for n, document in enumerate(words)]

    def upsert() -> None:
        for point in convert_haystack_documents_to_qdrant_points(vectors, use_sparse_embeddings=False):
            point.model_dump_json()

    bulk = _cpu_ms(lambda: json.dumps([document.to_dict() for document in words]))
    return bulk / _SOME, _cpu_ms(upsert) / _SOME


def _engine(points: int, dimensions: int) -> tuple[float, float]:
    """Store points in Qdrant's engine and make one graph of them: milliseconds for each point."""
    from qdrant_edge import (
        Distance,
        EdgeConfig,
        EdgeOptimizersConfig,
        EdgeShard,
        EdgeVectorParams,
        HnswIndexConfig,
        Point,
        UpdateOperation,
    )

    graph = HnswIndexConfig(m=16, ef_construct=128, full_scan_threshold=10)
    config = EdgeConfig(
        vectors={"dense": EdgeVectorParams(size=dimensions, distance=Distance.Dot, hnsw_config=graph)},
        optimizers=EdgeOptimizersConfig(default_segment_number=1, indexing_threshold=1),
    )
    batch = [Point(id=n + 1, vector={"dense": _vector(n, dimensions)}, payload={}) for n in range(points)]
    with tempfile.TemporaryDirectory() as folder:
        shard = EdgeShard.create(folder, config)
        stored = _cpu_ms(lambda: shard.update(UpdateOperation.upsert_points(batch)))
        made = _cpu_ms(shard.optimize)
        shard.close()
    return stored / points, made / points


def _embedding() -> float:
    from haystack import Document

    from shiguan.ingest.e5_document_embedder import E5DocumentEmbedder

    embedder = E5DocumentEmbedder()
    embedder.warm_up()
    text = "The governors of the border kept the salt tax, and the court could not ask it of them. "
    documents = [Document(content=(text * 10)[:CHILD_TEXT_BYTES]) for _ in range(TEXTS)]
    return _cpu_ms(lambda: embedder.run(documents)) / TEXTS


def _vector(seed: int, dimensions: int) -> list[float]:
    chance = random.Random(seed)
    return [chance.gauss(0, 1) for _ in range(dimensions)]


def _cpu_ms(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return 1_000 * (time.process_time() - started)


if __name__ == "__main__":
    raise SystemExit(main())
