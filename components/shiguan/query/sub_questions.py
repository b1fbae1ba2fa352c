"""The plan of a question that is taken apart: its parts, which of them need which, and how they are written."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from shiguan.llm.json_replies import json_object
from shiguan.text.questions import cleaned_question, folded

FEWEST, MOST = 2, 4
"""A plan has at least and at most so many sub-questions."""

_LONGEST = 400
_PLACEHOLDER = re.compile(r"\{\s*(\d{1,2})\s*\}")


@dataclass(frozen=True)
class SubQuestion:
    """One part of a question; `{1}` in its text stands for what the answer to number 1 comes down to."""

    number: int
    text: str
    needs: tuple[int, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {**asdict(self), "needs": list(self.needs)}


def read_plan(reply: str, question: str) -> list[SubQuestion]:
    """
    Read `{"questions": [{"text": "…", "needs": [1]}]}`, and mend what can be mended.

    What is not a question, is the whole question or stands there twice is left out, and so is every need for it. A
    placeholder is a need. Fewer than two parts are not a plan.
    """
    entries = (json_object(reply, "questions") or {}).get("questions")
    kept: dict[int, tuple[str, set[int]]] = {}
    seen = {folded(question)}
    for place, entry in enumerate(entries if isinstance(entries, list) else [], start=1):
        text, needs = (entry.get("text"), entry.get("needs")) if isinstance(entry, dict) else (entry, None)
        line = cleaned_question(text) if isinstance(text, str) else ""
        if line and len(line) <= _LONGEST and folded(line) not in seen and len(kept) < MOST:
            seen.add(folded(line))
            kept[place] = (line, _numbers(needs) | {int(number) for number in _PLACEHOLDER.findall(line)})
    places = {old: new for new, old in enumerate(kept, start=1)}
    if len(kept) < FEWEST:
        return []
    return [
        SubQuestion(
            places[old],
            _PLACEHOLDER.sub(lambda match: f"{{{places[int(match[1])]}}}" if int(match[1]) in places else "", text),
            tuple(sorted(places[number] for number in needs & places.keys() - {old})),
        )
        for old, (text, needs) in kept.items()
    ]


def plan_of(given: Sequence[Mapping[str, Any]]) -> list[SubQuestion]:
    """Take a plan as it came through a socket."""
    return [SubQuestion(one["number"], one["text"], tuple(one["needs"])) for one in given]


def levels(plan: Sequence[SubQuestion]) -> tuple[list[list[SubQuestion]], list[int]]:
    """
    Order a plan so that each level needs only what came before; those of a level stand side by side.

    Where needs go round in a circle, those in it lose what they need of each other; their numbers come second.
    """
    waiting, done, ordered = list(plan), set[int](), list[list[SubQuestion]]()
    while waiting:
        ready = [one for one in waiting if done.issuperset(one.needs)]
        if not ready:
            loose = [replace(one, needs=tuple(n for n in one.needs if n in done)) for one in waiting]
            return [*ordered, loose], [one.number for one in waiting]
        ordered.append(ready)
        done |= {one.number for one in ready}
        waiting = [one for one in waiting if one.number not in done]
    return ordered, []


def filled(sub: SubQuestion, plan: Sequence[SubQuestion], keys: Mapping[int, str]) -> str:
    """Put what is known in the place of placeholders; where it is not known, what was asked for."""
    asked = {one.number: _PLACEHOLDER.sub("", one.text).rstrip("?？ ") for one in plan}

    def known(match: re.Match[str]) -> str:
        number = int(match[1])
        return keys.get(number) or (f"({asked[number]})" if number in asked else "")

    return " ".join(_PLACEHOLDER.sub(known, sub.text).split())


def _numbers(needs: Any) -> set[int]:
    listed = needs if isinstance(needs, list) else [needs]
    return {number for number in listed if isinstance(number, int) and not isinstance(number, bool)}
