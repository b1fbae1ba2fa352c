"""`shiguan eval answers`: measure how well a mode answers a golden set."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from shiguan.commands import AddCommand
from shiguan.commands.eval_options import ingest_with_progress, mode_or_file, tracker
from shiguan.commands.options import tenant
from shiguan.commands.printing import print_json, say

if TYPE_CHECKING:
    from shiguan.evaluation.answer_judge import AnswerJudge


def register(add: AddCommand) -> None:
    """
    Declare the command.

    :param add: Adds it to the program.
    """
    parser = add("eval answers", _eval_answers, "measure how well a mode answers a golden set")
    parser.add_argument(
        "--golden",
        type=Path,
        required=True,
        metavar="FILE",
        help='JSONL of {"id", "question", "answers"?, "gold"?: [{"quote"}], "answerable"?, "history"?, "type"?}',
    )
    parser.add_argument(
        "--corpus",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="ask a library of these files alone (default: the tenant's own library)",
    )
    parser.add_argument(
        "--mode",
        type=mode_or_file,
        default="simple",
        help="simple, advanced, precise, or a pipeline file of your own (default: simple)",
    )
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="the run's folder (default: below .data/eval); run again to go on"
    )
    parser.add_argument(
        "--prices", type=Path, metavar="FILE", help="YAML of `model: {input: 0.4, output: 1.6}`, per million tokens"
    )
    parser.add_argument("--seed", type=int, default=0, help="for the draws of the intervals (default: 0)")
    parser.add_argument(
        "--judge",
        choices=("haystack", "ragas"),
        help="let a language model judge too, with Haystack's evaluators or with Ragas (extra `ragas`)",
    )


def _eval_answers(options: argparse.Namespace) -> int:
    from shiguan.evaluation.golden_set import read_golden_set
    from shiguan.evaluation.measure_answers import AnswersPlan, measure_answers
    from shiguan.evaluation.prices import read_prices
    from shiguan.evaluation.report import write_reports
    from shiguan.evaluation.tables import print_results

    judge = _judge(options.judge)
    plan = AnswersPlan(
        read_golden_set(options.golden),
        corpus=options.corpus,
        deployment=options.deployment,
        mode=options.mode,
        tenant_id=tenant(options),
        output=options.output,
        data_dir=options.data_dir,
        prices=read_prices(options.prices) if options.prices else None,
        seed=options.seed,
    )
    results, output = measure_answers(plan, track=tracker("Asking"), ingest=ingest_with_progress, judge=judge)
    report = write_reports(results, output)
    if options.json:
        summary = {key: value for key, value in results.to_json().items() if key != "questions"}
        print_json({**summary, "output": str(output)})
    else:
        print_results(results)
        say(f"\nResults, report.md and report.html are in {report.parent}")
    return 0


def _judge(name: str | None) -> "AnswerJudge | None":
    if name == "haystack":
        from shiguan.evaluation.haystack_judge import HaystackJudge

        return HaystackJudge()
    if name == "ragas":
        from shiguan.evaluation.ragas_judge import RagasJudge

        return RagasJudge()
    return None
