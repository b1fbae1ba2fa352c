"""
Do children that begin with the last sentence of the one before them find more? And what are block quotations worth?

    python -m bench.quality.overlap [--books childrens-literature.epub ...] [--sets en_squad2 ...] [--keep DIR]

Two libraries of the same files, cut as shipped and with overlap, retrieval as in `simple`, the same questions. Of a
set nDCG@10, of books the share of questions that the first five and ten passages answer; an asterisk marks a difference
whose 95 % interval excludes zero. Below the table: what the overlap costs in text to embed, and how much of the books
stands in block quotations.
"""

import argparse
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from bench.quality.book_questions import BOOK_FILES, FOLLOW_UPS, read_book_questions
from bench.quality.public_sets import DATA
from bench.quality.quality import Retrieval, Values, table
from bench.quality.quality_cuts import DEFAULT_CUT, OVERLAPPING_CUT, Cut, library_of
from bench.quality.quality_orders import weighted_sum

from shiguan.evaluation.questions import read_retrieval_set
from shiguan.evaluation.scoring import judged, ndcg

SETS = ("en_squad2", "zh_cmrc2018")
FUSE = weighted_sum((0.5, 0.5))


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.quality.overlap", description=__doc__.split("\n")[1])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the public sets")
    parser.add_argument("--keep", type=Path, help="keep the libraries here and use them again")
    parser.add_argument("--books", nargs="*", default=BOOK_FILES, choices=BOOK_FILES)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--limit", type=int, default=400, help="questions of a set at most (default: 400)")
    options = parser.parse_args(arguments)
    values: Values = defaultdict(lambda: defaultdict(list))
    kinds: dict[str, dict[str, int]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for cut in (DEFAULT_CUT, OVERLAPPING_CUT):
            kinds[cut.name] = measure(cut, options, options.keep or Path(folder), values)
    print(table("children that overlap", values))
    for name, characters in kinds.items():
        quoted = characters.get("quote", 0)
        print(f"{name}: {sum(characters.values()):,} characters in children, {quoted:,} of them in block quotations")
    return 0


def measure(cut: Cut, options: argparse.Namespace, keep: Path, values: Values) -> dict[str, int]:
    """Ask everything of the libraries of one cut; count the characters of its children by kind."""
    kinds: dict[str, int] = defaultdict(int)
    for name in options.sets:
        print(f"{name}: {cut.name}", file=sys.stderr, flush=True)
        files = [options.data / name / f"{part}.jsonl.gz" for part in ("corpus", "queries", "qrels")]
        retrieval = _opened([files[0]], cut, keep, kinds)
        for question in read_retrieval_set(*files, limit=options.limit, skip_unjudged=True).questions:
            found = judged(question, retrieval.parents(FUSE(retrieval.lists(question.text))))
            values[cut.name][f"{name} nDCG@10"].append(ndcg(question, found, 10))
        retrieval.close()
    if options.books:
        print(f"books: {cut.name}", file=sys.stderr, flush=True)
        retrieval = _opened([options.data / "epub" / name for name in options.books], cut, keep, kinds)
        for asked in read_book_questions(options.data / "books_qa" / "questions.jsonl"):
            if asked.book in options.books and asked.group != FOLLOW_UPS:
                rank = asked.rank(retrieval.parents(FUSE(retrieval.lists(asked.query))))
                for depth in (5, 10):
                    column = f"books, {asked.group}, recall@{depth}"
                    values[cut.name][column].append(float(rank is not None and rank <= depth))
        retrieval.close()
    return dict(kinds)


def _opened(files: list[Path], cut: Cut, keep: Path, kinds: dict[str, int]) -> Retrieval:
    retrieval = Retrieval(library_of(files, cut, keep))
    for child in retrieval.children():
        kinds[child.meta["kind"]] += len(child.content or "")
    return retrieval


if __name__ == "__main__":
    sys.exit(main())
