"""
Fit the probability that passages in another language answer, and print how good it is.

    python -m bench.quality.across_calibration [--data DIR] [--keep DIR] [--write bench/quality/README.md]

`bench.quality.calibration` fits it for passages in the question's language. Counted here are the questions whose first
passage is in the other one of English and Chinese. It is fitted and judged on

- XQuAD, whose paragraphs are in both languages: English questions over the Chinese corpus, Chinese ones over the
  English corpus, and both over bilingual libraries, which have a third of the articles in English, a third in Chinese
  and a third in neither;
- questions of other sets put to these libraries and to a corpus in the other language;
- only judged: SQuAD 2's unanswerable questions on the same articles, the questions on books, and foreign questions put
  to the books and to the sample book.

The model is logistic, of three signals. Answered and unanswered questions weigh the same in the fit, and so does every
kind and direction of each; then its bias is moved until .04 of the answered ones, every kind and direction of which
weighs the same again, lie below the threshold under which passages are only the closest. Each half of XQuAD's articles,
with half of the other sets, is judged by what was fitted, bias and all, on the other half. The text goes between two
marks of the file named by `--write`.
"""

import json
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from bench.quality.answer_bench import Bench, Case, Observation, calibration_options, parallel_cases, print_tables
from bench.quality.retrieval_bars import BOOKS
from examples.build_book import build_book

from shiguan.answer.answerability_gate import CLOSEST_BELOW, FITTED, FITTED_ACROSS, Calibration, Signals
from shiguan.evaluation.json_lines import read_json_lines

XQUAD, BILINGUAL, SETS_APART = "one language", "bilingual", "another set, one language"
LANGUAGES = ("en", "zh")
PARTS = (*LANGUAGES, "neither")
# How many foreign questions, and of how many rotations of the articles bilingual libraries are made.
FOREIGN, LIBRARIES = 150, 2
FOREIGN_HALF = {"en_squad2": 0, "zh_cmrc2018": 0, "en_multihop": 1, "zh_drcd": 1}
DOUBTED, RIDGE = 0.04, 1.0
SIGNALS = ("language_gap", "matched_coverage", "lead")


@dataclass(frozen=True)
class Row:
    """One question whose first passage is in the other language: what it is of, and the half that it is fitted on."""

    group: str
    kind: str
    half: int | None
    observation: Observation

    @property
    def answered(self) -> bool:
        """Whether what was shown holds the answer."""
        return self.kind == "answerable" and self.observation.shown

    @property
    def direction(self) -> str:
        """The languages of question and passages."""
        return "Chinese on English" if self.observation.signals.chinese else "English on Chinese"

    @property
    def name(self) -> tuple[str, str]:
        """What it is counted with: answerable questions that are not answered by what is shown apart."""
        return self.group, "not shown" if self.kind == "answerable" and not self.answered else self.kind


def observe(bench: Bench) -> Iterator[Row]:
    """Search all questions, and keep those whose first passage is in the other language."""
    foreign = {name: bench.cases(f"{name}/queries", FOREIGN) for name in FOREIGN_HALF}
    articles = _articles(bench.data)
    places = {article: at for at, article in enumerate(dict.fromkeys(articles.values()))}
    half_of = {question: places[article] % 2 for question, article in articles.items()}
    for asked, answered in (LANGUAGES, LANGUAGES[::-1]):
        cases = parallel_cases(bench.data, asked, answered)
        yield from _rows(bench, f"xquad_enzh/corpus_{answered}", XQUAD, "answerable", cases, half_of)
    unanswerable = bench.cases("en_squad2/unanswerable_queries", None)
    yield from _rows(bench, "xquad_enzh/corpus_zh", XQUAD, "same articles", unanswerable, {})
    for corpus, sets in (("zh_cmrc2018", ("en_squad2", "en_multihop")), ("en_squad2", ("zh_cmrc2018", "zh_drcd"))):
        for name in sets:
            half = dict.fromkeys((case.id for case in foreign[name]), FOREIGN_HALF[name])
            yield from _rows(bench, f"{corpus}/corpus", SETS_APART, "foreign", foreign[name], half)
    for rotation in range(LIBRARIES):
        parts = {article: PARTS[(at + rotation) % 3] for article, at in places.items()}
        library = [bilingual_corpus(bench.data, bench.keep, parts, rotation)]
        for asked, other in (LANGUAGES, LANGUAGES[::-1]):
            cases = parallel_cases(bench.data, asked, other)
            held = [case for case in cases if parts[articles[case.id]] == other]
            absent = [case for case in cases if parts[articles[case.id]] == "neither"]
            yield from _rows(bench, library, BILINGUAL, "answerable", held, half_of)
            yield from _rows(bench, library, BILINGUAL, "absent article", absent[::2], half_of)
        for name in ("en_multihop", "zh_drcd"):
            half = dict.fromkeys((case.id for case in foreign[name]), FOREIGN_HALF[name])
            yield from _rows(bench, library, BILINGUAL, "foreign", foreign[name], half)


