"""
Print how well `simple` finds passages, on whole public sets and books, against bars that a change must not fall below.

    python -m bench.quality.retrieval_bars --data DIR [--keep DIR] [--sets zh_cmrc2018 books_qa] [--questions FILE]

Each corpus goes through the real `index` pipeline into a data folder of its own, and each question through the
retrieval of `simple`, as `shiguan ingest` and `shiguan search` do it. Beside it stand its two retrievers
alone, run on the same components, because fusion must never lose what one of them knew.

What counts as right, and the arithmetic, are those of `shiguan eval retrieval`: see docs/evaluation.md. For sets with
one gold document recall@k is the share of questions answered; sets with graded judgements count grade 2 as gold, lower
grades only in nDCG. For books it is the share of questions whose quotes stand in the first k passages, all books being
one library.

`--questions FILE` writes a line of JSON for each question: its set and group, and at which rank each way found it.

The exit code is 1 if a bar is missed, 2 if there are no data.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.quality.book_questions import (
    ACROSS,
    BOOK_FILES,
    FOLLOW_UPS,
    OWN,
    BookQuestion,
    read_book_questions,
    share_within,
)
from bench.quality.public_sets import DATA, is_missing
from haystack import Document

from shiguan.engine.runner import Runner
from shiguan.evaluation.json_lines import fingerprint
from shiguan.evaluation.provenance import TENANT, corpus_stamp, ingest_corpus
from shiguan.evaluation.questions import Question, read_retrieval_set
from shiguan.evaluation.scoring import judged, ndcg, recall

DEPTH = 10
"""How many passages are looked at."""

FUSION_LOSS = 0.01
"""How far recall@10 may be below the better retriever alone."""

R5, R10, NDCG = "recall@5", "recall@10", "ndcg@10"
FUSED, BM25, VECTORS = "fused", "bm25", "vectors"
BOOKS = "books_qa"


@dataclass(frozen=True)
class Bar:
    """One row of the table: a set, its questions, and what must be reached, by metric."""

    name: str
    folder: str
    at_least: dict[str, float] = field(default_factory=dict)
    queries: str = "queries.jsonl.gz"
    corpus: str = "corpus.jsonl.gz"
    gold: str = "gold"


BARS = (
    Bar("zh_cmrc2018", "zh_cmrc2018", {R5: 0.99, NDCG: 0.98}),
    Bar("zh_drcd", "zh_drcd"),
    Bar("zh_drcd (simplified)", "zh_drcd", {R5: 0.975}, "queries_simplified.jsonl.gz"),
    Bar("tang_modern2classical", "tang_modern2classical", {R5: 0.945}),
    Bar("en_squad2", "en_squad2", {R5: 0.955, NDCG: 0.91}),
    Bar("en_multihop", "en_multihop", {R10: 0.80}),
    Bar("xquad, English on Chinese", "xquad_enzh", {R10: 0.85}, "queries_en.jsonl.gz", "corpus_zh.jsonl.gz", "gold_zh"),
    Bar("xquad, Chinese on English", "xquad_enzh", {R10: 0.80}, "queries_zh.jsonl.gz", "corpus_en.jsonl.gz", "gold_en"),
)
BOOK_BARS = {
    OWN: Bar(f"books, {OWN}", BOOKS, {R5: 0.80, R10: 0.87}),
    f"{OWN}, en": Bar(f"books, {OWN}, en", BOOKS),
    f"{OWN}, zh": Bar(f"books, {OWN}, zh", BOOKS),
    ACROSS: Bar(f"books, {ACROSS}", BOOKS, {R10: 0.60}),
    FOLLOW_UPS: Bar(f"books, {FOLLOW_UPS}", BOOKS),
}


@dataclass
class Row:
    """What one set reached: way to metric to a mean over its questions, from 0 to 1."""

    bar: Bar
    questions: int
    reached: dict[str, dict[str, float]]

    @property
    def misses(self) -> list[str]:
        """Which bars it misses."""
        fused = self.reached[FUSED]
        misses = [
            f"{metric} {fused[metric]:.4f} is below {least}"
            for metric, least in self.bar.at_least.items()
            if fused[metric] < least
        ]
        better = max(self.reached[way][R10] for way in (BM25, VECTORS))
        if self.bar.folder != BOOKS and fused[R10] < better - FUSION_LOSS:
            misses.append(f"{R10} {fused[R10]:.4f} loses to one retriever alone, {better:.4f}")
        return misses


class Retrieval:
    """The retrieval of `simple` on one data folder, whole and by its parts."""

    def __init__(self, data_dir: Path) -> None:
        self._runner = Runner("embedded", "simple", data_dir=data_dir, outputs=["documents"])
        self._runner.warm_up()
        component = self._runner.pipeline.get_component
        self._bm25 = component("bm25_retriever")
        self._embedder = component("text_embedder")
        self._vectors = component("embedding_retriever")
        self._parents = component("parent_fetcher")
        self._filters = component("tenant_filter").run(tenant_id=TENANT)["filters"]

    def ways(self) -> dict[str, Callable[[str], list[Document]]]:
        """Give what searches a question: as `shiguan search` does, by words alone, by vectors alone."""
        return {
            FUSED: lambda text: self._runner.search(text, tenant_id=TENANT, top_k=DEPTH)[0],
            BM25: lambda text: self._alone(self._bm25, query=text),
            VECTORS: lambda text: self._alone(
                self._vectors, query_embedding=self._embedder.run(text=text)["embedding"]
            ),
        }

    def _alone(self, retriever: Any, **question: Any) -> list[Document]:
        children = retriever.run(**question, filters=self._filters)["documents"]
        found: list[Document] = self._parents.run(documents=children, filters=self._filters, top_k=DEPTH)["documents"]
        return found

    def close(self) -> None:
        """Free the data folder."""
        self._runner.close()
        for holder in (self._bm25, self._parents):
            holder.document_store.close()


def retrieval_of(files: list[Path], keep: Path) -> Retrieval:
    """Ingest files, unless a run with the same ones and the same code has done so, and open what finds in them."""
    folder = stamped_folder(keep, files)
    for note in ingest_corpus(files, deployment="embedded", data_dir=folder):
        print(f"  {note}", file=sys.stderr)
    return Retrieval(folder)


def stamped_folder(keep: Path, files: Sequence[Path]) -> Path:
    """Name the data folder of a corpus below `keep`: another one whenever its passages may have become others."""
    return keep / f"{files[0].resolve().parent.name}-{fingerprint(corpus_stamp(list(files), 'embedded'))[:8]}"


def read_questions(folder: Path, bar: Bar) -> list[Question]:
    """Read a set's questions with their judgements."""
    files = (folder / bar.corpus, folder / bar.queries, folder / "qrels.jsonl.gz")
    return read_retrieval_set(*files, gold_field=bar.gold).questions


