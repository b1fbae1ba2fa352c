"""
Measure what a book costs on its way into the library, stage by stage: all but the embedding should hardly count.

    python -m bench.speed.ingest                      # a made-up English novel of 120,000 words
    python -m bench.speed.ingest --book FILE.epub     # --words-only leaves the embedding out

The `index` pipeline runs one stage at a time, so that each stage's CPU time is its own; what the pipeline itself does
between the stages counts as `pipeline`. The embedder's own time is told apart from the rest of the writer of vectors.
What stands before that writer is what a book costs until it is searchable by words.
"""

import argparse
import json
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

ROOT = Path(__file__).resolve().parents[2]
RESULT = ROOT / "bench" / "speed" / "results" / "ingest.json"
TARGET = 0.15
"""What all other stages may cost, as a share of the embedding."""
WORDS_TARGET = 20 / 1.2
"""CPU seconds until a million characters are searchable by words, at most."""

EMBEDDER, WRITER = "embedder", "vector_writer"

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
    from bench.speed.synthetic import SyntheticLibrary

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


def ingest(book: Path, folder: Path, warm_up: Path, *, words_only: bool) -> tuple[dict[str, float], float, list[Any]]:
    """Put a book into an empty library."""
    from shiguan import load_pipeline
    from shiguan.stores.embedded.shards import close_all_shards

    reading = load_pipeline("embedded", "read")
    pipeline = load_pipeline("embedded", "index", data_dir=folder)
    documents, children = (
        loaded.metadata["outputs"][name].split(".") for loaded, name in ((reading, "documents"), (pipeline, "children"))
    )
    embedder = ClockedEmbedder(pipeline.get_component(WRITER).document_embedder, words_only=words_only)
    pipeline.get_component(WRITER).document_embedder = embedder

    def run(path: Path, tenant: str) -> list[Any]:
        read = reading.run({"sources": [path]}, concurrency_limit=1)[documents[0]][documents[1]]
        given = {"documents": read, "tenant_id": tenant}
        results = pipeline.run(given, include_outputs_from={children[0]}, concurrency_limit=1)
        return results[children[0]][children[1]]

    run(warm_up, "warm-up")
    with stage_clocks() as clocks:
        embedder.seconds = 0.0
        started = time.process_time()
        found = run(book, "benchmark")
        total = time.process_time() - started
    clocks[EMBEDDER] = embedder.seconds
    clocks[WRITER] -= embedder.seconds
    close_all_shards()
    return clocks, total, found


class ClockedEmbedder:
    """The embedder, with a clock."""

    def __init__(self, embedder: Any, *, words_only: bool) -> None:
        self.embedder = embedder
        self.identity = embedder.identity
        self.words_only = words_only
        self.seconds = 0.0

    def warm_up(self) -> None:
        """Load the model, or say that there is none."""
        if self.words_only:
            from shiguan.errors import ModelMissingError

            raise ModelMissingError("Only words are measured.")
        self.embedder.warm_up()

    def run(self, documents: list[Any]) -> dict[str, Any]:
        """Embed documents."""
        started = time.process_time()
        try:
            return self.embedder.run(documents=documents)
        finally:
            self.seconds += time.process_time() - started


def table(result: dict[str, Any]) -> str:
    """Write a result as Markdown."""
    from bench.speed.measuring import name_machine

    stages, embedding, others = result["stages_s"], result["stages_s"][EMBEDDER], result["others_s"]
    whole = embedding or others
    lines = [f"| stage | CPU s | share of {'the embedding' if embedding else 'all'} |", "|---|---:|---:|"]
    shown = sorted(((name, value) for name, value in stages.items() if value >= 0.005 * whole), key=lambda s: -s[1])
    lines += [f"| {name} | {value:.2f} | {value / whole:.1%} |" for name, value in shown]
    small = sum(stages.values()) - sum(value for _, value in shown)
    lines += [f"| others together | {small:.2f} | {small / whole:.1%} |", ""]
    million = result["words_s"] / result["characters"] * 1e6
    lines.append(
        f"{'pass' if million <= WORDS_TARGET else 'MISS'}: searchable by words after {result['words_s']:.1f} s of CPU, "
        f"{million:.1f} s a million characters, at most {WORDS_TARGET:.1f}."
    )
    if embedding:
        share = others / embedding
        lines.append(
            f"{'pass' if share <= TARGET else 'MISS'}: all but the embedding took {others:.1f} s, {share:.1%} of it, "
            f"at most {TARGET:.0%}."
        )
    lines += [
        "",
        f"{result['children']:,} children and {result['characters']:,} characters of {result['book']}, "
        f"{name_machine(result)}",
    ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m bench.speed.ingest", description=__doc__.split("\n")[1])
    parser.add_argument("--words", type=int, default=120_000, help="length of the made-up book")
    parser.add_argument("--book", type=Path, help="measure this file instead")
    parser.add_argument("--words-only", action="store_true", help="leave the embedding out")
    parser.add_argument("--out", type=Path, default=RESULT, help="the JSON file (default: %(default)s)")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print an earlier result and stop")
    options = parser.parse_args(arguments)
    if options.table:
        print(table(json.loads(options.table.read_text(encoding="utf-8"))))
        return 0

    from bench.speed.measuring import machine, versions

    with tempfile.TemporaryDirectory(prefix="shiguan-benchmark-") as name:
        folder = Path(name)
        small = write_book(folder / "small.epub", 300, seed=1)
        book = options.book or write_book(folder / "made-up.epub", options.words)
        stages, total, children = ingest(book, folder / "data", small, words_only=options.words_only)
    stages["pipeline"] = total - sum(stages.values())
    result = {
        "book": options.book.name if options.book else f"a made-up novel of {options.words:,} words",
        "children": len(children),
        "characters": sum(len(child.content) for child in children),
        "date": date.today().isoformat(),
        "machine": machine(),
        "versions": versions("haystack-ai", "onnxruntime", "qdrant-edge-py"),
        "stages_s": stages,
        "total_s": total,
        "words_s": total - stages[EMBEDDER] - stages[WRITER],
        "others_s": total - stages[EMBEDDER],
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(table(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
