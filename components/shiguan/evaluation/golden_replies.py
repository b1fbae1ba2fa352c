"""Reads what a model wrote for a golden set, throws out what cannot be right, and what a person says of the rest."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shiguan.errors import RefusedError
from shiguan.evaluation.answer_metrics import contains_answer
from shiguan.evaluation.expected_passage import folded
from shiguan.evaluation.json_lines import field_of, read_json_lines
from shiguan.llm.json_replies import json_object

UNANSWERABLE = "unanswerable"
TYPES = (
    "fact", "person", "time", "place", "number", "reason", "manner", "definition", "comparison", "list", "quote",
    UNANSWERABLE,
)  # fmt: skip
"""The kinds of question that are asked for."""

VERDICTS = ("accept", "reject")

_SHORTEST, _LONGEST, _LONGEST_ANSWER = 4, 300, 300
_QUOTES = "“”\"'… "
_EDGE_BEFORE, _EDGE_AFTER = r"(?<![A-Za-z0-9])", r"(?![A-Za-z0-9])"


@dataclass(frozen=True)
class MadeQuestions:
    """The questions that a reply gave."""

    rows: list[dict[str, str]] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)


def read_questions(reply: str, passage: str) -> MadeQuestions:
    """
    Read the questions of a reply and hold each against its passage.

    An answerable question must have an answer that stands in the passage and not in the question. Its quote is the
    passage's sentence; where the model quoted badly, the answer itself stands for it. One that nothing answers must
    come without an answer.
    """
    made = MadeQuestions()
    found = json_object(reply, "questions")
    items = found.get("questions") if found else None
    if not isinstance(items, list) or not items:
        made.faults["nonsense"] += 1
        return made
    for item in items:
        row = _row(item)
        fault = "malformed" if row is None else _fault(row, passage)
        if row is None or fault:
            made.faults[fault] += 1
            continue
        if row["type"] != UNANSWERABLE:
            row["answer"] = _as_written(row["answer"], passage)
            quoted = _as_written(row["quote"], passage) if row["quote"] else ""
            row["quote"] = quoted if folded(row["answer"]) in folded(quoted) else row["answer"]
        made.rows.append(row)
    return made


def read_judgements(reply: str, count: int) -> list[str | None]:
    """Read the verdicts of a judge."""
    verdicts: list[str | None] = [None] * count
    found = json_object(reply, "verdicts")
    items = found.get("verdicts") if found else None
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, dict):
            continue
        number, verdict = item.get("id"), str(item.get("verdict", "")).strip().lower()
        if isinstance(number, int) and 1 <= number <= count and verdict in VERDICTS:
            verdicts[number - 1] = verdict
    return verdicts


def cohens_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Give agreement beyond chance (Cohen, "A Coefficient of Agreement for Nominal Scales", 1960); or None."""
    if not pairs:
        return None
    total = len(pairs)
    observed = sum(first == second for first, second in pairs) / total
    firsts, seconds = Counter(first for first, _ in pairs), Counter(second for _, second in pairs)
    chance = sum(firsts[name] * seconds[name] for name in firsts) / total**2
    return None if chance == 1 else (observed - chance) / (1 - chance)


@dataclass(frozen=True)
class JudgeAgreement:
    """How far a judge and a person agree."""

    reviewed: int
    open: int
    silent: int
    agreement: float | None
    kappa: float | None
    disagreements: list[str]


def judge_agreement(review: Path, judged: dict[str, str]) -> JudgeAgreement:
    """Read a review file that a person has edited."""
    pairs: list[tuple[str, str]] = []
    different, left, silent = [], 0, 0
    for number, row in read_json_lines(review):
        place = f"{review}, line {number}"
        name = str(field_of(row, ("id",), place))
        if name not in judged:
            raise RefusedError(
                f"{place}: the question `{name}` is not of this run. Remove the line, or name its folder."
            )
        person = str(row.get("person") or "").strip().lower()
        if person and person not in VERDICTS:
            raise RefusedError(f"{place}: `person` must be accept, reject or empty, got `{person}`. Correct the line.")
        if not person:
            left += 1
        elif judged[name] not in VERDICTS:
            silent += 1
        else:
            pairs.append((judged[name], person))
            if judged[name] != person:
                different.append(name)
    agreement = sum(first == second for first, second in pairs) / len(pairs) if pairs else None
    return JudgeAgreement(len(pairs) + silent, left, silent, agreement, cohens_kappa(pairs), different)


def _row(item: Any) -> dict[str, str] | None:
    if not isinstance(item, dict):
        return None
    row = {name: item.get(name) or "" for name in ("type", "question", "answer", "quote")}
    if not all(isinstance(value, str) for value in row.values()):
        return None
    row = {name: " ".join(value.split()) for name, value in row.items()}
    row["type"] = row["type"].lower()
    return row if _SHORTEST <= len(row["question"]) <= _LONGEST else None


def _fault(row: dict[str, str], passage: str) -> str:
    if row["type"] not in TYPES:
        return "unknown type"
    if row["type"] == UNANSWERABLE:
        return "unanswerable with an answer" if row["answer"] else ""
    if not row["answer"] or len(row["answer"]) > _LONGEST_ANSWER or not _as_written(row["answer"], passage):
        return "answer not in the passage"
    return "answer in the question" if contains_answer(row["question"], [row["answer"]]) else ""


def _as_written(text: str, passage: str) -> str:
    """Find words in a passage, whatever their case and white space, and give them as they stand there."""
    words = text.strip(_QUOTES).split()
    if not words:
        return ""
    pattern = r"\s*".join(re.escape(word) for word in words)
    # `11 men` is not said where `111 men` is.
    before, after = (_EDGE_BEFORE if words[0][0].isascii() else ""), (_EDGE_AFTER if words[-1][-1].isascii() else "")
    found = re.search(before + pattern + after, passage, re.IGNORECASE)
    return found[0] if found else ""
