"""
Fit the probability that the passages shown for a question hold its answer, and print how good it is.

    python -m bench.quality.calibration [--data DIR] [--keep DIR] [--write bench/quality/README.md]

Every question is searched through the retrieval of `simple`; it counts as answered if an accepted answer, or a sentence
that answers, stands in the quotations that would be shown. Fitted are the weights of `AnswerabilityGate` on

- paragraph sets over their own corpus, XQuAD across languages, and SQuAD 2's unanswerable questions;
- the same questions over another set's corpus (left out where the answer stands in the passages read by chance);
- the questions on books, with those that no book answers, and foreign questions put to the books.

Where the first passage is in the other of English and Chinese, `bench.quality.across_calibration` fits and judges what
decides. Such questions help to fit the weights here, but only those on books are reported, judged by that other fit,
which has seen none of them.

All sets weigh the same, the books as much as twelve. What is reported is never of a question that the weights were
fitted with: each set, and each book, is judged by weights that are fitted on the others. The first table says what each
kind of question gets: quotations, the closest passages, or nothing; the second what else could be had, with a threshold
for each language, for so many answerable ones that are not quoted. The third compares the probability for the
questions on books with the share that was answered, in five bins of as many questions each, with the mean gap between
the two (expected calibration error) beside what a perfectly calibrated probability would get with as many questions;
the fourth has the risk, the share not answered, when only the surest are answered. The same is fitted for searching by
words alone. The text goes between two marks of the file named by `--write`.
"""

import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields, replace

import numpy as np
from bench.quality.answer_bench import Bench, Case, Observation, calibration_options, parallel_cases, print_tables
from bench.quality.retrieval_bars import BOOKS

from shiguan.answer.answerability_gate import (
    CLOSEST_BELOW,
    FITTED,
    FITTED_ACROSS,
    FITTED_BY_WORDS,
    NOTHING_BELOW,
    Calibration,
    Signals,
)

OWN, FOREIGN, UNANSWERABLE = "own", "foreign", "unanswerable"
SETS = ("en_squad2", "zh_cmrc2018", "zh_drcd", "en_multihop")
ELSEWHERE = (
    ("en_squad2", "en_multihop/corpus"),
    ("en_multihop", "en_squad2/corpus"),
    ("zh_drcd", "zh_cmrc2018/corpus"),
    ("zh_cmrc2018", "zh_drcd/corpus"),
)
SAMPLE, ON_BOOKS = 150, 75
# Few Chinese questions of these sets are near a text that does not answer them, so that the fit is too sure of them. Of
# 0, .2, .35, .5 and .7 this is the most that makes no Chinese question which is left out less likely (log loss .301,
# .301, .305, .312, .326): .16 of foreign ones are quoted instead of .25, .88 of answerable ones on books, not .93.
LESS_IN_CHINESE = 0.2
BOOK_WEIGHT, RIDGE, BINS = 12.0, 1.0, 5
# Of the signals only these: the others are 0 where the first passage is in the question's language.
SIGNALS = 6
FAR, NEAR = "far: another set's questions", "near: about the same matters"


@dataclass(frozen=True)
class Labelled:
    """One observation: the set it is of, its kind, the book that it is about, and what is left out together with it."""

    set: str
    kind: str
    observation: Observation
    book: str = ""

    @property
    def answered(self) -> bool:
        """Whether what was shown holds the answer."""
        return self.kind == OWN and self.observation.shown

    @property
    def on_books(self) -> bool:
        """Whether it was put to the books."""
        return self.set.startswith(BOOKS)

    @property
    def across(self) -> bool:
        """Whether the first passage is in another language than the question."""
        return not self.observation.signals.same_language

    @property
    def fold(self) -> str:
        """What is left out together: a book, or a set with its questions to any corpus but the books."""
        return self.book or (
            "xquad" if self.set.startswith("xquad") else self.set.partition(" on ")[0].partition(",")[0]
        )


