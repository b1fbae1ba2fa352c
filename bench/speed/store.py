"""
Measure the embedded store by itself: writing, searching, reopening, and the vector graph.

    python bench/speed/store.py --children 100000 --graph

Texts are random words of a Zipf distribution, vectors random directions: the engine's work is that of real ones, the
results mean nothing. CPU is of this process alone; the graph is built in another one.
"""

import argparse
import json
import platform
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from haystack.dataclasses import Document
from haystack.document_stores.types import DuplicatePolicy

from shiguan.stores.embedded import shards
from shiguan.stores.embedded.qdrant_edge_bm25_retriever import QdrantEdgeBM25Retriever
from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore
from shiguan.stores.embedded.qdrant_edge_embedding_retriever import QdrantEdgeEmbeddingRetriever
from shiguan.tenants import where

DIMENSIONS, WORDS, LENGTH, TENANTS, BATCH = 384, 30_000, 60, 10, 1000
ONE_TENANT = {"field": "meta.tenant_id", "operator": "==", "value": "tenant-3"}


def zipf(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draw words, the n-th n times rarer than the first."""
    weights = 1 / np.arange(1, WORDS + 1)
    return random.choice(WORDS, size=shape, p=weights / weights.sum())


def unit(random: np.random.Generator, count: int) -> np.ndarray:
    """Draw directions. Shape: (count, DIMENSIONS)."""
    rows = random.standard_normal((count, DIMENSIONS)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def batches(random: np.random.Generator, children: int) -> Iterator[list[Document]]:
    """Make children with the meta that the index pipeline gives them."""
    for start in range(0, children, BATCH):
        count = min(BATCH, children - start)
        texts, vectors = zipf(random, (count, LENGTH)), unit(random, count)
        yield [
            Document(
                id=f"{start + n:064x}",
                content=" ".join(f"w{word}" for word in texts[n]),
                embedding=vectors[n].tolist(),
                meta={
                    "parent_id": f"{(start + n) // 4:064x}",
                    "tenant_id": f"tenant-{(start + n) % TENANTS}",
                    "source_id": f"{(start + n) // 500:064x}",
                    "start": n,
                    "end": n + 300,
                    "position": n,
                    "title": "A title",
                    "section": ["Part", "Chapter"],
                },
            )
            for n in range(count)
        ]


def measure(action: Callable[[int], Any], repeats: int = 200) -> dict[str, float]:
    """Time an action: the medians of wall time and of this process's CPU time, in milliseconds."""
    for n in range(10):
        action(n)
    wall, cpu = [], []
    for n in range(repeats):
        before = time.perf_counter(), time.process_time()
        action(n)
        wall.append(time.perf_counter() - before[0])
        cpu.append(time.process_time() - before[1])
    return {"wall_ms": round(statistics.median(wall) * 1e3, 3), "cpu_ms": round(statistics.median(cpu) * 1e3, 3)}


def searches(store: QdrantEdgeDocumentStore, random: np.random.Generator) -> dict[str, dict[str, float]]:
    """Time both retrievers, 50 light hits each, in one tenant and in all."""
    questions = [" ".join(f"w{word}" for word in row) for row in zipf(random, (100, 10))]
    vectors = unit(random, 100).tolist()
    words, nearest = QdrantEdgeBM25Retriever(store), QdrantEdgeEmbeddingRetriever(store)
    return {
        "bm25_one_tenant": measure(lambda n: words.run(questions[n % 100], ONE_TENANT)),
        "bm25_all": measure(lambda n: store.bm25_retrieval(questions[n % 100])),
        "vectors_one_tenant": measure(lambda n: nearest.run(vectors[n % 100], ONE_TENANT)),
        "vectors_all": measure(lambda n: store.embedding_retrieval(vectors[n % 100])),
        "parents_by_id_10": measure(
            lambda n: store.filter_documents(where("id", "in", [f"{n + i * 7:064x}" for i in range(10)]))
        ),
    }


def main() -> None:
    """Run the benchmark and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--children", type=int, default=20_000)
    parser.add_argument("--graph", action="store_true", help="build the graph too; minutes at 100,000 children")
    options = parser.parse_args()
    random = np.random.default_rng(1)
    shards.EXACT_BELOW = 10**9
    with tempfile.TemporaryDirectory() as folder:
        store = QdrantEdgeDocumentStore(path=folder).unscoped()
        cpu = 0.0
        for batch in batches(random, options.children):
            before = time.process_time()
            store.write_documents(batch, DuplicatePolicy.OVERWRITE)
            cpu += time.process_time() - before
        result: dict[str, Any] = {
            "machine": f"{platform.machine()} {platform.processor() or ''}".strip(),
            "children": options.children,
            "write_cpu_us_per_child": round(cpu / options.children * 1e6, 1),
            "exact": searches(store, random),
        }
        if options.graph:
            before = time.perf_counter()
            shards.EXACT_BELOW = 0
            store.write_documents([])
            result["graph_wall_s"] = round(time.perf_counter() - before, 1)
            result["graph"] = searches(store, random)
        store.close()
        before = time.perf_counter()
        store.count_documents()
        result["reopen_s"] = round(time.perf_counter() - before, 3)
        result["memory_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        store.close()
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
