"""`shiguan eval`: measure a mode, and make questions to measure with."""

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shiguan.commands.options import open_library, print_json, print_line, print_result, tenant
from shiguan.commands.terminal import IngestProgress, track
from shiguan.errors import RefusedError
from shiguan.evaluation.golden_maker import (
    GOLDEN_FILE,
    MOST_FRUITLESS,
    REVIEW_FILE,
    judge_agreement,
    make_questions,
    write_made_set,
)
from shiguan.evaluation.json_lines import fingerprint
from shiguan.evaluation.judges import AnswerJudge
from shiguan.evaluation.measurement import Plan, measure
from shiguan.evaluation.provenance import ingest_corpus, prompt_hashes
from shiguan.evaluation.questions import QuestionSet, read_golden_set, read_retrieval_set
from shiguan.evaluation.report import run_report, write_report
from shiguan.evaluation.results import RunStore
from shiguan.evaluation.tables import print_report
from shiguan.llm.configured_chat_generator import ConfiguredChatGenerator
from shiguan.tenants import of_tenant


def _ingest_with_progress(files: list[Path], deployment: str, data_dir: Path) -> list[str]:
    with IngestProgress(files) as progress:
        return ingest_corpus(files, deployment=deployment, data_dir=data_dir, progress=progress.callback)


def retrieval(options: argparse.Namespace) -> int:
    questions = read_retrieval_set(
        options.corpus, options.queries, options.qrels, limit=options.limit, skip_unjudged=options.skip_unjudged
    )
    return _measured(options, questions, "Searching", kind="retrieval", files=[options.corpus])


def answers(options: argparse.Namespace) -> int:
    questions, judge = read_golden_set(options.golden), AnswerJudge() if options.judge else None
    if not options.corpus:
        open_library(options)
    plan = {"kind": "answers", "files": options.corpus, "tenant_id": tenant(options)}
    return _measured(options, questions, "Asking", judge, **plan)


def _measured(
    options: argparse.Namespace, questions: QuestionSet, doing: str, judge: AnswerJudge | None = None, **plan: Any
) -> int:
    shared = {name: getattr(options, name) for name in ("deployment", "mode", "output", "data_dir")}
    whole = Plan(questions=questions, **shared, **plan)
    results, output = measure(whole, track=lambda asked: track(asked, doing), ingest=_ingest_with_progress, judge=judge)
    report = run_report(results)
    write_report(report, output / "report")
    if options.json:
        summary = {key: value for key, value in results.to_json().items() if key != "questions"}
        print_json({**summary, "output": str(output)})
    else:
        print_report(report)
        print_line(f"\nResults, report.md and report.html are in {output}")
    return 0


def golden(options: argparse.Namespace) -> int:
    models = {"models": [{"name": "default", "timeout": 120.0}]}
    generator = ConfiguredChatGenerator(role="helper", models=models, generation_kwargs={"temperature": 0.2})
    generator.warm_up()
    if not generator.available():
        raise RefusedError(
            "Making questions takes a language model, and none is configured. Set OPENAI_API_KEY, or OPENAI_BASE_URL "
            "for a server of your own."
        )
    stores = open_library(options).stores
    parents = stores["parents"].filter_documents(of_tenant(tenant(options)))
    if not parents:
        raise RefusedError(f"The tenant `{tenant(options)}` has nothing in this library. Add something first.")
    configuration = {
        "kind": "golden",
        "library": fingerprint(sorted(parent.id for parent in parents)),
        "prompts": {name: value for name, value in prompt_hashes().items() if name.startswith("golden_")},
    }
    store = RunStore(options.output, configuration)
    made = make_questions(generator, parents, options.count, store, lambda left: track(left, "Asking for questions"))
    write_made_set(made, options.output)
    summary: dict[str, Any] = {
        "accepted": len(made.accepted),
        "rejected": len(made.rejected),
        "types": dict(sorted(Counter(row["type"] for row in made.accepted).items())),
        **{name: getattr(made, name) for name in ("left_out", "passages", "llm_calls")},
        "agreement": judge_agreement(options.output / REVIEW_FILE, made.verdicts),
        "output": str(options.output),
    }
    print_result(options, summary, *_lines(summary, options.output))
    return 0 if made.accepted else 1


def _lines(made: dict[str, Any], output: Path) -> Iterator[str]:
    yield (
        f"{made['accepted']} questions accepted, {made['rejected']} rejected and {made['left_out']} left out, from "
        f"{made['passages']} passages with {made['llm_calls']} LLM calls."
    )
    if made["types"]:
        yield "  " + ", ".join(f"{count} {kind}" for kind, count in made["types"].items())
    else:
        yield (
            f"No question was accepted; it ends after {MOST_FRUITLESS} passages in a row that give none. Check "
            "rejected.jsonl and what the model answers."
        )
    review = made["agreement"]
    if not review["reviewed"]:
        yield f"Nobody has reviewed yet: write accept or reject into `person` in {output / REVIEW_FILE} and run again."
    else:
        yield (
            f"Judge and person agree on {review['agreement']:.2f} of {review['reviewed']} questions; {review['open']} "
            "still need a review."
        )
        if review["disagreements"]:
            yield f"  They differ on {', '.join(review['disagreements'][:10])}"
    golden = output / GOLDEN_FILE
    yield f"The set is {golden}; measure with: shiguan eval answers --golden {golden}"
