"""Compares the judge of a golden set with the person who reviewed a part of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shiguan.errors import RefusedError
from shiguan.evaluation.golden_replies import cohens_kappa
from shiguan.evaluation.json_lines import field_of, read_json_lines

_VERDICTS = ("accept", "reject")


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
        person = _verdict(row, place)
        if not person:
            left += 1
        elif judged[name] not in _VERDICTS:
            silent += 1
        else:
            pairs.append((judged[name], person))
            if judged[name] != person:
                different.append(name)
    agreement = sum(first == second for first, second in pairs) / len(pairs) if pairs else None
    return JudgeAgreement(len(pairs) + silent, left, silent, agreement, cohens_kappa(pairs), different)


def _verdict(row: dict[str, Any], place: str) -> str:
    person = str(row.get("person") or "").strip().lower()
    if person and person not in _VERDICTS:
        raise RefusedError(f"{place}: `person` must be accept, reject or empty, got `{person}`. Correct the line.")
    return person
