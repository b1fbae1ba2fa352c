"""
Measures ways to multiply the packaged embedder's matrices: CPU a token, likeness, and how well vectors alone find.

    python bench/speed/embedder.py --data ../shared/data                          # every way, all passages
    python bench/speed/embedder.py --data ../shared/data --ways shipped --passages 120 --questions 300

One thread. Each question is searched among the set's passages; `xquad` is asked across languages in both directions.
docs/decisions/0011-embedder.md says what follows from the figures.
"""

import argparse
import gzip
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from shiguan.models.engine import E5Encoder, EncoderGraph
from shiguan.models.weights import Weights, unpack_blocks, weights_file

SETS = {
    "English on Chinese": ("xquad_enzh", "queries_en", "corpus_zh"),
    "Chinese on English": ("xquad_enzh", "queries_zh", "corpus_en"),
    "Chinese": ("zh_cmrc2018", "queries", "corpus"),
    "English": ("en_squad2", "queries", "corpus"),
}


class PackagedBlocks(EncoderGraph):
    """The packaged blocks of 32 numbers of 4 bit as they are, multiplied in integers (4) or in float32 (1)."""

    level = 4

    def linear(self, inputs: str, name: str, columns: int) -> str:
        """Reorder a block's numbers: the file pairs number i with i + 16 in a byte, ONNX Runtime 2i with 2i + 1."""
        blocks = self.weights.blocks(name + ".w", columns)
        numbers = np.concatenate([blocks["numbers"] & 15, blocks["numbers"] >> 4], -1)
        matrix = self.constant(name + ".w", numbers[..., 0::2] | numbers[..., 1::2] << 4)
        scales = self.constant(name + ".s", blocks["scale"].astype(np.float32).reshape(-1))
        bias = self.constant(name + ".b", self.weights.floats(name + ".b"))
        form: dict[str, Any] = {"K": columns, "N": len(blocks), "bits": 4, "block_size": 32}
        return self.node(
            "MatMulNBits",
            inputs,
            matrix,
            scales,
            "",
            "",
            bias,
            domain="com.microsoft",
            accuracy_level=self.level,
            **form,
        )


class Float32(PackagedBlocks):
    """The packaged blocks, multiplied in float32."""

    level = 1


class DynamicInt8(EncoderGraph):
    """ONNX Runtime's dynamic quantisation: a scale for each column of weights, and one for all inputs of a product."""

    left: tuple[str, ...] = ()

    def linear(self, inputs: str, name: str, columns: int) -> str:
        """Leave the matrices of some places as they ship."""
        if name.endswith(self.left):
            return super().linear(inputs, name, columns)
        matrix = unpack_blocks(self.weights.blocks(name + ".w", columns))
        scales = (np.abs(matrix).max(1) / 127).astype(np.float32)
        return self.node(
            "DynamicQuantizeMatMul",
            inputs,
            self.constant(name + ".w", np.rint(matrix / scales[:, None]).astype(np.int8).T),
            self.constant(name + ".s", scales),
            self.constant(name + ".z", np.zeros(len(scales), np.int8)),
            self.constant(name + ".b", self.weights.floats(name + ".b")),
            domain="com.microsoft",
        )


class DynamicInt8ButLast(DynamicInt8):
    """Dynamic int8 but for the second matrix of each feed-forward, whose inputs have the widest range."""

    left = (".fo",)


class Int8ByToken(DynamicInt8):
    """Dynamic int8, the inputs of some places divided by each token's own largest number and multiplied afterwards."""

    divided: tuple[str, ...] = (".fo",)

    def linear(self, inputs: str, name: str, columns: int) -> str:
        """Divide where a few tokens have numbers a hundred times as large as the others'."""
        if name.endswith(self.left) or not name.endswith(self.divided):
            return super().linear(inputs, name, columns)
        largest = self.node(
            "ReduceMax", self.node("Abs", inputs), self.constant(name + ".last", np.array([-1], np.int64))
        )
        matrix = unpack_blocks(self.weights.blocks(name + ".w", columns))
        scales = (np.abs(matrix).max(1) / 127).astype(np.float32)
        product = self.node(
            "DynamicQuantizeMatMul",
            self.node("Div", inputs, largest),
            self.constant(name + ".w", np.rint(matrix / scales[:, None]).astype(np.int8).T),
            self.constant(name + ".s", scales),
            self.constant(name + ".z", np.zeros(len(scales), np.int8)),
            domain="com.microsoft",
        )
        bias = self.constant(name + ".b", self.weights.floats(name + ".b"))
        return self.node("Add", self.node("Mul", product, largest), bias)


