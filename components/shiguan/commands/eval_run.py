"""`shiguan eval retrieval`, `answers` and `golden`: measure a mode, and make the questions to measure with."""

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiguan.commands import AddCommand
from shiguan.commands.options import positive, print_json, say, tell, tenant
from shiguan.errors import RefusedError
from shiguan.tenants import of_tenant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shiguan.evaluation.golden_maker import JudgeAgreement, MadeSet
    from shiguan.evaluation.judges import AnswerJudge
    from shiguan.evaluation.questions import QuestionSet
    from shiguan.evaluation.results import Results


def add_set_options(parser: argparse.ArgumentParser, *, required: bool) -> None:
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
    parser.add_argument(
        "--mode",
        type=mode_or_file,
        default="simple",
        help="simple, advanced, precise, or a pipeline file of your own (default: simple)",
    )


def add_run_options(parser: argparse.ArgumentParser, *, library: bool = True) -> None:
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="the run's folder (default: below .data/eval); run again to go on"
    )
    if library:
        help_ = "where the corpus is ingested (default: beside the run's folder)"
        parser.add_argument("--data-dir", type=Path, metavar="DIR", help=help_)
    parser.add_argument("--seed", type=int, default=0, help="for the draws of the intervals (default: 0)")


def mode_or_file(text: str) -> str | Path:
    return Path(text) if text.endswith((".yml", ".yaml")) else text


def ingest_with_progress(files: list[Path], deployment: str, data_dir: Path) -> list[str]:
    from shiguan.commands.terminal import IngestProgress
    from shiguan.evaluation.provenance import ingest_corpus

    with IngestProgress(files) as progress:
        return ingest_corpus(files, deployment=deployment, data_dir=data_dir, progress=progress.callback)


def read_set(options: argparse.Namespace) -> "QuestionSet":
    from shiguan.evaluation.questions import read_retrieval_set

    named = {name: getattr(options, name) for name in ("limit", "skip_unjudged", "gold_field")}
    return read_retrieval_set(options.corpus, options.queries, options.qrels, **named)


def measured(
    options: argparse.Namespace, questions: "QuestionSet", doing: str, judge: "AnswerJudge | None" = None, **plan: Any
) -> "tuple[Results, Path]":
    from shiguan.commands.terminal import track
    from shiguan.evaluation.measurement import Plan, measure
    from shiguan.evaluation.report import run_report, write_report

    shared = {name: getattr(options, name) for name in ("deployment", "output", "data_dir", "seed")}
    whole = Plan(questions=questions, **shared | plan)
    results, output = measure(whole, track=lambda asked: track(asked, doing), ingest=ingest_with_progress, judge=judge)
    write_report(run_report(results), output / "report")
    return results, output


def print_run(results: "Results", output: Path, *, as_json: bool) -> int:
    from shiguan.evaluation.report import run_report
    from shiguan.evaluation.tables import print_report

    if as_json:
        summary = {key: value for key, value in results.to_json().items() if key != "questions"}
        print_json({**summary, "output": str(output)})
    else:
        print_report(run_report(results))
        say(f"\nResults, report.md and report.html are in {output}")
    return 0


def _add_golden_options(parser: argparse.ArgumentParser) -> None:
    shape = '{"id", "question", "answers"?, "gold"?: [{"quote"}], "answerable"?, "history"?, "type"?}'
    parser.add_argument("--golden", type=Path, required=True, metavar="FILE", help=f"JSONL of {shape}")
    help_ = "ask a library of these files alone (default: the tenant's own library)"
    parser.add_argument("--corpus", type=Path, nargs="+", default=[], metavar="FILE", help=help_)
    add_mode_option(parser)


