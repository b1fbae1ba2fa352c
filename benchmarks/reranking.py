"""
Measure what ranking 50 passages costs: by the token vectors that ingest kept, and by a small cross-encoder.

    python -m benchmarks.reranking                                # 100,000 children; builds its library in some minutes
    python -m benchmarks.reranking --children 2000 --questions 5 --keep DIR

The library is made of random words and random token vectors, as many for each child as real ones have: the ranker's
work is that of real ones, the order that it finds means nothing. Each question ranks 50 other passages with one matched
child each, as many as the fusion gives at most. The cross-encoder has the shape of MiniLM-L6 (six layers, 384
dimensions, 12 heads) and random weights; it reads 50 pairs of question and passage, without counting their
tokenization. Only the ratio within one run means something on another machine.
"""

import argparse
import json
import os
import sys
import tempfile
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from typing import Any

# One torch thread: a second one on a single question only spins. Set before anything imports torch.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
from benchmarks.measuring import machine, medians, timed, versions
from benchmarks.synthetic import SyntheticLibrary
from haystack import Document
from haystack.document_stores.types import DuplicatePolicy

from shiguan.retrieval.late_interaction_ranker import LateInteractionRanker
from shiguan.stores.qdrant_edge_document_store import QdrantEdgeDocumentStore
from shiguan.support.model_cache import PACKAGED_MODEL
from shiguan.support.packed_tokens import META_KEY, PackedTokens
from shiguan.support.question_encoder import question_encoder

RESULT = Path(__file__).resolve().parents[1] / "benchmarks" / "results" / "reranking.json"
PASSAGES = 50
DIMENSIONS = 384
TOKENS = (40, 150)
"""How many tokens a child has: from the first to the second, about 95 in the mean, as in English sets."""

PAIR_TOKENS = 256
"""A question and a window of 900 characters."""

VOCABULARY = 30_522
BATCH = 2_000
WARM_UP = 3
TARGET_MS = 10.0


def build(store: QdrantEdgeDocumentStore, children: int) -> None:
    """Write the children with their vectors."""
    random = np.random.default_rng(4)
    batch: list[Document] = []
    for parent in SyntheticLibrary(children).parents():
        for child in parent.children:
            meta = {"parent_id": str(child.parent), "tenant_id": child.tenant, "start": child.start, "end": child.end}
            meta[META_KEY] = _packed(random)
            embedding = child.embedding.tolist()
            batch.append(Document(id=str(child.number), content=child.text, embedding=embedding, meta=meta))
        if len(batch) >= BATCH:
            store.write_documents(batch, DuplicatePolicy.OVERWRITE)
            batch = []
    if batch:
        store.write_documents(batch, DuplicatePolicy.OVERWRITE)


