"""
Print how well `simple` finds passages, on whole public sets, against the bars that a change must not fall below.

    python evaluation/retrieval_bars.py --data DIR [--keep DIR] [--sets zh_cmrc2018 en_squad2] [--json FILE]

Each corpus goes through the real `index` pipeline into a data folder of its own, and each question through the
retrieval of `simple`, as `shiguan ingest` and `shiguan search --queries` do it. Beside it stand its two retrievers
alone, run on the same components, because fusion must never lose what one of them knew.

What counts as right, and the arithmetic, are those of `shiguan eval retrieval`: see docs/evaluation.md. For sets with
one gold document recall@k is the share of questions answered; sets with graded judgements count grade 2 as gold, lower
grades only in nDCG.

The exit code is 1 if a bar is missed, 2 if there are no data.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# A second torch thread on one question only spins; it doubles the CPU time and gains nothing.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from shiguan.evaluation.questions import Question
from shiguan.evaluation.retrieval_metrics import Passage, passages_of

TENANT = "evaluation"
DEPTH = 10
"""How many passages are looked at."""

FUSION_LOSS = 0.01
"""How far recall@10 may be below the better retriever alone."""

DATA = Path(os.environ.get("SHIGUAN_PUBLIC_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


@dataclass(frozen=True)
class Bar:
    """One row of the table: a set, its questions, and what must be reached."""

    name: str
    folder: str
    queries: str = "queries.jsonl.gz"
    recall_at: int = 5
    at_least: float | None = None


BARS = (
    Bar("zh_cmrc2018", "zh_cmrc2018", at_least=0.985),
    Bar("zh_drcd", "zh_drcd"),
    Bar("zh_drcd (simplified)", "zh_drcd", "queries_simplified.jsonl.gz", at_least=0.965),
    Bar("tang_modern2classical", "tang_modern2classical", at_least=0.945),
    Bar("en_squad2", "en_squad2", at_least=0.94),
    Bar("en_multihop", "en_multihop", recall_at=10, at_least=0.78),
)


@dataclass
class Scores:
    """Means over a set's questions, each from 0 to 1, higher is better."""

    questions: int = 0
    recall_at_5: float = 0.0
    recall_at_10: float = 0.0
    ndcg_at_10: float = 0.0


@dataclass
class Row:
    """What one set reached."""

    bar: Bar
    fused: Scores
    bm25: Scores
    vectors: Scores
    seconds: float = 0.0
    misses: list[str] = field(default_factory=list)


def score(questions: list[Question], results: dict[str, list[Passage]]) -> Scores:
    """Average over all questions; one without results counts as 0."""
    from shiguan.evaluation.retrieval_metrics import ndcg, recall

    count = len(questions)

    def mean(values: Iterable[float]) -> float:
        return sum(values) / count if count else 0.0

    return Scores(
        questions=count,
        recall_at_5=mean(recall(q, results.get(q.id, []), 5) for q in questions),
        recall_at_10=mean(recall(q, results.get(q.id, []), 10) for q in questions),
        ndcg_at_10=mean(ndcg(q, results.get(q.id, []), 10) for q in questions),
    )


def judge(row: Row) -> list[str]:
    """Say which bars a row misses."""
    misses = []
    reached = row.fused.recall_at_5 if row.bar.recall_at == 5 else row.fused.recall_at_10
    if row.bar.at_least is not None and reached < row.bar.at_least:
        misses.append(f"recall@{row.bar.recall_at} {reached:.4f} is below {row.bar.at_least}")
    better = max(row.bm25.recall_at_10, row.vectors.recall_at_10)
    if row.fused.recall_at_10 < better - FUSION_LOSS:
        misses.append(f"recall@10 {row.fused.recall_at_10:.4f} loses to one retriever alone, {better:.4f}")
    return misses


def read_questions(folder: Path, queries: str) -> list[Question]:
    """Read a set's questions with their judgements."""
    from shiguan.evaluation.retrieval_set import read_retrieval_set

    return read_retrieval_set(folder / "corpus.jsonl.gz", folder / queries, folder / "qrels.jsonl.gz").questions


