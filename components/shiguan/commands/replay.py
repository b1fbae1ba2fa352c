"""`shiguan replay`: say whether the passages that an answer cited still say so, and print its prompt again."""

import argparse
from pathlib import Path
from typing import Any

from shiguan.commands import AddCommand
from shiguan.commands.options import open_library, tell, tenant
from shiguan.errors import RefusedError


def register(add: AddCommand) -> None:
    parser = add("replay", _replay, "say whether the passages behind an answer still stand")
    parser.add_argument("receipt", type=Path, metavar="FILE", help="what `shiguan ask --receipt FILE` wrote")
    parser.add_argument("--prompt", action="store_true", help="print the prompt that the answer was written from")


def _replay(options: argparse.Namespace) -> int:
    from shiguan.checking.reading import shortened
    from shiguan.engine.receipts import Replay, read_receipt

    receipt = read_receipt(options.receipt)
    if (receipt.tenant_id, receipt.deployment) != (tenant(options), options.deployment):
        raise RefusedError(
            f"The receipt is of the tenant `{shortened(receipt.tenant_id)}` in the deployment "
            f"`{shortened(receipt.deployment)}`. Name both with `--tenant` and `--deployment`."
        )
    replay = Replay(receipt, open_library(options).stores["parents"], tenant_id=tenant(options))
    result: dict[str, Any] = {
        **receipt.answer.model_dump(include={"query", "status", "mode"}),
        **receipt.model_dump(include={"id", "written"}),
        "citations": replay.citations(),
        "passages": {"read": len(receipt.passages), "lost": replay.lost},
    }
    if options.prompt:
        messages, differences = replay.prompt()
        result["prompt"] = {"messages": messages, "exact": not differences, "differences": differences}
    tell(options, result, *(shortened(line, len(line)) for line in "\n".join(_lines(result)).split("\n")))
    as_it_was = all(entry["state"] in ("stands", "moved", "outside") for entry in result["citations"])
    return 0 if as_it_was and result.get("prompt", {}).get("exact", True) else 1


def _lines(result: dict[str, Any]) -> list[str]:
    lines = [result["query"], f"  {result['status']} · {result['mode']} · {result['written']}", ""]
    for entry in result["citations"]:
        now = entry["now"]
        lines.append(f"  [{entry['number']}] {entry['state']:<8}{_place(entry)}")
        lines.append(f"      {' '.join(entry['quote'].split())}")
        lines += [f"      now {_place(now)}, {now['start']:,} to {now['end']:,} of {now['parent_id']}"] if now else []
    read, lost = result["passages"]["read"], result["passages"]["lost"]
    lines.append(f"  {read} passages were read; {'all are' if not lost else f'{read - len(lost)} are'} there as read.")
    if prompt := result.get("prompt"):
        for message in prompt["messages"]:
            lines += ["", f"--- {message['role']}", message["text"]]
        lines += ["", "The prompt is the one that was sent, byte by byte."] if prompt["exact"] else [""]
        what = "The prompt is not the one that was sent" if prompt["messages"] else "There is no prompt to show"
        lines += [f"{what}: {why}" for why in prompt["differences"]]
    return lines


def _place(entry: dict[str, Any]) -> str:
    return " · ".join(part for part in (entry["source"], " › ".join(entry["section"] or [])) if part)