def observe(bench: Bench) -> Iterator[Labelled]:
    """Search all questions."""
    queries = {name: bench.cases(f"{name}/queries", SAMPLE) for name in SETS}
    for name, cases in queries.items():
        yield from _over(bench, f"{name}/corpus", name, OWN, cases)
    for asked, answered in (("en", "zh"), ("zh", "en")):
        cases = parallel_cases(bench.data, asked, answered)[:SAMPLE]
        yield from _over(bench, f"xquad_enzh/corpus_{answered}", f"xquad {asked} on {answered}", OWN, cases)
    unanswerable = bench.cases("en_squad2/unanswerable_queries", SAMPLE)
    yield from _over(bench, "en_squad2/corpus", "en_squad2, unanswerable", UNANSWERABLE, unanswerable)
    for name, corpus in ELSEWHERE:
        yield from _over(bench, corpus, f"{name} on {corpus}", FOREIGN, queries[name])
    books, about = bench.book_cases(), bench.books()
    for kind, cases in (
        (OWN, [case for case in books if case.answers or case.quotes]),
        (UNANSWERABLE, [case for case in books if not (case.answers or case.quotes)]),
    ):
        for row in _over(bench, BOOKS, BOOKS, kind, cases):
            yield replace(row, book=about[row.observation.case.id])
    for name in SETS:
        yield from _over(bench, BOOKS, f"{BOOKS}, {name}", FOREIGN, queries[name][:ON_BOOKS])


def _over(bench: Bench, corpus: str, name: str, kind: str, cases: Sequence[Case]) -> Iterator[Labelled]:
    for one in bench.observed(corpus, cases):
        # Two encyclopedias overlap: what stands in the foreign passages by chance is no foreign question.
        if kind != FOREIGN or not one.case.is_in(one.passages):
            yield Labelled(name, kind, one)


def fit(rows: Sequence[Labelled], *, less_in_chinese: float = LESS_IN_CHINESE) -> Calibration:
    """Fit a logistic model by Newton's method, every set with its weight, with a small ridge; then lower Chinese."""
    x = np.array([astuple(row.observation.signals)[:SIGNALS] for row in rows])
    y = np.array([float(row.answered) for row in rows])
    mean, spread = x.mean(0), x.std(0) + 1e-9
    x = np.c_[np.ones(len(x)), (x - mean) / spread]
    sizes = Counter(row.set for row in rows)
    weight = np.array([(BOOK_WEIGHT if row.set == BOOKS else 1.0) / sizes[row.set] for row in rows])
    weight *= len(rows) / weight.sum()
    found = np.zeros(x.shape[1])
    ridge = RIDGE * np.eye(len(found))
    ridge[0, 0] = 0.0
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ found))
        curvature = (x * (weight * p * (1 - p))[:, None]).T @ x + ridge
        found += np.linalg.solve(curvature, (x * weight[:, None]).T @ (y - p) - ridge @ found)
    slopes = found[1:] / spread
    bias = float(found[0] - slopes @ mean)
    slopes[[field.name for field in fields(Signals)].index("chinese")] -= less_in_chinese
    return Calibration(round(bias, 3), Signals(*(round(float(slope), 3) for slope in slopes)))


def _fitted(rows: Sequence[Labelled], shipped: Calibration, name: str, **options: float) -> Calibration:
    model = fit(rows, **options)
    print(f"{name}: {model}\nshipped: {shipped}" + ("" if model == shipped else "\nThey differ: ship what was fitted."))
    return model


def left_out(rows: Sequence[Labelled]) -> "np.ndarray":
    """Give each question the probability by weights that were fitted without its set or book."""
    found = np.zeros(len(rows))
    for fold in sorted({row.fold for row in rows}):
        model = fit([row for row in rows if row.fold != fold])
        for place, row in enumerate(rows):
            if row.fold == fold:
                judge = FITTED_ACROSS if row.across else model
                found[place] = min(judge.probability(row.observation.signals), row.observation.highest)
    return found


def statuses(rows: Sequence[Labelled], p: "np.ndarray") -> str:
    """Write which share of each kind of question gets what, where the first passage is in its language."""
    chinese = np.array([row.observation.signals.chinese > 0 for row in rows])
    kinds = np.array([row.kind for row in rows])
    books = np.array([row.on_books for row in rows])
    kinds[[row.across for row in rows]] = ""
    english_ones, chinese_ones = (kinds == OWN) & ~chinese, (kinds == OWN) & chinese
    groups = {
        "answerable, English": english_ones,
        "answerable, Chinese": chinese_ones,
        "of these on books, English": (kinds == OWN) & ~chinese & books,
        "of these on books, Chinese": (kinds == OWN) & chinese & books,
        "nothing answers": np.isin(kinds, (FOREIGN, UNANSWERABLE)),
        FAR: kinds == FOREIGN,
        NEAR: kinds == UNANSWERABLE,
    }
    lines = ["| left out | questions | quoted | closest | not found |", "|---|---:|---:|---:|---:|"]
    for name, group in groups.items():
        of = p[group]
        quoted, nothing = (of >= CLOSEST_BELOW).mean(), (of < NOTHING_BELOW).mean()
        lines.append(f"| {name} | {len(of)} | {quoted:.2f} | {1 - quoted - nothing:.2f} | {nothing:.2f} |")
    lines += ["", "| not quoted: answerable, each language | nothing answers | far | near |", "|---:|---:|---:|---:|"]
    for share in (0.10, 0.15, 0.20, 0.25):
        below = p < np.where(chinese, np.quantile(p[chinese_ones], share), np.quantile(p[english_ones], share))
        kept = [below[groups[name]].mean() for name in ("nothing answers", FAR, NEAR)]
        lines.append(f"| {share:.2f} | {' | '.join(f'{one:.2f}' for one in kept)} |")
    return "\n".join(lines)


