"""`shiguan eval compare`: say what a change did, and stop one that made things worse."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from shiguan.commands import AddCommand
from shiguan.commands.eval_run import add_run_options, add_set_options, measured, mode_or_file, ranking, read_set
from shiguan.commands.options import print_json, say
from shiguan.errors import RefusedError

if TYPE_CHECKING:
    from shiguan.evaluation.questions import QuestionSet
    from shiguan.evaluation.results import Results


def register(add: AddCommand) -> None:
    parser = add("eval compare", _eval_compare, "say what a change did to the same questions", library=False)
    for name in "ab":
        parser.add_argument(
            name, metavar=name.upper(), help="a results.json or its folder; or a mode or pipeline file, which is run"
        )
    add_set_options(parser, required=False)
    add_run_options(parser)
    parser.add_argument(
        "--gate",
        action="append",
        default=[],
        metavar="METRIC[=TOLERANCE]",
        help="exit 1 where this got worse by more (repeatable; default: the standard gates; none: no gate)",
    )


def _eval_compare(options: argparse.Namespace) -> int:
    from shiguan.evaluation.comparison import compare_results, comparison_report, read_gates, write_comparison
    from shiguan.evaluation.tables import print_report

    gates = read_gates(options.gate)
    before, after = _both(options)
    comparison = compare_results(before, after, gates, seed=options.seed)
    report = comparison_report(comparison, before, after)
    if options.output is not None:
        write_comparison(comparison, report, before, after, options.output)
    if options.json:
        print_json(comparison.to_json())
    else:
        print_report(replace(report, title=f"B {options.b} against A {options.a}"))
        if options.output is not None:
            say(f"comparison.html, .md and .json are in {options.output}")
    return 1 if comparison.breaches else 0


def _both(options: argparse.Namespace) -> "tuple[Results, Results]":
    files = (options.corpus, options.queries, options.qrels)
    run = [name for name in (options.a, options.b) if not _is_results(name)]
    if run and not all(files):
        raise RefusedError(
            f"`{run[0]}` is no results file, so it has to be run: give --corpus, --queries and --qrels as well, or "
            "name the results.json of a finished run."
        )
    questions = read_set(options) if run else None
    before, after = (_results(name, label, questions, options) for name, label in ((options.a, "a"), (options.b, "b")))
    return before, after


def _is_results(name: str) -> bool:
    return Path(name).is_dir() or name.endswith(".json")


def _results(name: str, label: str, questions: "QuestionSet | None", options: argparse.Namespace) -> "Results":
    from shiguan.evaluation.results import read_results

    if questions is None or _is_results(name):
        return read_results(Path(name))
    output = options.output / label if options.output is not None else None
    doing = f"Searching {label.upper()}"
    return measured(options, questions, doing, **ranking(options), mode=mode_or_file(name), output=output)[0]
