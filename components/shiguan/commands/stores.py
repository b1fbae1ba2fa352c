"""`shiguan stores`: prepare, inspect, renew and save what a deployment's servers hold, and copy a library to them."""

import argparse
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from shiguan.commands.options import say, tell
from shiguan.commands.terminal import IngestProgress, track
from shiguan.engine.library_copy import KINDS, LibraryCopy
from shiguan.engine.loading import keeps_conversations, load_stores
from shiguan.errors import RefusedError


def init(options: argparse.Namespace) -> int:
    done = [line for store in _stores(options.deployment) for line in getattr(store, "set_up", list)()]
    none = f"The deployment `{options.deployment}` has no servers; there is nothing to make."
    return _say_done(options, done or [none])


def status(options: argparse.Namespace) -> int:
    found = [entry for store in _stores(options.deployment) for entry in getattr(store, "status", list)()]
    lines = [line for entry in found for line in _status_lines(entry)]
    none = f"The deployment `{options.deployment}` has no servers; `shiguan sources` shows what is in it."
    tell(options, {"deployment": options.deployment, "stores": found}, *(lines or [none]))
    return 1 if any(entry["problems"] for entry in found) else 0


def reindex(options: argparse.Namespace) -> int:
    done = [part.copy() for part in _parts(options, lambda part: part.status().get("copy_needed"))]
    said = done and [*done, "`shiguan stores switch` lets the names mean them; until then nothing changes."]
    return _say_done(options, said or ["Everything fits the deployment's files. Name what is to be copied anyway."])


def switch(options: argparse.Namespace) -> int:
    def other(part: Any) -> bool:
        names, current = part.listed()
        return any(name < current if options.back else name > current for name in names if current)

    done = [part.switch(back=options.back) for part in _parts(options, other)]
    return _say_done(options, done or ["There is nothing to switch to; `shiguan stores reindex` makes it."])


def backup(options: argparse.Namespace) -> int:
    from shiguan.stores.cluster import generations

    name, done = generations.back_up(_parts(options))
    return _say_done(options, [*done, f"The backup is named {name}; `shiguan stores verify {name}` looks at it."])


def verify(options: argparse.Namespace) -> int:
    from shiguan.stores.cluster import generations

    parts = _parts(options)
    if options.backup is None:
        found = generations.list_backups(parts)
        return _say_done(options, found or ["There is no backup; `shiguan stores backup` makes one."])
    problems = generations.verify(parts, options.backup)
    _say_done(options, problems or [f"The backup {options.backup} is whole."])
    return 1 if problems else 0


def restore(options: argparse.Namespace) -> int:
    from shiguan.stores.cluster import generations

    return _say_done(options, generations.restore(_parts(options), options.backup))


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
    kinds = ["parents", "children", *(["conversations"] if keeps_conversations(deployment) else ())]
    return list(load_stores(deployment, kinds=kinds).values())


def _status_lines(entry: dict[str, Any]) -> list[str]:
    documents = entry["documents"]
    amount = "" if documents is None else f", {documents:,} passages"
    indexed = f", {entry['indexed']:,} of them in the graph" if "indexed" in entry else ""
    version = f" ({entry['version']})" if entry["version"] else ""
    head = f"{entry['server']}{version}: {entry['name']}, {entry['health']}{amount}{indexed}"
    return [head, *(f"  ! {one}" for one in entry["problems"]), *(f"  {note}" for note in entry.get("notes", ()))]


def copy(options: argparse.Namespace) -> int:
    work = LibraryCopy(options.source, options.target, data_dir=options.data_dir)
    try:
        for kind in KINDS:
            for _ in work.copy(kind) if options.json else track(work.copy(kind), f"Copying {kind}", work.slices(kind)):
                pass
        with IngestProgress([], show=not options.json) as progress:
            warnings = work.embed(progress.callback)
        counts = {kind: asdict(done) for kind, done in work.compare().items()}
    finally:
        work.close()
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
