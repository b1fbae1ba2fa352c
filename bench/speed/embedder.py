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

from shiguan.models.engine import E5Encoder, EncoderGraph, session_of
from shiguan.models.weights import Weights, weights_file

SETS = {
    "English on Chinese": ("xquad_enzh", "queries_en", "corpus_zh"),
    "Chinese on English": ("xquad_enzh", "queries_zh", "corpus_en"),
    "Chinese": ("zh_cmrc2018", "queries", "corpus"),
    "English": ("en_squad2", "queries", "corpus"),
}


class Float32(EncoderGraph):
    """The packaged matrices, unpacked and multiplied in float32."""

    def linear(self, inputs: str, *names: str) -> str:
        """Multiply and add the biases."""
        matrix = np.concatenate([self.weights.matrix(name) for name in names])
        return self.node(
            "Add", self.node("MatMul", inputs, self.constant(names[0] + ".w", matrix.T)), self._bias(*names)
        )

    linear_in_blocks = linear_by_token = linear

    def linear_by_dimension(self, inputs: str, name: str, _: str) -> str:
        """Multiply without dividing."""
        return self.linear(inputs, name)


class InBlocks(EncoderGraph):
    """Every product in blocks of 64."""

    def linear(self, inputs: str, *names: str) -> str:
        """Multiply by each matrix alone."""
        products = [self.linear_in_blocks(inputs, name) for name in names]
        return products[0] if len(products) == 1 else self.node("Concat", *products, axis=2)

    linear_by_token = EncoderGraph.linear_in_blocks

    def linear_by_dimension(self, inputs: str, name: str, _: str) -> str:
        """Multiply without dividing."""
        return self.linear_in_blocks(inputs, name)


class OneScale(Float32):
    """ONNX Runtime's dynamic quantisation everywhere: one scale for all inputs of a product."""

    linear = linear_in_blocks = linear_by_token = EncoderGraph.linear


WAYS: dict[str, type[EncoderGraph]] = {
    "float32": Float32,
    "in blocks": InBlocks,
    "one scale": OneScale,
    "shipped": EncoderGraph,
}


def engine_with(way: type[EncoderGraph]) -> E5Encoder:
    """Give an engine that multiplies in a way of its own."""
    engine = E5Encoder()
    engine._session = session_of(way(Weights(weights_file())).content())
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
