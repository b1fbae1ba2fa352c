"""
What late interaction brings: passages in the order of the fusion, and ranked by token vectors, on the same questions.

    python evaluation/late_interaction.py [--data DIR] [--keep DIR] [--sets en_squad2 en_multihop] [--json FILE]

Each corpus is ingested through the `index` pipeline of the embedded deployment. Each question goes through the
retriever and the parent fetcher of `advanced`, and what they find (50 children, in about 40 passages) is put in order
four ways:

- fused: as it comes;
- child: `LateInteractionRanker` alone, a passage as good as its best matched child;
- parent: the same over the whole passage, children that did not match included;
- ranked: as the pipeline does it, its order fused with the old one by reciprocal ranks.

Every way is compared with the first, question by question; the interval is the paired bootstrap's, 95 %. Bars:
`ranked` is better than fused by .03 nDCG@10 on en_squad2, with an interval that excludes zero; no set is worse by an
interval that excludes zero; questions in a language that the embedder does not know keep the order of the fusion.

The exit code is 1 if a bar is missed, 2 if there are no data.
"""

import argparse
import json
import os
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# A second torch thread on one question only spins; it doubles the CPU time and gains nothing.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

from haystack import Document

from shiguan.evaluation.intervals import Difference, compare_metric
from shiguan.evaluation.provenance import TENANT, ingest_corpus
from shiguan.evaluation.questions import Question
from shiguan.evaluation.retrieval_metrics import ndcg, passages_of, recall
from shiguan.evaluation.retrieval_set import read_retrieval_set
from shiguan.loading import load_pipeline
from shiguan.retrieval.late_interaction_ranker import LateInteractionRanker
from shiguan.support.languages import detect_language

