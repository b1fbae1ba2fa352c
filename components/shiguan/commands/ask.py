"""`shiguan ask`: answer a question from the library."""

import argparse
import json
from pathlib import Path
from typing import Any

from shiguan.commands import AddCommand
from shiguan.commands.options import add_mode_options, open_runner, tenant
from shiguan.commands.printing import print_json
from shiguan.errors import RefusedError


def register(add: AddCommand) -> None:
    """
    Declare the command.

    :param add: Adds it to the program.
    """
    parser = add("ask", _ask, "answer a question from the library")
    parser.add_argument("question")
    parser.add_argument("--explain", action="store_true", help="show what each stage did")
    parser.add_argument(
        "--history", type=Path, metavar="FILE", help='JSON list of {"role", "content"}: the turns before the question'
    )
    add_mode_options(parser, top_k=5)


def _ask(options: argparse.Namespace) -> int:
    from shiguan.runner import checked_question
    from shiguan.terminal import print_answer

    checked_question(options.question)
    history = _read_history(options.history) if options.history else None
    with open_runner(options) as runner:
        answer = runner.ask(
            options.question,
            tenant_id=tenant(options),
            top_k=options.top_k,
            history=history,
            explain=options.explain,
        )
    if options.json:
        print_json(answer)
    else:
        print_answer(answer)
    return 0


def _read_history(path: Path) -> list[Any]:
    try:
        turns = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise RefusedError(f"{path} cannot be read as JSON: {error}. Correct the path or the file.") from error
    if not isinstance(turns, list):
        raise RefusedError(f'{path} is no list of turns. Expected [{{"role": "user", "content": "..."}}, ...].')
    return turns
