"""Reads what a language model wrote for a golden set, and throws out what cannot be right."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from shiguan.evaluation.answer_matching import contains_answer
from shiguan.evaluation.expected_passage import folded
from shiguan.llm.json_replies import json_object

UNANSWERABLE = "unanswerable"
TYPES = (
    "fact", "person", "time", "place", "number", "reason", "manner", "definition", "comparison", "list", "quote",
    UNANSWERABLE,
)  # fmt: skip
"""The kinds of question that are asked for."""

_SHORTEST, _LONGEST, _LONGEST_ANSWER = 4, 300, 300
_QUOTES = "“”\"'… "
_EDGE_BEFORE, _EDGE_AFTER = r"(?<![A-Za-z0-9])", r"(?![A-Za-z0-9])"


@dataclass(frozen=True)
class MadeQuestions:
    """
    The questions that a reply gave.

    :param rows: `type`, `question`, `answer` and `quote` of those that hold; answer and quote as the passage has them.
    :param faults: What was wrong with the others, by kind, and how often.
    """

    rows: list[dict[str, str]] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)


def read_questions(reply: str, passage: str) -> MadeQuestions:
    """
    Read the questions of a reply and hold each against its passage.

    An answerable question must have an answer that stands in the passage and not in the question. Its quote is the
    passage's sentence; where the model quoted badly, the answer itself stands for it. One that nothing answers must
    come without an answer.

    :param reply: The model's text.
    :param passage: The passage that it was given.
    :returns: What holds, and the faults: `nonsense` (no questions in the reply at all), `malformed`, `unknown type`,
        `answer not in the passage`, `answer in the question`, `unanswerable with an answer`.
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
    """
    Read the verdicts of a judge.

    :param reply: The model's text.
    :param count: How many questions it was given.
    :returns: For each question `accept` or `reject`, None where the judge said neither.
    """
    verdicts: list[str | None] = [None] * count
    found = json_object(reply, "verdicts")
    items = found.get("verdicts") if found else None
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, dict):
            continue
        number, verdict = item.get("id"), str(item.get("verdict", "")).strip().lower()
        if isinstance(number, int) and 1 <= number <= count and verdict in ("accept", "reject"):
            verdicts[number - 1] = verdict
    return verdicts


def cohens_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """
    Give the agreement of two judges beyond chance (Cohen, "A Coefficient of Agreement for Nominal Scales", 1960).

    :param pairs: The two verdicts on each case.
    :returns: 1 for full agreement, 0 for no more than chance; None without cases, or where both gave one and the same
        verdict throughout, for then chance alone explains everything.
    """
    if not pairs:
        return None
    total = len(pairs)
    observed = sum(first == second for first, second in pairs) / total
    firsts, seconds = Counter(first for first, _ in pairs), Counter(second for _, second in pairs)
    chance = sum(firsts[name] * seconds[name] for name in firsts) / total**2
    return None if chance == 1 else (observed - chance) / (1 - chance)


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
