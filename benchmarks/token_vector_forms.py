"""
Compare forms in which token vectors can be stored, by how well they rank.

    python -m benchmarks.token_vector_forms ../shared/data/en_squad2 ../shared/data/en_multihop

Each folder holds `corpus.jsonl.gz` (`id`, `title`, `text`), `queries.jsonl.gz` (`id`, `text`) and `qrels.jsonl.gz`
(`query_id`, `doc_id`, `score`). The children of the index pipeline are searched by words and by vectors, both lists are
fused by rank, and the best 30 children are put in the order of their late interaction alone: what a form loses shows
most where nothing else takes part. A document counts once, at its best child. The intervals are of the difference from
the fused order, paired by question, 95 %.
"""

import argparse
import gzip
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np

RERANKED = 30
QUESTIONS = 400
FITTED = 1_000
"""How many children the principal components are found from."""


@dataclass
class Form:
    """One form: what becomes of a child's vectors and of a question's, and how many bytes a token takes."""

    name: str
    size: float
    stored: Callable[[np.ndarray], np.ndarray]
    asked: Callable[[np.ndarray], np.ndarray]


def rows(path: Path) -> list[dict[str, Any]]:
    """Read a file of JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def forms(tokens: list[np.ndarray]) -> list[Form]:
    """Make the forms; the principal components are those of the first children."""
    from shiguan.support.packed_tokens import pack, rotation, unpack
    from shiguan.support.token_encoder import EncodedText
    from shiguan.support.token_vectors import unit_rows

    dimensions = tokens[0].shape[1]
    basis = rotation(dimensions)
    some = np.concatenate(tokens[:FITTED])
    components = np.linalg.eigh(some.T @ some)[1][:, ::-1][:, :128].astype(np.float32)

    def bytes_each(values: np.ndarray) -> np.ndarray:
        scale = np.abs(values).max(axis=1, keepdims=True, initial=1e-9) / 127
        return np.asarray(np.rint(values / scale) * scale)

    def two_bits(values: np.ndarray) -> np.ndarray:
        # The step that loses least of normally distributed numbers.
        step = np.maximum(values.std(axis=1, keepdims=True), 1e-9) * 0.996
        return unit_rows((np.clip(np.floor(values / step), -2, 1) + 0.5) * step)

    def bits(values: np.ndarray) -> np.ndarray:
        none = np.zeros(0, dtype=np.int32)
        _, signs, scales = unpack([pack(EncodedText(none, none, values), "").vectors], dimensions)
        return np.asarray(signs * scales[:, None])

    def projected(matrix: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        return lambda values: unit_rows(values @ matrix)

    def quantised(matrix: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        return lambda values: bytes_each(projected(matrix)(values))

    return [
        Form("as the model gives them, float32", 4 * dimensions, lambda values: values, lambda values: values),
        Form("128 principal components, int8", 128 + 2, quantised(components), projected(components)),
        Form("128 random dimensions, int8", 128 + 2, quantised(basis[:, :128]), projected(basis[:, :128])),
        Form("all, rotated, 2 bits", dimensions / 4, lambda values: two_bits(values @ basis), projected(basis)),
        Form("all, rotated, 1 bit (chosen)", dimensions / 8, bits, projected(basis)),
    ]


def measure(folder: Path, data: Path) -> list[str]:
    """Give the table's lines for one set."""
    from dataclasses import replace

    from shiguan import load_pipeline
    from shiguan.stores.qdrant_edge_document_store import QdrantEdgeDocumentStore
    from shiguan.support.model_cache import PACKAGED_MODEL
    from shiguan.support.token_encoder import token_encoder

    pipeline = load_pipeline("embedded", "index", data_dir=data, outputs=["children"])
    given = {"source_inspector": {"sources": [folder / "corpus.jsonl.gz"]}, "stamper": {"tenant_id": "t"}}
    children = pipeline.run(given, include_outputs_from={"splitter"})["splitter"]["children"]
    encoder = token_encoder(PACKAGED_MODEL)
    texts = ["\n".join([child.meta["title"]] * bool(child.meta.get("title")) + [child.content]) for child in children]
    encoded = [text for start in range(0, len(texts), 512) for text in encoder.encode(texts[start : start + 512])]
    store = QdrantEdgeDocumentStore(path=str(data / folder.name), bm25_fields=["title"]).unscoped()
    store.write_documents(
        [replace(child, embedding=text.embedding.tolist()) for child, text in zip(children, encoded, strict=True)]
    )
    relevant: dict[str, set[str]] = {}
    for row in rows(folder / "qrels.jsonl.gz"):
        if row["score"] > 0:
            relevant.setdefault(row["query_id"], set()).add(row["doc_id"])
    asked = [row for row in rows(folder / "queries.jsonl.gz") if row["id"] in relevant]
    asked = asked[:: max(1, len(asked) // QUESTIONS)][:QUESTIONS]
    questions = encoder.encode([row["text"] for row in asked])
    numbers = {child.id: number for number, child in enumerate(children)}
    lists = [_fused(store, row["text"], question, numbers) for row, question in zip(asked, questions, strict=True)]
    store.close()

    counts = np.zeros(1 + max(int(text.token_ids.max(initial=0)) for text in [*encoded, *questions]))
    for text in encoded:
        counts[np.unique(text.token_ids)] += 1
    idf = np.log1p((len(children) - counts + 0.5) / (counts + 0.5))
    names = [child.meta["record_id"] for child in children]

    def ndcg(orders: list[list[int]]) -> np.ndarray:
        return np.array([_ndcg([names[c] for c in o], relevant[r["id"]]) for o, r in zip(orders, asked, strict=True)])

    before = ndcg(lists)
    lines = [f"| fused order | | {before.mean():.3f} | |"]
    for form in forms([text.tokens for text in encoded]):
        kept: dict[int, np.ndarray] = {}
        orders = []
        for question, found in zip(questions, lists, strict=True):
            weights, vectors = idf[question.token_ids], form.asked(question.tokens)
            for child in found:
                if child not in kept:
                    kept[child] = form.stored(encoded[child].tokens)
            scores = [float((kept[child] @ vectors.T).max(axis=0, initial=-1.0) @ weights) for child in found]
            orders.append([found[place] for place in np.argsort(-np.array(scores), kind="stable")])
        gain = ndcg(orders) - before
        width = 1.96 * gain.std(ddof=1) / math.sqrt(len(gain))
        value = before.mean() + gain.mean()
        lines.append(f"| {form.name} | {form.size:.0f} | {value:.3f} | {gain.mean():+.3f} ± {width:.3f} |")
    return [f"| {folder.name}: {len(asked)} questions | bytes | nDCG@10 | gain |", "|---|---:|---:|---:|", *lines, ""]


def _fused(store: Any, text: str, question: Any, numbers: dict[str, int]) -> list[int]:
    points: dict[str, float] = {}
    vector = question.embedding.tolist()
    for hits in (store.bm25_retrieval(text, top_k=50), store.embedding_retrieval(vector, top_k=50)):
        for rank, hit in enumerate(hits, start=1):
            points[hit.id] = points.get(hit.id, 0.0) + 1 / (60 + rank)
    return [numbers[name] for name in sorted(points, key=lambda name: (-points[name], name))[:RERANKED]]


def _ndcg(found: list[str], relevant: set[str]) -> float:
    gains = [1 / math.log2(place + 2) for place in range(10)]
    best = sum(gains[: len(relevant)])
    return sum(gain for gain, name in zip(gains, dict.fromkeys(found), strict=False) if name in relevant) / best


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.token_vector_forms", description=__doc__.split("\n")[1])
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER", help="sets to measure on")
    for folder in parser.parse_args(arguments).folders:
        with tempfile.TemporaryDirectory(prefix="shiguan-benchmark-") as data:
            print("\n".join(measure(folder, Path(data))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
