"""The sample book, ingested for the benchmarks."""

from pathlib import Path

NEIGHBOUR = "neighbour"
"""Another tenant with the same documents: what shows up of them has leaked."""


def prepare(folder: Path) -> Path:
    """Build the sample book and ingest it for the asking tenant and for a neighbour, whose passages must never show."""
    from examples.build_book import build_book

    from shiguan.engine.library import Library
    from shiguan.errors import RefusedError
    from shiguan.evaluation.provenance import TENANT

    book = build_book(folder / "an-lushan-rebellion.epub")
    library = Library("embedded", data_dir=folder / "library")
    for tenant in (TENANT, NEIGHBOUR):
        for result in library.ingest([book], tenant_id=tenant):
            if not result.parents:
                raise RefusedError(f"{result.file} gave no passage: {result.skipped or result.warnings}. Check it.")
    return folder / "library"
