"""Writes tables as Markdown, for a merge request or a terminal."""

from collections.abc import Sequence
from typing import Any

from shiguan.evaluation import summary
from shiguan.evaluation.metric import metric
from shiguan.evaluation.results import Results


def results_markdown(results: Results) -> str:
    """Write a run as Markdown."""
    estimates = results.estimates()
    rows = [
        [metric(name).label, metric(name).format(e.value), _interval(name, e.low, e.high), e.count]
        for name, e in estimates.items()
    ]
    parts = [
        f"# {summary.title_of(results)}",
        summary.subtitle_of(results),
        table(["metric", ">mean", ">95 % interval", ">questions"], rows),
    ]
    groups = summary.groups(results)
    if groups:
        parts += ["## By group", table(groups["columns"], groups["rows"])]
    latencies = [
        [stage, f"{usual:,.1f}", f"{high:,.1f}"] for stage, (usual, high) in summary.latencies(results).items()
    ]
    parts += ["## Latency by stage", table(["stage", ">median ms", ">p95 ms"], latencies)]
    for heading, section in results.sections.items():
        parts += [f"## {one_line(heading)}", *([one_line(section["text"])] if section.get("text") else [])]
        if section.get("rows"):
            parts.append(table(section["columns"], section["rows"]))
    parts += ["<details><summary>To repeat it</summary>", table(["", ""], summary.facts(results)), "</details>"]
    return "\n\n".join(parts) + "\n"


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Write a table."""
    head = "| " + " | ".join(one_line(column.removeprefix(">")) for column in columns) + " |"
    rule = "|" + "|".join("---:" if column.startswith(">") else "---" for column in columns) + "|"
    return "\n".join([head, rule, *("| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows)])


def one_line(value: Any) -> str:
    """Write a text so that it stays in its place, whatever it holds."""
    text = " ".join(str(value).split())
    for character in "\\`*_[]|":
        text = text.replace(character, f"\\{character}")
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _cell(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"{one_line(value[0])} ({one_line(value[1])})" if value[1] else one_line(value[0])
    return one_line(value)


def _interval(name: str, low: float, high: float) -> str:
    return f"{metric(name).format(low)} to {metric(name).format(high)}"