DATA = Path(os.environ.get("SHIGUAN_PUBLIC_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
SETS = ("en_squad2", "en_multihop", "zh_cmrc2018", "zh_drcd", "tang_modern2classical")
FUSED, RANKED = "fused", "ranked"
GAIN_ON = "en_squad2"
GAIN = 0.03
"""How much nDCG@10 must gain there."""

DEPTH = 10
"""How many passages are looked at."""

METRICS = {
    "recall@5": lambda question, passages: recall(question, passages, 5),
    "recall@10": lambda question, passages: recall(question, passages, 10),
    "ndcg@10": lambda question, passages: ndcg(question, passages, 10),
}


@dataclass
class Row:
    """One way on one set: its means, its nDCG@10 against the order of the fusion, and how often both are the same."""

    name: str
    way: str
    questions: int
    means: dict[str, float]
    change: Difference
    same_order: int
    same_order_expected: int
    misses: list[str]


class Ways:
    """
    The retrieval of `advanced` on one data folder, with several rankers behind it.

    :param data_dir: the data folder.
    """

    def __init__(self, data_dir: Path) -> None:
        pipeline = load_pipeline("embedded", "advanced", data_dir=data_dir, outputs=["documents"])
        self._retriever = pipeline.get_component("retriever")
        self._fetcher = pipeline.get_component("parent_fetcher")
        self._filters = pipeline.get_component("tenant_filter").run(tenant_id=TENANT)["filters"]
        ranker = LateInteractionRanker(self._retriever.bm25_retriever.document_store, languages=["en"])
        self.languages: list[str] = ranker.languages or []
        alone = {"model": ranker.model, "languages": ranker.languages, "weight": 1.0}
        self._rankers = {
            "child": LateInteractionRanker(ranker.document_store, **alone),
            "parent": LateInteractionRanker(ranker.document_store, scope="parent", **alone),
            RANKED: ranker,
        }

    def orders(self, text: str) -> dict[str, list[Document]]:
        """Give the first passages of each way."""
        found = self._retriever.run(queries=[text], filters=self._filters)["documents"]
        parents = self._fetcher.run(documents=found, filters=self._filters)["documents"]
        orders = {FUSED: parents[:DEPTH]}
        for way, ranker in self._rankers.items():
            arguments = {"query": text, "documents": parents, "filters": self._filters, "top_k": DEPTH}
            orders[way] = ranker.run(**arguments)["documents"]
        return orders

    def close(self) -> None:
        """Free the data folder."""
        self._retriever.bm25_retriever.document_store.close()
        self._fetcher.document_store.close()


def measure(name: str, questions: list[Question], ways: Ways) -> list[Row]:
    """Put what each question finds into order in every way, and compare."""
    scores: dict[str, dict[str, list[float]]] = {}
    same: dict[str, int] = {}
    unknown = 0
    for question in questions:
        orders = ways.orders(question.text)
        unknown += detect_language(question.text) not in ways.languages
        for way, documents in orders.items():
            same[way] = same.get(way, 0) + ([d.id for d in documents] == [d.id for d in orders[FUSED]])
            passages = passages_of(documents)
            for metric, value in METRICS.items():
                scores.setdefault(way, {}).setdefault(metric, []).append(value(question, passages))
    rows = []
    for way, values in scores.items():
        change = compare_metric("ndcg@10", scores[FUSED]["ndcg@10"], values["ndcg@10"])
        means = {metric: sum(of_way) / len(of_way) for metric, of_way in values.items()}
        rows.append(Row(name, way, len(questions), means, change, same[way], unknown, []))
        rows[-1].misses = misses(rows[-1])
    return rows


def misses(row: Row) -> list[str]:
    """Say which bars a row misses; only the way of the pipeline has any."""
    if row.way != RANKED:
        return []
    found = []
    if row.name == GAIN_ON and not (row.change.difference >= GAIN and row.change.verdict == "better"):
        found.append(f"gains {row.change.difference:+.3f} nDCG@10, not {GAIN}")
    if row.change.verdict == "worse":
        found.append(f"is worse by {row.change.difference:+.3f} nDCG@10")
    if row.same_order < row.same_order_expected:
        found.append(f"changes the order of {row.same_order_expected - row.same_order} questions that it must not")
    return found


HEADER = (
    "| set | questions | order | recall@5 | recall@10 | nDCG@10 | change | same order | bar |\n"
    "|---|---:|---|---:|---:|---:|---|---:|---|"
)


def table_line(row: Row) -> str:
    """Write a row as a line of the table."""
    change = f"{row.change.difference:+.3f} [{row.change.low:+.3f}, {row.change.high:+.3f}]"
    verdict = {True: "pass", False: "MISS: " + "; ".join(row.misses)}[not row.misses] if row.way == RANKED else ""
    means = " | ".join(f"{value:.3f}" for value in row.means.values())
    first = row.way == FUSED
    return (
        f"| {row.name if first else ''} | {row.questions if first else ''} | {row.way} | {means} "
        f"| {'' if first else change} | {'' if first else row.same_order} | {verdict} |"
    )


def main(arguments: list[str] | None = None) -> int:
    """Measure the sets and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[1])
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of public sets (default: %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the ingested data folders here for the next run")
    parser.add_argument("--sets", nargs="+", metavar="SET", default=SETS, help="only these, by folder name")
    parser.add_argument("--limit", type=int, metavar="N", help="only so many questions of each set, evenly spread")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers here too")
    options = parser.parse_args(arguments)
    present = [name for name in options.sets if (options.data / name).is_dir()]
    for name in options.sets:
        if name not in present:
            print(f"{options.data / name} is missing; see evaluation/README.md on how to get it.", file=sys.stderr)
    if not present:
        return 2
    rows: list[Row] = []
    print(HEADER, flush=True)
    with ExitStack() as stack:
        keep = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shiguan-late-")))
        for name in present:
            found = _measured(options.data / name, keep / name, options.limit)
            print("\n".join(table_line(row) for row in found), flush=True)
            rows += found
    if options.json:
        options.json.write_text(json.dumps([_to_json(row) for row in rows], indent=2) + "\n")
    return 1 if any(row.misses for row in rows) else 0


def _measured(folder: Path, data_dir: Path, limit: int | None) -> list[Row]:
    files = [folder / f"{name}.jsonl.gz" for name in ("corpus", "queries", "qrels")]
    judged = read_retrieval_set(*files, limit=limit, skip_unjudged=True)
    ingest_corpus(files[:1], deployment="embedded", data_dir=data_dir)
    ways = Ways(data_dir)
    try:
        return measure(folder.name, judged.questions, ways)
    finally:
        ways.close()


def _to_json(row: Row) -> dict[str, Any]:
    return {**asdict(row), "change": {**asdict(row.change), "verdict": row.change.verdict}}


if __name__ == "__main__":
    sys.exit(main())