def register(add: AddCommand) -> None:
    parser = add("eval retrieval", _eval_retrieval, "measure how well a mode finds passages", library=False)
    add_set_options(parser, required=True)
    add_mode_option(parser)
    add_run_options(parser)
    parser = add("eval answers", _eval_answers, "measure how well a mode answers a golden set")
    _add_golden_options(parser)
    add_run_options(parser, library=False)
    parser.add_argument(
        "--prices", type=Path, metavar="FILE", help="YAML of `model: {input: 0.4, output: 1.6}`, per million tokens"
    )
    parser.add_argument(
        "--judge",
        choices=("haystack", "ragas"),
        help="let a language model judge too, with Haystack's evaluators or with Ragas (extra `ragas`)",
    )
    parser = add("eval record", _eval_record, "keep a model's replies to a golden set, to measure with them again")
    _add_golden_options(parser)
    parser.add_argument("--recording", type=Path, required=True, metavar="FILE", help="run again for what is missing")
    parser.add_argument("--limit", type=positive, metavar="N", help="only N questions, spread evenly over the file")
    parser.add_argument("--max-tokens", type=positive, metavar="N", help="the longest reply to record")
    help_ = "ask no model: score the recorded replies, and name every question with an unrecorded prompt (exit code 1)"
    parser.add_argument("--replay", action="store_true", help=help_)
    parser = add("eval golden", _eval_golden, "make questions with known answers from the library")
    parser.add_argument("--count", type=positive, default=50, metavar="N", help="how many questions (default: 50)")
    parser.add_argument(
        "--per-passage", type=positive, default=3, metavar="N", help="questions asked for per passage (default: 3)"
    )
    parser.add_argument(
        "--output", type=Path, default=Path(".data") / "golden", metavar="DIR",
        help="where golden.jsonl and review.jsonl go (default: .data/golden); run again to go on",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="for the choice of passages (default: 0)")
    help_ = "make them of what readers said of answers, for review and without a model"
    parser.add_argument("--from-feedback", action="store_true", help=help_)


def _eval_retrieval(options: argparse.Namespace) -> int:
    run = measured(options, read_set(options), "Searching", **ranking(options), mode=options.mode)
    return print_run(*run, as_json=options.json)


def ranking(options: argparse.Namespace) -> dict[str, Any]:
    """Say what of a plan only the measuring of a ranking has."""
    return {"kind": "retrieval", "files": [options.corpus], "context": not options.no_context}


def _eval_answers(options: argparse.Namespace) -> int:
    from shiguan.evaluation.questions import read_golden_set
    from shiguan.evaluation.scoring import read_prices

    run = measured(
        options,
        read_golden_set(options.golden),
        "Asking",
        _judge(options.judge),
        kind="answers",
        files=options.corpus,
        mode=options.mode,
        tenant_id=tenant(options),
        prices=read_prices(options.prices) if options.prices else None,
    )
    return print_run(*run, as_json=options.json)


def _eval_record(options: argparse.Namespace) -> int:
    from shiguan.evaluation.measurement import Plan
    from shiguan.evaluation.questions import read_golden_set, spread
    from shiguan.evaluation.recording import RecordedModel
    from shiguan.evaluation.report import run_report
    from shiguan.evaluation.tables import print_report

    model = RecordedModel(options.recording, asks=not options.replay, longest=options.max_tokens)
    questions = read_golden_set(options.golden)
    named = spread([question.id for question in questions.questions], options.limit)
    questions = questions.only(model.about["questions"] if options.replay else named)
    shared = {name: getattr(options, name) for name in ("deployment", "data_dir", "mode")}
    plan = Plan("answers", questions, files=options.corpus, tenant_id=tenant(options), **shared)
    with model:
        if not options.replay:
            model.record([plan])
            print_json({"replies": len(model.replies), "recording": str(options.recording)})
            return 0
        results = model.measure(plan)
    if options.json:
        print_json({"metrics": results.to_json()["metrics"], "unrecorded": model.missing})
    else:
        print_report(run_report(results))
        for name, why in model.missing.items():
            say(f"unrecorded: {name}: {why}")
    return 1 if model.missing else 0


def _judge(name: str | None) -> "AnswerJudge | None":
    from shiguan.evaluation.judges import HaystackJudge, RagasJudge

    return {"haystack": HaystackJudge, "ragas": RagasJudge}[name]() if name else None


