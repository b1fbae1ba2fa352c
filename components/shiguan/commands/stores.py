"""`shiguan stores`: prepare and inspect the servers behind a deployment, and copy a library to them."""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from shiguan.commands import AddCommand
from shiguan.commands.options import print_json, say

_CLUSTER = "elasticsearch_qdrant"


def register(add: AddCommand) -> None:
    """Declare the commands."""
    for name, command, text in (
        ("stores init", _init, "make the indexes and the collection of a deployment, where they are not there yet"),
        ("stores status", _status, "show how the servers of a deployment do, and what is not as it should be"),
    ):
        parser = add(name, command, text, deployment=False, library=False)
        parser.add_argument("--deployment", default=_CLUSTER, help=f"a folder of pipelines/ (default: {_CLUSTER})")
    parser = add(
        "stores copy", _copy, "copy the whole library of one deployment to another", deployment=False, library=False
    )
    parser.add_argument("--from", dest="source", default="embedded", help="what to copy (default: embedded)")
    parser.add_argument("--to", dest="target", default=_CLUSTER, help=f"where to (default: {_CLUSTER})")
    parser.add_argument(
        "--data-dir",
        type=Path,
        help="where the embedded library is (default: $SHIGUAN_DATA_DIR, else the user's data folder)",
    )


def _init(options: argparse.Namespace) -> int:
    done: list[str] = []
    for store in _stores(options.deployment):
        done += store.set_up() if hasattr(store, "set_up") else []
    if options.json:
        print_json({"deployment": options.deployment, "done": done})
    else:
        for line in done or [f"The deployment `{options.deployment}` has no servers; there is nothing to make."]:
            say(line)
    return 0


def _status(options: argparse.Namespace) -> int:
    found: list[dict[str, Any]] = []
    for store in _stores(options.deployment):
        found += store.status() if hasattr(store, "status") else []
    if options.json:
        print_json({"deployment": options.deployment, "stores": found})
    else:
        for entry in found:
            _say_status(entry)
        if not found:
            say(f"The deployment `{options.deployment}` has no servers; `shiguan sources` shows what is in it.")
    return 1 if any(entry["problems"] for entry in found) else 0


def _stores(deployment: str) -> list[Any]:
    from shiguan.engine.loading import has_file, load_stores

    kinds = ["parents", "children", *(["conversations"] if has_file(deployment, "memory") else ())]
    return list(load_stores(deployment, kinds=kinds).values())


def _say_status(entry: dict[str, Any]) -> None:
    documents = entry["documents"]
    amount = "" if documents is None else f", {documents:,} passages"
    indexed = f", {entry['indexed']:,} of them in the graph" if "indexed" in entry else ""
    version = f" ({entry['version']})" if entry["version"] else ""
    say(f"{entry['server']}{version}: {entry['name']}, {entry['health']}{amount}{indexed}")
    for problem in entry["problems"]:
        say(f"  ! {problem}")


def _copy(options: argparse.Namespace) -> int:
    from shiguan.commands.terminal import IngestProgress, track
    from shiguan.engine.library_copy import KINDS, LibraryCopy

    copy = LibraryCopy(options.source, options.target, data_dir=options.data_dir)
    try:
        for kind in KINDS:
            batches = copy.batches(kind)
            for ids in batches if options.json else track(batches, f"Copying {kind}"):
                copy.copy(kind, ids)
        with IngestProgress([], show=not options.json) as progress:
            warnings = copy.embed(progress.callback)
        counts = {kind: asdict(done) for kind, done in copy.compare().items()}
    finally:
        copy.close()
    if options.json:
        print_json({"from": options.source, "to": options.target, **counts, "warnings": warnings})
    else:
        for kind, done in counts.items():
            say(
                f"{kind}: {done['source']:,} in {options.source}, {done['written']:,} written, {done['known']:,} were "
                f"there, {done['missing']:,} missing; {options.target} has {done['target']:,} altogether."
            )
    for warning in warnings:
        say(f"note: {warning}")
    if any(done["missing"] for done in counts.values()):
        say("Passages are missing: the library changed meanwhile, or a server lost them. Run the same command again.")
        return 1
    return 0
