"""Reads whether a text states what a stretch of it says: multilingual-e5-small with a low-rank adapter of its own."""

import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shiguan.models.adapter import APART, DEPTH, AdaptedWeights, Adapter
from shiguan.models.engine import EncoderGraph, GraphReader
from shiguan.models.token_counter import tokenizer
from shiguan.models.weights import DIMENSIONS

ADAPTER = Path(__file__).with_name("factuality.npz")
MOST = 128
"""Tokens of the window that is read; it learned from up to 200, most of them fewer than 90."""
_AROUND = 600
"""Characters before and behind a stretch that are looked at: more than a window's tokens."""


class FactualityGraph(EncoderGraph):
    """The encoder over one text; to the tokens of the stretch a mark is added before the layers that were adapted."""

    weights: AdaptedWeights
    inputs: ClassVar[dict[str, list[Any]]] = {"mark": [1, "tokens", DIMENSIONS]}

    def encoder(self) -> list[str]:
        """Append the layers."""
        hidden = self.start()
        for number in range(DEPTH):
            hidden = self.layer(self.node("Add", hidden, "mark") if number == APART else hidden, number)
        return [hidden]


class FactualityReader(GraphReader):
    """
    Estimates whether a text states what a stretch of it says, or only reports, plans, supposes, doubts or denies it.

    `He was thought to have drowned` has the words `he drowned`, and does not say so. What makes the difference may
    stand before the stretch, behind it or in a neighbouring sentence, in any words: the factuality of events (Saurí and
    Pustejovsky 2009, FactBank, https://doi.org/10.1007/s10579-009-9089-9). Learned in English and Chinese
    (`bench/judge/README.md`). Safe to use from many threads, and the same at every run; get the process's by
    `factuality_reader`.
    """

    def __init__(self, adapter: Path = ADAPTER) -> None:
        self._adapter = read = Adapter(adapter)
        super().__init__(
            f"factuality-{read.mark}.onnx", lambda path: FactualityGraph(AdaptedWeights(path, read.values))
        )

    def log_odds(self, text: str, places: Sequence[tuple[int, int]]) -> float:
        """
        Return the log-odds that a text states what a stretch of it says.

        :param text: Best some sentences; of a longer one the 128 tokens around the stretch are read.
        :param places: Where the stretch begins and ends (exclusive), in code points; several where parts are left out.
        :returns: Above 0 where that is likely; 0 where the stretch has no token.
        """
        pieces, inside = window_of(text, places)
        if not inside.any():
            return 0.0
        marked = np.pad(inside, 1)
        embeddings = self._placed(self._words(pieces))
        mark = marked[:, None] * self._adapter.values["of_stretch"]
        (read,) = self._session.run(None, {"embeddings": embeddings[None], "mark": mark[None]})
        tokens, stretch = read[0], read[0][marked]
        pooled = np.concatenate([tokens[0], stretch.mean(0), stretch.max(0), stretch[0]])
        return float(self._adapter.head("stated", pooled)[0])


def window_of(text: str, places: Sequence[tuple[int, int]]) -> tuple[list[int], NDArray[np.bool_]]:
    """Return the tokens around a stretch of a text, and which of them are its."""
    first, last = places[0][0], places[-1][1]
    cut = max(0, first - _AROUND)
    spans = [(start - cut, end - cut) for start, end in places]
    pieces = tokenizer().pieces(text[cut : last + _AROUND])
    inside = np.array([any(start < b and a < end for start, end in spans) for _, a, b in pieces], bool)
    marked = np.flatnonzero(inside)
    middle = (marked[0] + marked[-1] + 1) // 2 if len(marked) else 0
    at = int(max(0, min(middle - MOST // 2, len(pieces) - MOST)))
    return [piece for piece, *_ in pieces[at : at + MOST]], inside[at : at + MOST]


_loading = threading.Lock()


def factuality_reader() -> FactualityReader:
    """Return the process's reader; `ModelMissingError` where the weights are not installed, or are other ones."""
    with _loading:
        return _load()


@cache
def _load() -> FactualityReader:
    return FactualityReader()
