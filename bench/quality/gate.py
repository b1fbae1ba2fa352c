"""
Stop a change that makes the answers worse: `make gate`.

    python -m bench.quality.gate [--modes simple precise] [--output DIR]
    python -m bench.quality.gate --update
    python -m bench.quality.gate --record PYTHON

Builds the sample book, puts it in for two tenants, and asks the hundred questions of `golden/sample_book.jsonl` in each
mode of the embedded deployment. Nothing is downloaded, no language model is called. Ranking, context, citations,
refusals and isolation are compared with the committed baseline in `gate/`, question by question, as `shiguan eval
compare` does it; the exit code is 1 where a gated metric got worse by more than its tolerance, and 2 where the
baseline does not fit the questions any more.

What the prompts say is seen by a run before it: four of the questions are asked in every mode, of words alone, and the
replies of a small language model, recorded in `gate/recording.jsonl`, answer. A prompt that is not the recorded one is
named with its question, and the exit code is 1; where only the passages in it are others (a change of the ranking), the
question is named and left out, as long as one in four at most is. Answers, marks and refusals of the others are held to
`gate/recorded-MODE.json`. `make record` asks the model anew for what is not recorded.

A change that is meant to change the numbers brings a new baseline: `--update` writes it, and the merge request says
why.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.quality.public_sets import ROOT
from bench.quality.sample_library import prepare

if TYPE_CHECKING:
    from haystack import Document

    from shiguan.evaluation.measurement import Plan
    from shiguan.evaluation.questions import QuestionSet
    from shiguan.evaluation.results import QuestionResult, Results


GOLDEN = ROOT / "bench" / "quality" / "golden" / "sample_book.jsonl"
BASELINE = ROOT / "bench" / "quality" / "gate"
DEPLOYMENT = "embedded"
MODES = ("simple", "advanced", "precise")
RECORDING = BASELINE / "recording.jsonl"
RECORDED_MODES = (*MODES, "agent")
RECORDED = ("en-person-3", "en-comparison-1", "zh-follow-up-1", "zh-unanswerable-2")
"""The questions that are recorded, of each a kind: four of a hundred, since the model is slow."""
READ = {"top_k": 1}
"""They read one passage: five take the model half a minute of one core."""
REPLY_TOKENS = 60
MOST_LEFT_OUT = 0.25
_ANSWERS = ("contains_answer", "correct", "gold_cited")
_MARKS = ("citation_precision", "citation_recall")
RECORDED_GATES = dict.fromkeys((*_ANSWERS, *_MARKS, "correct_refusal", "false_refusal"), 0.02)
CLAIMS_STEP = 29
"""One in so many scripted replies is shown to `simple`."""
READERS_STEP, READERS_WORDINGS, READERS_LOSS = 3, ("none", "keywords"), 0.02
"""Every third question that one sentence answers, without a rewording and with one; what may be lost of them."""


def main(arguments: list[str] | None = None) -> int:
    """Measure the modes and compare them with the baseline, or write it."""
    parser = argparse.ArgumentParser(description="Stop a change that makes the answers worse.")
    parser.add_argument("--modes", nargs="+", default=RECORDED_MODES, metavar="MODE", help="only these (default: all)")
    parser.add_argument("--output", type=Path, metavar="DIR", help="write the reports here too")
    parser.add_argument("--update", action="store_true", help="write a new baseline instead of comparing with it")
    parser.add_argument(
        "--record", metavar="PYTHON", help="ask the small model of this Python for what is not recorded"
    )
    options = parser.parse_args(arguments)
    # The gate measures the engine, not whatever endpoint the person who runs it has configured.
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"):
        os.environ.pop(name, None)
    from shiguan.errors import ShiguanError
    from shiguan.stores.embedded.shards import close_all_shards

    try:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shiguan-gate-")))
            library = prepare(folder)
            stack.callback(close_all_shards)  # before their folder is removed
            if options.record:
                record(library, options.record)
                options.update = True
                codes = recorded_gate(RECORDED_MODES, library, options)
                return max(codes.values())
            # First, before the process remembers the vectors of questions.
            codes = recorded_gate(options.modes, library, options)
            codes |= {mode: gate(mode, library, options) for mode in options.modes if mode in MODES}
            codes["readers"] = readers_gate(library)
            codes["claims"] = claims_gate(library)
            codes["pairs"] = pairs_gate(library)
    except ShiguanError as error:
        print(f"gate: {error}", file=sys.stderr)
        return 2
    failed = ", ".join(name for name, code in codes.items() if code)
    print(f"gate: {failed} did not hold; what changed stands above." if failed else "gate: everything held.")
    return max(codes.values())


def readers_gate(library: Path) -> int:
    """
    Ask a slice of the questions with a scripted perfect reader, in `advanced` and in two wordings.

    1 if more than a few are not answered and cited right although their passage is among the first ten.
    """
    from bench.quality.readers import ReaderCase, Readers
    from bench.quality.scripted_model import ScriptedModel, serving

    from shiguan.evaluation.questions import read_golden_set

    asked = [one for one in read_golden_set(GOLDEN).questions if len(one.gold) == 1][::READERS_STEP]
    cases = [ReaderCase(one.id, "sample book", one.text, tuple((gold.quote,) for gold in one.gold)) for one in asked]
    model = ScriptedModel()
    with serving(model) as address:
        os.environ["OPENAI_BASE_URL"] = address
        try:
            readers = Readers(library, library, model)
            found = [(w, one) for w in READERS_WORDINGS for one in readers.outcomes(library, "advanced", cases, w)]
        finally:
            del os.environ["OPENAI_BASE_URL"]
    lost = [(w, one) for w, one in found if one.refused or (one.in_ten and not one.right)]
    for wording, one in lost:
        print(f"readers: {one.case.id} (rewording: {wording}): its passage was found, and it was not answered right.")
    allowed = READERS_LOSS * len(found)
    print(f"readers: {len(found)} questions, {len(lost)} lost after their passage was found (at most {allowed:.1f}).")
    return int(len(lost) > allowed)


def claims_gate(library: Path) -> int:
    """
    Ask `simple` a slice of the scripted replies of `inventor.py`, true sentences in odd forms and inventions.

    1 if a sentence is shown that is neither judged nor harmless, or if too many cited ones still stand when the
    passages that they cite are taken away.
    """
    from bench.quality.inventor import careless, holds, inventions, measured, read_script

    script = read_script()
    cases = [*((True, one) for one in inventions(script)), *((False, one) for one in careless(script))]
    try:
        rows = measured("simple", library, cases[::CLAIMS_STEP]).rows()[-2:]
    finally:
        os.environ.pop("OPENAI_BASE_URL", None)
    for name, value, count, bar, low in rows:
        print(f"claims: {name}: {value:.3f} of {count} ({'at most' if low else 'at least'} {bar:g}).")
    return int(not all(count and holds(value, bar, low=low) for _, value, count, bar, low in rows))


def pairs_gate(library: Path) -> int:
    """
    Check sentences about the sample book, and the same made false by one small change, as `shiguan verify` does.

    1 if a false one is supported or a true one contradicted. How many retellings are found is shown and has its bar in
    `minimal_pairs.py`, which it misses.
    """
    from bench.quality.minimal_pairs import rows_of, table, verified, written_pairs

    rows = rows_of(verified(written_pairs(None), library))
    print(f"pairs: sentences about the sample book\n{table(rows)}")
    return int(not all(row.holds for row in rows if row.at_most is not None))


def measured(questions: "QuestionSet", mode: str | Path, library: Path) -> "Results":
    """Ask a mode every question once, of the library that `prepare` made."""
    from shiguan.engine.library import Library
    from shiguan.engine.why import ExpectedPassages
    from shiguan.evaluation.measurement import Plan, measure
    from shiguan.evaluation.provenance import TENANT

    questions = placed(questions, ExpectedPassages(Library(DEPLOYMENT, data_dir=library).stores, TENANT).parents())
    folder = library.parent / "runs" / Path(mode).stem
    plan = Plan(
        "golden", questions, deployment=DEPLOYMENT, mode=mode, tenant_id=TENANT, output=folder, data_dir=library
    )
    results, _ = measure(plan)
    return results


def placed(questions: "QuestionSet", parents: "Sequence[Document]") -> "QuestionSet":
    """Judge the stored passages that hold the gold ones, so that the ranking of a golden set can be scored."""
    from shiguan.errors import RefusedError
    from shiguan.evaluation.questions import Question

    @dataclass(frozen=True)
    class PlacedQuestion(Question):
        """Names a stored passage after the gold one that it holds; one that holds two stands for both."""

        places: dict[str, str] = field(default_factory=dict)

        @property
        def grades(self) -> dict[str, float]:
            return dict.fromkeys(self.places.values(), 1.0)

        def document_of(self, passage: "Document") -> str | None:
            return self.places.get(passage.meta.get("parent_id") or passage.id)

    found: list[Question] = []
    for question in questions.questions:
        places: dict[str, str] = {}
        for gold in question.gold:
            ids = [parent.id for parent in parents if gold.stands_in(parent)]
            if not ids:
                raise RefusedError(f"No passage has a quote of the question `{question.id}`. Correct the quote.")
            name = next((places[parent] for parent in ids if parent in places), ids[0])
            places |= dict.fromkeys(ids, name)
        found.append(PlacedQuestion(**vars(question), places=places))
    return replace(questions, questions=found)


def gate(mode: str, library: Path, options: argparse.Namespace) -> int:
    """Measure one mode; write its baseline, or say what changed."""
    from bench.quality.comparison import GATES

    from shiguan.evaluation.questions import read_golden_set

    return held(measured(read_golden_set(GOLDEN), mode, library), mode, GATES, options)


def held(now: "Results", name: str, gates: dict[str, float], options: argparse.Namespace) -> int:
    """Write a run as the baseline of this name, or compare the two on the questions that both have."""
    from bench.quality.comparison import compare_results, comparison_report, comparison_table, write_comparison

    from shiguan.evaluation.report import run_report, write_report
    from shiguan.evaluation.results import Results, read_results
    from shiguan.evaluation.tables import Section, print_report

    if options.output is not None:
        (options.output / name).mkdir(parents=True, exist_ok=True)
        write_report(run_report(now), options.output / name / "report")
    path = BASELINE / f"{name}.json"
    if options.update:
        write_baseline(replace(now, questions=untimed(now)), path)
        print(f"Wrote {path.relative_to(ROOT)}.")
        return 0
    # Latency is the machine's: another machine's baseline says nothing about this one's.
    kept = {question.id for question in now.questions} if name.startswith("recorded-") else None
    before, after = (Results(run.kind, run.run, untimed(run, kept)) for run in (read_results(path), now))
    comparison = compare_results(before, after, gates)
    table = Section(f"{name} against the baseline of {before.run.get('commit')}", table=comparison_table(comparison))
    print_report(replace(comparison_report(comparison), title="", subtitle="", sections=[table]))
    print(flush=True)
    if options.output is not None:
        write_comparison(comparison, options.output / name)
    changed = other_answers(before, after) if name.startswith("recorded-") else []
    for question in changed:
        print(f"{name}: {question}: the same replies make another answer. If it is meant, `make record` keeps it.")
    return 1 if comparison.breaches or len(changed) > MOST_LEFT_OUT * len(after.questions) else 0


def other_answers(before: "Results", after: "Results") -> list[str]:
    """Name the questions whose answer is another one, refused or marked otherwise; the model's replies are the same."""
    old = {question.id: question.details["answer"] for question in before.questions}
    return [question.id for question in after.questions if question.details["answer"] != old[question.id]]


