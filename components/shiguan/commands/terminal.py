"""Progress and lists for people, with colours only on a terminal."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from shiguan.evaluation.tables import Table
from shiguan.text.languages import has_han
from shiguan.text.places import page_words
from shiguan.text.terminal import console_for_people, one_line

if TYPE_CHECKING:  # what only checks a file does not wait for Haystack
    from shiguan.engine.library import IngestedFile

Item = TypeVar("Item")

_MAX_LISTED = 20
_CLOSING = "，。、；：？！”’」』）》〉】…"


def source_lines(sources: list[dict[str, Any]]) -> Iterator[RenderableType]:
    """Show the sources of a library as a table, with what is missing of them."""
    if not sources:
        yield "The library is empty. Add something with: shiguan ingest PATH"
        return
    rows = [
        [one_line(entry["source"]), one_line(entry["title"] or ""), entry["language"]]
        + [f"{entry[name]:,}" for name in ("records", "passages")]
        + [_share(entry[name], entry["units"]) for name in ("words", "vectors")]
        for entry in sources
    ]
    yield Table(["source", "title", "language", ">records", ">passages", ">words", ">vectors"], rows).to_terminal()
    for entry in sources:
        if skipped := ", ".join(f"{one_line(kind)} {size:,}" for kind, size in entry["left_out"].items()):
            yield Text(f"{one_line(entry['source'])}: characters skipped as not body text: {skipped}", style="dim")
    if any(entry["words"] < entry["units"] for entry in sources):
        yield Text("Some sources are incomplete: ingest their files again.", style="yellow")
    if any(entry["vectors"] < entry["words"] for entry in sources):
        yield Text("Some passages have no vector yet: shiguan ingest --resume", style="yellow")


def _share(done: int, total: int) -> str:
    return "all" if done == total else f"{done:,} of {total:,}"


def print_modes(modes: dict[str, dict[str, str]]) -> None:
    console = console_for_people()
    for deployment, descriptions in modes.items():
        console.print(Text(deployment, style="bold"))
        for description in descriptions.values():
            print_indented(console, Text(_reflowed(description)), 2)
            console.print()


def _reflowed(comment: str) -> str:
    """Join the wrapped lines of a comment; a line like `Needs: ...` stays a new line."""
    return re.sub(r"(?<!\n)\n(?![A-Z][\w ]*:|\n)", " ", comment)


def print_ingest_summary(summary: dict[str, Any], *, resumed: bool = False) -> None:
    console = console_for_people()
    _print_problems(console, summary["skipped"], summary["warnings"])
    if summary["other_files"]:
        kinds = ", ".join(f"{count} {suffix}" for suffix, count in summary["other_files"].items())
        console.print(f"Left out, not readable as documents: {kinds}", style="dim")
    vectors = f", {summary['vectors']:,} vectors made" if summary["vectors"] else ""
    missing = f", {summary['missing']:,} without a vector" if summary["missing"] else ""
    if resumed:
        console.print(f"Resumed{vectors or ', no vectors to make'}{missing} · {summary['seconds']:.1f} s")
        return
    unchanged = "" if summary["new"] else ", nothing new"
    removed = f", {summary['removed']:,} of older versions removed" if summary["removed"] else ""
    skipped = f", {len(summary['skipped']):,} skipped" if summary["skipped"] else ""
    console.print(
        f"{counted(summary['sources'], 'source')}: {counted(summary['parents'], 'passage')} in "
        f"{counted(summary['children'], 'retrieval unit')}{unchanged}{vectors}{missing}{removed}{skipped} · "
        f"{summary['seconds']:.1f} s"
    )


def counted(count: int, noun: str) -> str:
    """Write a number with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def track(items: Iterable[Item], description: str, total: int | None = None) -> Iterator[Item]:
    console = console_for_people(stderr=True)
    if not console.is_terminal:
        yield from items
        return
    with _progress(console, TimeElapsedColumn()) as progress:
        yield from progress.track(items, total=total, description=description)


