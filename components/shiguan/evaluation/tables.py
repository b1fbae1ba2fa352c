"""Prints numbers on a terminal."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shiguan.evaluation import summary
from shiguan.evaluation.metric import metric
from shiguan.evaluation.results import Results

_STYLES = {"better": "bold green", "worse": "bold red"}
_PIPE_WIDTH = 140


def print_results(results: Results) -> None:
    """Print the means of a run with their intervals, its groups and how long it took."""
    rows = [
        [
            metric(name).label,
            metric(name).format(e.value),
            f"{metric(name).format(e.low)} to {metric(name).format(e.high)}",
        ]
        for name, e in results.estimates().items()
    ]
    print_table(
        f"{summary.title_of(results)}: {summary.subtitle_of(results)}", ["metric", ">mean", ">95 % interval"], rows
    )
    groups = summary.groups(results)
    if groups:
        print_table("By group", groups["columns"], groups["rows"])
    stages = [[stage, f"{usual:,.1f}", f"{high:,.1f}"] for stage, (usual, high) in summary.latencies(results).items()]
    print_table("Latency by stage", ["stage", ">median ms", ">p95 ms"], stages)
    console = _console()
    for heading, section in results.sections.items():
        if section.get("text"):
            console.print(Text(f"{heading}: {section['text']}"))
    for note in results.run.get("notes", [])[: summary.SHOWN]:
        console.print(Text(f"note: {note}", style="yellow"))


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table."""
    console = _console()
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 3, 0, 0))
    for column in columns:
        table.add_column(Text(column.removeprefix(">")), justify="right" if column.startswith(">") else "left")
    for row in rows:
        table.add_row(*(_cell(cell) for cell in row))
    console.print(Text(title, style="bold"))
    console.print(table)
    console.print()


def _cell(value: Any) -> Text:
    if isinstance(value, tuple | list):
        return Text.assemble(str(value[0]), (f" {value[1]}", "dim"))
    return Text(str(value), style=_STYLES.get(str(value), ""))


def _console() -> Console:
    # Made anew each time: tests and pipes change where standard output leads.
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_PIPE_WIDTH, no_color=True)