class Retrieval:
    """
    The retrieval of `simple` on one data folder, whole and by its parts.

    :param data_dir: the data folder.
    """

    def __init__(self, data_dir: Path) -> None:
        from shiguan.runner import Runner

        self._runner = Runner("embedded", "simple", data_dir=data_dir, retrieval_only=True)
        self._runner.warm_up()
        component = self._runner.pipeline.get_component
        self._bm25 = component("bm25_retriever")
        self._vectors = component("embedding_retriever")
        self._parents = component("parent_fetcher")
        self._filters = component("tenant_filter").run(tenant_id=TENANT)["filters"]

    def fused(self, text: str) -> list[Passage]:
        """Give what `shiguan search` gives."""
        documents, _ = self._runner.search(text, tenant_id=TENANT, top_k=DEPTH)
        return passages_of(documents)

    def bm25(self, text: str) -> list[Passage]:
        """Give what the words alone find."""
        return self._passages(self._bm25.run(query=text, filters=self._filters)["documents"])

    def vectors(self, text: str) -> list[Passage]:
        """Give what the vectors alone find; nothing where the embedder does not know the passages' language."""
        return self._passages(self._vectors.run(query=text, filters=self._filters)["documents"])

    def _passages(self, children: list[Any]) -> list[Passage]:
        return passages_of(self._parents.run(documents=children, filters=self._filters, top_k=DEPTH)["documents"])

    def close(self) -> None:
        """Free the data folder."""
        self._runner.close()
        for holder in (self._bm25, self._parents):
            holder.document_store.close()


def ingest(corpus: Path, data_dir: Path) -> None:
    """Put a corpus into a data folder, unless a run before has done so."""
    from shiguan.library import Library

    done = data_dir / "ingested"
    stamp = f"{corpus.stat().st_size} {corpus.stat().st_mtime_ns}"
    if done.is_file() and done.read_text() == stamp:
        return
    library = Library("embedded", data_dir=data_dir)
    for result in library.ingest([corpus], tenant_id=TENANT):
        for entry in result.skipped:
            print(f"  skipped {entry['source']}: {entry['cause']}", file=sys.stderr)
    for store in library.stores.values():
        store.close()
    done.write_text(stamp)


def measure(bar: Bar, data: Path, data_dir: Path) -> Row:
    """Ingest a set and run all its questions three ways."""
    started = time.perf_counter()
    questions = read_questions(data / bar.folder, bar.queries)
    ingest(data / bar.folder / "corpus.jsonl.gz", data_dir)
    retrieval = Retrieval(data_dir)
    try:
        ways = (retrieval.fused, retrieval.bm25, retrieval.vectors)
        fused, bm25, vectors = (score(questions, {q.id: way(q.text) for q in questions}) for way in ways)
    finally:
        retrieval.close()
    row = Row(bar, fused, bm25, vectors, round(time.perf_counter() - started, 1))
    row.misses = judge(row)
    return row


HEADER = (
    "| set | questions | recall@5 | recall@10 | nDCG@10 | BM25 alone, r@10 | vectors alone, r@10 | bar | |\n"
    "|---|---:|---:|---:|---:|---:|---:|---|---|"
)


def table_line(row: Row) -> str:
    """Write a row as a line of the table."""
    bar = f"r@{row.bar.recall_at} ≥ {row.bar.at_least:g}" if row.bar.at_least is not None else "none"
    return (
        f"| {row.bar.name} | {row.fused.questions} | {row.fused.recall_at_5:.3f} | {row.fused.recall_at_10:.3f} "
        f"| {row.fused.ndcg_at_10:.3f} | {row.bm25.recall_at_10:.3f} | {row.vectors.recall_at_10:.3f} | {bar} "
        f"| {'MISS: ' + '; '.join(row.misses) if row.misses else 'pass'} |"
    )


def main(arguments: list[str] | None = None) -> int:
    """Measure the sets and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[1])
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of public sets (default: %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the ingested data folders here for the next run")
    parser.add_argument("--sets", nargs="+", metavar="SET", help="only these, by folder name")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers here too")
    options = parser.parse_args(arguments)
    bars = [bar for bar in BARS if not options.sets or bar.folder in options.sets]
    present = [bar for bar in bars if (options.data / bar.folder).is_dir()]
    for folder in dict.fromkeys(bar.folder for bar in bars if bar not in present):
        print(f"{options.data / folder} is missing; see evaluation/README.md on how to get it.", file=sys.stderr)
    if not present:
        return 2
    rows = []
    print(HEADER, flush=True)
    with ExitStack() as stack:
        keep = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shiguan-bars-")))
        for bar in present:
            rows.append(measure(bar, options.data, keep / bar.folder))
            print(table_line(rows[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2, ensure_ascii=False) + "\n")
    return 1 if any(row.misses for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
