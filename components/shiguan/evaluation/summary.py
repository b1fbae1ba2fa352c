"""What every kind of report says about a run, before it is written as a page, as Markdown or on a terminal."""

import statistics
from collections.abc import Sequence
from typing import Any

from shiguan.evaluation.intervals import Estimate
from shiguan.evaluation.metric import metric
from shiguan.evaluation.results import QuestionResult, Results

SHOWN = 20
"""How many of the worst questions are listed."""

_HEADLINE = (
    "recall@5",
    "ndcg@10",
    "context_recall",
    "exact_match",
    "token_f1",
    "citation_precision",
    "citation_recall",
)
_GROUP_COLUMNS = (
    "recall@5",
    "recall@10",
    "ndcg@10",
    "context_recall",
    "token_f1",
    "citation_precision",
    "false_refusal",
)
_WORST_BY = ("contains_answer", "token_f1", "recall@10")


def title_of(results: Results) -> str:
    """Name a run."""
    run = results.run
    kind = "Ranking and answers" if results.kind == "golden" else results.kind.capitalize()
    return f"{kind} of {run['mode']} ({run['deployment']})"


def subtitle_of(results: Results) -> str:
    """Say on what and with what a run was made, in a line."""
    run = results.run
    parts = [
        f"{len(results.questions):,} questions",
        run.get("set") or ", ".join(run.get("data", {})),
        f"answers by {run['llm']['model']}" if results.kind == "answers" else "",
        f"commit {run['commit'][:10]}{'+changes' if '+' in run['commit'] else ''}" if run.get("commit") else "",
        str(run.get("finished", ""))[:10],
    ]
    return " · ".join(part for part in parts if part)


def shares(results: Results) -> dict[str, Estimate]:
    """Give the metrics that are shares, by their labels."""
    return {metric(name).label: e for name, e in results.estimates().items() if metric(name).unit == "share"}


def latencies(results: Results) -> dict[str, tuple[float, float]]:
    """Say how long the stages take."""
    stages: dict[str, list[float]] = {}
    for question in results.questions:
        for stage, value in question.timings_ms.items():
            stages.setdefault(stage, []).append(value)
    total = stages.pop("total", None)
    ordered = {**stages, **({"total": total} if total else {})}
    return {stage: (statistics.median(values), percentile(values, 0.95)) for stage, values in ordered.items()}


def percentile(values: Sequence[float], share: float) -> float:
    """Give the value that a share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def figures(results: Results) -> list[dict[str, str]]:
    """Choose the few numbers that stand at the top."""
    estimates = results.estimates()
    shown = [
        {
            "label": metric(name).label,
            "value": metric(name).format(estimates[name].value),
            "note": f"{estimates[name].low:.3f} to {estimates[name].high:.3f}",
        }
        for name in _HEADLINE
        if name in estimates
    ][:5]
    total = latencies(results).get("total")
    if total:
        shown.append({"label": "Latency", "value": f"{total[0]:,.0f} ms", "note": f"p95 {total[1]:,.0f} ms"})
    calls = [question.llm_calls for question in results.questions]
    shown.append({"label": "LLM calls", "value": f"{statistics.mean(calls):.1f}", "note": f"at most {max(calls)}"})
    if "context_tokens" in estimates:
        tokens = estimates["context_tokens"]
        shown.append({"label": "Context", "value": f"{tokens.value:,.0f}", "note": "tokens per question"})
    return shown


def groups(results: Results) -> dict[str, Any] | None:
    """Tabulate the groups of questions."""
    strata = results.strata()
    names = [name for name in _GROUP_COLUMNS if name in results.metrics]
    if not strata or not names:
        return None
    rows = []
    for group, questions in strata.items():
        estimates = results.estimates(questions)
        cells = [
            (metric(name).format(e.value), f"{e.low:.3f} to {e.high:.3f}") if (e := estimates.get(name)) else "none"
            for name in names
        ]
        rows.append([group, f"{len(questions):,}", *cells])
    return {"columns": ["group", ">questions", *(f">{metric(name).label}" for name in names)], "rows": rows}


def worst(results: Results) -> tuple[str, list[QuestionResult]]:
    """Find the questions that went wrong."""
    name = next((name for name in _WORST_BY if name in results.metrics), "")
    wrong = [question for question in results.questions if question.metrics.get(name, 1.0) < 1.0]
    return name, sorted(wrong, key=lambda question: question.metrics[name])


def facts(results: Results) -> list[tuple[str, str]]:
    """List what is needed to repeat a run."""
    run = results.run
    lines = [
        ("commit", run.get("commit") or "unknown"),
        ("code", run.get("code", "")),
        *((f"pipeline {name}", value) for name, value in run.get("pipelines", {}).items()),
        ("prompts", run.get("prompts", {}).get("all", "")),
        *((f"model of {place}", name) for place, name in run.get("models", {}).items()),
        ("answers by", ", ".join(str(value) for value in run.get("llm", {}).values())),
        *((f"data {name}", value) for name, value in run.get("data", {}).items()),
        ("options", ", ".join(f"{name} {value}" for name, value in run.get("options", {}).items())),
        ("seed", str(run.get("seed", ""))),
        ("versions", ", ".join(f"{name} {value}" for name, value in run.get("versions", {}).items())),
        ("machine", ", ".join(f"{name} {value}" for name, value in run.get("machine", {}).items())),
        ("finished", run.get("finished", "")),
        *(("note", note) for note in run.get("notes", [])[:SHOWN]),
    ]
    return [(name, value) for name, value in lines if value]
