"""
Measure what a book costs on its way into the library, stage by stage: all but the embedding should hardly count.

    python -m benchmarks.ingest                      # a made-up English novel of 120,000 words
    python -m benchmarks.ingest --book FILE.epub

The `index` pipeline runs one stage at a time, so that each stage's CPU time is its own; what the pipeline itself does
between the stages counts as `pipeline`. Then the same children are embedded in batches of 32, in reading order and
sorted by length: a batch costs as much as its longest member. Last they are embedded and stored with token vectors,
without them, and by sentence-transformers, slice by slice in turn, so that a busy machine is the same for all three.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from html import escape
from pathlib import Path
from typing import Any

# One torch thread, so that CPU time and wall time mean the same. Set before anything imports torch.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks" / "results" / "ingest.json"
TARGET = 0.1
"""What all other stages may cost, as a share of the embedding."""

EMBEDDER = "embedder"
BATCH = 32
SLICE = 128
TOKENS_TARGET = 0.15
"""How much longer embedding and storing may take with token vectors than without, as a share."""
SIZE_TARGET = 15
"""How much disk the token vectors of a child may take, in units of 1,024 bytes."""

CONTAINER = """<?xml version="1.0"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles><rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>"""
PACKAGE = """<?xml version="1.0"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="id">benchmark</dc:identifier>
<dc:title>Benchmark</dc:title><dc:language>en</dc:language></metadata>
<manifest>{items}</manifest><spine>{spine}</spine></package>"""
CHAPTER = """<?xml version="1.0"?>
<html xmlns="http://www.w3.org/1999/xhtml" lang="en"><head><title>{title}</title></head>
<body><section><h1>{title}</h1>{paragraphs}</section></body></html>"""


def write_book(path: Path, words: int, seed: int = 755) -> Path:
    """
    Write an EPUB of made-up English with chapters of 3,000 words.

    Sentences have 5 to 40 words and paragraphs 2 to 9 sentences, about as in a novel.
    """
    import numpy as np
    from benchmarks.synthetic import SyntheticLibrary

    rng = np.random.default_rng(seed)
    vocabulary = SyntheticLibrary(8).english
    ranks = np.minimum(rng.zipf(1.3, size=words) - 1, len(vocabulary) - 1)
    position, chapters = 0, []
    while position < words:
        paragraphs, end = [], min(position + 3_000, words)
        while position < end:
            sentences = []
            for _ in range(rng.integers(2, 10)):
                length = int(np.clip(rng.gamma(3.0, 6.0), 5, 40))
                picked = [vocabulary[rank] for rank in ranks[position : min(position + length, end)]]
                position += length
                if picked:
                    sentences.append(" ".join(picked).capitalize() + ".")
            paragraphs.append(f"<p>{escape(' '.join(sentences))}</p>")
        title = f"Chapter {len(chapters) + 1}"
        chapters.append(CHAPTER.format(title=title, paragraphs="\n".join(paragraphs)))
    names = [f"c{number:03}.xhtml" for number in range(len(chapters))]
    media = "application/xhtml+xml"
    items = "".join(f'<item id="{name[:-6]}" href="{name}" media-type="{media}"/>' for name in names)
    spine = "".join(f'<itemref idref="{name[:-6]}"/>' for name in names)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr("META-INF/container.xml", CONTAINER)
        archive.writestr("book.opf", PACKAGE.format(items=items, spine=spine))
        for name, chapter in zip(names, chapters, strict=True):
            archive.writestr(name, chapter)
    return path


@contextmanager
def stage_clocks() -> Iterator[dict[str, float]]:
    """Collect the CPU seconds of every component that runs inside the block, told by Haystack's tracing."""
    from haystack.tracing import disable_tracing, enable_tracing
    from haystack.tracing.tracer import NullSpan, Tracer

    clocks: dict[str, float] = {}

    class Clock(Tracer):
        @contextmanager
        def trace(
            self,
            operation_name: str,
            tags: dict[str, Any] | None = None,
            parent_span: Any = None,  # noqa: ARG002
        ) -> Iterator[Any]:
            started = time.process_time()
            yield NullSpan()
            if operation_name == "haystack.component.run" and tags:
                name = tags["haystack.component.name"]
                clocks[name] = clocks.get(name, 0.0) + time.process_time() - started

        def current_span(self) -> None:
            return None

    enable_tracing(Clock())
    try:
        yield clocks
    finally:
        disable_tracing()


