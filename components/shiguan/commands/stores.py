"""`shiguan stores`: create and inspect what a deployment has on its servers, and copy a library to them."""

import argparse
from collections.abc import Iterator
from typing import Any

from shiguan.commands.options import print_line, print_result
from shiguan.commands.terminal import IngestProgress, track
from shiguan.engine.library_copy import KINDS, LibraryCopy
from shiguan.engine.loading import load_stores

_NAMED = 5


def init(options: argparse.Namespace) -> int:
    done = [line for store in load_stores(options.deployment, conversations=True).values() for line in store.set_up()]
    none = f"The deployment `{options.deployment}` has no servers; there is nothing to create."
    print_result(options, {"deployment": options.deployment, "done": done or [none]}, *(done or [none]))
    return 0


def status(options: argparse.Namespace) -> int:
    stores = load_stores(options.deployment)
    unfinished = list(_unfinished_files(options.deployment, stores))
    counts = {kind: store.unscoped().count_documents() for kind, store in stores.items()}
    more = [f"and {len(unfinished) - _NAMED:,} more files"] if len(unfinished) > _NAMED else []
    lines = [f"{kind}: {count:,}" for kind, count in counts.items()]
    lines += [f"  ! {text}" for text in (*unfinished[:_NAMED], *more)]
    print_result(options, {"deployment": options.deployment, "stores": counts, "unfinished": unfinished}, *lines)
    return 1 if unfinished else 0


def _unfinished_files(deployment: str, stores: dict[str, Any]) -> Iterator[str]:
    """Compare what the parents say of each file with its children and vectors."""
    if other := stores["children"].other_vectors():
        yield other
    counts = stores["children"].unscoped().count_by_file()
    for file in stores["parents"].unscoped().list_files():
        words, vectors = counts.get(file["file_id"], (0, 0))
        units, name = file.get("units") or words, f"`{file['source']}` of the tenant `{file['tenant_id']}`"
        if words != units:
            yield f"{name} has {words:,} of {units:,} retrieval units: ingest the file again"
        elif vectors != words:
            command = f"shiguan ingest --resume --deployment {deployment} --tenant {file['tenant_id']}"
            yield f"{name} has {vectors:,} vectors for {words:,} retrieval units: run `{command}`"


def copy(options: argparse.Namespace) -> int:
    work = LibraryCopy(options.source, options.target, data_dir=options.data_dir)
    try:
        for kind in KINDS:
            for _ in work.copy(kind) if options.json else track(work.copy(kind), f"Copying {kind}", work.slices(kind)):
                pass
        with IngestProgress([], show=not options.json) as progress:
            warnings = work.embed(progress.callback)
        counts = work.compare()
    finally:
        work.close()
    lines = [
        f"{kind}: {done['source']:,} in {options.source}, {done['written']:,} written, {done['known']:,} were there, "
        f"{done['missing']:,} missing; {options.target} has {done['target']:,} altogether."
        for kind, done in counts.items()
    ]
    print_result(options, {"from": options.source, "to": options.target, **counts, "warnings": warnings}, *lines)
    for warning in warnings:
        print_line(f"note: {warning}")
    if any(done["missing"] for done in counts.values()):
        print_line("Passages are missing: the library has changed, or a server lost them. Run the same command again.")
        return 1
    return 0
