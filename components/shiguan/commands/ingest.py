"""`shiguan ingest`: put files and folders into the library."""

import argparse
import time

from shiguan.commands import AddCommand
from shiguan.commands.options import tenant
from shiguan.commands.printing import print_json


def register(add: AddCommand) -> None:
    """
    Declare the command.

    :param add: Adds it to the program.
    """
    parser = add("ingest", _ingest, "put files and folders into the library")
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="EPUB, PDF, DOCX, HTML, Markdown, text, JSONL or a folder"
    )


def _ingest(options: argparse.Namespace) -> int:
    from shiguan.library import Library, find_files
    from shiguan.terminal import IngestProgress, print_ingest_summary

    started = time.perf_counter()
    files, others = find_files(options.paths)
    library = Library(options.deployment, data_dir=options.data_dir)
    with IngestProgress(files, show=not options.json) as progress:
        results = []
        for result in library.ingest(files, tenant_id=tenant(options), progress=progress.callback):
            results.append(result)
            progress.advance(result)
    summary = {
        "sources": sum(result.sources for result in results),
        "parents": sum(result.parents for result in results),
        "children": sum(result.children for result in results),
        "new": sum(result.new for result in results),
        "removed": sum(result.removed for result in results),
        "skipped": [entry for result in results for entry in result.skipped],
        "warnings": [text for result in results for text in result.warnings],
        "other_files": dict(others),
        "seconds": round(time.perf_counter() - started, 2),
    }
    if options.json:
        print_json(summary)
    else:
        print_ingest_summary(summary)
    # A file that gave nothing is a failure; a few bad rows of a file that went in are not.
    return 1 if any(result.skipped and not result.sources for result in results) else 0
