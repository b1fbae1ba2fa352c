"""The embedder without its wrapping: one forward pass for a text's embedding and the vectors of its tokens."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from shiguan.errors import ConfigurationError
from shiguan.support.model_cache import PACKAGED_MODEL, seed_model_cache

_POOLING = "pooling_mode_"
_MEAN = "pooling_mode_mean_tokens"


@dataclass(frozen=True)
class EncodedText:
    """
    What the model makes of one text.

    :param embedding: As sentence-transformers gives it. Shape: (dimensions,), float32.
    :param token_ids: The text's tokens within the model's window, special tokens left out. Shape: (tokens,), int32.
    :param tokens: Their vectors in the model's last layer, each of length 1. Shape: (tokens, dimensions), float32.
    """

    embedding: np.ndarray
    token_ids: np.ndarray
    tokens: np.ndarray


class TokenEncoder:
    """
    Runs a sentence embedder that is a transformer with mean pooling, such as MiniLM.

    sentence-transformers gives the same embeddings, but takes as long around the model as in it for one question, and
    throws the token vectors away. Get one by `token_encoder`, which loads a model once per process. Texts beyond the
    model's window are cut there. Safe to use from many threads.

    :param model: The model's name in the Hugging Face cache, or its folder. Nothing is downloaded.
    """

    def __init__(self, model: str) -> None:
        self.model = model
        self.window = 0
        self._loading = threading.Lock()
        self._tokenizer: Any = None
        self._transformer: Any = None
        self._normalised = False

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has; loads the model."""
        self.warm_up()
        return int(self._transformer.config.hidden_size)

    def warm_up(self) -> None:
        """
        Load the model; a second call does nothing.

        :raises ConfigurationError: If it is not on this machine, or is no transformer with mean pooling.
        """
        with self._loading:
            if self._transformer is None:
                self._load()

    def encode(self, texts: list[str], *, with_tokens: bool = True, batch_size: int = 32) -> list[EncodedText]:
        """
        Encode texts, those of like length together.

        :param texts: Any texts, empty ones too.
        :param with_tokens: Whether the tokens' vectors are wanted; without, `token_ids` and `tokens` have no rows.
        :param batch_size: How many go through the model at once.
        :returns: One for each text, in their order.
        :raises ConfigurationError: If the model cannot be loaded.
        """
        if not texts:
            return []
        self.warm_up()
        encodings = self._tokenizer.encode_batch_fast(texts)
        ids = [encoding.ids for encoding in encodings]
        order = sorted(range(len(ids)), key=lambda index: -len(ids[index]))
        results: dict[int, EncodedText] = {}
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            rows = self._forward([ids[index] for index in batch], with_tokens=with_tokens)
            for index, (embedding, kept, tokens) in zip(batch, rows, strict=True):
                token_ids = np.asarray(ids[index], dtype=np.int32)[kept]
                results[index] = EncodedText(embedding, token_ids, tokens)
        return [results[index] for index in range(len(texts))]

    def _forward(
        self, ids: list[list[int]], *, with_tokens: bool
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        raise NotImplementedError

    def _load(self) -> None:
        raise NotImplementedError


@cache
def token_encoder(model: str) -> TokenEncoder:
    """
    Give the process's encoder of a model, which is loaded at its first use.

    :param model: The model's name in the Hugging Face cache, or its folder.
    :returns: The same encoder for every caller that names the model.
    """
    return TokenEncoder(model)
