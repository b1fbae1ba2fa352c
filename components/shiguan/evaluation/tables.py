"""Tables and reports, and how a terminal and Markdown show them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table as TerminalTable
from rich.text import Text

from shiguan.text.terminal import console_for_people

_STYLES = {"better": "bold green", "worse": "bold red"}
_PIPE_WIDTH = 140


@dataclass(frozen=True)
class Table:
    """Rows under headings, which begin with `>` over numbers; a pair is a value and a note. Cells open no markup."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def to_terminal(self) -> TerminalTable:
        table = TerminalTable(box=None, header_style="dim", pad_edge=False, padding=(0, 3, 0, 0))
        for name, numbers in self.headings():
            table.add_column(Text(name), justify="right" if numbers else "left")
        for cells in self.pairs():
            table.add_row(*(Text.assemble((a, _STYLES.get(a, "")), (f" {b}" if b else "", "dim")) for a, b in cells))
        return table

    def to_markdown(self) -> str:
        headings = self.headings()
        head = "| " + " | ".join(one_line(name) for name, _ in headings) + " |"
        rule = "|" + "|".join("---:" if numbers else "---" for _, numbers in headings) + "|"
        rows = (
            " | ".join(one_line(a) + (f" ({one_line(b)})" if b else "") for a, b in cells) for cells in self.pairs()
        )
        return "\n".join([head, rule, *(f"| {row} |" for row in rows)])

    def headings(self) -> list[tuple[str, bool]]:
        """Return each heading, and whether its column holds numbers."""
        return [(column.removeprefix(">"), column.startswith(">")) for column in self.columns]

    def pairs(self) -> list[list[tuple[str, str]]]:
        """Return the cells of each row as pairs of value and note."""
        both = [[cell if isinstance(cell, tuple | list) else (cell, "") for cell in row] for row in self.rows]
        return [[(str(value), str(beside or "")) for value, beside in row] for row in both]


@dataclass(frozen=True)
class Section:
    """A part of a report; `whole` sections are only on the page."""

    heading: str
    text: str = ""
    table: Table | None = None
    whole: bool = False


@dataclass(frozen=True)
class Report:
    """What is shown of a run or a comparison; `lines` stand out."""

    title: str
    subtitle: str
    sections: list[Section]
    lines: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def print_report(report: Report) -> None:
    console = console_for_people(width=_PIPE_WIDTH)
    console.print(Text.assemble((report.title, "bold"), (f"\n{report.subtitle}" if report.subtitle else "", "dim")))
    for section in report.sections:
        if section.whole:
            continue
        console.print()
        console.print(Text.assemble((section.heading, "bold"), f": {section.text}" if section.text else ""))
        if section.table is not None:
            console.print(section.table.to_terminal())
    console.print()
    for note in report.notes:
        console.print(Text(f"Note: {note}", style="yellow"))
    for line in report.lines:
        console.print(Text(line))


def report_markdown(report: Report) -> str:
    parts = [f"# {one_line(report.title)}", one_line(report.subtitle)]
    parts.append("\n".join(f"- **{one_line(line)}**" for line in report.lines))
    for section in report.sections:
        if section.whole:
            continue
        parts += [f"## {one_line(section.heading)}", one_line(section.text)]
        if section.table is not None:
            parts.append(section.table.to_markdown())
    parts += [f"Note: {one_line(note)}" for note in report.notes]
    return "\n\n".join(part for part in parts if part) + "\n"


def one_line(value: Any) -> str:
    """Escape a text as one line of Markdown."""
    text = " ".join(str(value).split())
    for character in "\\`*_[]|":
        text = text.replace(character, f"\\{character}")
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
