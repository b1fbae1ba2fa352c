"""
What pays: each part of the retrieval against what stands in its place elsewhere, on the same questions.

    python -m bench.quality.quality [--data DIR] [--keep DIR] [--limit 300] [--json FILE]

Every row is compared with the first of its table, question by question; an asterisk marks a difference whose 95 %
interval (paired bootstrap) excludes zero. Sets are the public ones of `bench/quality/README.md`, whole corpora, at most
`--limit` questions each, evenly spread; `golden` is the sample book's own set.

1. sizes: passages cut in other ways, each in a library of its own. What counts is the share of the gold places that the
   context holds at 1,000 tokens, for a unit that is larger is found more easily and costs more to read.
2. fusion: the 50 best children by words and by vectors, put into one list in other ways. nDCG@10 of the parents; of the
   questions on whole books the share that the first five passages answer.
3. queries: one wording against several, with the recorded expansions of the golden set. Recall@5 and recall@1.
4. context: what is read of the same ten passages, at 500 and 1,000 tokens.
"""

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.quality.book_questions import BOOK_FILES, read_book_questions
from bench.quality.differences import Difference, compare_metric
from bench.quality.public_sets import DATA
from bench.quality.quality_cuts import CUTS, DEFAULT_CUT, library_of
from bench.quality.quality_orders import Order, only, reciprocal_rank, weighted_sum
from haystack import Document

from shiguan.context.context_builder import ContextBuilder
from shiguan.engine.loading import load_pipeline
from shiguan.evaluation.json_lines import read_json_lines
from shiguan.evaluation.provenance import TENANT
from shiguan.evaluation.questions import Question, read_golden_set, read_retrieval_set
from shiguan.evaluation.questions import Question as GoldenQuestion
from shiguan.evaluation.scoring import context_metrics, judged, ndcg

HERE = Path(__file__).resolve().parent
SETS = ("en_squad2", "en_multihop", "zh_cmrc2018", "zh_drcd", "tang_modern2classical")
BUDGET = 1000
DEPTH = 50
READ = 10

ORDERS: dict[str, Order] = {
    "standardised scores, words .5, vectors .5": weighted_sum((0.5, 0.5)),
    "standardised scores, words .2, vectors .8": weighted_sum((0.2, 0.8)),
    "standardised scores, words .8, vectors .2": weighted_sum((0.8, 0.2)),
    "RRF, k = 60": reciprocal_rank(),
    "RRF, words .2, vectors .8": reciprocal_rank(weights=(0.2, 0.8)),
    "RRF, words .8, vectors .2": reciprocal_rank(weights=(0.8, 0.2)),
    "words alone": only(0),
    "vectors alone": only(1),
}
READINGS = {
    f"`{strategy}`, {budget} tokens": {"strategy": strategy, "token_budget": budget}
    for budget in (BUDGET, 500)
    for strategy in ("truncate", "hierarchical")
}

Values = dict[str, dict[str, list[float]]]
"""Row to column to one value per question."""


@dataclass
class Retrieval:
    """The parts of `simple` that find passages, over one library."""

    data_dir: Path

    def __post_init__(self) -> None:
        self._pipeline = load_pipeline("embedded", "simple", data_dir=self.data_dir, outputs=["documents"])
        self._pipeline.warm_up()
        self._filters = {"field": "meta.tenant_id", "operator": "==", "value": TENANT}

    def lists(self, query: str) -> list[list[Document]]:
        """Give the children found by words and by vectors."""
        part = self._pipeline.get_component
        vector = part("text_embedder").run(text=query)["embedding"]
        arguments = {"filters": self._filters, "top_k": DEPTH}
        return [
            part("bm25_retriever").run(query=query, **arguments)["documents"],
            part("embedding_retriever").run(query_embedding=vector, **arguments)["documents"],
        ]

    def parents(self, children: list[Document]) -> list[Document]:
        """Fetch what the children were cut from, the best child's parent first."""
        fetcher = self._pipeline.get_component("parent_fetcher")
        parents: list[Document] = fetcher.run(documents=children, filters=self._filters, top_k=DEPTH)["documents"]
        return parents

    def close(self) -> None:
        """Free the folder."""
        self._pipeline.get_component("bm25_retriever").document_store.close()
        self._pipeline.get_component("parent_fetcher").document_store.close()


def main(arguments: list[str] | None = None) -> int:
    """Measure, print the tables, and write the numbers where they are wanted."""
    parser = argparse.ArgumentParser(prog="python -m bench.quality.quality", description=__doc__.split("\n")[1])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the public sets")
    parser.add_argument("--keep", type=Path, help="keep the libraries here and use them again")
    parser.add_argument("--limit", type=int, default=300, help="questions of a set at most (default: 300)")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--json", type=Path, help="write the differences as JSON")
    options = parser.parse_args(arguments)
    missing = [name for name in (*options.sets, "books_qa", "epub") if not (options.data / name).is_dir()]
    if missing:
        print(f"{options.data} lacks {', '.join(missing)}. Name the folder of the public sets with --data.")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        tables = measure(options.data, options.sets, options.keep or Path(folder), options.limit)
    for title, values in tables.items():
        print(table(title, values))
    if options.json:
        options.json.write_text(json.dumps({title: _as_json(values) for title, values in tables.items()}, indent=1))
    return 0


