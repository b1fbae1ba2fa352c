"""
Pages of PDFs that are read in a second of one processor, by Shiguan's reader and by Haystack's.

    python -m bench.speed.pdf FILE.pdf ...
"""

import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from haystack.components.converters.pypdf import PyPDFToDocument
from haystack.dataclasses import ByteStream
from pypdf import PdfReader

from shiguan.ingest.pdf_to_document import PDFToDocument


def seconds(convert: Callable[..., Any], sources: list[ByteStream]) -> float:
    """Convert the sources; return the seconds of a processor that it took."""
    started = time.process_time()
    convert(sources=sources)
    return time.process_time() - started


def main(paths: list[str]) -> None:
    """Print a row for each file."""
    logging.disable(logging.ERROR)
    print("| file | pages | Shiguan, pages a second | Haystack's PyPDFToDocument |\n|---|---:|---:|---:|")
    for path in paths:
        source = [ByteStream(Path(path).read_bytes(), meta={"file_path": path})]
        pages = len(PdfReader(path).pages)
        ours, theirs = (seconds(reader.run, source) for reader in (PDFToDocument(), PyPDFToDocument()))
        print(f"| {Path(path).name} | {pages} | {pages / ours:.0f} | {pages / theirs:.0f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
