"""Copies of our pipeline files, each with one way cut into it on which a tenant could see or change another's documents."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.security.index_mutants import index_mutants
from tests.security.mutant_parts import load
from tests.security.query_mutants import query_mutants

PIPELINES = Path(__file__).resolve().parents[2] / "pipelines"
FILES = sorted(path for path in PIPELINES.glob("*/*.yml") if path.stem not in ("models", "read"))


@dataclass
class Mutant:
    """
    :param file: Which file was changed, such as `embedded/simple`.
    :param name: What was done to it.
    :param data: The changed definition.
    :param shows: Whether a run of it shows another tenant's documents; else the harm is in a later round of the loop, in
        a store that is empty in a test, or in what is written.
    """

    file: str
    name: str
    data: dict[str, Any]
    shows: bool = True

    @property
    def id(self) -> str:
        return f"{self.file}: {self.name}"


def mutants(path: Path) -> Iterator[Mutant]:
    """All mutants of a file."""
    data = load(path)
    file = f"{path.parent.name}/{path.stem}"
    make = index_mutants if path.stem == "index" else query_mutants
    for name, change, *rest in make(data):
        copy = deepcopy(data)
        change(copy)
        assert copy != data, name
        yield Mutant(file, name, copy, *rest)
