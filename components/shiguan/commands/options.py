"""What several commands read from their options, and how they print: text for people, JSON for programs."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiguan.errors import RefusedError
from shiguan.text.terminal import printable, printable_json

if TYPE_CHECKING:
    from shiguan.engine.library import Library
    from shiguan.engine.runner import Runner


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object on one line."""
    say(printable_json(json.dumps(value, ensure_ascii=False)))


def say(text: str, *, error: bool = False) -> None:
    """Print one line at once, also where the output is a pipe."""
    print(printable(text), file=sys.stderr if error else sys.stdout, flush=True)


def tell(options: argparse.Namespace, value: dict[str, Any], *lines: str) -> None:
    """Print a value where JSON is asked for, else lines that say the same."""
    if options.json:
        print_json(value)
    else:
        for line in lines:
            say(line)


def add_mode_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mode", default="simple", help="a mode that `shiguan modes` lists (default: simple)")
    parser.add_argument(
        "--top-k", type=whole_number(1, 50), help="how many passages at most (default: what the mode says)"
    )


_OPTIONS = (
    *("rewrite_method", "wordings", "retrieval", "scope", "confidence_threshold", "temperature", "max_tokens"),
    *("task", "profile", "language", "instructions", "persona"),
)
_LISTS = {"source": "sources", "section": "sections"}


def add_question_options(parser: argparse.ArgumentParser) -> None:
    add_mode_options(parser)
    group = parser.add_argument_group("options of the question", "docs/options.md has their values and what they do")
    for name in _OPTIONS:
        group.add_argument(f"--{name.replace('_', '-')}")
    for name in _LISTS:
        group.add_argument(
            f"--{name}", action="append", metavar="NAME", help=f"read this {name} alone; may be repeated"
        )


def question_options(options: argparse.Namespace, **more: Any) -> dict[str, Any]:
    from shiguan.engine.options import read_options

    told = {name: getattr(options, name) for name in ("top_k", *_OPTIONS)}
    lists = {name: getattr(options, flag) for flag, name in _LISTS.items()}
    return read_options({**told, **lists, **more}).given()


def add_budget_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--budget",
        type=_budget,
        metavar="UNIT=N,...",
        help="what a question may spend, such as calls=2,tokens=8000,seconds=20,cost=0.01; steps are left out for it",
    )


def _budget(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in text.split(","):
        unit, _, value = part.strip().partition("=")
        try:
            found[unit] = int(value) if unit in ("calls", "tokens") else float(value)
        except ValueError:
            raise argparse.ArgumentTypeError(f"expected UNIT=NUMBER, got {part.strip()!r}") from None
    return found


def whole_number(low: int, high: int | None = None) -> Callable[[str], int]:
    """Make what reads a whole number within limits."""

    def read(text: str) -> int:
        if not text.isdecimal() or not low <= int(text) <= (high or int(text)):
            raise argparse.ArgumentTypeError(f"must be {low} {f'to {high}' if high else 'or more'}, got {text}")
        return int(text)

    return read


positive = whole_number(1)


def tenant(options: argparse.Namespace) -> str:
    name = str(options.tenant).strip()
    if not name:
        raise RefusedError("`--tenant` is empty. Name whose library this is, or leave it out for `default`.")
    return name


def open_library(options: argparse.Namespace) -> "Library":
    """Open a library that is there; a mistyped folder is named, and not made."""
    from shiguan.engine.library import Library

    library = Library(options.deployment, data_dir=options.data_dir)
    folder = getattr(library.stores["parents"], "folder", None)
    if options.data_dir is not None and folder is not None and not folder.is_dir():
        raise RefusedError(
            f"There is no library in `{options.data_dir}`. Correct `--data-dir`, or put something in with "
            f"`shiguan ingest PATH --data-dir {options.data_dir}`."
        )
    return library


def open_runner(options: argparse.Namespace, **settings: Any) -> "Runner":
    """Load the chosen mode over a library that has something in it; `settings` are those of `Runner`."""
    from shiguan.engine.runner import Runner

    if not open_library(options).count(tenant_id=tenant(options)):
        raise RefusedError(
            f"The tenant `{tenant(options)}` has nothing in this library. Put something in with "
            "`shiguan ingest PATH`, or check `--tenant` and `--data-dir`."
        )
    return Runner(options.deployment, options.mode, data_dir=options.data_dir, **settings)


def read_history(path: Path) -> list[Any]:
    try:
        turns = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise RefusedError(f"{path} cannot be read as JSON: {error}. Correct the path or the file.") from error
    if not isinstance(turns, list):
        raise RefusedError(f'{path} is no list of turns. Expected [{{"role": "user", "content": "..."}}, ...].')
    return turns
