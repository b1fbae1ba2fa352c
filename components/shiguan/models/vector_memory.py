"""Remembers the vectors of texts, for the tenant that had them made."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]


@dataclass
class _Place:
    computing: Lock = field(default_factory=Lock)
    vector: Vector | None = None


class VectorMemory:
    """
    The vectors of the last texts that one embedder was asked for; a tenant finds only what it asked for itself.

    A call for a text that is just being embedded waits for it. Safe to use from many threads.
    """

    def __init__(self, most: int) -> None:
        self._looking = Lock()
        self._place = lru_cache(most)(lambda _tenant_id, _kind, _text: _Place())

    def vectors(
        self, tenant_id: str, kind: str, texts: Sequence[str], embed: Callable[[list[str]], Sequence[Vector]]
    ) -> list[Vector]:
        """Return the vectors of texts, embedded where they are not remembered; none for which `embed` gives nothing."""
        # In one order, so that two who want the same texts cannot wait for each other.
        wanted = sorted(set(texts))
        with self._looking:
            places = {text: self._place(tenant_id, kind, text) for text in wanted}
        with ExitStack() as computing:
            for text in wanted:
                computing.enter_context(places[text].computing)
            missing = [text for text in wanted if places[text].vector is None]
            if missing and (made := embed(missing)):
                for text, vector in zip(missing, made, strict=True):
                    places[text].vector = vector
            return [place.vector for place in map(places.__getitem__, texts) if place.vector is not None]