class Int8AllByToken(Int8ByToken):
    """The same in every place."""

    divided = ("",)


class Int8ButAttention(Int8AllByToken):
    """The same with queries, keys and values as they ship."""

    left = (".q", ".k", ".v")


WAYS: dict[str, type[EncoderGraph]] = {
    "float32": Float32,
    "packaged blocks": PackagedBlocks,
    "shipped": EncoderGraph,
    "int8 but last": DynamicInt8ButLast,
    "int8": DynamicInt8,
    "int8, last by token": Int8ByToken,
    "int8, all by token": Int8AllByToken,
    "int8, all by token, attention as shipped": Int8ButAttention,
}


def engine_with(way: type[EncoderGraph]) -> E5Encoder:
    """Give an engine that multiplies in a way of its own."""
    engine = E5Encoder()
    if way is EncoderGraph:
        return engine
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    graph = way(Weights(weights_file())).content()
    engine._session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    return engine


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    """Read a compressed file of JSON lines."""
    with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def measured(engine: E5Encoder, data: Path, most_passages: int, most_questions: int) -> dict[str, Any]:
    """Give CPU milliseconds a token of the passages, and recall and nDCG at 10 of each set."""
    found: dict[str, Any] = {}
    seconds, tokens = 0.0, 0
    for title, (folder, asked, searched) in SETS.items():
        passages = rows(data / folder, searched)[:most_passages]
        places = {row["id"]: place for place, row in enumerate(passages)}
        texts = [row["text"] for row in passages]
        wanted: dict[str, list[int]] = {}
        for row in rows(data / folder, "qrels"):
            if row["doc_id"] in places:
                wanted.setdefault(row["query_id"], []).append(places[row["doc_id"]])
        questions = [row for row in rows(data / folder, asked) if row["id"] in wanted][:most_questions]
        started = time.process_time()
        vectors = engine.embed(texts, "passage")
        seconds += time.process_time() - started
        tokens += sum(len(ids) + 2 for ids in engine._tokenizer.tokens([f"passage: {text}" for text in texts]))
        scores = engine.embed([row["text"] for row in questions], "query") @ vectors.T
        recalls, gains = [], []
        for row, line in zip(questions, scores, strict=True):
            best = np.argsort(-line, kind="stable")[:10].tolist()
            ranks = [best.index(place) for place in wanted[row["id"]] if place in best]
            ideal = sum(1 / math.log2(rank + 2) for rank in range(min(10, len(wanted[row["id"]]))))
            recalls.append(len(ranks) / len(wanted[row["id"]]))
            gains.append(sum(1 / math.log2(rank + 2) for rank in ranks) / ideal)
        found[title] = (float(np.mean(recalls)), float(np.mean(gains)), len(questions), len(passages))
    return {"ms": seconds / tokens * 1000, **found}


def main() -> None:
    """Print a row for each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--passages", type=int, default=10**9, help="of each set")
    parser.add_argument("--questions", type=int, default=10**9, help="of each set")
    arguments = parser.parse_args()
    for way in arguments.ways:
        figures = measured(engine_with(WAYS[way]), arguments.data, arguments.passages, arguments.questions)
        cells = [f"{title} {r:.3f} / {g:.3f} ({q} on {p})" for title, (r, g, q, p) in list(figures.items())[1:]]
        print(f"{way}: {figures['ms']:.3f} ms CPU a token; recall@10 / nDCG@10: " + "; ".join(cells), flush=True)


if __name__ == "__main__":
    main()
