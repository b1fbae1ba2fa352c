"""
Measure what the judge adds to the probability that passages answer, over the whole retrieval of `simple`.

    python -m bench.judge.library [--data DIR] [--keep DIR] [--weights FILE.npz]

Questions on books, by which it is judged; and those that were written on chapters and tales kept out of training, by
which its share and its threshold are chosen. The judge reads what would be quoted. Beside the questions that nothing
answers stand, as a third kind, those with an answer without the passages that have it. The first table has how well
answered questions are told from the others (AUROC): by the logarithm of the odds of `AnswerabilityGate`, by
the judge's for the best quotation, and by the sum of the former and a share of the latter; the second the first
quotation, in the order of the retrieval and with a share of the judge's odds; the third how many get no more than the
closest passages, without the judge, with it, and where its threshold is another one; the last the marked sentence of
quotations that answer, without the judge and with it.
"""

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from haystack import Document

from bench.judge import sets
from bench.judge.retrieved import chapter_files, sentences_around
from bench.judge.written import Written, written
from bench.quality.answer_bench import NEAREST, READ, Bench, Case
from bench.quality.public_sets import DATA
from bench.quality.retrieval_bars import BOOKS
from bench.quality.rows import auroc
from shiguan.answer.answerability_gate import CLOSEST_BELOW, NEITHER, ODDS_SHARE, probability
from shiguan.answer.quotations import marked_where_read, quotations
from shiguan.evaluation.provenance import TENANT
from shiguan.models.judge import ADAPTER, Judge
from shiguan.reading.passage import Passage
from shiguan.reading.text import read_text

SHARES = (0.5, 0.75, 1.0)
THRESHOLDS = (-2.5, -1.5, -1.0, -0.5)
_LEAST, _UNANSWERED = 4, 0.4
"""Passages of a chapter, and how many of its questions they do not answer."""


@dataclass(frozen=True)
class Quoted:
    """One quotation: the judge's log-odds, whether it answers, and its marked sentence, without the judge and with."""

    log_odds: float
    answers: bool
    marked: bool
    judged: bool


@dataclass(frozen=True)
class Row:
    """A question: what it is told apart by, its language, the log-odds of the product, and what would be quoted."""

    group: str
    kind: str
    language: str
    log_odds: float
    quoted: tuple[Quoted, ...]

    @property
    def judged(self) -> float:
        """The judge's log-odds for the best quotation."""
        return max(one.log_odds for one in self.quoted)


def observe(bench: Bench, judge: Judge) -> Iterator[Row]:
    """Ask all questions."""
    chapters = _chapters(bench.data)
    texts = {group: [row.passage for row in rows] for group, rows in chapters.items()}
    for name, corpus, cases in (
        ("books", BOOKS, bench.book_cases()),
        ("chapters", chapter_files(bench.keep / "chapters", texts), list(_cases(chapters))),
    ):
        with bench.mode(corpus) as runner:
            for case in cases:
                found = runner.trace(case.text[:2000], tenant_id=TENANT, outputs=[READ, NEAREST])["outputs"]
                documents, nearest = found[READ] or [], found[NEAREST] or []
                answerable = bool(case.answers or case.quotes)
                yield from _row(judge, case, name, "answered" if answerable else "unanswerable", documents, nearest)
                if answerable:
                    gone = {Passage(one).parent_id for one in documents if case.is_in([one.content or ""])}
                    rest = [one for one in documents if Passage(one).parent_id not in gone]
                    near = [one for one in nearest if Passage(one).parent_id not in gone]
                    yield from _row(judge, case, name, "taken out", rest, near)


def _chapters(folder: Path) -> dict[str, list[Written]]:
    groups: dict[str, list[Written]] = defaultdict(list)
    for row in written(folder, kept_out=True):
        groups[row.group].append(row)
    return {group: rows for group, rows in groups.items() if len(rows) >= _LEAST}


def _cases(chapters: Mapping[str, Sequence[Written]]) -> Iterator[Case]:
    """Ask of each passage what it answers, told by the sentences with the answer, or what it does not."""
    for row in (row for rows in chapters.values() for row in rows):
        chance = sets.seeded(row.id)
        if chance.random() < _UNANSWERED:
            yield Case(f"{row.id}-", chance.choice(row.unasked))
            continue
        question, answer = chance.choice(row.asked)
        start = row.passage.index(answer)
        yield Case(f"{row.id}+", question, quotes=((sentences_around(row.passage, start, start + len(answer)),),))


