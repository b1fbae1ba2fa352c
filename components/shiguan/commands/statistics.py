"""`shiguan modes --statistics`: how each method of each mode has done, from the receipts that the server keeps."""

import argparse
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from shiguan.commands.options import print_json, tenant
from shiguan.engine.receipts import Receipt
from shiguan.evaluation.tables import Table
from shiguan.resources import data_folder
from shiguan.serving.engine import ReceiptFolder
from shiguan.serving.settings import ServingSettings


def statistics(options: argparse.Namespace) -> int:
    folder = data_folder(options.data_dir)
    settings = ServingSettings.from_environment().model_copy(update={"data_dir": folder})
    rows = statistics_of(ReceiptFolder(settings).receipts(tenant(options)))
    if options.json:
        print_json({"statistics": rows})
    else:
        columns = ["mode", "method", ">answers", ">not answered", ">seconds", ">confidence"]
        Table(columns, [["-" if value is None else str(value) for value in row.values()] for row in rows]).to_terminal()
    return 0


def statistics_of(receipts: Iterable[Receipt]) -> list[dict[str, Any]]:
    """Count the answers of each mode and method, those that were none, and their mean time and confidence."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for receipt in receipts:
        answer = receipt.answer.model_dump()
        groups[answer["mode"], answer["metadata"].get("method") or "none"].append(answer)
    return [
        {
            "mode": mode,
            "method": method,
            "answers": len(answers),
            "not_answered": sum(one["status"] in ("not_found", "refused") for one in answers),
            "seconds": _mean([one["metadata"]["timings_ms"]["total"] / 1000 for one in answers]),
            "confidence": _mean([one["metadata"].get("confidence") for one in answers]),
        }
        for (mode, method), answers in sorted(groups.items())
    ]


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 3) if known else None
