"""`shiguan export` and `locate`: export an answer, and find what it cites again in an edited file."""

import argparse
import sys
from typing import Any

from shiguan.commands.options import open_library, print_result, refuse_to_replace, tenant, write_result
from shiguan.commands.terminal import place_line
from shiguan.engine.exports import FORMS, export_answer, read_sources
from shiguan.engine.places import locate as located
from shiguan.engine.receipts import Receipt, read_receipt
from shiguan.errors import RefusedError
from shiguan.resources import data_folder
from shiguan.text.terminal import one_line


def export(options: argparse.Namespace) -> int:
    if options.output:
        refuse_to_replace(options, options.output, read=options.receipt)
    elif options.form == "docx":
        raise RefusedError("A DOCX file cannot be printed. Name a file with `--output`.")
    receipt = _own_receipt(options)
    own = read_sources(data_folder(options.data_dir) / "sources.yml", tenant(options))
    written = export_answer(receipt, open_library(options).stores["parents"], options.form, own=own)
    if options.output:
        write_result(options.output, written)
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
