"""Finds how much of a claim a text says, in whatever words or language, by the packaged embedder's token vectors."""

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import numpy as np
from haystack import logging
from numpy.typing import NDArray

from shiguan.errors import ModelMissingError
from shiguan.llm.run import raise_if_cancelled
from shiguan.models.engine import engine

# A text of a hundred tokens takes 150 kB.
_REMEMBERED = 200
# What the vectors of all tokens have in common, the mean of those of 280 passages in four languages: without it the
# cosines of any two tokens are near 1 (`python -m bench.quality.groundedness --centre` writes it).
_COMMON = np.load(Path(__file__).with_name("token_centre.npy"))

logger = logging.getLogger(__name__)


class Alignment:
    """
    Lays claims beside texts; one for the check of an answer, which reads no text twice.

    Each token of the claim is laid beside the token of the text that is most like it; the mean of these cosines is how
    much of the claim the text says: Zhang et al. 2020, BERTScore, section 3, recall (https://arxiv.org/abs/1904.09675).
    It does not see who did what to whom, nor a number or a name that was exchanged.
    """

    def __init__(self) -> None:
        self._read = lru_cache(_REMEMBERED)(_token_vectors)

    def best(self, claim: str, texts: Iterable[str]) -> tuple[float, int] | None:
        """Return how much of a claim, 0 to 1, the text says that says most, and its place; None without the model."""
        try:
            found = [(self._share(claim, text), -at) for at, text in enumerate(texts)]
        except ModelMissingError as error:
            logger.info("Answers are checked by words alone: {error}", error=str(error))
            return None
        share, at = max(found, default=(0.0, 0))
        return share, -at

    def _share(self, claim: str, text: str) -> float:
        raise_if_cancelled()
        stated, said = (self._read(one).astype(np.float32) for one in (claim, text))
        return float((stated @ said.T).max(1).mean()) if len(stated) and len(said) else 0.0


def _token_vectors(text: str) -> NDArray[np.float16]:
    vectors = engine().token_vectors(text) - _COMMON
    found: NDArray[np.float16] = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
    return found
