"""
Writes a run down: on a terminal, as a page that stands by itself, and as Markdown for a merge request.

Plots are inline SVG: no script, no font and no file from elsewhere, so a report can be read anywhere and for ever.
Colours come from the page's own CSS classes and follow its light or dark theme. Every text is escaped.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from shiguan.evaluation.intervals import Estimate
from shiguan.evaluation.metrics import metric
from shiguan.evaluation.results import QuestionResult, Results
from shiguan.evaluation.tables import Report, Section, Table, report_markdown
from shiguan.text.terminal import printable

SHOWN = 20
"""How many of the worst questions, and of the notes, are listed."""

_HEADLINE = (
    "correct", "recall@5", "ndcg@10", "context_recall",
    "citation_precision", "citation_recall", "correct_refusal", "false_refusal",
)  # fmt: skip
_GROUP_COLUMNS = (
    "recall@5", "recall@10", "ndcg@10", "context_recall", "correct", "citation_precision", "false_refusal",
)  # fmt: skip
_WORST_BY = ("correct", "recall@10")


def write_report(report: Report, path: Path) -> Path:
    """Write a report as Markdown and as a page that loads nothing and escapes every text, and name the page."""
    path.with_suffix(".md").write_text(printable(report_markdown(report)), encoding="utf-8")
    page = path.with_suffix(".html")
    text = _template().render(report=report, facts=Table(["", ""], report.facts))
    page.write_text(printable(text), encoding="utf-8")
    return page


def run_report(results: Results) -> Report:
    """Say what a run gave: its means, groups and times, where questions were lost, and the worst of them."""
    estimates = results.estimates()
    parts = [_quality(results, estimates), _recall_over_depth(estimates), _groups(results), _latency(results)]
    parts += [_declared(heading, section) for heading, section in results.sections.items()]
    parts.append(_misses(results))
    return Report(
        title=title_of(results),
        subtitle=subtitle_of(results),
        sections=[part for part in parts if part is not None],
        notes=results.run.get("notes", [])[:SHOWN],
        figures=_figures(results, estimates),
        facts=facts_of(results),
    )


def title_of(results: Results) -> str:
    """Name a run: what was measured, with what."""
    run = results.run
    kind = "Ranking and answers" if results.kind == "golden" else results.kind.capitalize()
    return f"{kind} of {run['mode']} ({run['deployment']})"


def subtitle_of(results: Results) -> str:
    """Say in a line on what and with what a run was made: questions, files, model, commit and date."""
    run = results.run
    parts = [
        f"{len(results.questions):,} questions",
        run.get("set") or ", ".join(run.get("data", {})),
        f"answers by {run['llm']['model']}" if results.kind == "answers" else "",
        f"commit {run['commit'][:10]}{'+changes' if '+' in run['commit'] else ''}" if run.get("commit") else "",
        str(run.get("finished", ""))[:10],
    ]
    return " · ".join(part for part in parts if part)


def facts_of(results: Results) -> list[tuple[str, str]]:
    """List what is needed to repeat a run, name and value."""
    run = results.run
    listed = [
        ("commit", run.get("commit") or "unknown"),
        ("code", run.get("code", "")),
        *((f"pipeline {name}", value) for name, value in run.get("pipelines", {}).items()),
        ("prompts", run.get("prompts", {}).get("all", "")),
        *((f"model of {place}", name) for place, name in run.get("models", {}).items()),
        ("answers by", ", ".join(str(value) for value in run.get("llm", {}).values())),
        *((f"data {name}", value) for name, value in run.get("data", {}).items()),
        ("options", _listed(run.get("options", {}))),
        ("seed", str(run.get("seed", ""))),
        ("versions", _listed(run.get("versions", {}))),
        ("machine", _listed(run.get("machine", {}))),
        ("finished", run.get("finished", "")),
    ]
    return [(name, value) for name, value in listed if value]


def worst(results: Results) -> tuple[str, list[QuestionResult]]:
    """Name the metric that decides, and find the questions with less than all of it, worst first."""
    name = next((name for name in _WORST_BY if name in results.metrics), "")
    wrong = [question for question in results.questions if question.metrics.get(name, 1.0) < 1.0]
    return name, sorted(wrong, key=lambda question: question.metrics[name])


def _listed(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _latencies(results: Results) -> dict[str, tuple[float, float]]:
    """Give median and 95th percentile of each stage, over the questions that came by it, `total` last."""
    stages: dict[str, list[float]] = {}
    for question in results.questions:
        for stage, value in question.timings_ms.items():
            stages.setdefault(stage, []).append(value)
    ordered = sorted(stages.items(), key=lambda entry: entry[0] == "total")
    return {stage: (statistics.median(values), sorted(values)[int(len(values) * 0.95)]) for stage, values in ordered}


def _figures(results: Results, estimates: dict[str, Estimate]) -> list[dict[str, str]]:
    """Choose the few numbers that stand at the top."""
    shown = [
        {
            "label": metric(name).label,
            "value": metric(name).format(estimates[name].value),
            "note": f"{estimates[name].low:.3f} to {estimates[name].high:.3f}",
        }
        for name in _HEADLINE
        if name in estimates
    ][:6]
    total = _latencies(results).get("total")
    if total:
        shown.append({"label": "Latency", "value": f"{total[0]:,.0f} ms", "note": f"p95 {total[1]:,.0f} ms"})
    calls = [question.llm_calls for question in results.questions]
    shown.append({"label": "LLM calls", "value": f"{statistics.mean(calls):.1f}", "note": f"at most {max(calls)}"})
    if "context_tokens" in estimates:
        tokens = estimates["context_tokens"]
        shown.append({"label": "Context", "value": f"{tokens.value:,.0f}", "note": "tokens per question"})
    return shown


def _quality(results: Results, estimates: dict[str, Estimate]) -> Section:
    rows, shares = [], {}
    for name, estimate in estimates.items():
        shown = metric(name)
        interval = f"{shown.format(estimate.low)} to {shown.format(estimate.high)}"
        rows.append([shown.label, shown.format(estimate.value), interval, f"{estimate.count:,}"])
        if shown.unit == "share":
            shares[shown.label] = estimate
    return Section(
        "Quality",
        f"Means over {len(results.questions):,} questions, with their 95 % intervals.",
        Table(["metric", ">mean", ">95 % interval", ">questions"], rows),
        interval_bars(shares) if shares else None,
    )


def _recall_over_depth(estimates: dict[str, Estimate]) -> Section | None:
    curve = sorted(
        (int(name.partition("@")[2]), estimate) for name, estimate in estimates.items() if name.startswith("recall@")
    )
    if not curve:
        return None
    drawing = line(
        [(k, e.value) for k, e in curve],
        x_label="passages",
        y_label="recall",
        ticks=[k for k, _ in curve],
        band=[(k, e.low, e.high) for k, e in curve],
    )
    text = "How much more is found by reading further down; the band is the 95 % interval."
    return Section("Recall over depth", text, drawing=drawing, whole=True)


def _groups(results: Results) -> Section | None:
    strata = results.strata()
    names = [name for name in _GROUP_COLUMNS if name in results.metrics]
    if not strata or not names:
        return None
    rows = []
    for group, questions in strata.items():
        estimates = results.estimates(questions)
        cells = [
            (metric(name).format(e.value), f"{e.low:.3f} to {e.high:.3f}") if (e := estimates.get(name)) else "none"
            for name in names
        ]
        rows.append([group, f"{len(questions):,}", *cells])
    columns = ["group", ">questions", *(f">{metric(name).label}" for name in names)]
    return Section("By group", "Mean and 95 % interval; small groups have wide ones.", Table(columns, rows))


def _latency(results: Results) -> Section | None:
    latencies = _latencies(results)
    if not latencies:
        return None
    rows = [[stage, f"{usual:,.1f}", f"{high:,.1f}"] for stage, (usual, high) in latencies.items()]
    return Section(
        "Latency by stage",
        "Median, and what one question in twenty exceeds. Stages may run side by side.",
        Table(["stage", ">median ms", ">p95 ms"], rows),
        amount_bars(latencies, "ms"),
    )


def _declared(heading: str, section: dict[str, Any]) -> Section:
    """Read one of `Results.sections`: `text`, `columns` and `rows`, and `curve`, its points."""
    drawing = None
    if section.get("curve"):
        drawing = line(
            section["curve"], x_label="coverage: share of the questions answered", y_label="risk: share of those wrong"
        )
    table = Table(section["columns"], section["rows"]) if section.get("rows") else None
    return Section(heading, section.get("text", ""), table, drawing)


def _misses(results: Results) -> Section | None:
    name, wrong = worst(results)
    if not wrong:
        return None
    shown = wrong[:SHOWN]
    more = f"; the {len(shown)} worst are shown" if len(wrong) > len(shown) else ""
    rows = [
        [
            (question.id, question.stratum or question.language),
            question.details.get("question", ""),
            question.details.get("answer") or ", ".join(str(found) for found in question.details.get("found", [])),
            ", ".join(str(gold) for gold in question.details.get("gold", [])),
            f"{question.metrics[name]:.2f}",
        ]
        for question in shown
    ]
    return Section(
        "Where it went wrong",
        f"{metric(name).label} is below 1 for {len(wrong):,} of {len(results.questions):,} questions{more}.",
        Table(["question", "text", "found", "expected", f">{metric(name).label}"], rows),
        whole=True,
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.jinja")


_WIDTH = 720  # of the drawing, in its own units; the page scales it
_LABEL = 170
_SPAN = _WIDTH - _LABEL - 150
_ROW = 30
_QUARTERS = (0, 0.25, 0.5, 0.75, 1)


def interval_bars(estimates: Mapping[str, Estimate]) -> Markup:
    """Draw shares, by label, as bars with their intervals."""
    height = _ROW * len(estimates) + 26
    parts = [
        Markup(
            '<path class="grid" d="M{0:.1f} 0V{1}"/>'
            '<text class="tick" x="{0:.1f}" y="{2}" text-anchor="middle">{3}</text>'
        ).format(_LABEL + _SPAN * x, height - 20, height - 6, f"{x:g}")
        for x in _QUARTERS
    ]
    for row, (label, estimate) in enumerate(estimates.items()):
        middle = _ROW * row + _ROW / 2
        low, value, high = (min(1.0, max(0.0, x)) for x in (estimate.low, estimate.value, estimate.high))
        parts.append(
            _bar(middle, value)
            + Markup('<path class="whisker" d="M{0:.1f} {2}V{4}M{0:.1f} {3}H{1:.1f}M{1:.1f} {2}V{4}"/>').format(
                _LABEL + _SPAN * low, _LABEL + _SPAN * high, middle - 5, middle, middle + 5
            )
            + _words(middle, label, f"{estimate.value:.3f}", f"[{estimate.low:.3f}, {estimate.high:.3f}]")
        )
    return _svg(height, parts, "Shares with their 95 % intervals")


def amount_bars(amounts: Mapping[str, tuple[float, float]], unit: str) -> Markup:
    """Draw usual amounts, by label, as bars with a thin bar behind each: the amount that one in twenty exceeds."""
    most = max((high for _, high in amounts.values()), default=0) or 1
    parts = []
    for row, (label, (usual, high)) in enumerate(amounts.items()):
        middle = _ROW * row + _ROW / 2
        parts.append(
            Markup('<rect class="faint" x="{}" y="{}" width="{:.1f}" height="6" rx="3"/>').format(
                _LABEL, middle - 3, max(0.5, _SPAN * high / most)
            )
            + _bar(middle, usual / most)
            + _words(middle, label, f"{usual:,.1f}", f"p95 {high:,.1f} {unit}")
        )
    return _svg(_ROW * len(amounts) + 6, parts, f"Usual amounts and those that one in twenty exceeds, in {unit}")


def line(
    points: Sequence[tuple[float, float]],
    *,
    x_label: str,
    y_label: str,
    ticks: Sequence[float] = _QUARTERS,
    band: Sequence[tuple[float, float, float]] = (),
) -> Markup:
    """Draw a curve, y from 0 to 1, with x, low and high of an interval behind it."""
    left, top, right, bottom = 60, 14, _WIDTH - 30, 262
    begin, end = ticks[0], ticks[-1]

    def across(x: float) -> float:
        return left + (right - left) * (x - begin) / ((end - begin) or 1)

    def up(y: float) -> float:
        return bottom - (bottom - top) * min(1.0, max(0.0, y))

    parts = [
        Markup(
            '<path class="grid" d="M{0} {1:.1f}H{2}"/>'
            '<text class="tick" x="{3}" y="{4:.1f}" text-anchor="end">{5}</text>'
        ).format(left, up(y), right, left - 8, up(y) + 4, f"{y:g}")
        for y in _QUARTERS
    ]
    parts += [
        Markup('<text class="tick" x="{0:.1f}" y="{1}" text-anchor="middle">{2}</text>').format(
            across(x), bottom + 18, f"{x:g}"
        )
        for x in ticks
    ]
    parts.append(
        Markup(
            '<text class="tick" x="{0}" y="{1}" text-anchor="middle">{2}</text>'
            '<text class="tick" x="14" y="{3}" text-anchor="middle" transform="rotate(-90 14 {3})">{4}</text>'
        ).format((left + right) / 2, bottom + 38, x_label, (top + bottom) / 2, y_label)
    )
    if band:
        outline = [(x, high) for x, _, high in band] + [(x, low) for x, low, _ in reversed(band)]
        parts.append(Markup('<polygon class="band" points="{0}"/>').format(_points(outline, across, up)))
    parts.append(Markup('<polyline class="line" points="{0}"/>').format(_points(points, across, up)))
    if len(points) <= 25:
        parts += [
            Markup('<circle class="dot" cx="{0:.1f}" cy="{1:.1f}" r="3.5"/>').format(across(x), up(y))
            for x, y in points
        ]
    return _svg(bottom + 46, parts, f"{y_label} over {x_label}")


def _bar(middle: float, share: float) -> Markup:
    return Markup('<rect class="bar" x="{}" y="{}" width="{:.1f}" height="14" rx="3"/>').format(
        _LABEL, middle - 7, max(0.5, _SPAN * share)
    )


def _words(middle: float, label: str, value: str, note: str) -> Markup:
    return Markup(
        '<text class="label" x="{}" y="{}" text-anchor="end">{}</text>'
        '<text class="value" x="{}" y="{}">{} <tspan class="muted">{}</tspan></text>'
    ).format(_LABEL - 12, middle + 4, label, _LABEL + _SPAN + 10, middle + 4, value, note)


def _points(
    points: Sequence[tuple[float, float]], across: Callable[[float], float], up: Callable[[float], float]
) -> str:
    return " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)


def _svg(height: float, parts: Sequence[Markup], title: str) -> Markup:
    return Markup('<svg viewBox="0 0 {0} {1:.0f}" role="img" aria-label="{2}">{3}</svg>').format(
        _WIDTH, height, title, Markup("").join(parts)
    )