def _row(
    judge: Judge, case: Case, name: str, kind: str, documents: Sequence[Document], nearest: Sequence[Document]
) -> Iterator[Row]:
    quoted = []
    if not documents:
        return
    # Where the first passage is in another language another fit decides.
    asked_in = read_text(case.text).language
    across = Passage(documents[0]).language != asked_in
    for one in quotations(documents, case.text):
        text, (first, last) = one.document.content or "", one.window
        reading = judge.answer(case.text, text[first:last])
        spans = (one.sentence, marked_where_read(one, reading, case.text).sentence)
        marked, judged = (case.is_in([text[slice(*span)]]) for span in spans)
        quoted.append(Quoted(reading.log_odds, case.is_in([text[first:last]]), marked, judged))
    p = min(max(probability(case.text, documents, nearest), 1e-6), 1 - 1e-6)
    if quoted and (kind != "answered" or any(one.answers for one in quoted)):
        group = f"{name}, {'across' if across else 'zh' if asked_in == 'zh' else 'en'}"
        yield Row(group, kind, asked_in, math.log(p / (1 - p)), tuple(quoted))


def tables(rows: Sequence[Row]) -> Iterator[str]:
    """Write both tables."""
    shares = " · ".join(map(str, SHARES))
    yield f"| | answered | not | the product | the judge | sum, with {shares} of the judge |"
    yield "|---|---:|---:|---:|---:|---|"
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.group].append(row)
    for group, some in groups.items():
        up = [row for row in some if row.kind == "answered"]
        for kind in dict.fromkeys(row.kind for row in some if row.kind != "answered"):
            down = [row for row in some if row.kind == kind]
            parts = [(1.0, 0.0), (0.0, 1.0), *((1.0, share) for share in SHARES)]
            areas = [auroc(_sums(up, *part), _sums(down, *part)) for part in parts]
            sums = " · ".join(f"{area:.3f}" for area in areas[2:])
            yield f"| {group}: {kind} | {len(up)} | {len(down)} | {areas[0]:.3f} | {areas[1]:.3f} | {sums} |"
    yield ""
    yield f"| | first quotation right | with {shares} of the judge |"
    yield "|---|---:|---|"
    for group, some in groups.items():
        up = [row for row in some if row.kind == "answered"]
        orders = [np.mean([_first(row, share).answers for row in up]) for share in (0.0, *SHARES)]
        shown = " · ".join(f"{order:.3f}" for order in orders[1:])
        yield f"| {group} | {orders[0]:.3f} | {shown} |"


def doubted(rows: Sequence[Row]) -> Iterator[str]:
    """Write how many questions get no more than the closest passages, without the judge and with it."""
    thresholds = " · ".join(map(str, THRESHOLDS))
    yield f"| called closest or not found (threshold {thresholds}) | answered | unanswerable | taken out |"
    yield "|---|---|---|---|"
    least = math.log(CLOSEST_BELOW / (1 - CLOSEST_BELOW))
    for group in dict.fromkeys(row.group for row in rows):
        shown = []
        for kind in ("answered", "unanswerable", "taken out"):
            of = [row for row in rows if (row.group, row.kind) == (group, kind)]
            odds = [
                [row.log_odds + ODDS_SHARE * (row.judged - at) for at in (NEITHER[row.language], *THRESHOLDS)]
                for row in of
            ]
            without = np.mean([row.log_odds < least for row in of]) if of else math.nan
            now, *others = np.mean(np.array(odds) < least, axis=0) if of else [math.nan] * (1 + len(THRESHOLDS))
            shown.append(f"{without:.2f} → {now:.2f} ({' · '.join(f'{one:.2f}' for one in others)})")
        yield f"| {group} | {' | '.join(shown)} |"


def marks(rows: Sequence[Row]) -> Iterator[str]:
    """Write how often the marked sentence of a quotation with the answer has it."""
    yield "| sentence with the answer | quotations | marked without the judge | with it |"
    yield "|---|---:|---:|---:|"
    for group in dict.fromkeys(row.group for row in rows):
        right = [
            one for row in rows if row.group == group and row.kind == "answered" for one in row.quoted if one.answers
        ]
        shares = np.mean([(one.marked, one.judged) for one in right], axis=0) if right else (math.nan, math.nan)
        yield f"| {group} | {len(right)} | {shares[0]:.2f} | {shares[1]:.2f} |"


def _sums(rows: Sequence[Row], product: float, judge: float) -> list[float]:
    return [product * row.log_odds + judge * row.judged for row in rows]


def _first(row: Row, share: float) -> Quoted:
    ranked = enumerate(row.quoted, start=1)
    return max(ranked, key=lambda one: share * one[1].log_odds - math.log(one[0]))[1]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure what the judge adds.")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--keep", type=Path, default=Path(".data/bars"), help="where ingested corpora are kept")
    parser.add_argument("--weights", type=Path, default=ADAPTER)
    chosen = parser.parse_args()
    judge = Judge(adapter=chosen.weights)
    rows = list(observe(Bench(chosen.data, chosen.keep, None), judge))
    print("\n".join([*tables(rows), "", *doubted(rows), "", *marks(rows)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
