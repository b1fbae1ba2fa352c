"""Writes a comparison down: a page, Markdown and JSON."""

import json
from pathlib import Path
from typing import Any

from shiguan.evaluation import summary
from shiguan.evaluation.comparison import Comparison
from shiguan.evaluation.markdown import one_line, table
from shiguan.evaluation.metric import metric
from shiguan.evaluation.paired import Difference
from shiguan.evaluation.report import render
from shiguan.evaluation.results import Results

COLUMNS = ["metric", ">A", ">B", ">difference", ">detectable", ">gained / lost", ">p", "verdict", "gate"]
"""What the table of a comparison says of each metric."""


def comparison_rows(comparison: Comparison) -> list[list[Any]]:
    """Tabulate a comparison."""
    return [_row(difference, comparison.gates.get(difference.metric)) for difference in comparison.differences]


def explain(comparison: Comparison) -> str:
    """Say how the table is to be read."""
    count = len(comparison.differences)
    gated = ", ".join(metric(name).label for name in comparison.gates) or "none"
    return (
        "B against A, paired by question, with the 95 % interval of the difference. A metric is called better or worse "
        "only where that interval excludes zero; `detectable` is the smallest difference that this set would show in "
        "80 % of the cases, and `p` is McNemar's exact test of the questions gained and lost. "
        f"{count} metrics are compared, so about {count * 0.05:.1f} would be called different by chance: gated are "
        f"only {gated}."
    )


def conclusion(comparison: Comparison) -> list[str]:
    """Say how the gate stands."""
    if comparison.breaches:
        return [f"Gate: {why}." for why in comparison.breaches]
    if not comparison.gates:
        return ["Gate: no metric is gated."]
    return ["Gate: it holds, no gated metric got worse by more than its tolerance."]


def write_comparison(comparison: Comparison, before: Results, after: Results, folder: Path) -> None:
    """Write `comparison.json`, `comparison.md` and `comparison.html`."""
    folder.mkdir(parents=True, exist_ok=True)
    data = {**comparison.to_json(), "a": before.run, "b": after.run}
    (folder / "comparison.json").write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    (folder / "comparison.md").write_text(comparison_markdown(comparison, before, after), encoding="utf-8")
    (folder / "comparison.html").write_text(_page(comparison, before, after), encoding="utf-8")


def comparison_markdown(comparison: Comparison, before: Results, after: Results) -> str:
    """Write a comparison for a merge request."""
    parts = [
        f"# {one_line(_title(before, after))}",
        f"A: {one_line(summary.subtitle_of(before))}  \nB: {one_line(summary.subtitle_of(after))}",
        "\n".join(f"- **{one_line(line)}**" for line in conclusion(comparison)),
        table(COLUMNS, comparison_rows(comparison)),
        one_line(explain(comparison)),
        *(f"Note: {one_line(note)}" for note in comparison.notes),
    ]
    return "\n\n".join(parts) + "\n"


def _page(comparison: Comparison, before: Results, after: Results) -> str:
    facts = [
        (name, f"A {a or 'none'} · B {b or 'none'}" if a != b else a)
        for name, a, b in _paired_facts(summary.facts(before), summary.facts(after))
    ]
    return render(
        title=_title(before, after),
        subtitle=" ".join([*conclusion(comparison), *comparison.notes]),
        figures=[],
        comparison={"text": explain(comparison), "columns": COLUMNS, "rows": comparison_rows(comparison)},
        charts=[],
        groups=None,
        sections=[],
        misses=_changed(before, after),
        facts=facts,
    )


def _title(before: Results, after: Results) -> str:
    return f"{summary.title_of(after)} against {summary.title_of(before)}"


def _paired_facts(a: list[tuple[str, str]], b: list[tuple[str, str]]) -> list[tuple[str, str, str]]:
    old, new = dict(a), dict(b)
    return [(name, old.get(name, ""), new.get(name, "")) for name in dict.fromkeys([*old, *new])]


def _changed(before: Results, after: Results) -> dict[str, Any] | None:
    name, _ = summary.worst(before)
    if not name:
        return None
    old, new = before.values(name), after.values(name)
    texts = {question.id: str(question.details.get("question", "")) for question in after.questions}
    moved = sorted((new[key] - old[key], key) for key in old if key in new and abs(new[key] - old[key]) > 1e-9)
    if not moved:
        return None
    shown = moved if len(moved) <= summary.SHOWN else [*moved[: summary.SHOWN // 2], *moved[-summary.SHOWN // 2 :]]
    return {
        "heading": "What changed",
        "text": f"{metric(name).label} differs for {len(moved):,} questions; the largest losses and gains are shown.",
        "columns": ["question", "text", ">A", ">B"],
        "rows": [[key, texts.get(key, ""), f"{old[key]:.2f}", f"{new[key]:.2f}"] for _, key in shown],
    }


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
