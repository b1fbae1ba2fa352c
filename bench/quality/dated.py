"""
Print how well `simple` finds what a chronicle has under a date, with the date as a key and without.

    python -m bench.quality.dated [--data DIR] [--keep DIR] [--questions FILE]

The set is `dated_zztj_qi`: records of the annals of Qi in the 資治通鑑, each under its reign year and month, and
questions on what it records in one. It is measured as it is, and with the date kept only on the first record of each
month, as chronicles are printed. Beside it stands BM25 over pairs of characters, the plainest search there is.
Then once more with every year under its ruler's title, as in 陈世祖文皇帝天嘉元年: eras of other dynasties stand for
those of Qi, in records and questions.

The exit code is 1 if a bar is missed, 2 if there are no data.
"""

import argparse
import gzip
import json
import math
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from unittest.mock import patch

from bench.quality.public_sets import DATA, is_missing
from bench.quality.retrieval_bars import BM25, DEPTH, FUSED, VECTORS, retrieval_of

from shiguan.evaluation.json_lines import read_json_lines
from shiguan.evaluation.questions import read_retrieval_set
from shiguan.evaluation.scoring import judged

SET = "dated_zztj_qi"
KEYED = "with the date key"
PLAIN = "BM25 of pairs of characters"
WAYS = {KEYED: FUSED, "words and vectors": FUSED, "words": BM25, "vectors": VECTORS}
FIRST_WITH_DATE, FIRST_WITHOUT, CARRIED, TITLED = 1.0, 0.95, 0.90, 0.98
# What stands for 齐纪 建元 and for 齐纪 永明.
TITLES = {
    "qi": ("齐太祖高皇帝建元", "齐世祖武皇帝永明"),
    "chen": ("陈世祖文皇帝天嘉", "陈高宗孝宣皇帝太建"),
    "song": ("宋真宗文明武定章圣元孝皇帝景德", "宋真宗文明武定章圣元孝皇帝大中祥符"),
    "ming": ("明恭闵惠皇帝建文", "明成祖文皇帝永乐"),
}
_HEADING = re.compile(r"【([^】]*?)(?:（[^）]*）)?】\n?")


@contextmanager
def without_dates() -> Iterator[None]:
    """Search by words and vectors alone."""
    with patch("shiguan.retrieval.language_balancer.prefer_dates", lambda _query, documents, *_: documents):
        yield


def carried_corpus(corpus: Path, folder: Path) -> Path:
    """Write the corpus with the date on the first record of each month alone."""
    before, lines = "", []
    for _, row in read_json_lines(corpus):
        heading = _HEADING.match(row["text"])
        month = heading[1] if heading else ""
        text = row["text"] if month != before or heading is None else row["text"][heading.end() :]
        before = month
        lines.append(json.dumps({**row, "text": text}, ensure_ascii=False) + "\n")
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "corpus.jsonl"
    target.write_text("".join(lines), encoding="utf-8")
    return target


