"""What the commands of `shiguan eval` share: their options, progress, and the printing of numbers."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from shiguan.commands.printing import print_json, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from shiguan.evaluation.results import Results

Item = TypeVar("Item")


def add_set_options(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Let a command read a set of judged questions."""
    for name, text in (
        ("corpus", 'JSONL (.gz too) of {"id", "title", "text"}: what is searched'),
        ("queries", 'JSONL of {"id", "text", "gold"?}: what is asked'),
        ("qrels", 'JSONL of {"query_id", "doc_id", "score"}: what is right'),
    ):
        parser.add_argument(f"--{name}", type=Path, required=required, metavar="FILE", help=text)
    parser.add_argument(
        "--gold-field", default="gold", metavar="NAME", help="the field that marks an answer's place (default: gold)"
    )
    parser.add_argument("--limit", type=positive, metavar="N", help="only N questions, spread evenly over the file")
    parser.add_argument(
        "--skip-unjudged",
        action="store_true",
        help="leave out questions without a relevant document, instead of stopping",
    )
    parser.add_argument("--no-context", action="store_true", help="score the ranking alone")


def add_mode_option(parser: argparse.ArgumentParser) -> None:
    """Let a command measure a mode, or a pipeline file of one's own."""
    parser.add_argument(
        "--mode",
        type=mode_or_file,
        default="simple",
        help="simple, advanced, precise, or a pipeline file of your own (default: simple)",
    )


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Let a command say where a run is kept."""
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="the run's folder (default: below .data/eval); run again to go on"
    )
    parser.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="where the corpus is ingested (default: beside the run's folder)"
    )
    parser.add_argument("--seed", type=int, default=0, help="for the draws of the intervals (default: 0)")


def mode_or_file(text: str) -> str | Path:
    """Tell a mode's name from a pipeline file."""
    return Path(text) if text.endswith((".yml", ".yaml")) else text


def positive(text: str) -> int:
    """Read a positive number."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive number, got {text}")
    return int(text)


def tracker(description: str) -> "Callable[[list[Item]], Iterable[Item]]":
    """Make a progress bar for a loop."""

    def through(items: "list[Item]") -> "Iterable[Item]":
        from shiguan.commands.terminal import track

        return track(items, description)

    return through


def ingest_with_progress(files: list[Path], deployment: str, data_dir: Path) -> list[str]:
    """Ingest the corpus and show how far it is."""
    from shiguan.commands.terminal import IngestProgress
    from shiguan.evaluation.provenance import ingest_corpus

    with IngestProgress(files) as progress:
        return ingest_corpus(files, deployment=deployment, data_dir=data_dir, progress=progress.callback)


def read_set(options: argparse.Namespace) -> "Any":
    """Read the set that the options name."""
    from shiguan.evaluation.questions import read_retrieval_set

    return read_retrieval_set(
        options.corpus,
        options.queries,
        options.qrels,
        limit=options.limit,
        skip_unjudged=options.skip_unjudged,
        gold_field=options.gold_field,
    )


def report_run(results: "Results", output: Path, *, as_json: bool) -> None:
    """Write a run's reports, and print what it gave."""
    from shiguan.evaluation.report import run_report, write_report
    from shiguan.evaluation.tables import print_report

    report = run_report(results)
    write_report(report, output / "report")
    if as_json:
        summary = {key: value for key, value in results.to_json().items() if key != "questions"}
        print_json({**summary, "output": str(output)})
    else:
        print_report(report)
        say(f"\nResults, report.md and report.html are in {output}")
