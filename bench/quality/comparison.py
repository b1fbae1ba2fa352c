"""
Compares two runs of `shiguan eval` on the same questions, metric by metric.

    python -m bench.quality.comparison A B --output compared

A and B are the folders of finished runs. The exit code is 1 if a gated metric got worse by more than its tolerance.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench.quality.differences import Difference, compare_metric

from shiguan.errors import RefusedError
from shiguan.evaluation.metrics import metric
from shiguan.evaluation.report import SHOWN, subtitle_of, title_of, worst, write_report
from shiguan.evaluation.results import Results, read_results
from shiguan.evaluation.tables import Report, Section, Table, print_report
from shiguan.resources import write_json

_SHOWN = 3

_QUALITY = "recall@5 recall@10 ndcg@10 context_recall gold_cited citation_precision citation_recall".split()
GATES: dict[str, float] = {
    **dict.fromkeys(_QUALITY, 0.02),
    **dict.fromkeys(("correct_refusal", "false_refusal"), 0.03),
    "tenant_kept": 0.0,
}
"""
The gated metrics, and how much worse each may get.

Of twenty harmless comparisons at 95 % one looks real by chance, so what may stop a change is chosen before it is
measured. Metrics that a language model judges are reported and never gate.
"""


def breach(difference: Difference, tolerance: float) -> str | None:
    """
    Describe how a metric broke its gate; None if it did not.

    A single question never does, unless the tolerance is 0.
    """
    worse_by = -difference.difference if difference.higher_is_better else difference.difference
    allowed = max(tolerance, 1 / difference.count) if tolerance else 0.0
    if worse_by <= allowed + 1e-6:
        return None
    shown = metric(difference.metric)
    return (
        f"{shown.label} went from {shown.format(difference.before)} to {shown.format(difference.after)}, "
        f"{worse_by:.3f} worse where {allowed:.3f} is tolerated"
    )


@dataclass(frozen=True)
class Comparison:
    """How run B, `after`, differs from run A, `before`."""

    before: Results
    after: Results
    differences: list[Difference]
    gates: dict[str, float]
    breaches: list[str]
    notes: list[str]

    def to_json(self) -> dict[str, Any]:
        """Write the differences with their verdicts, the gates and what broke one."""
        rows = []
        for found in self.differences:
            rounded = {k: round(v, 6) if isinstance(v, float) else v for k, v in asdict(found).items()}
            rows.append({**rounded, "verdict": found.verdict, "gated": found.metric in self.gates})
        return {"differences": rows, "gates": self.gates, "breaches": self.breaches, "notes": self.notes}


def compare_results(before: Results, after: Results, gates: Mapping[str, float] = GATES) -> Comparison:
    """Compare two runs; what makes them differ besides the change is among the notes."""
    _check_same_questions(before, after)
    differs = {"data": "the files measured on", "machine": "the machine", "llm": "the language model"}
    notes = [
        f"The runs differ in {what}, not only in what was changed."
        for name, what in differs.items()
        if before.run.get(name) != after.run.get(name)
    ]
    differences, breaches = [], []
    for name in before.metrics:
        old, new = before.values(name), after.values(name)
        both = [question_id for question_id in old if question_id in new]
        if not both:
            if name in gates:
                breaches.append(f"{metric(name).label} is no longer measured: no question of run B has it")
            continue
        if len(both) < max(len(old), len(new)):
            notes.append(
                f"{metric(name).label} is compared on the {len(both):,} questions where both runs have it "
                f"(A {len(old):,}, B {len(new):,})."
            )
        difference = compare_metric(name, [old[key] for key in both], [new[key] for key in both])
        differences.append(difference)
        if name in gates and (why := breach(difference, gates[name])):
            breaches.append(why)
    if not differences and not breaches:
        raise RefusedError("The two runs have no metric in common. Measure both with the same version.")
    gated = {name: tolerance for name, tolerance in gates.items() if name in before.metrics}
    return Comparison(before, after, differences, gated, breaches, notes)


def _check_same_questions(before: Results, after: Results) -> None:
    if before.kind != after.kind:
        raise RefusedError(f"One run is of {before.kind}, the other of {after.kind}. Compare two of the same command.")
    old, new = ({question.id: question for question in run.questions} for run in (before, after))
    if len(old) != len(before.questions) or len(new) != len(after.questions):
        raise RefusedError("A run has the same question twice. Measure again.")
    other = sorted(old.keys() ^ new.keys())
    other += [key for key in old if key in new and old[key].details.get("question") != new[key].details.get("question")]
    if other:
        raise RefusedError(
            f"The two runs are on different questions: {len(other):,} are in one only, or have another text "
            f"({', '.join(other[:_SHOWN])}). Only the same questions can be paired: measure both runs on one set."
        )


def comparison_table(comparison: Comparison) -> Table:
    """Write the differences as a table."""
    columns = ["metric", ">A", ">B", ">difference", ">detectable", ">gained / lost", "verdict", "gate"]
    rows = []
    for found in comparison.differences:
        shown = metric(found.metric)
        rows.append([
            shown.label,
            shown.format(found.before),
            shown.format(found.after),
            (shown.format(found.difference, signed=True), shown.interval(found.low, found.high, signed=True)),
            shown.format(found.detectable),
            f"{found.gained:,} / {found.lost:,}",
            found.verdict,
            f"{comparison.gates[found.metric]:g}" if found.metric in comparison.gates else "",
        ])  # fmt: skip
    return Table(columns, rows)


def conclusion(comparison: Comparison) -> list[str]:
    """Describe the state of the gate: a line per breach, or one that says that it holds."""
    held = "it holds, no gated metric got worse by more than its tolerance"
    return [f"Gate: {why}." for why in comparison.breaches or [held if comparison.gates else "no metric is gated"]]


def comparison_report(comparison: Comparison) -> Report:
    """Write the comparison as a report."""
    before, after = comparison.before, comparison.after
    count = len(comparison.differences)
    gated = ", ".join(metric(name).label for name in comparison.gates) or "none"
    text = (
        "B against A, paired by question, with the 95 % interval of the difference. A metric is called better or worse "
        "only where that interval excludes zero; `detectable` is the smallest difference that this set would show in "
        "80 % of the cases. Latency gets no verdict: the runs came one after the other. "
        f"{count} metrics are compared, so about {count * 0.05:.1f} would be called different by chance: gated are "
        f"only {gated}."
    )
    return Report(
        title=f"{title_of(after)} against {title_of(before)}",
        subtitle=f"A: {subtitle_of(before)} / B: {subtitle_of(after)}",
        sections=[Section("Difference", text, comparison_table(comparison)), *_changed(before, after)],
        lines=conclusion(comparison),
        notes=comparison.notes,
    )


def _changed(before: Results, after: Results) -> list[Section]:
    name, _ = worst(before)
    old, new = before.values(name), after.values(name)
    moved = sorted((new[key] - old[key], key) for key in old if key in new and abs(new[key] - old[key]) > 1e-9)
    if not moved:
        return []
    texts = {question.id: str(question.details.get("question", "")) for question in after.questions}
    shown = moved if len(moved) <= SHOWN else [*moved[: SHOWN // 2], *moved[-SHOWN // 2 :]]
    rows = [[key, texts[key], f"{old[key]:.2f}", f"{new[key]:.2f}"] for _, key in shown]
    text = f"{metric(name).label} differs for {len(moved):,} questions; the largest losses and gains are shown."
    return [Section("What changed", text, Table(["question", "text", ">A", ">B"], rows), whole=True)]


def write_comparison(comparison: Comparison, folder: Path) -> None:
    """Write comparison.json, .md and .html."""
    folder.mkdir(parents=True, exist_ok=True)
    runs = {"a": comparison.before.run, "b": comparison.after.run}
    write_json(folder / "comparison.json", {**comparison.to_json(), **runs})
    write_report(comparison_report(comparison), folder / "comparison")


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the runs that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0] if __doc__ else None)
    parser.add_argument("a", type=Path, help="the folder of a finished run, or its results.json")
    parser.add_argument("b", type=Path, help="the same of the run that is compared with it")
    parser.add_argument("--output", type=Path, metavar="DIR", help="where comparison.html, .md and .json go")
    parser.add_argument("--json", action="store_true", help="print all differences as JSON")
    options = parser.parse_args(arguments)
    try:
        comparison = compare_results(read_results(options.a), read_results(options.b))
    except RefusedError as error:
        print(error, file=sys.stderr)
        return 2
    if options.output is not None:
        write_comparison(comparison, options.output)
    if options.json:
        print(json.dumps(comparison.to_json(), ensure_ascii=False))
    else:
        print_report(replace(comparison_report(comparison), title=f"B {options.b} against A {options.a}"))
    return 1 if comparison.breaches else 0


if __name__ == "__main__":
    sys.exit(main())