def recorded_plan(mode: str | Path, library: Path, ids: Sequence[str] = RECORDED) -> "Plan":
    """Ask a mode the recorded questions."""
    from shiguan.evaluation.measurement import Plan
    from shiguan.evaluation.provenance import TENANT
    from shiguan.evaluation.questions import read_golden_set

    questions = read_golden_set(GOLDEN).only(ids)
    return Plan(
        "answers", questions, deployment=DEPLOYMENT, mode=mode, tenant_id=TENANT, data_dir=library, asked=dict(READ)
    )


def record(library: Path, python: str) -> None:
    """Ask the small model for every reply that the recording lacks."""
    from bench.quality.recording import RecordedModel
    from bench.quality.small_model import MODEL, small_model

    with small_model(python) as url:
        os.environ |= {"OPENAI_BASE_URL": url, "OPENAI_MODEL": MODEL}
        try:
            with by_words_alone(), RecordedModel(RECORDING, asks=True, longest=REPLY_TOKENS) as model:
                model.record([recorded_plan(mode, library) for mode in RECORDED_MODES])
        finally:
            del os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_MODEL"]
    print(f"{RECORDING.relative_to(ROOT)} has {len(model.replies)} replies.")


@contextmanager
def by_words_alone() -> Iterator[None]:
    """Take the embedder away: its last digits are the processor's, and verdicts, retries and prompts follow them."""
    from shiguan.models import engine
    from shiguan.models.weights import PACKAGE

    before = {PACKAGE: sys.modules[PACKAGE]} if PACKAGE in sys.modules else {}
    sys.modules[PACKAGE] = None  # type: ignore[assignment]  # how Python is told that a package is not there
    engine._load.cache_clear()
    try:
        yield
    finally:
        del sys.modules[PACKAGE]
        sys.modules |= before
        engine._load.cache_clear()