def titled_set(data: Path, folder: Path, titles: tuple[str, str]) -> Path:
    """Write the set with other eras, each under its ruler's title."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("corpus", "queries", "qrels"):
        lines = []
        for _, row in read_json_lines(data / f"{name}.jsonl.gz"):
            line = json.dumps(row, ensure_ascii=False) + "\n"
            for era, title in zip(("建元", "永明"), titles, strict=True):
                line = line.replace(f"齐纪 {era}", title).replace(f"·齐纪》在{era}", f"》在{title}")
            lines.append(line)
        with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8") as target:
            target.writelines(lines)
    return folder


def first_hits(data: Path, keep: Path) -> float:
    """Return the share of questions whose first hit is right, with the date as a key."""
    questions = read_retrieval_set(*(data / f"{name}.jsonl.gz" for name in ("corpus", "queries", "qrels"))).questions
    with closing(retrieval_of([data / "corpus.jsonl.gz"], keep)) as retrieval:
        search = retrieval.ways()[FUSED]
        found = [next(iter(judged(question, search(question.text))), None) for question in questions]
    return sum(first in q.gold_documents for first, q in zip(found, questions, strict=True)) / len(questions)


def plain_bm25(texts: dict[str, str]) -> Callable[[str], list[str]]:
    """Give a search by pairs of neighbouring characters, k1 1.2 and b .75."""

    def pairs(text: str) -> Counter[str]:
        return Counter(text[at : at + 2] for at in range(len(text) - 1))

    counts = {name: pairs(text) for name, text in texts.items()}
    documents = Counter(pair for own in counts.values() for pair in own)
    mean = sum(own.total() for own in counts.values()) / len(counts)

    def score(query: Counter[str], own: Counter[str]) -> float:
        norm = 1.2 * (0.25 + 0.75 * own.total() / mean)
        weights = {
            pair: math.log(1 + (len(counts) - documents[pair] + 0.5) / (documents[pair] + 0.5)) for pair in query & own
        }
        return sum(weight * own[pair] * 2.2 / (own[pair] + norm) for pair, weight in weights.items())

    def search(text: str) -> list[str]:
        query = pairs(text)
        ranked = sorted(counts, key=lambda name: -score(query, counts[name]))
        return ranked[:DEPTH]

    return search


def measure(corpus: Path, data: Path, keep: Path) -> tuple[dict[str, dict[str, float]], list[dict[str, object]]]:
    """Give first hit right and recall of the first ten for each way of searching, and the ranks of each question."""
    questions = read_retrieval_set(corpus, data / "queries.jsonl.gz", data / "qrels.jsonl.gz").questions
    found: dict[str, list[list[str | None]]] = {}
    with closing(retrieval_of([corpus], keep)) as retrieval:
        ways = retrieval.ways()
        for name, way in WAYS.items():
            if name == KEYED:
                found[name] = [list(judged(question, ways[way](question.text))) for question in questions]
                continue
            with without_dates():
                found[name] = [list(judged(question, ways[way](question.text))) for question in questions]
    search = plain_bm25({row["id"]: row["text"] for _, row in read_json_lines(corpus)})
    found[PLAIN] = [list(search(question.text)) for question in questions]
    reached = {}
    for name, lists in found.items():
        pairs = list(zip(questions, lists, strict=True))
        right = [own[:1] != [] and own[0] in question.gold_documents for question, own in pairs]
        recalls = [len(set(own) & set(q.gold_documents)) / min(len(q.gold_documents), DEPTH) for q, own in pairs]
        reached[name] = {"first": sum(right) / len(right), "recall@10": sum(recalls) / len(recalls)}
    records = [
        {"id": question.id, "question": question.text} | {name: lists[at] for name, lists in found.items()}
        for at, question in enumerate(questions)
    ]
    return reached, records


def main(arguments: list[str] | None = None) -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[1])
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of public sets (default: %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the ingested data folders here for the next run")
    parser.add_argument("--questions", type=Path, metavar="FILE", help="write a line of JSON for each question")
    options = parser.parse_args(arguments)
    data = options.data / SET
    if is_missing(data):
        return 2
    with tempfile.TemporaryDirectory(prefix="shiguan-dated-") as scratch:
        keep = options.keep or Path(scratch)
        printed, records = measure(data / "corpus.jsonl.gz", data, keep)
        carried, _ = measure(carried_corpus(data / "corpus.jsonl.gz", keep / f"{SET}_first"), data, keep)
        under = {
            name: first_hits(titled_set(data, keep / f"{SET}_{name}", titles), keep) for name, titles in TITLES.items()
        }
    print("| | first hit right | recall@10 | date on the first record of a month alone: first | recall@10 |")
    print("|---|---:|---:|---:|---:|")
    for name in printed:
        numbers = [of[name][metric] for of in (printed, carried) for metric in ("first", "recall@10")]
        print(f"| {name} | {' | '.join(f'{number:.3f}' for number in numbers)} |")
    print("\n| under the rulers' titles of | first hit right |\n|---|---:|")
    print("\n".join(f"| {name} | {share:.3f} |" for name, share in under.items()))
    if options.questions:
        lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        options.questions.write_text(lines, encoding="utf-8")
    bars = (
        ("first hit with the date key", printed[KEYED]["first"], FIRST_WITH_DATE),
        ("first hit by words and vectors", printed["words and vectors"]["first"], FIRST_WITHOUT),
        ("recall@10 of carried dates", carried[KEYED]["recall@10"], CARRIED),
        *((f"first hit under the titles of {name}", share, TITLED) for name, share in under.items()),
    )
    misses = [f"MISS: {name} {reached:.3f} is below {least}" for name, reached, least in bars if reached < least]
    print("\n".join(misses))
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