def calibration_error(p: "np.ndarray", y: "np.ndarray") -> float:
    """Give the mean gap between probability and share, over bins of as many questions each."""
    bins = np.array_split(np.argsort(p, kind="stable"), BINS)
    return float(sum(abs(p[one].mean() - y[one].mean()) * len(one) for one in bins) / len(p))


def report(rows: Sequence[Labelled]) -> str:
    """Write what each kind of question gets, and the reliability and the risk of those on books."""
    every = left_out(rows)
    held = [row for row in rows if row.on_books]
    p = every[[row.on_books for row in rows]]
    y = np.array([float(row.answered) for row in held])
    draws = np.random.default_rng(7)
    noise = float(np.mean([calibration_error(p, (draws.random(len(p)) < p).astype(float)) for _ in range(500)]))
    lines = [
        statuses(rows, every),
        "",
        f"{len(held)} questions put to the books, each left out with its book or set, of which {int(y.sum())} were "
        f"answered by what is shown. Expected calibration error {calibration_error(p, y):.3f} (a perfect probability: "
        f"{noise:.3f}).",
        "",
        "| probability | questions | mean probability | answered |",
        "|---|---:|---:|---:|",
    ]
    for one in np.array_split(np.argsort(p, kind="stable"), BINS):
        span = f"{p[one].min():.2f} to {p[one].max():.2f}"
        lines.append(f"| {span} | {len(one)} | {p[one].mean():.2f} | {y[one].mean():.2f} |")
    lines += ["", "| coverage | refused below | risk |", "|---:|---:|---:|"]
    return "\n".join([*lines, *risk_rows(p, y)])


def risk_rows(p: np.ndarray, y: np.ndarray) -> list[str]:
    """
    Write the risk, the share of answers that are wrong, where only the surest tenth, two tenths and so on are given.

    Answers of one confidence come together (El-Yaniv and Wiener, "On the Foundations of Noise-free Selective
    Classification", 2010).
    """
    surest = np.sort(p)[::-1]
    least = dict.fromkeys(surest[math.ceil(len(p) * tenth / 10) - 1] for tenth in range(1, 11))
    given = [(one, p >= one) for one in least]
    return [f"| {some.mean():.2f} | {one:.2f} | {1 - y[some].mean():.2f} |" for one, some in given]


def main(arguments: list[str] | None = None) -> int:
    """Fit, print, and write where asked."""
    options = calibration_options(__doc__.split("\n")[1], arguments)
    if options is None:
        return 2
    by_words = list(observe(Bench(options.data, options.keep, None, by_words=True)))
    rows = list(observe(Bench(options.data, options.keep, None)))
    model = _fitted(rows, FITTED, "fitted")
    _fitted(by_words, FITTED_BY_WORDS, "fitted by words", less_in_chinese=0.0)
    sets = Counter((row.set, row.kind) for row in rows)
    for (name, kind), count in sets.items():
        of_set = [row for row in rows if (row.set, row.kind) == (name, kind)]
        signals = np.mean([astuple(row.observation.signals) for row in of_set], axis=0)
        told = ", ".join(f"{field.name} {value:.2f}" for field, value in zip(fields(Signals), signals, strict=True))
        given = np.mean([model.probability(row.observation.signals) for row in of_set])
        answered = np.mean([row.answered for row in of_set])
        print(f"{name}, {kind}: {count}, answered {answered:.2f}, p {given:.2f} ({told})")
    print_tables(report(rows), options.write, "calibration")
    return 0


if __name__ == "__main__":
    sys.exit(main())