def measure(bar: Bar, data: Path, keep: Path) -> tuple[list[Row], list[dict[str, Any]]]:
    """Run all questions of a set three ways; gives its row, and a record for each question."""
    questions = read_questions(data / bar.folder, bar)
    with closing(retrieval_of([data / bar.folder / bar.corpus], keep)) as retrieval:
        found = {
            way: [judged(question, search(question.text)) for question in questions]
            for way, search in retrieval.ways().items()
        }
    reached = {way: score(questions, passages) for way, passages in found.items()}
    records = [
        {"set": bar.name, "id": question.id, "question": question.text}
        | {way: _first(question, passages[number]) for way, passages in found.items()}
        for number, question in enumerate(questions)
    ]
    return [Row(bar, len(questions), reached)], records


def score(questions: Sequence[Question], found: Sequence[Sequence[str | None]]) -> dict[str, float]:
    """Average each metric over the questions."""
    pairs = list(zip(questions, found, strict=True))
    metrics: dict[str, Callable[[Question, Sequence[str | None]], float]] = {
        R5: lambda question, passages: recall(question, passages, 5),
        R10: lambda question, passages: recall(question, passages, 10),
        NDCG: lambda question, passages: ndcg(question, passages, 10),
    }
    return {name: sum(metric(*pair) for pair in pairs) / len(pairs) for name, metric in metrics.items()}


