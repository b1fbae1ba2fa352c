"""`shiguan why`, `replay`, `export`, `locate` and `feedback`: how an answer came about, and what becomes of it."""

import argparse
import sys
from typing import Any

from rich.text import Text

from shiguan.checking.reading import shortened
from shiguan.commands.options import (
    open_library,
    open_runner,
    print_json,
    print_result,
    refuse_missing_folder,
    refuse_to_replace,
    tenant,
    typed_question,
)
from shiguan.commands.terminal import place_line
from shiguan.engine.exports import FORMS, export_answer, read_sources
from shiguan.engine.feedback import FeedbackFile
from shiguan.engine.places import locate as located
from shiguan.engine.receipts import Receipt, read_receipt
from shiguan.engine.receipts import replay as still_said
from shiguan.engine.why import LABELS, Attribution, ExpectedPassage, ExpectedPassages, TracedMode, attribute
from shiguan.errors import RefusedError
from shiguan.resources import data_folder, write_whole
from shiguan.text.terminal import console_for_people, one_line

_SHOWN = 3


def why(options: argparse.Namespace) -> int:
    question = typed_question(options)
    if not options.expected.strip():
        raise RefusedError("`--expected` is empty. Give words of the passage that should have been used, or its id.")
    with open_runner(options) as runner:
        expected = ExpectedPassages(open_library(options).stores, tenant(options)).find(options.expected)
        trace = TracedMode(runner).ask(question, tenant_id=tenant(options), top_k=options.top_k)
    found = attribute(trace, expected)
    if options.json:
        about = {"question": question, "mode": str(options.mode)}
        print_json({**about, **found.to_json(), "passages": expected.places(), "warnings": trace.traced["warnings"]})
    else:
        _print_why(question, found, expected, trace.asked, trace.traced["warnings"])
    return 0


def _print_why(
    question: str, found: Attribution, expected: ExpectedPassage, asked: list[str], warnings: list[str]
) -> None:
    console = console_for_people()
    console.print(Text(question, style="bold"))
    for query in asked:
        if query != question:
            console.print(Text(f"  searched as: {query}", style="dim"))
    for warning in warnings:
        console.print(Text(f"  {one_line(warning)}", style="dim"), soft_wrap=True)
    console.print()
    for parent in expected.parents[:_SHOWN]:
        line = Text.assemble(("  expected  ", "dim"), place_line(parent.meta), (f"  {parent.id}", "dim"))
        console.print(line, soft_wrap=True)
    more = len(expected.parents) - _SHOWN
    if more > 0:
        console.print(Text(f"  and {more:,} more with these words; give more of them to mean one passage", style="dim"))
    names = {
        "bm25": "found by words", "vectors": "found by vectors", "fused": "after the fusion",
        "fetched": "passages fetched", "ranked": "passages chosen", "context": "in the context",
    }  # fmt: skip
    for name, label in names.items() if expected.parents else ():
        if name in found.ranks:
            rank, size = found.ranks[name], found.sizes[name]
            mark = ("✓", "green") if rank is not None else ("✗", "red")
            place = f"number {rank} of {size}" if rank is not None else f"not among {size}"
            console.print(Text.assemble("  ", mark, f" {label:<18}", (place, "" if rank else "red")))
        elif name == "vectors":
            console.print(Text.assemble("  ", ("-", "dim"), f" {label:<18}", ("not asked", "dim")))
    console.print()
    lost = found.stage != "nothing_lost"
    head = f"  Lost: {LABELS[found.stage]}. " if lost else "  Not lost. "
    console.print(Text.assemble((head, "bold red" if lost else "bold green"), found.reason), soft_wrap=True)


def replay(options: argparse.Namespace) -> int:
    receipt = read_receipt(options.receipt)
    if (receipt.tenant_id, receipt.deployment) != (tenant(options), options.deployment):
        raise RefusedError(
            f"The receipt is of the tenant `{shortened(receipt.tenant_id)}` in the deployment "
            f"`{shortened(receipt.deployment)}`. Name both with `--tenant` and `--deployment`."
        )
    states = still_said(receipt, open_library(options).stores["parents"], tenant_id=tenant(options))
    citations = [
        {**cited.model_dump(), "state": state} for cited, state in zip(receipt.answer.citations, states, strict=True)
    ]
    answer = receipt.answer.model_dump(include={"query", "status", "mode"})
    result = {**answer, **receipt.model_dump(include={"id", "written"}), "citations": citations}
    lines = [result["query"], f"  {result['status']} · {result['mode']} · {result['written']}", ""]
    for entry in citations:
        lines += [f"  [{entry['number']}] {entry['state']:<8}{place_line(entry)}", f"      {one_line(entry['quote'])}"]
    print_result(options, result, *(shortened(line, len(line)) for line in "\n".join(lines).split("\n")))
    return 1 if "gone" in states else 0


def forget(options: argparse.Namespace) -> int:
    refuse_missing_folder(options, options.data_dir)
    file = FeedbackFile(data_folder(options.data_dir))
    print_json({"deleted": file.forget(tenant(options), receipt=options.receipt, days=options.older_than)})
    return 0


def export(options: argparse.Namespace) -> int:
    if options.output:
        refuse_to_replace(options, options.output, read=options.receipt)
    elif options.form == "docx":
        raise RefusedError("A DOCX file cannot be printed. Name a file with `--output`.")
    receipt = _own_receipt(options)
    own = read_sources(data_folder(options.data_dir) / "sources.yml", tenant(options))
    written = export_answer(receipt, open_library(options).stores["parents"], options.form, own=own)
    if options.output:
        write_whole(options.output, written)
        report = {"form": options.form, "file": str(options.output), "bytes": len(written)}
        print_result(options, report, f"Wrote {options.output}: {FORMS[options.form][0]}, {len(written):,} bytes.")
    else:
        sys.stdout.write(written.decode())
    return 0


def locate(options: argparse.Namespace) -> int:
    receipt = _own_receipt(options)
    library = open_library(options)
    names = {citation.source for citation in receipt.answer.citations}
    if options.file is None:
        found = located(receipt, lambda source: library.text(source, tenant_id=tenant(options)))
    else:
        passages = library.read(options.file, tenant_id=tenant(options))
        # A file with another name is the renamed source, if the answer cites only one.
        own = options.file.name if options.file.name in names or len(names) > 1 else min(names, default="")
        found = [one for one in located(receipt, lambda _: passages) if one["source"] == own]
        if not found:
            cited = ", ".join(sorted(names)) or "nothing"
            raise RefusedError(f"The answer cites {one_line(cited)}, and not {options.file.name}. Name one of these.")
    print_result(options, {"query": receipt.answer.query, "places": found}, *_lines(found))
    return 0 if all(one["now"] or one["state"] == "outside" for one in found) else 1


def _lines(found: list[dict[str, Any]]) -> list[str]:
    lines = []
    for entry in found:
        lines += [
            f"  [{entry['number']}] {entry['state']:<9}{place_line(entry)}",
            f"      {one_line(entry['quote'])}",
        ]
        if (now := entry["now"]) and entry["state"] != "stands":
            words = "" if now["quote"] == entry["quote"] else f": {one_line(now['quote'])}"
            lines.append(f"      now {place_line(now)}{words}")
    return lines


def _own_receipt(options: argparse.Namespace) -> Receipt:
    receipt = read_receipt(options.receipt)
    receipt.require_tenant(tenant(options))
    return receipt
