"""Backups of a deployment: its indexes and its collection together, by one name, on the servers' own disks."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from shiguan.errors import RefusedError
from shiguan.stores.cluster.elasticsearch_index import ElasticsearchIndex
from shiguan.stores.cluster.generations import Generations


def back_up(parts: Sequence[Generations]) -> tuple[str, list[str]]:
    """
    Save all parts; gives the backup's name and what was done.

    Vectors first: a passage that comes between has its words and waits for its vector, which `ingest --resume` makes.
    What the vectors' server calls its part is noted in every part of the other, so that one name brings all back.
    """
    name = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    notes: dict[str, Any] = {}
    done = []
    for part in sorted(parts, key=lambda part: isinstance(part, ElasticsearchIndex)):
        saved = part.save(name, notes)
        if not isinstance(part, ElasticsearchIndex):
            notes[_note(part)] = saved
        done.append(f"{part.server.place}: {saved['index']} saved, {saved['count']:,} entries")
    return name, done


def restore(parts: Sequence[Generations], name: str) -> list[str]:
    """Bring all parts back under numbers of their own, and let the names mean them; what is there now is kept."""
    problems = verify(parts, name)
    if problems:
        raise RefusedError(f"The backup {name} is not whole: {'; '.join(problems)}. Nothing was brought back.")
    return [part.restore(name, saved) for part, saved in _saved(parts, name)]


def verify(parts: Sequence[Generations], name: str) -> list[str]:
    """Say what of a backup is missing or damaged."""
    return [problem for part, saved in _saved(parts, name) for problem in part.verify(name, saved)]


def names(parts: Sequence[Generations]) -> list[str]:
    """List the backups that hold every part, the newest last."""
    held = [set(part.backups()) for part in parts if isinstance(part, ElasticsearchIndex)]
    return sorted(set.intersection(*held)) if held else []


def _saved(parts: Sequence[Generations], name: str) -> list[tuple[Generations, dict[str, Any]]]:
    found = [(part, part.saved(name)) for part in parts if isinstance(part, ElasticsearchIndex)]
    notes = {key: note for _, saved in found for key, note in saved.items()}
    own: list[tuple[Generations, dict[str, Any]]] = [(part, saved[part.name]) for part, saved in found]
    others = [(part, notes[_note(part)]) for part in parts if not isinstance(part, ElasticsearchIndex)]
    # Words and parents before vectors: what is found by its vector must be readable.
    return [*own, *others]


def _note(part: Generations) -> str:
    return f"qdrant {part.name}"
