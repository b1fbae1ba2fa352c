"""
Measure the token vectors of a large library: their disk, their reading, and how soon the store opens again.

    python -m benchmarks.token_vectors                   # 100,000 children of 100 tokens, as English ones have
    python -m benchmarks.token_vectors --children 10000

Reading is the CPU time of giving the vectors of 50 and of 100 children, scattered over the file, as the ranker asks for
them. What ranking costs in whole is measured by `benchmarks.reranking`.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks" / "results" / "token_vectors.json"
MODEL = "made-up"
DIMENSIONS = 384
TOKENS = 100
VOCABULARY = 30_000
BATCH = 1_000
SIZE_TARGET, OPEN_TARGET = 15.0, 1.0
"""KiB of disk for a child, seconds until the store is open."""


def fill(store: Any, children: int, seed: int = 8) -> None:
    """Write children with a text of three words, an embedding and token vectors, all made up."""
    import numpy as np
    from haystack import Document

    from shiguan.support.packed_tokens import META_KEY, PackedTokens

    rng = np.random.default_rng(seed)
    for start in range(0, children, BATCH):
        documents = []
        for number in range(start, min(start + BATCH, children)):
            count = int(rng.integers(TOKENS // 2, TOKENS + TOKENS // 2 + 1))
            ids = np.unique(np.minimum(rng.zipf(1.2, size=count), VOCABULARY)).astype("<u4")
            packed = PackedTokens(MODEL, DIMENSIONS, ids.tobytes(), rng.bytes(count * DIMENSIONS // 8))
            vector = rng.standard_normal(DIMENSIONS)
            documents.append(
                Document(
                    id=f"c{number}",
                    content=f"w{number % 997} w{number % 89} w{number}",
                    embedding=(vector / np.linalg.norm(vector)).astype(np.float32).tolist(),
                    meta={"tenant_id": "t", META_KEY: packed},
                )
            )
        store.write_documents(documents)


def measure(children: int, folder: Path) -> dict[str, Any]:
    """Fill a store, open it again, and read from it."""
    import numpy as np

    from shiguan.stores.qdrant_edge_document_store import QdrantEdgeDocumentStore
    from shiguan.stores.token_vector_file import VECTOR_FILE

    store = QdrantEdgeDocumentStore(path=str(folder), exact_below=10 * children).unscoped()
    fill(store, children)
    store.close()
    size = (folder / "children" / VECTOR_FILE).stat().st_size

    store = QdrantEdgeDocumentStore(path=str(folder), exact_below=10 * children).unscoped()
    started = time.perf_counter()
    store.count_documents()
    opened = time.perf_counter() - started
    store.token_vectors(["c0"], MODEL)
    first = time.perf_counter() - started - opened

    rng = np.random.default_rng(9)
    result = {
        "children": children,
        "kib_per_child": size / children / 1024,
        "opened_s": opened,
        "first_read_s": first,
    }
    for count in (50, 100):
        times = []
        for _ in range(100):
            names = [f"c{number}" for number in rng.integers(0, children, count)]
            started = time.process_time()
            store.token_vectors(names, MODEL)
            times.append((time.process_time() - started) * 1_000)
        result[f"read_{count}_ms"] = float(np.median(times))
    store.close()
    return result


def table(result: dict[str, Any]) -> str:
    """Write a result as Markdown."""
    rows = [
        ("disk of a child, KiB", result["kib_per_child"], SIZE_TARGET),
        ("store open again, s", result["opened_s"], OPEN_TARGET),
        ("first read, s", result["first_read_s"], None),
        ("read 50 children, CPU ms", result["read_50_ms"], None),
        ("read 100 children, CPU ms", result["read_100_ms"], None),
    ]
    lines = [f"| {result['children']:,} children | measured | at most | |", "|---|---:|---:|---|"]
    for name, value, target in rows:
        verdict = "" if target is None else "pass" if value <= target else "MISS"
        lines.append(f"| {name} | {value:.2f} | {'' if target is None else f'{target:g}'} | {verdict} |")
    machine = result["machine"]
    lines += ["", f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB."]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.token_vectors", description=__doc__.split("\n")[1])
    parser.add_argument("--children", type=int, default=100_000, help="how many (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=RESULT, help="the JSON file (default: %(default)s)")
    options = parser.parse_args(arguments)

    from benchmarks.measuring import machine

    with tempfile.TemporaryDirectory(prefix="shiguan-benchmark-") as name:
        result = measure(options.children, Path(name)) | {"machine": machine()}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(table(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