def _from_feedback(options: argparse.Namespace) -> int:
    from shiguan.commands.feedback import open_feedback
    from shiguan.evaluation.golden_maker import review_feedback

    counts = review_feedback(open_feedback(options).entries(tenant(options)), options.output)
    print_json({**counts, "output": str(options.output)})
    if not options.json:
        say("Edit feedback_review.jsonl, with accept or reject as `person`; run again for feedback_golden.jsonl.")
    return 0 if counts["accepted"] or counts["open"] else 1


def _eval_golden(options: argparse.Namespace) -> int:
    if options.from_feedback:
        return _from_feedback(options)
    from shiguan.commands.terminal import track
    from shiguan.engine.library import Library
    from shiguan.evaluation.golden_maker import REVIEW_FILE, GoldenMaker, judge_agreement, write_made_set
    from shiguan.evaluation.json_lines import fingerprint
    from shiguan.evaluation.provenance import prompt_hashes
    from shiguan.evaluation.results import RunStore
    from shiguan.llm.configured_chat_generator import ConfiguredChatGenerator

    generator = ConfiguredChatGenerator(timeout=120.0, max_retries=1, generation_kwargs={"temperature": 0.2})
    generator.warm_up()
    if not generator.available():
        raise RefusedError(
            "Making questions takes a language model, and none is configured. Set OPENAI_API_KEY, or OPENAI_BASE_URL "
            "for a server of your own."
        )
    stores = Library(options.deployment, data_dir=options.data_dir).stores
    parents = stores["parents"].filter_documents(of_tenant(tenant(options)))
    if not parents:
        raise RefusedError(f"The tenant `{tenant(options)}` has nothing in this library. Put something in first.")
    try:
        maker = GoldenMaker(generator, per_passage=options.per_passage, seed=options.seed)
    except ValueError as error:
        raise RefusedError(f"{error}") from error
    configuration = {
        "kind": "golden",
        "library": fingerprint(sorted(parent.id for parent in parents)),
        "prompts": {name: value for name, value in prompt_hashes().items() if name.startswith("golden_")},
        "per_passage": options.per_passage,
        "seed": options.seed,
    }
    with RunStore(options.output, configuration) as store:
        made = maker.make(parents, options.count, store, lambda left: track(left, "Asking for questions"))
    write_made_set(made, options.output, options.seed)
    agreement = judge_agreement(options.output / REVIEW_FILE, made.verdicts)
    told: dict[str, Any] = {
        "accepted": len(made.accepted),
        "rejected": len(made.rejected),
        "types": dict(Counter(row["type"] for row in made.accepted)),
        **{name: getattr(made, name) for name in ("faults", "passages", "llm_calls")},
        "agreement": agreement._asdict(),
        "output": str(options.output),
    }
    tell(options, told, *_lines(made, told, agreement, options.output))
    return 0 if made.accepted else 1


def _lines(made: "MadeSet", told: dict[str, Any], agreement: "JudgeAgreement", output: Path) -> "Iterator[str]":
    yield (
        f"{told['accepted']} questions accepted and {told['rejected']} rejected, from {made.passages} passages with "
        f"{made.llm_calls} LLM calls."
    )
    if told["types"]:
        yield "  " + ", ".join(f"{count} {kind}" for kind, count in sorted(told["types"].items()))
    yield from (f"  left out: {kind}, {count}" for kind, count in made.faults.most_common())
    if not made.accepted:
        yield "No question was accepted. Look at rejected.jsonl, and at what the model answers."
    if agreement.agreement is None:
        review = output / "review.jsonl"
        yield f"Nobody has reviewed yet: write accept or reject into `person` in {review} and run again."
    else:
        kappa = "not defined" if agreement.kappa is None else f"{agreement.kappa:.2f}"
        yield (
            f"Judge and person agree on {agreement.agreement:.2f} of {agreement.reviewed - agreement.silent} questions "
            f"(Cohen's kappa {kappa}); {agreement.open} are still to be reviewed."
        )
        if agreement.disagreements:
            yield f"  They differ on {', '.join(agreement.disagreements[:10])}"
    golden = output / "golden.jsonl"
    yield f"The set is {golden}; measure with: shiguan eval answers --golden {golden}"
