"""What a person reads of a library and of work on it: progress and lists, in colours only on a terminal."""

import re
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from shiguan.text.terminal import console_for_people, one_line

if TYPE_CHECKING:
    from shiguan.engine.library import IngestedFile

Item = TypeVar("Item")

_MAX_LISTED = 20
_TELL_SECONDS = 10.0


def print_sources(sources: list[dict[str, Any]]) -> None:
    console = console_for_people()
    if not sources:
        console.print("The library is empty. Put something in with: shiguan ingest PATH")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column, justify in (("source", "left"), ("title", "left"), ("language", "left")):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    for column in ("records", "passages", "words", "vectors"):
        table.add_column(column, justify="right")
    for entry in sources:
        table.add_row(
            Text(one_line(entry["source"])), Text(one_line(entry["title"] or "")), entry["language"],
            f"{entry['records']:,}", f"{entry['passages']:,}",
            *(_share(entry[name], entry["units"]) for name in ("words", "vectors")),
        )  # fmt: skip
    console.print(table)
    if any(entry["words"] < entry["units"] for entry in sources):
        console.print("Some sources are not in whole: ingest their files again.", style="yellow")
    if any(entry["vectors"] < entry["words"] for entry in sources):
        console.print("Some passages have no vector yet: shiguan ingest --resume", style="yellow")


def _share(done: int, total: int) -> str:
    return "all" if done == total else f"{done:,} of {total:,}"


def print_modes(modes: dict[str, dict[str, str]]) -> None:
    """Print deployments and modes with the comments that open their files."""
    console = console_for_people()
    for deployment, descriptions in modes.items():
        console.print(Text(deployment, style="bold"))
        for description in descriptions.values():
            print_indented(console, Text(_reflowed(description)), 2)
            console.print()


def _reflowed(comment: str) -> str:
    """Join the lines of a comment that was wrapped for its file; a line like `Needs: ...` begins anew."""
    return re.sub(r"(?<!\n)\n(?![A-Z][\w ]*:|\n)", " ", comment)


def print_ingest_summary(summary: dict[str, Any]) -> None:
    console = console_for_people()
    _print_problems(console, summary["skipped"], summary["warnings"])
    if summary["other_files"]:
        kinds = ", ".join(f"{count} {suffix}" for suffix, count in summary["other_files"].items())
        console.print(f"Left out, not readable as documents: {kinds}", style="dim")
    vectors = f", {summary['vectors']:,} vectors made" if summary["vectors"] else ""
    missing = f", {summary['missing']:,} without a vector" if summary["missing"] else ""
    if not summary["sources"] and not summary["skipped"]:
        console.print(f"Resumed{vectors or ', no vectors to make'}{missing} · {summary['seconds']:.1f} s")
        return
    unchanged = "" if summary["new"] else ", nothing new"
    removed = f", {summary['removed']:,} of older versions removed" if summary["removed"] else ""
    skipped = f", {len(summary['skipped']):,} skipped" if summary["skipped"] else ""
    console.print(
        f"{summary['sources']:,} source{'' if summary['sources'] == 1 else 's'}: {summary['parents']:,} passages in "
        f"{summary['children']:,} retrieval units{unchanged}{vectors}{missing}{removed}{skipped} · "
        f"{summary['seconds']:.1f} s"
    )


def track(items: Iterable[Item], description: str, total: int | None = None) -> Iterator[Item]:
    console = console_for_people(stderr=True)
    if not console.is_terminal:
        yield from items
        return
    with _progress(console) as progress:
        yield from progress.track(items, total=total, description=description)