def ingest(book: Path, folder: Path, warm_up: Path) -> tuple[dict[str, float], float, list[Any]]:
    """
    Put a book into an empty library.

    :param book: the book to measure.
    :param folder: the data folder.
    :param warm_up: a small book that goes in first, under another tenant, so that no import is counted.
    :returns: CPU seconds by stage, CPU seconds of the whole run, the children.
    """
    from shiguan import load_pipeline

    pipeline = load_pipeline("embedded", "index", data_dir=folder)
    inputs, outputs = pipeline.metadata["inputs"], pipeline.metadata["outputs"]
    children, socket = outputs["children"].split(".")

    def run(path: Path, tenant: str) -> list[Any]:
        data: dict[str, dict[str, Any]] = {}
        for name, value in (("sources", [path]), ("tenant_id", tenant)):
            for target in inputs[name]:
                component, key = target.split(".")
                data.setdefault(component, {})[key] = value
        results = pipeline.run(data, include_outputs_from={children}, concurrency_limit=1)
        return results[children][socket]

    run(warm_up, "warm-up")
    with stage_clocks() as clocks:
        started = time.process_time()
        found = run(book, "benchmark")
        total = time.process_time() - started
    for writer in ("parent_writer", "child_writer"):
        pipeline.get_component(writer).document_store.close()
    return clocks, total, found


def embed_in_batches(children: list[Any]) -> dict[str, float]:
    """Give the CPU seconds of embedding the children in batches of 32: in reading order, and sorted by length."""
    from shiguan import load_pipeline

    embedder = load_pipeline("embedded", "index").get_component(EMBEDDER).document_embedder
    embedder.warm_up()
    embedder.run(documents=children[:1])
    orders = {
        "reading_order": children,
        "sorted_by_length": sorted(children, key=lambda child: len(child.content), reverse=True),
    }
    seconds = {}
    for name, order in orders.items():
        started = time.process_time()
        for start in range(0, len(order), BATCH):
            embedder.run(documents=order[start : start + BATCH])
        seconds[name] = time.process_time() - started
    return seconds


def compare_token_vectors(children: list[Any], folder: Path) -> dict[str, Any]:
    """
    Embed and store children in three ways.

    :param children: the children, English.
    :param folder: an empty folder.
    :returns: CPU seconds by way, and the bytes of the token vectors of one child.
    """
    from haystack_integrations.components.embedders.sentence_transformers import (
        sentence_transformers_document_embedder as other,
    )

    from shiguan.ingest.token_vector_document_embedder import TokenVectorDocumentEmbedder
    from shiguan.stores.qdrant_edge_document_store import QdrantEdgeDocumentStore
    from shiguan.stores.token_vector_file import VECTOR_FILE
    from shiguan.support.model_cache import PACKAGED_MODEL

    embedders = {
        "with_token_vectors": TokenVectorDocumentEmbedder(meta_fields_to_embed=["title"]),
        "without": TokenVectorDocumentEmbedder(meta_fields_to_embed=["title"], token_vectors=False),
        "sentence_transformers": other.SentenceTransformersDocumentEmbedder(
            model=PACKAGED_MODEL, local_files_only=True, progress_bar=False, meta_fields_to_embed=["title"]
        ),
    }
    stores = {name: QdrantEdgeDocumentStore(path=str(folder / name)).unscoped() for name in embedders}
    for embedder in embedders.values():
        embedder.warm_up()
        embedder.run(documents=children[:1])
    ordered = sorted(children, key=lambda child: len(child.content), reverse=True)
    seconds = dict.fromkeys(embedders, 0.0)
    for turn, start in enumerate(range(0, len(ordered), SLICE)):
        names = list(embedders)
        for name in names[turn % 3 :] + names[: turn % 3]:
            started = time.process_time()
            stores[name].write_documents(embedders[name].run(documents=ordered[start : start + SLICE])["documents"])
            seconds[name] += time.process_time() - started
    for store in stores.values():
        store.close()
    size = (folder / "with_token_vectors" / "children" / VECTOR_FILE).stat().st_size
    return {"seconds": seconds, "bytes_per_child": size / len(children)}


