"""`shiguan eval retrieval`: measure how well a mode finds passages."""

import argparse

from shiguan.commands import AddCommand
from shiguan.commands.eval_options import (
    add_run_options,
    add_set_options,
    ingest_with_progress,
    mode_or_file,
    read_set,
    tracker,
)
from shiguan.commands.printing import print_json, say


def register(add: AddCommand) -> None:
    """
    Declare the command.

    :param add: Adds it to the program.
    """
    parser = add("eval retrieval", _eval_retrieval, "measure how well a mode finds passages", library=False)
    add_set_options(parser, required=True)
    parser.add_argument(
        "--mode",
        type=mode_or_file,
        default="simple",
        help="simple, advanced, precise, or a pipeline file of your own (default: simple)",
    )
    add_run_options(parser)


def _eval_retrieval(options: argparse.Namespace) -> int:
    from shiguan.evaluation.measure_retrieval import RetrievalPlan, measure_retrieval
    from shiguan.evaluation.report import write_reports
    from shiguan.evaluation.tables import print_results

    plan = RetrievalPlan(
        read_set(options),
        deployment=options.deployment,
        mode=options.mode,
        output=options.output,
        data_dir=options.data_dir,
        context=not options.no_context,
        seed=options.seed,
    )
    results, output = measure_retrieval(plan, track=tracker("Searching"), ingest=ingest_with_progress)
    report = write_reports(results, output)
    if options.json:
        summary = {key: value for key, value in results.to_json().items() if key != "questions"}
        print_json({**summary, "output": str(output)})
    else:
        print_results(results)
        say(f"\nResults, report.md and report.html are in {report.parent}")
    return 0
