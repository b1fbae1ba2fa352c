"""`shiguan why`: say where an expected passage was lost."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiguan.commands import AddCommand
from shiguan.commands.options import add_mode_options, open_library, open_runner, print_json, read_history, tenant
from shiguan.errors import RefusedError

if TYPE_CHECKING:
    from shiguan.evaluation.attribution import Attribution, ExpectedPassage

_SHOWN = 3


def register(add: AddCommand) -> None:
    parser = add("why", _why, "say where the passage that you expected was lost")
    parser.add_argument("question")
    parser.add_argument(
        "--expected", required=True, metavar="TEXT", help="words of the passage that should have been used, or its id"
    )
    parser.add_argument(
        "--history", type=Path, metavar="FILE", help='JSON list of {"role", "content"}: the turns before the question'
    )
    add_mode_options(parser)


def _why(options: argparse.Namespace) -> int:
    from shiguan.engine.runner import checked_question
    from shiguan.evaluation.attribution import ExpectedPassages, TracedMode, attribute

    checked_question(options.question)
    if not options.expected.strip():
        raise RefusedError("`--expected` is empty. Give words of the passage that should have been used, or its id.")
    asked: dict[str, Any] = {"history": read_history(options.history)} if options.history else {}
    with open_runner(options) as runner:
        library = ExpectedPassages(open_library(options).stores, tenant(options))
        expected = library.find(options.expected)
        run = TracedMode(runner).ask(options.question, tenant_id=tenant(options), top_k=options.top_k, **asked)
        trace = run.trace()
    found = attribute(trace, expected)
    if options.json:
        about = {"question": options.question, "mode": options.mode}
        print_json({**about, **found.to_json(), "passages": expected.places()})
    else:
        _print(options.question, found, expected, trace.asked)
    return 0


def _print(question: str, found: "Attribution", expected: "ExpectedPassage", asked: list[str]) -> None:
    from rich.text import Text

    from shiguan.evaluation.attribution import LABELS
    from shiguan.text.terminal import console_for_people, one_line

    console = console_for_people()
    console.print(Text(question, style="bold"))
    for query in asked:
        if query != question:
            console.print(Text(f"  searched as: {query}", style="dim"))
    console.print()
    for parent in expected.parents[:_SHOWN]:
        where = " · ".join(one_line(str(part)) for part in (parent.meta.get("source"), *parent.meta.get("section", [])))
        console.print(Text.assemble(("  expected  ", "dim"), where, (f"  {parent.id}", "dim")), soft_wrap=True)
    more = len(expected.parents) - _SHOWN
    if more > 0:
        console.print(Text(f"  and {more:,} more with these words; give more of them to mean one passage", style="dim"))
    names = {
        "bm25": "found by words", "vectors": "found by vectors", "fused": "after the fusion",
        "fetched": "passages fetched", "ranked": "passages chosen", "context": "in the context",
    }  # fmt: skip
    for name, label in names.items():
        if not expected.parents:
            break
        if name in found.ranks:
            rank, size = found.ranks[name], found.sizes[name]
            mark = ("✓", "green") if rank is not None else ("✗", "red")
            place = f"{rank}. of {size}" if rank is not None else f"not among {size}"
            console.print(Text.assemble("  ", mark, f" {label:<18}", (place, "" if rank else "red")))
        elif name == "vectors":
            console.print(Text.assemble("  ", ("-", "dim"), f" {label:<18}", ("not asked", "dim")))
    console.print()
    lost = found.stage != "nothing_lost"
    head = f"  Lost: {LABELS[found.stage]}. " if lost else "  Not lost. "
    console.print(Text.assemble((head, "bold red" if lost else "bold green"), found.reason), soft_wrap=True)
