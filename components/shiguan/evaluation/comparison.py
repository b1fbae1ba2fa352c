"""Compares two runs on the same questions, metric by metric."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from shiguan.errors import RefusedError
from shiguan.evaluation.gates import breach
from shiguan.evaluation.metric import metric
from shiguan.evaluation.paired import Difference, compare_metric
from shiguan.evaluation.results import Results

_SHOWN = 3


@dataclass(frozen=True)
class Comparison:
    """What run B does to run A."""

    differences: list[Difference]
    gates: dict[str, float]
    breaches: list[str]
    notes: list[str]

    def to_json(self) -> dict[str, Any]:
        """Write the comparison as JSON knows it."""
        return {
            "differences": [
                {
                    **{k: round(v, 6) if isinstance(v, float) else v for k, v in asdict(difference).items()},
                    "verdict": difference.verdict,
                    "gated": difference.metric in self.gates,
                }
                for difference in self.differences
            ],
            "gates": self.gates,
            "breaches": self.breaches,
            "notes": self.notes,
        }


def compare_results(before: Results, after: Results, gates: Mapping[str, float], *, seed: int = 0) -> Comparison:
    """Compare two runs question by question."""
    _check_same_questions(before, after)
    notes = _notes(before, after)
    differences, breaches = [], []
    for name in before.metrics:
        old, new = before.values(name), after.values(name)
        both = [question_id for question_id in old if question_id in new]
        if not both:
            if name in gates:
                breaches.append(f"{metric(name).label} is no longer measured: no question of run B has it")
            continue
        if len(both) < max(len(old), len(new)):
            notes.append(
                f"{metric(name).label} is compared on the {len(both):,} questions where both runs have it "
                f"(A {len(old):,}, B {len(new):,})."
            )
        difference = compare_metric(
            name,
            [old[question_id] for question_id in both],
            [new[question_id] for question_id in both],
            higher_is_better=metric(name).higher_is_better,
            seed=seed,
        )
        differences.append(difference)
        why = breach(difference, gates[name]) if name in gates else None
        if why:
            breaches.append(why)
    if not differences and not breaches:
        raise RefusedError("The two runs have no metric in common. Measure both with the same version.")
    differences += _costs(before, after, seed)
    return Comparison(differences, {name: t for name, t in gates.items() if name in before.metrics}, breaches, notes)


def _check_same_questions(before: Results, after: Results) -> None:
    if before.kind != after.kind:
        raise RefusedError(
            f"One run is of {before.kind}, the other of {after.kind}. Compare two runs of the same `shiguan eval` "
            "command."
        )
    old, new = ({question.id: question for question in run.questions} for run in (before, after))
    if len(old) != len(before.questions) or len(new) != len(after.questions):
        raise RefusedError("A run has the same question twice. Measure again.")
    only = [question_id for question_id in old if question_id not in new]
    more = [question_id for question_id in new if question_id not in old]
    if only or more:
        examples = ", ".join([*only[:_SHOWN], *more[:_SHOWN]])
        raise RefusedError(
            f"The two runs are on different questions: {len(only):,} are only in A, {len(more):,} only in B "
            f"({examples}). Only the same questions can be paired: measure both runs on one set."
        )
    changed = [key for key in old if old[key].details.get("question") != new[key].details.get("question")]
    if changed:
        raise RefusedError(
            f"{len(changed):,} questions have the same id and another text ({', '.join(changed[:_SHOWN])}). Measure "
            "both runs on one set."
        )


def _notes(before: Results, after: Results) -> list[str]:
    notes = []
    for name, what in (("data", "the files measured on"), ("machine", "the machine"), ("llm", "the language model")):
        if before.run.get(name) != after.run.get(name):
            notes.append(f"The runs differ in {what}, not only in what was changed.")
    return notes


def _costs(before: Results, after: Results, seed: int) -> list[Difference]:
    old, new = ({question.id: question for question in run.questions} for run in (before, after))
    timed = [key for key in old if "total" in old[key].timings_ms and "total" in new[key].timings_ms]
    costs = []
    if timed:
        latencies = ([run[key].timings_ms["total"] for key in timed] for run in (old, new))
        costs.append(compare_metric("latency_ms", *latencies, higher_is_better=False, seed=seed))
    calls = ([float(run[key].llm_calls) for key in old] for run in (old, new))
    costs.append(compare_metric("llm_calls", *calls, higher_is_better=False, seed=seed))
    return costs