class IngestProgress:
    """
    Shows how many of a file's passages have their vectors, how many that is in a second, and the time that is left.

    On a terminal as bars; elsewhere as a line every ten seconds and one per file, on standard error.
    """

    def __init__(self, files: list[Path], *, show: bool = True) -> None:
        self.files = files
        self.console = console_for_people(stderr=True)
        self.show = show
        self._bar = _ingest_bar(self.console) if show and self.console.is_terminal else None
        self._file_task: TaskID | None = None
        self._passage_task: TaskID | None = None
        self._done = 0
        self._stage = _Stage()
        self._closed = threading.Event()

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
            self._file_task = self._bar.add_task(_short(self._file()), total=max(len(self.files), 1))
            self._passage_task = self._bar.add_task("words", total=None)
        elif self.show:
            threading.Thread(target=self._tell, name="progress", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop showing, and leave the terminal as it was."""
        self._closed.set()
        if self._bar:
            self._bar.stop()

    @property
    def callback(self) -> Any:
        """A plain function for the pipeline: Haystack copies what it is given, and a bar cannot be copied."""
        bar, task, stage = self._bar, self._passage_task, self._stage

        def report(name: str, done: int, total: int) -> None:
            stage.update(name, done, total)
            if bar is not None and task is not None:
                bar.update(task, description=name, completed=done, total=total or None)

        return report

    def advance(self, result: "IngestedFile") -> None:
        self._done += 1
        self._stage.update("words", 0, 0)
        if self._bar and self._file_task is not None and self._passage_task is not None:
            self._bar.update(self._file_task, advance=1, description=_short(self._file()))
            self._bar.reset(self._passage_task, description="words", total=None)
        elif self.show:
            missing = f", {result.missing:,} units without a vector" if result.missing else ""
            self.console.print(
                escape(
                    f"{self._done}/{len(self.files)} {Path(result.file).name}: {result.parents:,} passages{missing}"
                ),
                style="dim",
            )

    def _file(self) -> str:
        return self.files[self._done].name if self._done < len(self.files) else "the library"

    def _tell(self) -> None:
        while not self._closed.wait(_TELL_SECONDS):
            self.console.print(escape(f"{self._file()}: {self._stage.told()}"), style="dim")


class _Stage:
    """How far a stage is, and how fast it goes."""

    def __init__(self) -> None:
        self.name, self.done, self.total = "words", 0, 0
        self.began, self.first = time.monotonic(), 0

    def update(self, name: str, done: int, total: int) -> None:
        if name != self.name or done < self.done:
            self.began, self.first = time.monotonic(), done
        self.name, self.done, self.total = name, done, total

    def told(self, now: float | None = None) -> str:
        if not self.total:
            return f"reading and writing {self.name}"
        seconds = (time.monotonic() if now is None else now) - self.began
        rate = (self.done - self.first) / seconds if seconds > 0 else 0.0
        told = f"{self.name} {self.done:,} of {self.total:,}"
        return told if not rate else f"{told}, {rate:,.1f} a second, {_span((self.total - self.done) / rate)} left"


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return (
        f"{minutes // 60} h {minutes % 60} min"
        if minutes >= 60
        else f"{minutes} min {rest} s"
        if minutes
        else f"{rest} s"
    )


class _Rate(ProgressColumn):
    """How many in a second."""

    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None or task.total is None else f"{task.speed:,.1f}/s")


def _ingest_bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        speed_estimate_period=120,
    )


def print_indented(console: Console, text: Text, indent: int) -> None:
    """Print wrapped text behind a margin, without the trailing blanks of a box: people copy from terminals."""
    for line in text.wrap(console, console.width - indent):
        line.rstrip()
        console.print(Text.assemble(" " * indent if line else "", line), soft_wrap=True)


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )


def _short(name: str, width: int = 32) -> str:
    name = one_line(name)
    return name if len(name) <= width else name[: width - 1] + "…"


def _print_problems(console: Console, skipped: list[dict[str, str]], warnings: list[str]) -> None:
    for entry in skipped[:_MAX_LISTED]:
        text = f"skipped {one_line(entry['source'])}: {entry['cause']}. {entry['next_step']}."
        print_indented(console, Text(text, style="red"), 0)
    if len(skipped) > _MAX_LISTED:
        console.print(f"... and {len(skipped) - _MAX_LISTED:,} more; --json lists all.", style="red")
    for warning in warnings[:_MAX_LISTED]:
        print_indented(console, Text(f"note: {warning}", style="yellow"), 0)
    if len(warnings) > _MAX_LISTED:
        console.print(f"... and {len(warnings) - _MAX_LISTED:,} more notes; --json lists all.", style="yellow")
