"""Compares two runs on the same questions, metric by metric, and says what came of it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shiguan.errors import RefusedError
from shiguan.evaluation.intervals import Difference, compare_metric
from shiguan.evaluation.metrics import breach, metric
from shiguan.evaluation.report import SHOWN, facts_of, subtitle_of, title_of, worst, write_report
from shiguan.evaluation.results import Results
from shiguan.evaluation.tables import Report, Section, Table
from shiguan.resources import write_json

_SHOWN = 3


@dataclass(frozen=True)
class Comparison:
    """What run B does to run A."""

    differences: list[Difference]
    gates: dict[str, float]
    breaches: list[str]
    notes: list[str]

    def to_json(self) -> dict[str, Any]:
        rows = []
        for one in self.differences:
            rounded = {k: round(v, 6) if isinstance(v, float) else v for k, v in asdict(one).items()}
            rows.append({**rounded, "verdict": one.verdict, "gated": one.metric in self.gates})
        return {"differences": rows, "gates": self.gates, "breaches": self.breaches, "notes": self.notes}


def compare_results(before: Results, after: Results, gates: Mapping[str, float], *, seed: int = 0) -> Comparison:
    _check_same_questions(before, after)
    notes = _notes(before, after)
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
        difference = _difference(name, [(old[key], new[key]) for key in both], seed)
        differences.append(difference)
        why = breach(difference, gates[name]) if name in gates else None
        if why:
            breaches.append(why)
    if not differences and not breaches:
        raise RefusedError("The two runs have no metric in common. Measure both with the same version.")
    differences += _costs(before, after, {difference.metric for difference in differences}, seed)
    return Comparison(differences, {name: t for name, t in gates.items() if name in before.metrics}, breaches, notes)


def _check_same_questions(before: Results, after: Results) -> None:
    if before.kind != after.kind:
        raise RefusedError(f"One run is of {before.kind}, the other of {after.kind}. Compare two of the same command.")
    old, new = ({question.id: question for question in run.questions} for run in (before, after))
    if len(old) != len(before.questions) or len(new) != len(after.questions):
        raise RefusedError("A run has the same question twice. Measure again.")
    only = [question_id for question_id in old if question_id not in new]
    more = [question_id for question_id in new if question_id not in old]
    if only or more:
        examples = ", ".join([*only[:_SHOWN], *more[:_SHOWN]])
        raise RefusedError(
            f"The two runs are on different questions: {len(only):,} are only in A, {len(more):,} only in B "
            f"({examples}). Only the same questions can be paired: measure both runs on one set."
        )
    changed = [key for key in old if old[key].details.get("question") != new[key].details.get("question")]
    if changed:
        raise RefusedError(
            f"{len(changed):,} questions have the same id and another text ({', '.join(changed[:_SHOWN])}). Measure "
            "both runs on one set."
        )


def _notes(before: Results, after: Results) -> list[str]:
    notes = []
    for name, what in (("data", "the files measured on"), ("machine", "the machine"), ("llm", "the language model")):
        if before.run.get(name) != after.run.get(name):
            notes.append(f"The runs differ in {what}, not only in what was changed.")
    return notes


def _costs(before: Results, after: Results, known: set[str], seed: int) -> list[Difference]:
    later = {question.id: question for question in after.questions}
    pairs = [(question, later[question.id]) for question in before.questions]
    timed = [(a, b) for a, b in pairs if "total" in a.timings_ms and "total" in b.timings_ms]
    values = {
        "latency_ms": [(a.timings_ms["total"], b.timings_ms["total"]) for a, b in timed],
        "llm_calls": [(float(a.llm_calls), float(b.llm_calls)) for a, b in pairs],
    }
    return [_difference(name, found, seed) for name, found in values.items() if found and name not in known]


def _difference(name: str, pairs: list[tuple[float, float]], seed: int) -> Difference:
    # The second run finds a warm machine and other neighbours: a verdict on its latency would be about these.
    old, new = [a for a, _ in pairs], [b for _, b in pairs]
    better = metric(name).higher_is_better
    return compare_metric(name, old, new, higher_is_better=better, paired=name != "latency_ms", seed=seed)


def comparison_table(comparison: Comparison) -> Table:
    columns = ["metric", ">A", ">B", ">difference", ">detectable", ">gained / lost", ">p", "verdict", "gate"]
    return Table(columns, [_row(one, comparison.gates.get(one.metric)) for one in comparison.differences])


def conclusion(comparison: Comparison) -> list[str]:
    """Say how the gate stands: one line per breach, or one that says that it holds."""
    held = (
        "it holds, no gated metric got worse by more than its tolerance" if comparison.gates else "no metric is gated"
    )
    return [f"Gate: {why}." for why in comparison.breaches or [held]]


def comparison_report(comparison: Comparison, before: Results, after: Results) -> Report:
    a, b = dict(facts_of(before)), dict(facts_of(after))
    facts = [
        (name, f"A {a.get(name) or 'none'} · B {b.get(name) or 'none'}" if a.get(name) != b.get(name) else a[name])
        for name in dict.fromkeys([*a, *b])
    ]
    difference = Section("Difference", _explanation(comparison), comparison_table(comparison))
    changed = _changed(before, after)
    return Report(
        title=f"{title_of(after)} against {title_of(before)}",
        subtitle=f"A: {subtitle_of(before)} / B: {subtitle_of(after)}",
        sections=[difference, *([changed] if changed else [])],
        lines=conclusion(comparison),
        notes=comparison.notes,
        facts=facts,
    )


def write_comparison(comparison: Comparison, report: Report, before: Results, after: Results, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "comparison.json", {**comparison.to_json(), "a": before.run, "b": after.run})
    write_report(report, folder / "comparison")


def _explanation(comparison: Comparison) -> str:
    count = len(comparison.differences)
    gated = ", ".join(metric(name).label for name in comparison.gates) or "none"
    return (
        "B against A, paired by question, with the 95 % interval of the difference. A metric is called better or worse "
        "only where that interval excludes zero; `detectable` is the smallest difference that this set would show in "
        "80 % of the cases, and `p` is McNemar's exact test of the questions gained and lost. Latency gets no verdict: "
        "the runs came one after the other. "
        f"{count} metrics are compared, so about {count * 0.05:.1f} would be called different by chance: gated are "
        f"only {gated}."
    )


def _changed(before: Results, after: Results) -> Section | None:
    name, _ = worst(before)
    if not name:
        return None
    old, new = before.values(name), after.values(name)
    texts = {question.id: str(question.details.get("question", "")) for question in after.questions}
    moved = sorted((new[key] - old[key], key) for key in old if key in new and abs(new[key] - old[key]) > 1e-9)
    if not moved:
        return None
    shown = moved if len(moved) <= SHOWN else [*moved[: SHOWN // 2], *moved[-SHOWN // 2 :]]
    rows = [[key, texts.get(key, ""), f"{old[key]:.2f}", f"{new[key]:.2f}"] for _, key in shown]
    return Section(
        "What changed",
        f"{metric(name).label} differs for {len(moved):,} questions; the largest losses and gains are shown.",
        Table(["question", "text", ">A", ">B"], rows),
        whole=True,
    )


def _row(difference: Difference, tolerance: float | None) -> list[Any]:
    shown = metric(difference.metric)
    interval = f"{shown.format(difference.low, signed=True)} to {shown.format(difference.high, signed=True)}"
    return [
        shown.label,
        shown.format(difference.before),
        shown.format(difference.after),
        (shown.format(difference.difference, signed=True), interval),
        shown.format(difference.detectable),
        f"{difference.gained:,} / {difference.lost:,}",
        f"{difference.p_value:.3f}",
        difference.verdict,
        "" if tolerance is None else f"{tolerance:g}",
    ]
