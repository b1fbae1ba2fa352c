"""The plan of a decomposed question: its sub-questions, and which of them need which."""

import re
from collections.abc import Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Any

from shiguan.llm.json_replies import json_object
from shiguan.text.questions import cleaned_question, folded

FEWEST, MOST = 2, 4
"""The least and the most sub-questions of a plan."""

_LONGEST = 400
_PLACEHOLDER = re.compile(r"\{\s*(\d{1,2})\s*\}")


Part = dict[str, Any]
"""
A sub-question: its `number`, its `text`, and the numbers of the earlier ones that it `needs`.

`{1}` in its text stands for the key of that answer.
"""


def read_plan(reply: str, question: str) -> list[Part]:
    """Read `{"questions": [{"text": "…", "needs": [1]}]}` without repeats; fewer than two are no plan."""
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
        {
            "number": places[old],
            "text": _PLACEHOLDER.sub(
                lambda match: f"{{{places[int(match[1])]}}}" if int(match[1]) in places else "", text
            ),
            "needs": sorted(places[number] for number in needs & places.keys() if number < old),
        }
        for old, (text, needs) in kept.items()
    ]


def levels(plan: Sequence[Part]) -> Iterator[list[Part]]:
    """Order a plan in levels, each of which needs only earlier levels."""
    order = TopologicalSorter({part["number"]: part["needs"] for part in plan})
    order.prepare()
    while ready := order.get_ready():
        yield [part for part in plan if part["number"] in ready]
        order.done(*ready)


def filled(text: str, plan: Sequence[Part], keys: Mapping[int, str]) -> str:
    """Replace placeholders by the keys of answers or, where there is none, by the sub-question."""
    asked = {part["number"]: _PLACEHOLDER.sub("", part["text"]).rstrip("?？ ") for part in plan}

    def known(match: re.Match[str]) -> str:
        number = int(match[1])
        return keys.get(number) or (f"({asked[number]})" if number in asked else "")

    return " ".join(_PLACEHOLDER.sub(known, text).split())


def _numbers(needs: Any) -> set[int]:
    listed = needs if isinstance(needs, list) else [needs]
    return {number for number in listed if isinstance(number, int) and not isinstance(number, bool)}
