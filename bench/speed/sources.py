"""
Measure the list of sources, `GET /api/v1/documents`, in a library of many passages.

    python -m bench.speed.sources     # 200,000 parents of 400 books; five minutes, most of it building
    python -m bench.speed.sources --children 5          # five children a parent, as books have them
    python -m bench.speed.sources --data-dir FOLDER     # keeps the library there, and uses it again

Texts are one word and vectors random: nothing of either is read for the list. What is looked up is kept until the next
write, so two times count: the first after a write, and the following.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from bench.speed.load_servers import KEY, ServerProcess, our_server
from bench.speed.measuring import machine, medians, name_machine, timed
from bench.speed.synthetic import DIMENSION, TENANTS
from haystack.dataclasses import Document
from haystack.document_stores.types import DuplicatePolicy

from shiguan.engine.library import Library
from shiguan.stores.embedded import shards

BAR_MS = 300
TENANT = TENANTS[0][0]
_BATCH, _REPEATS = 1_000, 7


def main(arguments: list[str] | None = None) -> None:
    """Build a library, or open one that was built before, measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.speed.sources", description=__doc__.split("\n")[1])
    parser.add_argument("--parents", type=int, default=200_000)
    parser.add_argument("--children", type=int, default=1, help="of each parent")
    parser.add_argument("--files", type=int, default=400)
    parser.add_argument("--port", type=int, default=8115, help="of the server on 127.0.0.1")
    parser.add_argument("--without-server", action="store_true", help="measure `Library.sources` alone")
    parser.add_argument("--data-dir", type=Path, help="keep the library here and use it again")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        report = measure(options, options.data_dir or Path(folder))
    sys.stdout.write("\n".join(lines(report)) + "\n")


def measure(options: argparse.Namespace, data_dir: Path) -> dict[str, Any]:
    """Give the times in milliseconds, and what was measured."""
    library = Library(data_dir=data_dir)
    shards.EXACT_BELOW = 10**9  # no graph is built beside the measurement
    if not library.count(tenant_id=TENANT):
        _build(library, options)
    for store in library.stores.values():
        store.close()
    after_write, again = [], []
    for _ in range(_REPEATS):
        for store in library.stores.values():
            store.write_documents([])
        found, took = timed(lambda: library.sources(tenant_id=TENANT))
        after_write.append(took)
        again.append(timed(lambda: library.sources(tenant_id=TENANT))[1])
    for store in library.stores.values():
        store.close()
    report: dict[str, Any] = {
        "machine": machine(),
        "date": datetime.now(UTC).date().isoformat(),
        "parents": sum(entry["passages"] for entry in found),
        "children": sum(entry["vectors"] for entry in found),
        "sources": len(found),
        "after_write": medians(after_write),
        "again": medians(again),
    }
    if not options.without_server:
        with our_server(options.port, data_dir=data_dir, llm_url="http://127.0.0.1:9") as server:
            headers = {"Authorization": f"Bearer {KEY}"}
            with httpx.Client(base_url=server.url, headers=headers, timeout=60, trust_env=False) as client:
                report["get"] = [_get(server, client) for _ in range(2)]
    return report


def lines(report: dict[str, Any]) -> list[str]:
    """Write what was measured, and whether it is within the bar."""
    first = report["after_write"]["wall_ms"]
    verdict = "pass" if first <= BAR_MS else "MISS"
    rows = [("after a write", report["after_write"]), ("again", report["again"])]
    names = ("GET, first since the start", "GET, again")
    rows += list(zip(names, report.get("get", []), strict=False))
    found = (f"{report[name]:,} {name}" for name in ("parents", "children", "sources"))
    return [
        "| | CPU ms | wall ms |",
        "|---|---:|---:|",
        *(f"| {name} | {took['cpu_ms']:.0f} | {took['wall_ms']:.0f} |" for name, took in rows),
        f"\n- {verdict}: {first:.0f} ms after a write, at most {BAR_MS}",
        f"\n{', '.join(found)}; {name_machine(report)}",
    ]


def _get(server: ServerProcess, client: httpx.Client) -> dict[str, float]:
    before = server.cpu_seconds()
    _, took = timed(lambda: client.get("/api/v1/documents").raise_for_status())
    return {"cpu_ms": 1_000 * (server.cpu_seconds() - before), "wall_ms": 1_000 * took["wall_s"]}


def _build(library: Library, options: argparse.Namespace) -> None:
    for name, of_parent in (("parents", 1), ("children", options.children)):
        for batch in _batches(options, of_parent, vectors=name == "children"):
            library.stores[name].write_documents(batch, DuplicatePolicy.OVERWRITE)


def _batches(options: argparse.Namespace, of_parent: int, *, vectors: bool) -> Iterator[list[Document]]:
    chance = np.random.default_rng(1)
    each, count = -(-options.parents // options.files), options.parents * of_parent
    for start in range(0, count, _BATCH):
        batch = []
        for number in range(start, min(start + _BATCH, count)):
            parent = number // of_parent
            file = f"{parent // each:064x}"
            meta = {
                "tenant_id": TENANT, "source_id": file, "file_id": file, "source": f"book-{parent // each}.epub",
                "title": "A title", "language": "en" if parent // each % 2 else "zh", "parent_id": f"{parent:064x}",
                "units": each * options.children, "position": parent % each, "start": 0, "end": 4,
            }  # fmt: skip
            vector = chance.standard_normal(DIMENSION).tolist() if vectors else None
            batch.append(Document(id=f"{number:064x}", content="word", meta=meta, embedding=vector))
        yield batch


if __name__ == "__main__":
    main()