def _first(question: Question, passages: Sequence[str | None]) -> int | None:
    ranks = (rank for rank, name in enumerate(passages, 1) if name in question.gold_documents)
    return next(ranks, None)


def measure_books(data: Path, keep: Path) -> tuple[list[Row], list[dict[str, Any]]]:
    """Put the questions on books to one library of all of them; gives a row for each group."""
    questions = read_book_questions(data / BOOKS / "questions.jsonl")
    with closing(retrieval_of([data / "epub" / name for name in BOOK_FILES], keep)) as retrieval:
        ranks = {
            way: [question.rank(search(question.query)) for question in questions]
            for way, search in retrieval.ways().items()
        }
    rows = []
    for group, bar in BOOK_BARS.items():
        numbers = [number for number, question in enumerate(questions) if group in _groups(question)]
        reached = {
            way: {name: share_within([of_way[n] for n in numbers], k) for name, k in ((R5, 5), (R10, 10))}
            for way, of_way in ranks.items()
        }
        rows.append(Row(bar, len(numbers), reached))
    records = [
        {"set": BOOKS, "id": question.id, "group": question.group, "question": question.query}
        | {way: of_way[number] for way, of_way in ranks.items()}
        for number, question in enumerate(questions)
    ]
    return rows, records


def _groups(question: BookQuestion) -> tuple[str, ...]:
    return (question.group, f"{question.group}, {question.language}")


HEADER = (
    "| set | questions | recall@5 | recall@10 | nDCG@10 | BM25 alone, r@10 | vectors alone, r@10 | bar | |\n"
    "|---|---:|---:|---:|---:|---:|---:|---|---|"
)


def table_line(row: Row) -> str:
    """Write a row as a line of the table."""
    bar = ", ".join(f"{metric} ≥ {least:g}" for metric, least in row.bar.at_least.items()) or "none"
    fused = row.reached[FUSED]
    values = [
        *(f"{fused[metric]:.3f}" if metric in fused else "" for metric in (R5, R10, NDCG)),
        *(f"{row.reached[way][R10]:.3f}" for way in (BM25, VECTORS)),
    ]
    verdict = "MISS: " + "; ".join(row.misses) if row.misses else "pass"
    return f"| {row.bar.name} | {row.questions} | {' | '.join(values)} | {bar} | {verdict} |"


def _measured(sets: Sequence[str] | None, data: Path, keep: Path) -> Iterator[tuple[list[Row], list[dict[str, Any]]]]:
    for bar in BARS:
        if (not sets or bar.folder in sets) and (data / bar.folder).is_dir():
            yield measure(bar, data, keep)
    if (not sets or BOOKS in sets) and (data / BOOKS).is_dir():
        yield measure_books(data, keep)


def main(arguments: list[str] | None = None) -> int:
    """Measure the sets and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[1])
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of public sets (default: %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the ingested data folders here for the next run")
    parser.add_argument("--sets", nargs="+", metavar="SET", help="only these, by folder name")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers here too")
    parser.add_argument("--questions", type=Path, metavar="FILE", help="write a line of JSON for each question")
    options = parser.parse_args(arguments)
    names = dict.fromkeys([*(bar.folder for bar in BARS), BOOKS])
    for name in names:
        if not options.sets or name in options.sets:
            is_missing(options.data / name)
    rows: list[Row] = []
    records: list[dict[str, Any]] = []
    with ExitStack() as stack:
        keep = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shiguan-bars-")))
        for found, of_questions in _measured(options.sets, options.data, keep):
            if not rows:
                print(HEADER)
            print("\n".join(map(table_line, found)), flush=True)
            rows += found
            records += of_questions
    if not rows:
        return 2
    if options.json:
        lines = [{**asdict(row), "misses": row.misses} for row in rows]
        options.json.write_text(json.dumps(lines, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if options.questions:
        lines_of = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        options.questions.write_text(lines_of, encoding="utf-8")
    return 1 if any(row.misses for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
