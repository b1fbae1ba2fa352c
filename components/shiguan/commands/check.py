"""`shiguan check`: check whether pipeline files are safe and valid, without running them."""

import argparse
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rich.text import Text

from shiguan.checking.pipeline_check import Report, check_in_process
from shiguan.commands.options import print_json, print_line
from shiguan.commands.terminal import counted, print_indented
from shiguan.engine.loading import OTHER_FILES, list_modes, pipeline_path
from shiguan.errors import ConfigurationError
from shiguan.text.terminal import console_for_people


def check(options: argparse.Namespace) -> int:
    reports: list[Report] = []
    for name, path in _files(options.pipelines):
        reports.append(check_in_process(path, name, allow_types=options.allow_type))
        if not options.json:
            _print(reports[-1])
    refused = sum(bool(report.findings) for report in reports)
    if options.json:
        print_json({"ok": not refused, "files": [report.as_dict() for report in reports]})
    elif len(reports) > 1:
        print_line(f"{len(reports) - refused} of {len(reports)} files may be built.")
    return 2 if refused else 0


def _files(given: list[str]) -> Iterator[tuple[str, Path]]:
    """Find the files: an existing path goes before the name of a mode or deployment."""
    shipped: dict[str, Path] = {}
    for deployment, modes in list_modes().items():
        for mode in (*OTHER_FILES, *modes):
            with suppress(ConfigurationError):  # not every deployment has these
                shipped[f"{deployment}/{mode}"] = pipeline_path(deployment, mode)
    if not given:
        yield from shipped.items()
    for text in given:
        path = Path(text)
        below = {name: file for name, file in shipped.items() if name.startswith(f"{text.rstrip('/')}/")}
        if path.is_file():
            yield text, path
        elif text in shipped:
            yield text, shipped[text]
        elif below:
            yield from below.items()
        else:
            raise ConfigurationError(
                f"There is no pipeline file `{text}`. Expected a file, or one of {', '.join(shipped)}. Check the name."
            )


def _print(report: Report) -> None:
    console = console_for_people()
    count = len(report.findings)
    verdict = f"refused for {counted(count, 'reason')}" if count else "fine"
    console.print(
        Text.assemble((report.name, "bold"), ": ", (verdict, "bold red" if count else "green")), soft_wrap=True
    )
    for finding in report.findings:
        line = f"line {finding.line}" if finding.line is not None else ""
        where = "  " + "  ".join(part for part in (line, finding.where) if part)
        console.print()
        console.print(Text(where, style="cyan"), soft_wrap=True)
        for text, style in ((finding.problem, ""), (finding.expected, "dim"), (finding.next_step, "")):
            print_indented(console, Text(text, style=style), 4)
    for note in report.notes:
        print_indented(console, Text(f"Note: {note}", style="yellow"), 2)
    if count:
        console.print()
