"""What a run produced, by id: enough to know what an older run left behind."""

from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class ProducedIds:
    """
    The ids of one run's passages, and the files they came from.

    Travels instead of the passages themselves; being immutable it is never copied on the way.
    """

    files: frozenset[tuple[str, str]]
    parents: frozenset[str]
    children: frozenset[str]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self