def table(result: dict[str, Any]) -> str:
    """Write a result as Markdown."""
    stages, embedding = result["stages_s"], result["stages_s"][EMBEDDER]
    lines = ["| stage | CPU s | share of the embedding |", "|---|---:|---:|"]
    shown = [(name, value) for name, value in stages.items() if value >= 0.005 * embedding]
    lines += [
        f"| {name} | {value:.2f} | {value / embedding:.1%} |" for name, value in sorted(shown, key=lambda s: -s[1])
    ]
    small = sum(stages.values()) - sum(value for _, value in shown)
    lines.append(f"| others together | {small:.2f} | {small / embedding:.1%} |")
    verdict = "pass" if result["others_to_embedding"] <= TARGET else "MISS"
    batches, machine = result["batches_s"], result["machine"]
    lines += [
        f"| **all but the embedding** | {result['others_s']:.2f} | **{result['others_to_embedding']:.1%}** |",
        "",
        f"{verdict}: {result['others_to_embedding']:.1%} of the embedding, at most {TARGET:.0%}. Batches of {BATCH}: "
        f"{batches['reading_order']:.1f} s in reading order, {batches['sorted_by_length']:.1f} s sorted by length "
        f"({1 - batches['sorted_by_length'] / batches['reading_order']:.0%} less).",
        "",
        *(token_vector_lines(result["token_vectors"]) if "token_vectors" in result else []),
        "",
        f"{result['children']:,} children of {result['book']}, {machine['cpu']}, {machine['cores']} cores, "
        f"{machine['memory_gib']} GiB, Python {machine['python']}, {result['date']}.",
    ]
    return "\n".join(lines)


def token_vector_lines(result: dict[str, Any]) -> list[str]:
    """Write what token vectors cost."""
    seconds = result["seconds"]
    share = seconds["with_token_vectors"] / seconds["without"] - 1
    size = result["bytes_per_child"] / 1024
    verdict = "pass" if share <= TOKENS_TARGET and size <= SIZE_TARGET else "MISS"
    return [
        f"{verdict}: embedding and storing takes {seconds['with_token_vectors']:.1f} s with token vectors and "
        f"{seconds['without']:.1f} s without ({share:+.0%}, at most {TOKENS_TARGET:+.0%}); "
        f"{seconds['sentence_transformers']:.1f} s by sentence-transformers without. They take {size:.1f} KiB a child, "
        f"at most {SIZE_TARGET}.",
    ]


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ingest", description=__doc__.split("\n")[1])
    parser.add_argument("--words", type=int, default=120_000, help="length of the made-up book")
    parser.add_argument("--book", type=Path, help="measure this file instead")
    parser.add_argument("--out", type=Path, default=RESULT, help="the JSON file (default: %(default)s)")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print an earlier result and stop")
    options = parser.parse_args(arguments)
    if options.table:
        print(table(json.loads(options.table.read_text(encoding="utf-8"))))
        return 0

    from benchmarks.measuring import machine, versions

    with tempfile.TemporaryDirectory(prefix="shiguan-benchmark-") as name:
        folder = Path(name)
        small = write_book(folder / "small.epub", 300, seed=1)
        book = options.book or write_book(folder / "made-up.epub", options.words)
        stages, total, children = ingest(book, folder / "data", small)
        english = [child for child in children if child.meta.get("language") == "en"] or children
        batches = embed_in_batches(english)
        token_vectors = compare_token_vectors(english, folder / "compared")
    stages["pipeline"] = total - sum(stages.values())
    others = total - stages[EMBEDDER]
    result = {
        "book": options.book.name if options.book else f"a made-up novel of {options.words:,} words",
        "children": len(children),
        "date": date.today().isoformat(),
        "machine": machine(),
        "versions": versions("haystack-ai", "sentence-transformers", "torch", "qdrant-edge-py"),
        "stages_s": stages,
        "total_s": total,
        "others_s": others,
        "others_to_embedding": others / stages[EMBEDDER],
        "target": TARGET,
        "batches_s": batches,
        "token_vectors": token_vectors,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(table(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
