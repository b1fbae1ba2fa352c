"""
Ingests a book while its disk fails: `ingest_on_a_small_disk.py FOLDER full|read-only BOOK`.

Full: FOLDER becomes a disk of 300 MB, which needs a mount namespace (`unshare --mount`), and is filled up before the third batch of
vectors. Read-only: nothing may be written below FOLDER any more, which holds for root without its capability to write everywhere.
Prints JSON: exit code and words of the ingest that met the fault, of `sources` then, and of `--resume` once the disk is well again; and
how many passages were embedded.
"""

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path

from tests.doubles.fake_embedder import embed_without_a_model

from shiguan.cli import main
from shiguan.ingest import vector_writer

SLICE = 4


def told(*arguments):
    """Run a command and give its exit code and what it said."""
    said, complained = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        code = main([*arguments, "--tenant", "t"])
    return {"code": code, "out": said.getvalue(), "err": complained.getvalue()}


def allow(folder, mode):
    for path in [folder, *folder.rglob("*")]:
        path.chmod(mode if path.is_dir() else mode & 0o666)


def run(folder, fault, book):
    library, filling = folder / "library", folder / "filling"
    if fault == "full":
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300m", "tmpfs", str(folder)], check=True)
    batches = []

    def before(documents):
        batches.append(len(documents))
        if len(batches) == 3 and fault == "full":
            with filling.open("wb") as file, contextlib.suppress(OSError):
                while True:
                    file.write(bytes(1_000_000))
        elif len(batches) == 3:
            allow(library, 0o555)

    vector_writer._SLICE = SLICE
    embed_without_a_model(before)
    failed = told("ingest", str(book), "--data-dir", str(library))
    before = sum(batches)
    filling.unlink(missing_ok=True)
    allow(library, 0o777)
    found = told("sources", "--data-dir", str(library))
    mended = told("ingest", "--resume", "--data-dir", str(library))
    sys.stdout.write(
        json.dumps({"failed": failed, "found": found, "mended": mended, "embedded": [before, sum(batches) - before]})
    )


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
