"""`shiguan feedback`: say what is right or wrong about an answer, and export what was said."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from shiguan.commands import AddCommand
from shiguan.commands.options import positive, print_json, tenant
from shiguan.errors import RefusedError

if TYPE_CHECKING:
    from shiguan.engine.feedback import FeedbackFile


def register(add: AddCommand) -> None:
    give = add("feedback give", _give, "keep what is right or wrong about an answer, and print it", deployment=False)
    give.add_argument("receipt", metavar="RECEIPT", help="the id in an answer's metadata, or a file of `ask --receipt`")
    give.add_argument("kind", metavar="KIND", help="right, wrong, wrong_citation or missing")
    give.add_argument("--note", default="", help="in your own words, kept as one line")
    help_ = "delete what was said of one answer, or long ago, and print how many judgements that were"
    which = add("feedback delete", _delete, help_, deployment=False).add_mutually_exclusive_group(required=True)
    which.add_argument("--receipt", metavar="ID", help="the id in an answer's metadata")
    which.add_argument("--older-than", type=positive, metavar="DAYS", help="all that was said before")
    add("feedback export", _export, "print what was said, the newest first, a line of JSON each", deployment=False)


def _give(options: argparse.Namespace) -> int:
    from shiguan.engine.receipts import read_receipt
    from shiguan.serving.review_routes import RECEIPT_ID, ReceiptFolder
    from shiguan.serving.settings import ServingSettings

    file = open_feedback(options)
    settings = ServingSettings.from_environment().model_copy(update={"data_dir": file.path.parent})
    receipt = ReceiptFolder(settings).find(tenant(options), options.receipt)
    if receipt is None and RECEIPT_ID.fullmatch(options.receipt):
        raise RefusedError(f"{settings.folder} has no such receipt of this tenant. Check `--tenant` and `--data-dir`.")
    receipt = receipt or read_receipt(Path(options.receipt))
    if receipt.tenant_id != tenant(options):
        raise RefusedError("The receipt is of another tenant. Name the one that asked with `--tenant`.")
    print_json(file.give(receipt, options.kind, options.note, reader="command line"))
    return 0


def _delete(options: argparse.Namespace) -> int:
    file = open_feedback(options)
    print_json({"deleted": file.forget(tenant(options), receipt=options.receipt, days=options.older_than)})
    return 0


def _export(options: argparse.Namespace) -> int:
    for entry in open_feedback(options).entries(tenant(options)):
        print_json(entry)
    return 0


def open_feedback(options: argparse.Namespace) -> "FeedbackFile":
    """Open what was said in the data folder; one that was mistyped is refused, and not made."""
    from shiguan.engine.feedback import FeedbackFile
    from shiguan.serving.settings import ServingSettings

    if options.data_dir is not None and not options.data_dir.is_dir():
        raise RefusedError(f"There is no folder `{options.data_dir}`. Correct `--data-dir`.")
    return FeedbackFile(options.data_dir or ServingSettings.from_environment().folder)
