"""`shiguan eval golden`: make questions with known answers from the library."""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiguan.commands import AddCommand
from shiguan.commands.eval_options import positive, tracker
from shiguan.commands.options import tenant
from shiguan.commands.printing import print_json, say
from shiguan.errors import RefusedError

if TYPE_CHECKING:
    from shiguan.evaluation.golden_maker import JudgeAgreement, MadeSet


def register(add: AddCommand) -> None:
    """Declare the command."""
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


def _eval_golden(options: argparse.Namespace) -> int:
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
    owned = {"field": "meta.tenant_id", "operator": "==", "value": tenant(options)}
    stores = Library(options.deployment, data_dir=options.data_dir).stores
    parents = stores["parents"].filter_documents(owned)
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
        made = maker.make(parents, options.count, store, tracker("Asking for questions"))
    write_made_set(made, options.output, options.seed)
    agreement = judge_agreement(options.output / REVIEW_FILE, made.verdicts)
    if options.json:
        print_json({**_summary(made), "agreement": asdict(agreement), "output": str(options.output)})
    else:
        _print(made, agreement, options.output)
    return 0 if made.accepted else 1


def _summary(made: "MadeSet") -> dict[str, Any]:
    from collections import Counter

    return {
        "accepted": len(made.accepted),
        "rejected": len(made.rejected),
        "types": dict(Counter(row["type"] for row in made.accepted)),
        "faults": dict(made.faults),
        "passages": made.passages,
        "llm_calls": made.llm_calls,
    }


def _print(made: "MadeSet", agreement: "JudgeAgreement", output: Path) -> None:
    summary = _summary(made)
    say(
        f"{summary['accepted']} questions accepted and {summary['rejected']} rejected, from {made.passages} passages "
        f"with {made.llm_calls} LLM calls."
    )
    if summary["types"]:
        say("  " + ", ".join(f"{count} {kind}" for kind, count in sorted(summary["types"].items())))
    for kind, count in made.faults.most_common():
        say(f"  left out: {kind}, {count}")
    if not made.accepted:
        say("No question was accepted. Look at rejected.jsonl, and at what the model answers.")
    if agreement.agreement is None:
        say(
            f"Nobody has reviewed yet: write accept or reject into `person` in {output / 'review.jsonl'} and run again."
        )
    else:
        kappa = "not defined" if agreement.kappa is None else f"{agreement.kappa:.2f}"
        say(
            f"Judge and person agree on {agreement.agreement:.2f} of {agreement.reviewed - agreement.silent} questions "
            f"(Cohen's kappa {kappa}); {agreement.open} are still to be reviewed."
        )
        if agreement.disagreements:
            say(f"  They differ on {', '.join(agreement.disagreements[:10])}")
    say(f"The set is {output / 'golden.jsonl'}; measure with: shiguan eval answers --golden {output / 'golden.jsonl'}")
