"""`shiguan ask`: answer a question from the library."""

import argparse
from pathlib import Path

from shiguan.commands import AddCommand
from shiguan.commands.options import add_mode_options, open_runner, read_history, tenant
from shiguan.commands.printing import print_json


def register(add: AddCommand) -> None:
    """Declare the command."""
    parser = add("ask", _ask, "answer a question from the library")
    parser.add_argument("question")
    parser.add_argument("--explain", action="store_true", help="show what each stage did")
    parser.add_argument(
        "--history", type=Path, metavar="FILE", help='JSON list of {"role", "content"}: the turns before the question'
    )
    add_mode_options(parser)


def _ask(options: argparse.Namespace) -> int:
    from shiguan.commands.terminal import print_answer
    from shiguan.engine.runner import checked_question

    checked_question(options.question)
    history = read_history(options.history) if options.history else None
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
