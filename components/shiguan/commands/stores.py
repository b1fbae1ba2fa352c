"""`shiguan stores`: prepare, inspect, renew and save what a deployment's servers hold, and copy a library to them."""

import argparse
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from shiguan.commands import AddCommand
from shiguan.commands.options import say, tell
from shiguan.errors import RefusedError

_CLUSTER = "elasticsearch_qdrant"


def register(add: AddCommand) -> None:
    for name, command, text in (
        ("stores init", _init, "make the indexes and the collection of a deployment, where they are not there yet"),
        ("stores status", _status, "show how the servers of a deployment do, and what is not as it should be"),
        ("stores reindex", _reindex, "make the next index of what does not fit the files, from what is there"),
        ("stores switch", _switch, "let the names mean the newest indexes, or those before"),
        ("stores backup", _backup, "save indexes and collection on the servers' own disks"),
        ("stores verify", _verify, "say whether a backup is whole; without a name, list what there is"),
        ("stores restore", _restore, "bring a backup back beside what is there, and let the names mean it"),
    ):
        parser = add(name, command, text, deployment=False, library=False)
        parser.add_argument("--deployment", default=_CLUSTER, help=f"a folder of pipelines/ (default: {_CLUSTER})")
        if command in (_reindex, _switch):
            parser.add_argument("names", nargs="*", metavar="NAME", help="only these, e.g. shiguan-children")
        if command is _switch:
            parser.add_argument("--back", action="store_true", help="to the indexes before")
        if command in (_verify, _restore):
            parser.add_argument("backup", nargs="?" if command is _verify else None, help="as `stores backup` named it")
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
    done = [line for store in _stores(options.deployment) for line in getattr(store, "set_up", list)()]
    return _say_done(
        options, done or [f"The deployment `{options.deployment}` has no servers; there is nothing to make."]
    )


def _status(options: argparse.Namespace) -> int:
    found = [entry for store in _stores(options.deployment) for entry in getattr(store, "status", list)()]
    lines = [line for entry in found for line in _status_lines(entry)]
    none = f"The deployment `{options.deployment}` has no servers; `shiguan sources` shows what is in it."
    tell(options, {"deployment": options.deployment, "stores": found}, *(lines or [none]))
    return 1 if any(entry["problems"] for entry in found) else 0


def _reindex(options: argparse.Namespace) -> int:
    done = [part.copy() for part in _parts(options, lambda part: part.status().get("copy_needed"))]
    said = done and [*done, "`shiguan stores switch` lets the names mean them; until then nothing changes."]
    return _say_done(options, said or ["Everything fits the deployment's files. Name what is to be copied anyway."])


def _switch(options: argparse.Namespace) -> int:
    def other(part: Any) -> bool:
        names, current = part.listed()
        return any(name < current if options.back else name > current for name in names if current)

    done = [part.switch(back=options.back) for part in _parts(options, other)]
    return _say_done(options, done or ["There is nothing to switch to; `shiguan stores reindex` makes it."])


def _backup(options: argparse.Namespace) -> int:
    from shiguan.stores.cluster.generations import back_up

    name, done = back_up(_parts(options))
    return _say_done(options, [*done, f"The backup is named {name}; `shiguan stores verify {name}` looks at it."])


def _verify(options: argparse.Namespace) -> int:
    from shiguan.stores.cluster.generations import list_backups, verify

    if options.backup is None:
        return _say_done(
            options, list_backups(_parts(options)) or ["There is no backup; `shiguan stores backup` makes one."]
        )
    problems = verify(_parts(options), options.backup)
    _say_done(options, problems or [f"The backup {options.backup} is whole."])
    return 1 if problems else 0


def _restore(options: argparse.Namespace) -> int:
    from shiguan.stores.cluster.generations import restore

    return _say_done(options, restore(_parts(options), options.backup))


def _parts(options: argparse.Namespace, wanted: Callable[[Any], Any] = lambda _: True) -> list[Any]:
    """Give the indexes and collections of a deployment: those that are named, else those that are wanted."""
    parts = [part for store in _stores(options.deployment) for part in getattr(store, "generations", list)()]
    if not parts:
        raise RefusedError(
            f"The deployment `{options.deployment}` has no servers. Name one that has, or copy its folder."
        )
    named = getattr(options, "names", [])
    unknown = set(named) - {part.name for part in parts}
    if unknown:
        raise RefusedError(
            f"The deployment `{options.deployment}` has no {', '.join(sorted(unknown))}. It has "
            f"{', '.join(sorted({part.name for part in parts}))}."
        )
    return [part for part in parts if (part.name in named if named else wanted(part))]


def _say_done(options: argparse.Namespace, lines: list[str]) -> int:
    tell(options, {"deployment": options.deployment, "done": lines}, *lines)
    return 0


def _stores(deployment: str) -> list[Any]:
    from shiguan.engine.loading import has_file, load_stores

    kinds = ["parents", "children", *(["conversations"] if has_file(deployment, "memory") else ())]
    return list(load_stores(deployment, kinds=kinds).values())


def _status_lines(entry: dict[str, Any]) -> list[str]:
    documents = entry["documents"]
    amount = "" if documents is None else f", {documents:,} passages"
    indexed = f", {entry['indexed']:,} of them in the graph" if "indexed" in entry else ""
    version = f" ({entry['version']})" if entry["version"] else ""
    head = f"{entry['server']}{version}: {entry['name']}, {entry['health']}{amount}{indexed}"
    return [head, *(f"  ! {one}" for one in entry["problems"]), *(f"  {note}" for note in entry.get("notes", ()))]


def _copy(options: argparse.Namespace) -> int:
    from shiguan.commands.terminal import IngestProgress, track
    from shiguan.engine.library_copy import KINDS, LibraryCopy

    copy = LibraryCopy(options.source, options.target, data_dir=options.data_dir)
    try:
        for kind in KINDS:
            for _ in copy.copy(kind) if options.json else track(copy.copy(kind), f"Copying {kind}", copy.slices(kind)):
                pass
        with IngestProgress([], show=not options.json) as progress:
            warnings = copy.embed(progress.callback)
        counts = {kind: asdict(done) for kind, done in copy.compare().items()}
    finally:
        copy.close()
    lines = [
        f"{kind}: {done['source']:,} in {options.source}, {done['written']:,} written, {done['known']:,} were there, "
        f"{done['missing']:,} missing; {options.target} has {done['target']:,} altogether."
        for kind, done in counts.items()
    ]
    tell(options, {"from": options.source, "to": options.target, **counts, "warnings": warnings}, *lines)
    for warning in warnings:
        say(f"note: {warning}")
    if any(done["missing"] for done in counts.values()):
        say("Passages are missing: the library changed meanwhile, or a server lost them. Run the same command again.")
        return 1
    return 0