def measure(data: Path, sets: list[str], libraries: Path, limit: int) -> dict[str, Values]:
    """Run every family on every set it is made for."""
    sizes: Values = defaultdict(dict)
    fusion: Values = defaultdict(dict)
    reading: Values = defaultdict(dict)
    for name in sets:
        questions = read_retrieval_set(
            data / name / "corpus.jsonl.gz",
            data / name / "queries.jsonl.gz",
            data / name / "qrels.jsonl.gz",
            limit=limit,
            skip_unjudged=True,
        ).questions
        for cut in CUTS:
            print(f"{name}: {cut.name}", file=sys.stderr, flush=True)
            retrieval = Retrieval(library_of([data / name / "corpus.jsonl.gz"], cut, libraries))
            for row, column, value in _one_library(retrieval, questions, default=cut is DEFAULT_CUT, name=name):
                if row == "":
                    sizes[cut.name].setdefault(column, []).append(value)
                else:
                    (fusion if row in ORDERS else reading)[row].setdefault(column, []).append(value)
            retrieval.close()
    print("books: fusion", file=sys.stderr, flush=True)
    retrieval = Retrieval(library_of([data / "epub" / name for name in BOOK_FILES], DEFAULT_CUT, libraries))
    for asked in read_book_questions(data / "books_qa" / "questions.jsonl"):
        lists = retrieval.lists(asked.query)
        for row, order in ORDERS.items():
            rank = asked.rank(retrieval.parents(order(lists))[:5])
            fusion[row].setdefault(f"books, {asked.group}", []).append(float(rank is not None))
    retrieval.close()
    print("golden: several queries", file=sys.stderr, flush=True)
    return {
        "sizes: gold places in a context of 1,000 tokens": sizes,
        "fusion: nDCG@10; books: recall@5": fusion,
        "queries: recall on the golden set": several_queries(libraries / "golden"),
        "context: gold places in what is read": reading,
    }


def _one_library(
    retrieval: Retrieval, questions: list[Question], *, default: bool, name: str
) -> Iterator[tuple[str, str, float]]:
    """Give row, column and value of each question; the row of the sizes is empty."""
    fuse = weighted_sum((0.5, 0.5))
    builders = {row: ContextBuilder(**settings) for row, settings in READINGS.items()}
    plain = ContextBuilder(token_budget=BUDGET)
    for question in questions:
        lists = retrieval.lists(question.text)
        parents = retrieval.parents(fuse(lists))
        yield "", name, _read(question, plain, parents)
        if not default:
            continue
        for row, builder in builders.items():
            yield row, name, _read(question, builder, parents[:READ])
        for row, order in ORDERS.items():
            yield row, name, ndcg(question, judged(question, retrieval.parents(order(lists))), 10)


def _read(question: Question, builder: ContextBuilder, parents: list[Document]) -> float:
    built = builder.run(documents=parents, query=question.text)
    return context_metrics(question, judged(question, built["documents"]), 0)["context_recall"]


def several_queries(data_dir: Path) -> Values:
    """Ask the sample book's questions in one wording and in several, fused as `advanced` does it."""
    from examples.build_book import build_book

    data_dir.mkdir(parents=True, exist_ok=True)
    book = data_dir / "book" / "an-lushan-rebellion.epub"
    book.parent.mkdir(exist_ok=True)
    build_book(book)
    retrieval = Retrieval(library_of([book], DEFAULT_CUT, data_dir))
    expansions = {row["id"]: row["queries"] for _, row in read_json_lines(HERE / "golden" / "expansions.jsonl")}
    values: Values = defaultdict(lambda: defaultdict(list))
    one, several = weighted_sum((0.5, 0.5)), reciprocal_rank()
    for question in read_golden_set(HERE / "golden" / "sample_book.jsonl").questions:
        if question.id not in expansions or not question.gold:
            continue
        for row, queries in (
            ("one query", [question.text]),
            ("the question and its recorded expansions", [question.text, *expansions[question.id]]),
            ("the recorded expansions alone", expansions[question.id]),
        ):
            lists = [one(retrieval.lists(query)) for query in queries]
            parents = retrieval.parents(several(lists) if len(lists) > 1 else lists[0])
            for k in (1, 5):
                values[row][f"{question.language} recall@{k}"].append(_golden_recall(question, parents[:k]))
    retrieval.close()
    return values


def _golden_recall(golden: GoldenQuestion, parents: list[Document]) -> float:
    found = [any(passage.stands_in(parent) for parent in parents) for passage in golden.gold]
    return sum(found) / len(found)


def differences(values: Values) -> dict[str, dict[str, Difference]]:
    """Compare every row with the first one, column by column."""
    first = next(iter(values))
    return {
        row: {column: compare_metric(column, values[first][column], numbers) for column, numbers in columns.items()}
        for row, columns in values.items()
    }


def table(title: str, values: Values) -> str:
    """Write one family as a Markdown table: means, and differences to the first row with their intervals."""
    compared = differences(values)
    first = next(iter(values))
    columns = list(values[first])
    counts = [len(values[first][column]) for column in columns]
    lines = [
        f"**{title}**\n",
        "| | " + " | ".join(f"{column} ({count})" for column, count in zip(columns, counts, strict=True)) + " |",
        "|---|" + "---|" * len(columns),
    ]
    for row, cells in compared.items():
        lines.append(f"| {row} | " + " | ".join(_cell(cells[column], row == first) for column in columns) + " |")
    return "\n".join(lines) + "\n"


def _cell(difference: Difference, first: bool) -> str:
    if first:
        return f"{difference.after:.3f}"
    mark = "" if difference.low <= 0 <= difference.high else " *"
    return f"{difference.after:.3f} ({difference.low:+.3f} to {difference.high:+.3f}){mark}"


def _as_json(values: Values) -> dict[str, Any]:
    return {
        row: {
            column: {"mean": round(d.after, 4), "difference": round(d.difference, 4), "low": round(d.low, 4),
                     "high": round(d.high, 4), "questions": d.count}
            for column, d in columns.items()
        }
        for row, columns in differences(values).items()
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