def observe_books(bench: Bench) -> Iterator[Row]:
    """Search the questions on books, and foreign ones there and in the sample book; nothing is fitted on them."""
    books = bench.book_cases()
    answerable = [case for case in books if case.answers or case.quotes]
    others = [case for case in books if case not in answerable]
    yield from _rows(bench, BOOKS, "books", "answerable", answerable, {})
    yield from _rows(bench, BOOKS, "books", "unanswerable", others, {})
    sample = [build_book(bench.keep / "sample-book" / "an-lushan-rebellion.epub")]
    for group, corpus in (("books", BOOKS), ("sample book", sample)):
        for name in FOREIGN_HALF:
            yield from _rows(bench, corpus, group, "foreign", bench.cases(f"{name}/queries", FOREIGN // 2), {})


def _rows(
    bench: Bench, corpus: str | Sequence[Path], group: str, kind: str, cases: Sequence[Case], half: dict[str, int]
) -> Iterator[Row]:
    for one in bench.observed(corpus, cases):
        by_chance = kind in ("foreign", "absent article") and one.case.is_in(one.passages)
        if not one.signals.same_language and not by_chance:
            yield Row(group, kind, half.get(one.case.id), one)


def _articles(data: Path) -> dict[str, str]:
    """Give the article of each question of XQuAD."""
    rows = [row for _, row in read_json_lines(data / "xquad_enzh/queries_en.jsonl.gz")]
    return {str(row["id"]): _article(row["gold_en"][0]["doc_id"]) for row in rows}


def _article(document: str) -> str:
    return document.rpartition("-")[0]


def bilingual_corpus(data: Path, keep: Path, parts: dict[str, str], rotation: int) -> Path:
    """Write XQuAD's corpora as one, with each article in one of the languages or none, and all other paragraphs."""
    lines = []
    for language in LANGUAGES:
        for _, row in read_json_lines(data / f"xquad_enzh/corpus_{language}.jsonl.gz"):
            if parts.get(_article(row["id"]), language) == language:
                lines.append(json.dumps({**row, "id": f"{row['id']}-{language}"}, ensure_ascii=False) + "\n")
    path = keep / f"bilingual-{rotation}" / "corpus.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines), encoding="utf-8")
    return path


def fit(rows: Sequence[Row]) -> Calibration:
    """Fit the logistic model, then set its bias by the share of answered questions that may be doubted."""
    x = np.array([[getattr(row.observation.signals, name) for name in SIGNALS] for row in rows])
    y = np.array([row.answered for row in rows])
    weight = _weights(rows, y)
    mean, spread = x.mean(0), x.std(0) + 1e-9
    scaled = np.c_[np.ones(len(x)), (x - mean) / spread]
    found, ridge = np.zeros(scaled.shape[1]), RIDGE * np.eye(scaled.shape[1])
    ridge[0, 0] = 0.0
    for _ in range(50):
        p = 1 / (1 + np.exp(-scaled @ found))
        curvature = (scaled * (weight * p * (1 - p))[:, None]).T @ scaled + ridge
        found += np.linalg.solve(curvature, (scaled * weight[:, None]).T @ (y - p) - ridge @ found)
    slopes = np.round(found[1:] / spread, 2)
    odds = (x @ slopes)[y]
    order = np.argsort(odds)
    doubted = odds[order][np.searchsorted(np.cumsum(weight[y][order]), DOUBTED * weight[y].sum())]
    bias = math.log(CLOSEST_BELOW / (1 - CLOSEST_BELOW)) - float(doubted)
    weights = dict.fromkeys(asdict(FITTED.weights), 0.0) | dict(zip(SIGNALS, map(float, slopes), strict=True))
    return Calibration(round(bias, 3), Signals(**weights))


def _weights(rows: Sequence[Row], answered: np.ndarray) -> np.ndarray:
    """Let answered and unanswered questions weigh the same, and every kind and direction of each."""
    kinds = [(row.name, row.direction) for row in rows]
    sizes = Counter(kinds)
    parts = {own: len({kind for kind, one in zip(kinds, answered, strict=True) if one == own}) for own in (True, False)}
    shares = [1 / (sizes[kind] * parts[bool(own)]) for kind, own in zip(kinds, answered, strict=True)]
    return np.array(shares) * len(rows) / 2


def fitted_by_half(rows: Sequence[Row]) -> dict[int, Calibration]:
    """Fit on each half what judges the other one."""
    return {1 - half: fit([row for row in rows if row.half == half]) for half in (0, 1)}


def report(rows: Sequence[Row], models: dict[int, Calibration], whole: Calibration) -> str:
    """Write which share of each kind of question is called doubtful, now and by the model of one language."""
    lines = [
        "| first passage in the other language | | questions | not quoted | by the other model |",
        "|---|---|---:|---:|---:|",
    ]
    kinds: dict[tuple[str, str, str], list[tuple[bool, bool]]] = {}
    for row in rows:
        model = whole if row.half is None else models[row.half]
        doubted = (_doubts(model, row.observation), _doubts(FITTED, row.observation))
        kinds.setdefault((*row.name, row.direction), []).append(doubted)
    for (group, kind, direction), doubted in kinds.items():
        now, before = np.mean(doubted, axis=0)
        lines.append(f"| {group}, {kind} | {direction} | {len(doubted)} | {now:.2f} | {before:.2f} |")
    return "\n".join(lines)


def _doubts(model: Calibration, observation: Observation) -> bool:
    return min(model.probability(observation.signals), observation.highest) < CLOSEST_BELOW


def main(arguments: list[str] | None = None) -> int:
    """Fit, print, and write where asked."""
    options = calibration_options(__doc__.split("\n")[1], arguments)
    if options is None:
        return 2
    bench = Bench(options.data, options.keep, None)
    rows = list(observe(bench))
    model = fit([row for row in rows if row.half is not None])
    print(f"fitted: {model}\nshipped: {FITTED_ACROSS}")
    if model != FITTED_ACROSS:
        print("They differ: ship what was fitted.")
    print_tables(report([*rows, *observe_books(bench)], fitted_by_half(rows), model), options.write, "across")
    return 0


if __name__ == "__main__":
    sys.exit(main())
