"""`shiguan eval answers`: measure how well a mode answers a golden set."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from shiguan.commands import AddCommand
from shiguan.commands.eval_options import add_mode_option, ingest_with_progress, report_run, tracker
from shiguan.commands.options import tenant

if TYPE_CHECKING:
    from shiguan.evaluation.judges import AnswerJudge


def register(add: AddCommand) -> None:
    """Declare the command."""
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
    add_mode_option(parser)
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
    from shiguan.evaluation.measurement import Plan, measure
    from shiguan.evaluation.questions import read_golden_set
    from shiguan.evaluation.scoring import read_prices

    judge = _judge(options.judge)
    plan = Plan(
        "answers",
        read_golden_set(options.golden),
        options.corpus,
        deployment=options.deployment,
        mode=options.mode,
        tenant_id=tenant(options),
        output=options.output,
        data_dir=options.data_dir,
        prices=read_prices(options.prices) if options.prices else None,
        seed=options.seed,
    )
    results, output = measure(plan, track=tracker("Asking"), ingest=ingest_with_progress, judge=judge)
    report_run(results, output, as_json=options.json)
    return 0


def _judge(name: str | None) -> "AnswerJudge | None":
    from shiguan.evaluation.judges import HaystackJudge, RagasJudge

    return {"haystack": HaystackJudge, "ragas": RagasJudge}[name]() if name else None
