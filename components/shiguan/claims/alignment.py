"""Finds how much of a claim a text says, in whatever words or language, by the packaged embedder's token vectors."""

import math
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from haystack import logging
from numpy.typing import NDArray

from shiguan.errors import ModelMissingError
from shiguan.llm.run import raise_if_cancelled
from shiguan.models.engine import engine
from shiguan.models.judge import judge
from shiguan.reading.text import read_text
from shiguan.text.languages import has_han
from shiguan.text.quantities import quantities

# A token takes 1.5 kB. Across languages each claim is laid beside all sentences, one after the other: of fewer that are
# remembered than there are, each would be forgotten before the next claim.
_REMEMBERED = 1000
# The mean cosine from which a name is like one in another language: of half A of XQuAD's sentences 95 in 100 names have
# .43, of names put in their places 90 in 100 have less than .4.
_NAME = 0.41
# What the vectors of all tokens have in common, the mean of those of 280 passages in four languages: without it the
# cosines of any two tokens are near 1 (`python -m bench.quality.groundedness --centre` writes it).
COMMON = np.load(Path(__file__).with_name("token_centre.npy"))
# Learned by `python -m bench.judge.projection`, and used where it tells claims apart better: in Chinese and across
# languages. What it finds of a true claim of half A of the Tang histories is lower by so much.
_LEARNED = {
    name: values.astype(np.float32)
    for name, values in np.load(Path(__file__).with_name("token_projection.npz")).items()
}
_LOWER = 0.09
# What the judge's log-odds count for, and those from which on they speak for a claim; none is surer than the last
# (bench/judge/README.md). In Chinese, where the projection was learned, it keeps more, true ones and false ones.
_JUDGED, _NEITHER, _LEAST = 0.065, -1.9, 0.018

logger = logging.getLogger(__name__)


class Alignment:
    """
    Lays claims beside texts; one for the check of an answer, which reads no text twice.

    Each token of the claim is laid beside the token of the text that is most like it; the mean of these cosines is how
    much of the claim the text says: Zhang et al. 2020, BERTScore, section 3, recall (https://arxiv.org/abs/1904.09675).
    In Chinese and across languages the vectors are projected first and the claim's tokens weighted, as was learned.
    Names and numbers are left to the rules that compare them exactly. It does not see who did what to whom.
    """

    def __init__(self) -> None:
        self._read = lru_cache(_REMEMBERED)(_token_vectors)
        self._judged = lru_cache(_REMEMBERED)(_log_odds)

    def best(self, claim: str, texts: Iterable[str], *, across: bool = False) -> tuple[float, int] | None:
        """
        Return how much of a claim, 0 to 1, the text says that says most, and its place; None without the model.

        :param across: Whether the texts are in other languages than the claim.
        """
        try:
            places, vectors = self._read(claim)
            compared = compared_tokens(claim, places)
            stated, weights = vectors[compared].astype(np.float32), None
            if across or has_han(claim):
                weights = np.logaddexp(0, stated @ _LEARNED["weight"] + _LEARNED["bias"])
                stated = _projected(stated, "claim")
            found = [(self._share(stated, text, weights), -at) for at, text in enumerate(texts)]
        except ModelMissingError as error:
            logger.info("Answers are checked by words alone: {error}", error=str(error))
            return None
        most, at = max(found, default=(0.0, 0))
        return most, -at

    def confirmed(self, claim: str, text: str, place: tuple[int, int], aligned: float) -> float:
        """
        Return an alignment, raised or lowered by what the judge makes of the claim beside a place and its neighbours.

        What is invented about the same matter is aligned with it as well as what is told in other words: only who reads
        both can tell. Of English claims the judge has learned that.
        """
        if read_text(claim).language != "en":
            return aligned
        raise_if_cancelled()
        spans = read_text(text).sentences
        inside = [at for at, (start, end) in enumerate(spans) if start < place[1] and end > place[0]]
        first, last = max(0, inside[0] - 1), min(len(spans) - 1, inside[-1] + 1)
        try:
            judged = self._judged(claim, text[spans[first][0] : spans[last][1]])
        except ModelMissingError as error:
            logger.info("No judge reads the answers: {error}", error=str(error))
            return aligned
        return max(0.0, min(1.0, aligned + _JUDGED * (judged - _NEITHER)))

    def unlike(self, claim: str, names: Iterable[str], texts: Sequence[str]) -> list[str]:
        """Return those names of a claim that are like nothing in the texts; two languages may spell one in two ways."""
        places, vectors = self._read(claim)
        found = []
        for name in names:
            apart = _occurrences(name, claim)
            stated = vectors[[at for at, place in enumerate(places) if _is_within(place, apart)]].astype(np.float32)
            if max((self._share(stated, text) for text in texts), default=0.0) < _NAME:
                found.append(name)
        return found

    def _share(self, stated: NDArray[np.float32], text: str, weights: NDArray[np.float32] | None = None) -> float:
        """Return how much of a claim a text says; a claim that has weights is projected already, and so is the text."""
        raise_if_cancelled()
        said = self._read(text)[1].astype(np.float32)
        if not len(stated) or not len(said):
            return 0.0
        if weights is None:
            return float((stated @ said.T).max(1).mean())
        return float(np.average((stated @ _projected(said, "text").T).max(1), weights=weights)) + _LOWER


def _projected(vectors: NDArray[np.float32], side: str) -> NDArray[np.float32]:
    moved: NDArray[np.float32] = vectors + vectors @ _LEARNED[f"{side}_in"] @ _LEARNED[f"{side}_out"]
    return _unit(moved)


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths: NDArray[np.float32] = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / lengths


def compared_tokens(claim: str, places: Sequence[tuple[int, int]]) -> list[int]:
    """Return the tokens outside of names and numbers; all where nothing else is left."""
    apart = [(number.start, number.end) for number in quantities(claim)]
    apart += [place for name in read_text(claim).names for place in _occurrences(name, claim)]
    rest = [
        at
        for at, (start, end) in enumerate(places)
        if any(map(str.isalnum, claim[start:end])) and not _is_within((start, end), apart)
    ]
    return rest or list(range(len(places)))


def _occurrences(name: str, claim: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(re.escape(name), claim)]


def _is_within(place: tuple[int, int], apart: Sequence[tuple[int, int]]) -> bool:
    return any(place[0] < end and place[1] > start for start, end in apart)


def _log_odds(claim: str, text: str) -> float:
    (verdict,) = judge().verdicts([(claim, text)])
    share = min(max(verdict.supported, _LEAST), 1 - _LEAST)
    return math.log(share / (1 - share))


def _token_vectors(text: str) -> tuple[list[tuple[int, int]], NDArray[np.float16]]:
    places, vectors = engine().token_vectors(text)
    vectors -= COMMON
    return places, _unit(vectors).astype(np.float16)