def _packed(random: np.random.Generator) -> PackedTokens:
    tokens = int(random.integers(*TOKENS))
    ids = np.unique(random.integers(0, VOCABULARY, tokens)).astype("<u4")
    return PackedTokens(PACKAGED_MODEL, DIMENSIONS, ids.tobytes(), random.bytes(tokens * DIMENSIONS // 8))


def passages(random: np.random.Generator, children: int) -> list[Document]:
    """Draw passages, each with one matched child."""
    chosen = random.choice(children, PASSAGES, replace=False)
    return [
        Document(
            id=f"parent-{child}",
            content="A passage. " * 150,
            score=1.0,
            meta={"matches": [{"child_id": str(child), "start": 0, "end": 100, "score": 1.0}]},
        )
        for child in chosen
    ]


def late_interaction(store: QdrantEdgeDocumentStore, library: SyntheticLibrary, count: int) -> dict[str, Any]:
    """Time the ranker with the question's vectors remembered, and the making of these by themselves."""
    random = np.random.default_rng(5)
    ranker = LateInteractionRanker(store, languages=["en"])
    encoder = question_encoder(PACKAGED_MODEL)
    ranked, encoded, tokens = [], [], []
    for question in library.questions(count + WARM_UP):
        text, times = timed(lambda question=question: encoder.encode(question))
        encoded.append(times)
        tokens.append(len(text.tokens))
        documents = passages(random, library.children_count)
        result, times = timed(lambda q=question, d=documents: ranker.run(query=q, documents=d, top_k=PASSAGES))
        if {entry["ranked_by"] for entry in result["ranking"]} != {"late_interaction"}:
            raise SystemExit(f"The passages were not ranked by late interaction: {result['skipped'] or 'no vectors'}.")
        ranked.append(times)
    return {
        "ranking": medians(ranked[WARM_UP:]),
        "question": medians(encoded[WARM_UP:]),
        "question_tokens": float(np.mean(tokens)),
    }


def cross_encoder(count: int) -> dict[str, float]:
    """Time a model of the shape of MiniLM-L6 on as many pairs."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=VOCABULARY, hidden_size=DIMENSIONS, num_hidden_layers=6, num_attention_heads=12,
        intermediate_size=4 * DIMENSIONS, num_labels=1,
    )  # fmt: skip
    model = BertForSequenceClassification(config).eval()
    ids = torch.randint(1000, VOCABULARY, (PASSAGES, PAIR_TOKENS))

    def score() -> None:
        with torch.inference_mode():
            for start in range(0, PASSAGES, 16):
                model(input_ids=ids[start : start + 16])

    score()
    return medians([timed(score)[1] for _ in range(count)])


def table(result: dict[str, Any]) -> str:
    """Write a result as Markdown."""
    ours, other, host = result["late_interaction"], result["cross_encoder"], result["machine"]
    ranking, question = ours["ranking"], ours["question"]
    both = ranking["cpu_ms"] + question["cpu_ms"]
    verdict = "pass" if ranking["cpu_ms"] <= TARGET_MS else "MISS"
    return "\n".join(
        [
            f"| {PASSAGES} passages ranked by | CPU ms | wall ms |",
            "|---|---:|---:|",
            f"| late interaction, the question encoded before | {ranking['cpu_ms']:.1f} | {ranking['wall_ms']:.1f} |",
            f"| the same with encoding the question | {both:.1f} | {ranking['wall_ms'] + question['wall_ms']:.1f} |",
            f"| a cross-encoder of MiniLM-L6's shape | {other['cpu_ms']:.0f} | {other['wall_ms']:.0f} |",
            "",
            f"{result['children']:,} children, median of {result['questions']} questions of "
            f"{ours['question_tokens']:.0f} tokens, pairs of {PAIR_TOKENS} tokens, {host['cpu']}, {host['cores']} "
            f"cores, one thread, Python {host['python']}, {result['date']}.",
            f"- {verdict}: {ranking['cpu_ms']:.1f} ms of CPU for {PASSAGES} passages, at most {TARGET_MS:g}; "
            f"{other['cpu_ms'] / ranking['cpu_ms']:.0f} times less than the cross-encoder",
        ]
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; the exit code is 1 if the target is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reranking", description=__doc__.split("\n")[1])
    parser.add_argument("--children", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--cross-encoder-runs", type=int, default=3, metavar="N")
    parser.add_argument("--out", type=Path, default=RESULT, help="the JSON file (default: %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the library here, to measure again without")
    options = parser.parse_args(arguments)
    library = SyntheticLibrary(options.children)
    with ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shiguan-reranking-")))
        store = QdrantEdgeDocumentStore(
            path=str(folder / f"reranking-{options.children}"), exact_below=10**9
        ).unscoped()
        stack.callback(store.close)
        if store.count_documents() != library.children_count:
            print("building the library ...", file=sys.stderr, flush=True)
            build(store, options.children)
        result = {
            "children": library.children_count,
            "questions": options.questions,
            "date": date.today().isoformat(),
            "machine": machine(),
            "versions": versions("haystack-ai", "numpy", "qdrant-edge-py", "torch", "transformers"),
            "late_interaction": late_interaction(store, library, options.questions),
            "cross_encoder": cross_encoder(options.cross_encoder_runs),
        }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(table(result))
    return 0 if result["late_interaction"]["ranking"]["cpu_ms"] <= TARGET_MS else 1


if __name__ == "__main__":
    sys.exit(main())
