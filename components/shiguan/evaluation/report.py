"""Makes the report of a run, and writes reports as Markdown and as a self-contained page."""

import statistics
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from shiguan.evaluation.metrics import Estimate, metric
from shiguan.evaluation.results import QuestionResult, Results
from shiguan.evaluation.tables import Report, Section, Table, report_markdown
from shiguan.text.terminal import printable

SHOWN = 20
_HEADLINE = (
    "correct", "recall@5", "ndcg@10", "context_recall",
    "citation_precision", "citation_recall", "correct_refusal", "false_refusal",
)  # fmt: skip
_GROUP_COLUMNS = (
    "recall@5", "recall@10", "ndcg@10", "context_recall", "correct", "citation_precision", "false_refusal",
)  # fmt: skip
_WORST_BY = ("correct", "recall@10")


def write_report(report: Report, path: Path) -> Path:
    """Write a report as Markdown and as a page that loads nothing; return the path of the page."""
    path.with_suffix(".md").write_text(printable(report_markdown(report)), encoding="utf-8")
    page = path.with_suffix(".html")
    text = _template().render(report=report, facts=Table(["", ""], report.facts))
    page.write_text(printable(text), encoding="utf-8")
    return page


def run_report(results: Results) -> Report:
    """Report a run: its means, groups and times, where questions were lost, and the worst of them."""
    estimates = results.estimates()
    parts = [_quality(results, estimates), _groups(results), _latency(results)]
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
    run = results.run
    kind = "Ranking and answers" if results.kind == "golden" else results.kind.capitalize()
    return f"{kind} of {run['mode']} ({run['deployment']})"


def subtitle_of(results: Results) -> str:
    """Give questions, files, model, commit and date of a run in a line."""
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
    """List names and values of what is needed to repeat a run."""
    return [(name, _listed(value)) for name, value in results.run.items() if value and name != "notes"]


def worst(results: Results) -> tuple[str, list[QuestionResult]]:
    """Choose the metric that decides, and sort the questions that fall short of 1 by it, worst first."""
    name = next((name for name in _WORST_BY if name in results.metrics), "")
    wrong = [question for question in results.questions if question.metrics.get(name, 1.0) < 1.0]
    return name, sorted(wrong, key=lambda question: question.metrics[name])


def _listed(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {inner}" for name, inner in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _latencies(results: Results) -> dict[str, tuple[float, float]]:
    """Compute median and 95th percentile of each stage, over the questions that passed it, `total` last."""
    stages: dict[str, list[float]] = {}
    for question in results.questions:
        for stage, value in question.timings_ms.items():
            stages.setdefault(stage, []).append(value)
    ordered = sorted(stages.items(), key=lambda entry: entry[0] == "total")
    return {stage: (statistics.median(values), sorted(values)[int(len(values) * 0.95)]) for stage, values in ordered}


def _figures(results: Results, estimates: dict[str, Estimate]) -> list[dict[str, str]]:
    shown = [(metric(name), estimates[name]) for name in _HEADLINE if name in estimates][:6]
    figures = [(kind.label, kind.format(e.value), kind.interval(e.low, e.high)) for kind, e in shown]
    if total := _latencies(results).get("total"):
        figures.append(("Latency", f"{total[0]:,.0f} ms", f"p95 {total[1]:,.0f} ms"))
    calls = [question.llm_calls for question in results.questions]
    figures.append(("LLM calls", f"{statistics.mean(calls):.1f}", f"at most {max(calls)}"))
    if tokens := estimates.get("context_tokens"):
        figures.append(("Context", f"{tokens.value:,.0f}", "tokens per question"))
    return [dict(zip(("label", "value", "note"), figure, strict=True)) for figure in figures]


def _quality(results: Results, estimates: dict[str, Estimate]) -> Section:
    known = [(metric(name), e) for name, e in estimates.items()]
    rows = [[kind.label, kind.format(e.value), kind.interval(e.low, e.high), f"{e.count:,}"] for kind, e in known]
    shares = {kind.label: e for kind, e in known if kind.unit == "share"}
    return Section(
        "Quality",
        f"Means over {len(results.questions):,} questions, with their 95 % intervals.",
        Table(["metric", ">mean", ">95 % interval", ">questions"], rows),
        {"intervals": [shares]} if shares else None,
    )


def _groups(results: Results) -> Section | None:
    strata = results.strata()
    names = [name for name in _GROUP_COLUMNS if name in results.metrics]
    if not strata or not names:
        return None
    rows = []
    for group, questions in strata.items():
        estimates = results.estimates(questions)
        cells = [
            (metric(name).format(e.value), metric(name).interval(e.low, e.high))
            if (e := estimates.get(name))
            else "none"
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
        {"amounts": [latencies]},
    )


def _declared(heading: str, section: dict[str, Any]) -> Section:
    """Read one of `Results.sections`: `text`, `columns` and `rows`, and `curve`, its points."""
    drawing = None
    if section.get("curve"):
        names = "coverage: share of the questions answered", "risk: share of those wrong"
        drawing = {"curve": [section["curve"], *names]}
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
    environment.globals |= {"zip": zip, "within": lambda share: min(1.0, max(0.0, share))}
    return environment.get_template("report.html.jinja")