def recorded_gate(modes: Sequence[str], library: Path, options: argparse.Namespace) -> dict[str, int]:
    """Replay the recording in each mode: no prompt may have changed, and what comes of the replies is held to bars."""
    from bench.quality.recording import RecordedModel

    codes = {}
    with by_words_alone(), RecordedModel(RECORDING) as model:
        for mode in modes:
            run = model.measure(recorded_plan(mode, library, model.about["questions"]))
            name, kept = f"recorded-{mode}", [row for row in run.questions if row.id not in model.missing]
            unheld = kept and held(replace(run, questions=kept), name, RECORDED_GATES, options)
            codes[name] = max(told_missing(mode, model.missing, len(run.questions)), unheld or 0)
    return codes


def told_missing(mode: str, missing: dict[str, str], count: int) -> int:
    """Name the questions with an unrecorded prompt; 1 if one is another prompt, or too many have other passages."""
    from bench.quality.recording import CHANGED

    for name, why in missing.items():
        print(f"recorded-{mode}: unrecorded: {name}: {why}. `make record` asks the model anew.", flush=True)
    return 1 if CHANGED in missing.values() or len(missing) > MOST_LEFT_OUT * count else 0


def untimed(run: "Results", kept: set[str] | None = None) -> "list[QuestionResult]":
    """Leave the times out of a run, and all questions but those that are kept."""
    return [
        replace(one, metrics={name: value for name, value in one.metrics.items() if name != "latency_ms"})
        for one in run.questions
        if kept is None or one.id in kept
    ]


def write_baseline(run: "Results", path: Path) -> None:
    """Keep what a later run is compared with, a line per question so that a merge request shows which ones moved."""
    whole = run.to_json()
    questions = []
    for row in whole.pop("questions"):
        row["details"] = {key: row["details"][key] for key in ("question", "answer")}
        kept = {key: row[key] for key in ("id", "metrics", "stratum", "language", "details") if key in row}
        questions.append(json.dumps(kept, ensure_ascii=False))
    whole = {key: whole[key] for key in ("format", "kind", "run", "metrics")}
    head = json.dumps(whole, ensure_ascii=False, indent=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(f"  {question}" for question in questions)
    path.write_text(f'{head.removesuffix("}").rstrip()},\n "questions": [\n{lines}\n ]\n}}\n', encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
