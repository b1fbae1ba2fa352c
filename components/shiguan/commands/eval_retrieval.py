"""`shiguan eval retrieval`: measure how well a mode finds passages."""

import argparse

from shiguan.commands import AddCommand
from shiguan.commands.eval_options import (
    add_mode_option,
    add_run_options,
    add_set_options,
    ingest_with_progress,
    read_set,
    report_run,
    tracker,
)


def register(add: AddCommand) -> None:
    """Declare the command."""
    parser = add("eval retrieval", _eval_retrieval, "measure how well a mode finds passages", library=False)
    add_set_options(parser, required=True)
    add_mode_option(parser)
    add_run_options(parser)


def _eval_retrieval(options: argparse.Namespace) -> int:
    from shiguan.evaluation.measurement import Plan, measure

    questions = read_set(options)
    plan = Plan(
        "retrieval",
        questions,
        [options.corpus],
        deployment=options.deployment,
        mode=options.mode,
        output=options.output,
        data_dir=options.data_dir,
        context=not options.no_context,
        seed=options.seed,
    )
    results, output = measure(plan, track=tracker("Searching"), ingest=ingest_with_progress)
    report_run(results, output, as_json=options.json)
    return 0