class IngestProgress:
    """Shows how far an ingest is: on a terminal as bars, elsewhere as a line per file."""

    def __init__(self, files: list[Path], *, show: bool = True) -> None:
        self.files = files
        self.console = console_for_people(stderr=True)
        self.show = show
        self.bar = _progress(self.console, TimeRemainingColumn(), speed_estimate_period=120)
        self._file_task = self.bar.add_task(_short(self._file(0)), total=max(len(files), 1))
        self._passage_task = self.bar.add_task("words", total=None)

    def __enter__(self) -> Self:
        if self.show and self.console.is_terminal:
            self.bar.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop, and restore the terminal."""
        if self.bar.live.is_started:
            self.bar.stop()

    @property
    def callback(self) -> Any:
        """A plain function for the pipeline: Haystack copies its inputs, and a bar cannot be copied."""
        bar, task = self.bar, self._passage_task

        def report(name: str, done: int, total: int) -> None:
            if name != bar.tasks[task].description or done < bar.tasks[task].completed:
                bar.reset(task, description=name)  # so that its speed is counted from its beginning
            bar.update(task, completed=done, total=total or None)

        return report

    def advance(self, result: "IngestedFile") -> None:
        done = int(self.bar.tasks[self._file_task].completed) + 1
        self.bar.update(self._file_task, advance=1, description=_short(self._file(done)))
        self.bar.reset(self._passage_task, description="words", total=None)
        if self.show and not self.console.is_terminal:
            missing = f", {result.missing:,} units without a vector" if result.missing else ""
            line = f"{done}/{len(self.files)} {Path(result.file).name}: {counted(result.parents, 'passage')}{missing}"
            self.console.print(escape(one_line(line)), style="dim")

    def _file(self, done: int) -> str:
        return self.files[done].name if done < len(self.files) else "the library"


def place_line(place: Mapping[str, Any]) -> str:
    """Write where a passage is: title or file, edition, page and headings, all but the last cut for one line."""
    page = page_words({"page": place.get("page") or (place.get("anchor") or {}).get("page")})
    source, section = place.get("source") or "", list(place.get("section") or [])
    title = place.get("title") or source
    title = source if title == Path(source).stem else title  # a file without a title has its own name
    if section and title.startswith(section[0]) and 2 * len(section[0]) > len(title):  # the title once more
        section = section[1:]
    headings = " › ".join([*map(_short, section[:-1]), *section[-1:]])
    parts = [_short(title, 48) if section else title, place.get("edition"), page, headings]
    return " · ".join(one_line(str(part)) for part in parts if part)


def print_indented(console: Console, text: Text, indent: int) -> None:
    """Print wrapped text with a margin and without trailing blanks, so that it can be copied."""
    # Up to two closing signs of Chinese hang at the end of a line, so that none begins the next one.
    room = 4 if has_han(text.plain) else 0
    lines: list[Text] = []
    for line in text.wrap(console, max(console.width - indent - room, 2)):  # two columns hold any character
        head = line.plain[:2] if room and lines and lines[-1] else ""
        signs = len(head) - len(head.lstrip(_CLOSING))
        if signs:
            lines[-1].append_text(line[:signs])
        if line[signs:] or not signs:
            lines.append(line[signs:])
    for line in lines:
        line.rstrip()
        console.print(Text.assemble(" " * indent if line else "", line), soft_wrap=True)


def _progress(console: Console, *columns: ProgressColumn, **settings: Any) -> Progress:
    first = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=30), MofNCompleteColumn())
    return Progress(*first, *columns, console=console, transient=True, **settings)


def _short(name: str, width: int = 32) -> str:
    name = one_line(name)
    return name if len(name) <= width else name[: width - 1] + "…"


def _print_problems(console: Console, skipped: list[dict[str, str]], warnings: list[str]) -> None:
    causes = [f"skipped {one_line(one['source'])}: {one['cause']}. {one['next_step']}." for one in skipped]
    for texts, style, more in ((causes, "red", "more"), ([f"note: {one}" for one in warnings], "yellow", "more notes")):
        for text in texts[:_MAX_LISTED]:
            print_indented(console, Text(text, style=style), 0)
        if len(texts) > _MAX_LISTED:
            console.print(f"... and {len(texts) - _MAX_LISTED:,} {more}; --json lists all.", style=style)
