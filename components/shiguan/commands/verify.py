"""`shiguan verify`: check the quotations and sentences of any text against the library."""

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from rich.text import Text

from shiguan.commands.options import open_runner, print_json, print_line, refuse_to_replace, tenant
from shiguan.commands.terminal import place_line, print_indented
from shiguan.engine.verification import read_document
from shiguan.errors import RefusedError
from shiguan.evaluation.json_lines import read_json_lines
from shiguan.evaluation.report import report_files, write_report
from shiguan.evaluation.tables import Report, Section, Table
from shiguan.text.terminal import console_for_people, one_line

_COLOURS = dict.fromkeys(("found", "supported"), "green") | dict.fromkeys(("nothing", "too_short"), "dim")
_LINE = ("id", "verdict", "source", "section", "anchor", "quote", "difference", "places", "reason")


def verify(options: argparse.Namespace) -> int:
    if sum(given is not None for given in (options.file, options.quote, options.quotes)) != 1:
        raise RefusedError("`verify` takes one of a FILE (- for standard input), `--quote TEXT` and `--quotes FILE`.")
    if options.quote is not None and not options.quote.strip():
        raise RefusedError("`--quote` is empty. Give the words to be found.")
    if options.report is not None:
        files = report_files(options.report)
        refuse_to_replace(options, *files, read=options.quotes or (Path(options.file) if options.file else None))
        if not options.json and options.quotes is None:
            print_line(f"The report will be in {files[0]} and {files[1]}.")
    text: Any = [{"text": options.quote}]
    if options.quotes is not None:
        text = [row for _, row in read_json_lines(options.quotes)]
    elif options.file is not None:
        text = read_document(sys.stdin.buffer.read() if options.file == "-" else Path(options.file), options.deployment)
    show = _line if options.quotes is not None else None if options.json else partial(_show, console_for_people())
    with open_runner(options) as runner:
        found = runner.verify(text, tenant_id=tenant(options), on_item=show)
    if options.json and options.quotes is None:
        print_json(found)
    elif options.quotes is None:
        counts = _counts(found) or "There is no sentence and no quotation in it."
        console_for_people().print(counts, *found["warnings"], sep="\n", markup=False)
    if options.report is not None:
        _write(found, options.report)
    return 0


def _line(item: dict[str, Any], *_: int) -> None:
    print_json({name: item.get(name) for name in _LINE})


def _show(console: Any, item: dict[str, Any], number: int, count: int) -> None:
    colour = _COLOURS.get(item["verdict"], "yellow" if item["verdict"] == "partial" else "red")
    heading = Text.assemble((f"{number}/{count} ", "dim"), (item["verdict"], colour), f"  {_place(item)}")
    console.print(heading, soft_wrap=True)
    print_indented(console, Text(one_line(item["text"])[:400]), 4)
    for name, text in (
        ("stands", item.get("quote") if item["verdict"] not in ("found", "misattributed") else ""),
        ("differs", _differs(item)),
        ("why", _why(item)),
        ("another source", _otherwise(item)),
    ):
        if text:
            print_indented(console, Text(f"{name}: {one_line(text)[:400]}", style="dim"), 4)


def _place(item: dict[str, Any]) -> str:
    if not item.get("source"):
        return str(item["reason"])
    more = f" and {item['places'] - 1:,} more" if item.get("places", 1) > 1 else ""
    return place_line(item) + more


def _why(item: dict[str, Any]) -> str:
    """Return the reason of a sentence's verdict, where its word does not say it and the first line does not have it."""
    of_claim = item["kind"] == "claim" and (item["verdict"] != "supported" or item.get("against"))
    is_plain = not of_claim and item["verdict"] != "misattributed"
    return "" if is_plain or not item.get("source") else str(item["reason"])


def _otherwise(item: dict[str, Any]) -> str:
    place = item.get("against")
    return f"{place_line(place)}: {place['quote']}" if place else ""


def _differs(item: dict[str, Any]) -> str:
    return "; ".join(f"{one['quoted'] or '∅'} → {one['stands'] or '∅'}" for one in item.get("difference") or ())


def _counts(found: dict[str, Any]) -> str:
    parts = ((kind, verdict, n) for kind, of_kind in found["counts"].items() for verdict, n in sorted(of_kind.items()))
    return " · ".join(f"{kind} {verdict.replace('_', ' ')}: {n:,}" for kind, verdict, n in parts)


def _write(found: dict[str, Any], path: Path) -> None:
    """Write the report as a page and as Markdown."""
    rows = [
        [
            item["verdict"],
            item["text"],
            item.get("quote") or "",
            _place(item),
            _differs(item) or _why(item),
            _otherwise(item),
        ]
        for item in found["items"]
    ]
    table = Table(
        ["Verdict", "The text", "The library", "Where", "Difference (text → library) or reason", "Another source"], rows
    )
    section = Section("Every quotation and sentence", table=table)
    report = Report("A text checked against the library", _counts(found), [section], notes=found["warnings"])
    write_report(report, path)
