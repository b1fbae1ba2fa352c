"""Writes the encoder as an ONNX graph whose matrices are the packaged 4-bit blocks themselves."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiguan.models.weights import BLOCK, Weights

ACCURACY = 4
"""How ONNX Runtime multiplies 4-bit blocks: 1 in float32, 4 with each row's blocks rounded to 8 bit beforehand."""


def encoder_graph(weights: Weights, accuracy: int = ACCURACY) -> bytes:
    """
    Give the encoder as a serialised model: `embeddings` (texts, tokens, 384) and `mask` to `tokens` of the same shape.

    Nothing is quantised here: `MatMulNBits` takes blocks of 32 numbers of 4 bit with a scale, which is what the file
    has, only with the numbers in another order. The word embeddings stay outside (see `engine.py`).
    """
    # Imported here: only the first start on a machine needs it, and it takes longer than all other starts.
    from onnx import TensorProto, helper  # noqa: PLC0415

    writer = _Writer(weights, accuracy)
    shape = ["texts", "tokens", weights.hidden]
    output = writer.encoder()
    graph = helper.make_graph(
        writer.nodes,
        "multilingual-e5-small",
        [
            helper.make_tensor_value_info("embeddings", TensorProto.FLOAT, shape),
            helper.make_tensor_value_info("mask", TensorProto.FLOAT, ["texts", 1, 1, "tokens"]),
        ],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
        writer.constants,
    )
    versions = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    content: bytes = helper.make_model(graph, opset_imports=versions, ir_version=9).SerializeToString()
    return content


class _Writer:
    """Collects nodes and constants, and names what they give after the tensors they use."""

    def __init__(self, weights: Weights, accuracy: int) -> None:
        self.weights = weights
        self.accuracy = accuracy
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def encoder(self) -> str:
        """Write the layers of BERT (Devlin et al. 2019): attention, then two matrices, each added to what came in."""
        weights = self.weights
        size = weights.hidden // weights.heads
        self._constant("heads", np.array([0, 0, weights.heads, size], np.int64))
        self._constant("joined", np.array([0, 0, weights.hidden], np.int64))
        self._constant("scale", np.float32(size**-0.5))
        hidden = self._normalized("embeddings", "emb.ln")
        for number in range(weights.layers):
            layer = f"l{number}."
            attended = self._linear(self._attention(hidden, layer), layer + "ao", weights.hidden)
            hidden = self._normalized(self._node("Add", attended, hidden), layer + "aln")
            inner = self._node("Gelu", self._linear(hidden, layer + "fi", weights.hidden))
            outer = self._linear(inner, layer + "fo", weights.inner)
            hidden = self._normalized(self._node("Add", outer, hidden), layer + "oln")
        return hidden

    def _attention(self, hidden: str, layer: str) -> str:
        parts = {}
        for part, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
            heads = self._node("Reshape", self._linear(hidden, layer + part, self.weights.hidden), "heads")
            parts[part] = self._node("Transpose", heads, perm=order)
        scores = self._node("Mul", self._node("MatMul", parts["q"], parts["k"]), "scale")
        shares = self._node("Softmax", self._node("Add", scores, "mask"), axis=-1)
        mixed = self._node("Transpose", self._node("MatMul", shares, parts["v"]), perm=[0, 2, 1, 3])
        return self._node("Reshape", mixed, "joined")

    def _linear(self, inputs: str, name: str, columns: int) -> str:
        numbers, scales = _blocks_for_onnx(self.weights.blocks(name + ".w", columns))
        product = self._node(
            "MatMulNBits",
            inputs,
            self._constant(name + ".w", numbers),
            self._constant(name + ".scales", scales),
            domain="com.microsoft",
            K=columns,
            N=len(numbers),
            bits=4,
            block_size=BLOCK,
            accuracy_level=self.accuracy,
        )
        return self._node("Add", product, self._constant(name + ".b", self.weights.floats(name + ".b")))

    def _normalized(self, inputs: str, name: str) -> str:
        factors, shifts = (self._constant(name + end, self.weights.floats(name + end)) for end in (".w", ".b"))
        return self._node("LayerNormalization", inputs, factors, shifts, axis=-1, epsilon=self.weights.epsilon)

    def _node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        from onnx import helper  # noqa: PLC0415

        output = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def _constant(self, name: str, values: NDArray[Any] | np.float32) -> str:
        from onnx import numpy_helper  # noqa: PLC0415

        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name


def _blocks_for_onnx(blocks: NDArray[Any]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Reorder a block's numbers: the file pairs number i with i + 16 in a byte, ONNX Runtime 2i with 2i + 1."""
    numbers = np.concatenate([blocks["numbers"] & 15, blocks["numbers"] >> 4], -1)
    return numbers[..., 0::2] | numbers[..., 1::2] << 4, blocks["scale"].astype(np.float32).reshape(-1)
