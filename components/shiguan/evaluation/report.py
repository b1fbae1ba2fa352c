"""Writes a run down for people: a page that stands by itself, and Markdown for a merge request."""

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from shiguan.evaluation import summary
from shiguan.evaluation.charts import amount_bars, interval_bars, lines
from shiguan.evaluation.markdown import results_markdown
from shiguan.evaluation.metric import metric
from shiguan.evaluation.results import Results

_TEMPLATE = "report.html.jinja"


def write_reports(results: Results, folder: Path) -> Path:
    """Write `report.html` and `report.md` beside a run's results."""
    (folder / "report.md").write_text(results_markdown(results), encoding="utf-8")
    page = folder / "report.html"
    page.write_text(render_page(results), encoding="utf-8")
    return page


def render_page(results: Results) -> str:
    """Write the page of a run: no script, nothing loaded from elsewhere, every text escaped."""
    return render(
        title=summary.title_of(results),
        subtitle=summary.subtitle_of(results),
        figures=summary.figures(results),
        comparison=None,
        charts=_charts(results),
        groups=summary.groups(results),
        sections=[_section(heading, section) for heading, section in results.sections.items()],
        misses=_misses(results),
        facts=summary.facts(results),
    )


def render(**variables: Any) -> str:
    """Fill the template."""
    return _template().render(**variables)


def _charts(results: Results) -> list[dict[str, Any]]:
    charts = [
        {
            "heading": "Quality",
            "text": f"Means over {len(results.questions):,} questions; the thin line is the 95 % interval.",
            "drawing": interval_bars(summary.shares(results)),
        }
    ]
    estimates = results.estimates()
    depths = [int(name.partition("@")[2]) for name in estimates if name.startswith("recall@")]
    if depths:
        curve = [(k, estimates[f"recall@{k}"]) for k in sorted(depths)]
        charts.append(
            {
                "heading": "Recall over depth",
                "text": "How much more is found by reading further down; the band is the 95 % interval.",
                "drawing": lines(
                    {"recall": [(k, e.value) for k, e in curve]},
                    x_label="passages",
                    y_label="recall",
                    ticks=sorted(depths),
                    band=[(k, e.low, e.high) for k, e in curve],
                ),
            }
        )
    if results.kind == "retrieval" or summary.latencies(results):
        charts.append(
            {
                "heading": "Latency by stage",
                "text": "Median, and behind it what one question in twenty exceeds. Stages may run side by side.",
                "drawing": amount_bars(summary.latencies(results), "ms"),
            }
        )
    return charts


def _section(heading: str, section: dict[str, Any]) -> dict[str, Any]:
    drawing = None
    if section.get("curves"):
        drawing = lines(
            {label: [(x, y) for x, y in points] for label, points in section["curves"].items()},
            x_label=section.get("x_label", "coverage: share of the questions answered"),
            y_label=section.get("y_label", "risk: share of those wrong"),
        )
    return {
        "heading": heading,
        "text": section.get("text", ""),
        "drawing": drawing,
        "columns": section.get("columns", []),
        "rows": section.get("rows", []),
    }


def _misses(results: Results) -> dict[str, Any] | None:
    name, wrong = summary.worst(results)
    if not wrong:
        return None
    shown = wrong[: summary.SHOWN]
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
    return {
        "heading": "Where it went wrong",
        "text": f"{metric(name).label} is below 1 for {len(wrong):,} of {len(results.questions):,} questions{more}.",
        "columns": ["question", "text", "found", "expected", f">{metric(name).label}"],
        "rows": rows,
    }


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(_TEMPLATE)
