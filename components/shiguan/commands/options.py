"""Options that several commands share, and printing: text for people, JSON for programs."""

import argparse
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiguan.commands.arguments import QUESTION_LISTS, QUESTION_OPTIONS
from shiguan.errors import RefusedError
from shiguan.text.terminal import console_for_people, printable, printable_json

if TYPE_CHECKING:
    from rich.console import RenderableType

    from shiguan.engine.library import Library
    from shiguan.engine.runner import Runner


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object on one line."""
    print_line(printable_json(json.dumps(value, ensure_ascii=False)))


def print_line(text: str, *, error: bool = False) -> None:
    """Print one line at once, even to a pipe."""
    print(printable(text), file=sys.stderr if error else sys.stdout, flush=True)


def print_error(message: str, *, as_json: bool) -> None:
    """Report on standard error, and for programs as an object, too."""
    if as_json:
        with suppress(OSError):  # the output may be what cannot be written
            print_json({"error": message})
    print_line(f"shiguan: {message}", error=True)


def print_result(options: argparse.Namespace, value: dict[str, Any], *shown: "RenderableType") -> None:
    """Print a value as JSON if `--json` is given, else lines and tables for people."""
    if options.json:
        print_json(value)
        return
    for part in shown:
        if isinstance(part, str):
            print_line(part)
        else:
            console_for_people().print(part)


NOT_UTF8 = "The question is not in UTF-8. Write it in UTF-8, such as with `iconv -f GB18030 -t UTF-8`, and ask again."


def typed_question(options: argparse.Namespace) -> str:
    """Join the words of a question, or read it from standard input; one that cannot be asked is refused."""
    from shiguan.engine.mode_pipeline import checked_question

    try:
        question = " ".join(sys.stdin.read().split() if options.question == ["-"] else options.question)
        question.encode()
    except UnicodeError as error:
        raise RefusedError(NOT_UTF8) from error
    checked_question(question)
    return question


def question_options(options: argparse.Namespace, **more: Any) -> dict[str, Any]:
    from shiguan.engine.options import read_options

    given = {name: getattr(options, name) for name in ("top_k", *QUESTION_OPTIONS)}
    lists = {name: getattr(options, flag) for flag, name in QUESTION_LISTS.items()}
    return read_options({**given, **lists, **more}).given()


def tenant(options: argparse.Namespace) -> str:
    name = str(options.tenant).strip()
    if not name:
        raise RefusedError("`--tenant` is empty. Name whose library this is, or leave it out for `default`.")
    return name


def refuse_to_replace(options: argparse.Namespace, *files: Path, read: Path | None = None) -> None:
    """Refuse files that cannot be written, that exist (without `--force`), or that the command itself reads."""
    for file in files:
        if not file.resolve().parent.is_dir() or (file.exists() and not file.is_file()):
            raise RefusedError(f"{file} cannot be written. Name a file in a folder that exists.")
        if read is not None and file.exists() and read.exists() and file.samefile(read):
            raise RefusedError(f"{file} is the file that is read. Name another one to write.")
        if file.exists() and not options.force:
            raise RefusedError(f"{file} exists and would be replaced. Name another file, or add `--force`.")


def refuse_missing_folder(options: argparse.Namespace, folder: Path | None) -> None:
    """Refuse a `--data-dir` in which a folder that is only read is missing; opening it would make it."""
    if options.data_dir is not None and folder is not None and not folder.is_dir():
        raise RefusedError(
            f"There is no library in `{options.data_dir}`. Correct `--data-dir`, or add something with "
            f"`shiguan ingest PATH --data-dir {options.data_dir}`."
        )


def open_library(options: argparse.Namespace) -> "Library":
    """Open an existing library; a mistyped folder is refused, not created."""
    from shiguan.engine.library import Library

    library = Library(options.deployment, data_dir=options.data_dir)
    refuse_missing_folder(options, library.stores["parents"].folder)
    return library


def open_runner(options: argparse.Namespace, **settings: Any) -> "Runner":
    """Load the chosen mode over a library that is not empty; `settings` are those of `Runner`."""
    from shiguan.engine.runner import Runner

    if not open_library(options).count(tenant_id=tenant(options)):
        raise RefusedError(
            f"The tenant `{tenant(options)}` has nothing in this library. Add something with "
            "`shiguan ingest PATH`, or check `--tenant` and `--data-dir`."
        )
    return Runner(options.deployment, options.mode, data_dir=options.data_dir, **settings)
