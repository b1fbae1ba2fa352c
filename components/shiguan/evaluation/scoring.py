"""
Scores the records of a run by what was measured, prices them, and draws how often an answer is wrong.

A system that may refuse is not one number: whoever wants fewer wrong answers pays with more refusals. Sorted by
confidence, the first answers make up the low-coverage end of the curve, and its height is the share of wrong ones
among them (El-Yaniv and Wiener, "On the Foundations of Noise-free Selective Classification", 2010; the area under the
curve as in Geifman et al., "Bias-Reduced Uncertainty Estimation for Deep Neural Classifiers", 2019, section 2).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import yaml
from pydantic import BaseModel, Field, TypeAdapter

from shiguan.errors import RefusedError
from shiguan.evaluation.answer_metrics import is_right, score_answer
from shiguan.evaluation.attribution import lost_section
from shiguan.evaluation.questions import Question
from shiguan.evaluation.results import QuestionResult
from shiguan.evaluation.retrieval_metrics import context_metrics, ranking_metrics

_FOUND_SHOWN = 5
_PER = 1_000_000


class Price(BaseModel):
    """What a million tokens cost that a model reads and writes."""

    input: Annotated[float, Field(ge=0, strict=True)]
    output: Annotated[float, Field(ge=0, strict=True)]


def read_prices(path: Path) -> dict[str, Price]:
    """Read a price table: YAML of `model: {input: 0.4, output: 1.6}`, per million tokens in one currency."""
    try:
        return TypeAdapter(dict[str, Price]).validate_python(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise RefusedError(
            f"{path} cannot be read as prices: {error}. Expected `model: {{input: 0.4, output: 1.6}}`, per million "
            "tokens. Correct the path or the file."
        ) from error


def cost_of(prices: Mapping[str, Price], model: str, usage: dict[str, Any], calls: int) -> float | None:
    """Price the calls of one question; None where model or tokens are not known: that is no cost of zero."""
    if not calls:
        return 0.0
    price, read, written = prices.get(model), usage.get("prompt_tokens"), usage.get("completion_tokens")
    if price is None or not isinstance(read, int) or not isinstance(written, int) or not read + written:
        return None
    return (read * price.input + written * price.output) / _PER


def score_records(
    kind: str, questions: Iterable[Question], records: dict[str, dict[str, Any]], prices: dict[str, Price] | None
) -> tuple[list[QuestionResult], dict[str, Any]]:
    """Score what `MeasuredMode.ask` recorded: a result per question in their order, and sections for the report."""
    results = []
    sure: list[tuple[float, bool]] = []
    for question in questions:
        record = records.get(question.id)
        if record is None:
            raise RefusedError(f"The question `{question.id}` was never asked. Run the same command again to go on.")
        metrics: dict[str, float] = {}
        details: dict[str, Any] = {"question": question.text}
        if kind != "answers":
            metrics |= _ranking(question, record)
        if kind == "golden":
            metrics["tenant_kept"] = float(record["kept"])
        if kind == "retrieval":
            details["gold"] = sorted(question.gold_documents)
            details["found"] = [record_id for record_id, _ in record["found"][:_FOUND_SHOWN]]
        else:
            metrics |= score_answer(question, record)
            right = is_right(question, record)
            details |= {
                "answer": record["answer"],
                "status": record["status"],
                "gold": question.answers or [passage.quote for passage in question.gold],
                "confidence": record["confidence"],
                "right": right,
            }
            if right is not None:
                sure.append((record["confidence"], right))
        if kind == "answers":
            metrics |= {"latency_ms": record["timings_ms"].get("total", 0.0), "llm_calls": float(record["llm_calls"])}
            cost = cost_of(prices or {}, record["model"], record["usage"], record["llm_calls"])
            metrics |= {} if cost is None or prices is None else {"cost": cost}
        details |= {name: record[name] for name in ("lost", "warnings") if record[name]}
        took = record["timings_ms"], record["llm_calls"]
        results.append(QuestionResult(question.id, metrics, question.stratum, question.language, *took, details))
    sections = risk_section(sure, refused=len(results) - len(sure)) if kind != "retrieval" else {}
    lost = [result.details["lost"]["stage"] for result in results if "lost" in result.details]
    return results, {**sections, **lost_section(lost)}


def _ranking(question: Question, record: dict[str, Any]) -> dict[str, float]:
    """Score what was found and read; a question of which no document is judged has no ranking."""
    judged = replace(question, grades=dict.fromkeys(record["judged"], 1.0)) if record["judged"] else question
    if not judged.grades:
        return {}
    metrics = ranking_metrics(judged, [name for _, name in record["found"]])
    if record["read"] is not None:
        metrics |= context_metrics(judged, [name for _, name in record["read"]], record["tokens"])
    return metrics


class RiskPoint(NamedTuple):
    """What happens if every answer of at least some confidence is given, and no other."""

    confidence: float
    coverage: float
    risk: float


class RiskCurve(NamedTuple):
    """The whole curve, and the mean of its risk."""

    points: list[RiskPoint]
    area: float


def risk_curve(answers: Sequence[tuple[float, bool]], *, refused: int = 0) -> RiskCurve:
    total = len(answers) + refused
    points: list[RiskPoint] = []
    given = wrong = 0
    area = 0.0
    for confidence, group in groupby(sorted(answers, key=lambda one: -one[0]), key=lambda one: one[0]):
        members = [right for _, right in group]
        given += len(members)
        wrong += members.count(False)
        points.append(RiskPoint(confidence, given / total, wrong / given))
        # Equal confidences cannot be told apart, so each of them bears the risk of all.
        area += len(members) * wrong / given
    return RiskCurve(points, area / given if given else 0.0)


def curve_table(curve: RiskCurve, steps: int = 10) -> list[RiskPoint]:
    """Thin the curve out for a table: what coverage, risk and confidence are at even steps, and at the end."""
    shown: list[RiskPoint] = []
    for step in range(1, steps + 1):
        shown += [point for point in curve.points if point.coverage >= step / steps - 1e-9][:1]
    if curve.points and (not shown or round(shown[-1].coverage, 4) < round(curve.points[-1].coverage, 4)):
        shown.append(curve.points[-1])
    return shown


def risk_section(answers: Sequence[tuple[float, bool]], *, refused: int) -> dict[str, Any]:
    """Write the curve of what would be wrong if only the surest answers were given, for `Results.sections`."""
    curve = risk_curve(answers, refused=refused)
    if not curve.points:
        return {}
    section = {
        "text": "What share of the answers would be wrong if only the surest were given. The confidence is the mode's "
        f"own probability that the passages answer. Mean risk {curve.area:.3f}.",
        "curve": [[point.coverage, point.risk] for point in curve.points],
        "columns": [">coverage", ">risk", ">confidence at least"],
        "rows": [[f"{p.coverage:.2f}", f"{p.risk:.3f}", f"{p.confidence:.3f}"] for p in curve_table(curve)],
    }
    return {"Risk over coverage": section}
