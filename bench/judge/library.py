"""
Measure what the judge adds to the probability that passages answer, over the whole retrieval of `simple`.

    python -m bench.judge.library [--data DIR] [--keep DIR] [--weights FILE.npz]

Questions: on books, and those of SQuAD 2 whose passages are kept out of training. The judge reads what would be quoted.
Beside the questions that nothing answers stand, as a third kind, those on books without the passages that answer them.
The first table has how well answered questions are told from the others (AUROC): by the logarithm of the odds of
`shiguan.answer.answerability`, by the judge's for the best quotation, and by the sum of the former and a share of the
latter; the second the first quotation, in the order of the retrieval and with a share of the judge's odds; the third
how many get no more than the closest passages, without the judge and with it; the last, of questions written on
chapters kept out of training, the marked sentence of the first quotation of three passages, and that in which the judge
finds the answer.
"""

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bench.judge.written import Written, written
from bench.quality.answer_bench import NEAREST, READ, Bench, Case
from bench.quality.public_sets import DATA
from bench.quality.retrieval_bars import BOOKS
from bench.quality.rows import auroc
from haystack import Document

from bench.judge import sets
from shiguan.answer.answerability import CLOSEST_BELOW, NEITHER, ODDS_SHARE, probability
from shiguan.answer.quotations import quotations
from shiguan.engine.runner import Runner
from shiguan.evaluation.provenance import TENANT
from shiguan.models.judge import ADAPTER, Judge
from shiguan.reading.passage import Passage
from shiguan.reading.text import read_text

SHARES = (0.3, 0.6, 0.9)
SQUAD = "en_squad2"
MARKS = 150


@dataclass(frozen=True)
class Quoted:
    """One quotation: the judge's log-odds, and whether it answers."""

    log_odds: float
    answers: bool


@dataclass(frozen=True)
class Row:
    """A question: what it is told apart by, the log-odds of the product, and what would be quoted."""

    group: str
    kind: str
    log_odds: float
    quoted: tuple[Quoted, ...]

    @property
    def judged(self) -> float:
        """The judge's log-odds for the best quotation."""
        return max(one.log_odds for one in self.quoted)


def observe(bench: Bench, judge: Judge) -> Iterator[Row]:
    """Ask all questions."""
    with bench.mode(BOOKS) as runner:
        for case in bench.book_cases():
            documents, nearest = _searched(runner, case)
            answerable = bool(case.answers or case.quotes)
            group = f"books, {'zh' if read_text(case.text).language == 'zh' else 'en'}"
            yield from _row(judge, case, group, "answered" if answerable else "unanswerable", documents, nearest)
            if answerable:
                gone = {Passage(one).parent_id for one in documents if case.is_in([one.content or ""])}
                rest = [one for one in documents if Passage(one).parent_id not in gone]
                near = [one for one in nearest if Passage(one).parent_id not in gone]
                yield from _row(judge, case, group, "taken out", rest, near)
    with bench.mode(f"{SQUAD}/corpus") as runner:
        for kind, name in (("answered", "queries"), ("unanswerable", "unanswerable_queries")):
            usable = sets.unseen_questions(bench.data, SQUAD, name)
            for case in bench.cases(f"{SQUAD}/{name}", None):
                if case.id in usable:
                    yield from _row(judge, case, "SQuAD 2", kind, *_searched(runner, case))


def _searched(runner: Runner, case: Case) -> tuple[list[Document], list[Document]]:
    found = runner.trace(case.text[:2000], tenant_id=TENANT, outputs=[READ, NEAREST])["outputs"]
    return found[READ] or [], found[NEAREST] or []


def _row(
    judge: Judge, case: Case, group: str, kind: str, documents: Sequence[Document], nearest: Sequence[Document]
) -> Iterator[Row]:
    quoted = []
    if not documents:
        return
    # Where the first passage is in another language another fit decides.
    if Passage(documents[0]).language != read_text(case.text).language:
        group = "across languages"
    for one in quotations(documents, case.text):
        text, (first, last) = one.document.content or "", one.window
        shown = text[first:last]
        quoted.append(Quoted(judge.answer(case.text, shown).log_odds, case.is_in([shown])))
    p = min(max(probability(case.text, documents, nearest), 1e-6), 1 - 1e-6)
    if quoted and (kind != "answered" or any(one.answers for one in quoted)):
        yield Row(group, kind, math.log(p / (1 - p)), tuple(quoted))


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
    yield "| called closest or not found | answered | unanswerable | taken out |"
    yield "|---|---|---|---|"
    least = math.log(CLOSEST_BELOW / (1 - CLOSEST_BELOW))
    for group in dict.fromkeys(row.group for row in rows):
        shown = []
        for kind in ("answered", "unanswerable", "taken out"):
            of = [row for row in rows if (row.group, row.kind) == (group, kind)]
            odds = [(row.log_odds, row.log_odds + ODDS_SHARE * (row.judged - NEITHER)) for row in of]
            shown.append(" → ".join(f"{np.mean([one[at] < least for one in odds]):.2f}" for at in (0, 1)) if of else "")
        yield f"| {group} | {' | '.join(shown)} |"


def marks(judge: Judge, folder: Path) -> Iterator[str]:
    """Write how often the sentence with the answer is the marked one, and the one in which the judge finds it."""
    chapters: dict[str, list[Written]] = defaultdict(list)
    for row in written(folder, kept_out=True):
        chapters[row.group].append(row)
    found: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for rows in chapters.values():
        for at, row in enumerate(rows):
            before = "".join(f"{other.passage} " for other in rows[max(0, at - 1) : at])
            after = "".join(f" {other.passage}" for other in rows[at + 1 : at + 2])
            text = before + row.passage + after
            for question, answer in row.asked[:1]:
                if len(found[row.set]) < MARKS:
                    start = len(before) + row.passage.index(answer)
                    found[row.set] += _marks(judge, question, text, (start, start + len(answer)))
    yield "| sentence with the answer | quotations | marked | found by the judge |"
    yield "|---|---:|---:|---:|"
    for name, right in found.items():
        shares = np.mean(right, axis=0)
        yield f"| {name} | {len(right)} | {shares[0]:.2f} | {shares[1]:.2f} |"


def _marks(judge: Judge, question: str, text: str, answer: tuple[int, int]) -> Iterator[tuple[bool, bool]]:
    document = Document(content=text, meta={"language": read_text(text).language})
    for quotation in quotations([document], question)[:1]:
        first, last = quotation.window
        if first <= answer[0] and answer[1] <= last:
            reading = judge.answer(question, text[first:last])
            spans = [(a, b) for a, b in read_text(text).sentences if a >= first and b <= last]
            best = max(spans, key=lambda span: reading.within(span[0] - first, span[1] - first))
            marked, found = (a < answer[1] and b > answer[0] for a, b in (quotation.sentence, best))
            yield marked, found


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
    print("\n".join([*tables(rows), "", *doubted(rows), "", *marks(judge, chosen.data)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
