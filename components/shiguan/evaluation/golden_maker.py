"""Makes a golden set from an ingested library with a language model; a person reviews one question in ten."""

import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from haystack import Document
from haystack.components.generators.chat.types import ChatGenerator

from shiguan.engine.why import folded
from shiguan.errors import RefusedError
from shiguan.evaluation.json_lines import read_json_lines, write_json_lines, write_review
from shiguan.evaluation.results import RunStore
from shiguan.evaluation.scoring import contains_answer
from shiguan.llm.calls import LlmReply, ask_llm
from shiguan.llm.json_replies import json_object
from shiguan.llm.prompts import render_prompt
from shiguan.llm.source_blocks import render_sources
from shiguan.reading.text import read_text
from shiguan.text.passages import similarity

UNANSWERABLE = "unanswerable"
TYPES = "fact person time place number reason manner definition comparison list quote".split()
PER_PASSAGE = 3
GOLDEN_FILE, REJECTED_FILE, REVIEW_FILE = "golden.jsonl", "rejected.jsonl", "review.jsonl"
MOST_FRUITLESS = 10
"""The model is no longer asked after this many passages in a row without an accepted question."""

_SEED = 0  # the same library gives the same set
_VERDICTS = ("accept", "reject")
_UNANSWERABLE_SHARE = 0.5  # of the passages get an unanswerable question
_SAME = 0.6  # questions at least this similar count as the same
_SHORTEST_PASSAGE = 80
_FIELDS = ("type", "question", "answer", "quote")
_SHORTEST, _LONGEST = 4, 300

Track = Callable[[list[Document]], Iterable[Document]]


@dataclass
class MadeSet:
    """The questions of a run by the judge's verdict, and how many were asked for and could not be used."""

    accepted: list[dict[str, Any]] = field(default_factory=list)
    rejected: list[dict[str, Any]] = field(default_factory=list)
    left_out: int = 0
    passages: int = 0
    llm_calls: int = 0

    @property
    def verdicts(self) -> dict[str, str]:
        return {row["id"]: row["judge"] for row in [*self.accepted, *self.rejected]}

    def add(self, parent_id: str, record: dict[str, Any]) -> int:
        """Add the questions of a passage that are not nearly asked yet, and return how many the judge accepted."""
        self.passages += 1
        self.llm_calls += record["llm_calls"]
        self.left_out += PER_PASSAGE - len(record["rows"])
        before = len(self.accepted)
        for place, row in enumerate(record["rows"], start=1):
            runs = read_text(row["question"]).shingles
            others = (read_text(one["question"]).shingles for one in [*self.accepted, *self.rejected])
            if any(similarity(runs, other) >= _SAME for other in others):
                self.left_out += 1
                continue
            whole = {"id": f"{parent_id[:12]}-{place}", "answerable": row["type"] != UNANSWERABLE}
            whole |= {key: row[key] for key in ("question", "language", "type", "judge")}
            if whole["answerable"]:
                whole |= {"answers": [row["answer"]], "gold": [{"source": row["source"], "quote": row["quote"]}]}
            (self.accepted if row["judge"] == "accept" else self.rejected).append(whole)
        return len(self.accepted) - before


def make_questions(
    generator: ChatGenerator, parents: Sequence[Document], count: int, store: RunStore, track: Track
) -> MadeSet:
    """Ask for questions passage by passage; those of one are saved before the next is read."""
    chosen = sorted((p for p in parents if len(p.content or "") >= _SHORTEST_PASSAGE), key=lambda parent: parent.id)
    random.Random(_SEED).shuffle(chosen)  # noqa: S311
    made, fruitless = MadeSet(), 0
    for parent in track(chosen):
        if len(made.accepted) >= count or fruitless == MOST_FRUITLESS:
            break
        if is_new := parent.id not in store.records:
            store.add(parent.id, _questions_of(parent, generator))
        accepted = made.add(parent.id, store.records[parent.id])
        fruitless = fruitless + 1 if is_new and not accepted else 0
    del made.accepted[count:]
    return made


def _questions_of(parent: Document, generator: ChatGenerator) -> dict[str, Any]:
    """Have one call write the questions of a passage and, where they fit it, another judge them."""
    passage = parent.content or ""
    language = read_text(passage).language
    context = render_sources([Document(content=passage, meta={"number": 1, "title": parent.meta.get("title")})])

    def asked(prompt: str, **more: Any) -> LlmReply:
        return ask_llm(generator, render_prompt(prompt, context=context, language=language, **more))

    draw = random.Random(f"{_SEED} {parent.id}")  # noqa: S311
    types = draw.sample(TYPES, PER_PASSAGE)
    if draw.random() < _UNANSWERABLE_SHARE:
        types[-1] = UNANSWERABLE
    rows = read_questions(asked("golden_maker", types=types).text, passage)
    if rows:
        questions = [{"question": row["question"], "answer": row["answer"]} for row in rows]
        verdicts = read_judgements(asked("golden_judge", questions=questions).text, len(rows))
        source = parent.meta.get("record_id") or parent.meta.get("source", "")
        for row, verdict in zip(rows, verdicts, strict=True):
            row |= {"judge": verdict, "source": source, "language": language}
    return {"rows": rows, "llm_calls": 2 if rows else 1}


def read_questions(reply: str, passage: str) -> list[dict[str, Any]]:
    """Read the questions of a reply that can be used: their answers are in the passage, as they are written there."""
    items = (json_object(reply, "questions") or {}).get("questions")
    rows = []
    for item in items[:PER_PASSAGE] if isinstance(items, list) else ():
        given = [item.get(name) or "" if isinstance(item, dict) else None for name in _FIELDS]
        words = [" ".join(value.split()) for value in given if isinstance(value, str)]
        row = dict(zip(_FIELDS, words, strict=False))
        if len(row) == len(_FIELDS) and _SHORTEST <= len(row["question"]) <= _LONGEST and _is_usable(row, passage):
            rows.append(row)
    return rows


def _is_usable(row: dict[str, str], passage: str) -> bool:
    row["type"] = row["type"].lower()
    if row["type"] == UNANSWERABLE:
        return not row["answer"]
    answer, quote = _as_written(row["answer"], passage), _as_written(row["quote"], passage)
    row |= {"answer": answer, "quote": quote if folded(answer) in folded(quote) else answer}
    return row["type"] in TYPES and 0 < len(answer) <= _LONGEST and not contains_answer(row["question"], [answer])


def _as_written(text: str, passage: str) -> str:
    """Find words in a passage, whatever their case and white space, and return them as they are written there."""
    words = text.strip("“”\"'… ").split()
    pattern = r"\s*".join(map(re.escape, words))
    # `11 men` is not in `111 men`; only letters and digits of ASCII have such edges.
    found = re.search(rf"(?a:(?<!\w)(?=\w)|(?!\w)){pattern}(?a:(?<=\w)(?!\w)|(?<!\w))", passage, re.IGNORECASE)
    return found[0] if words and found else ""


def read_judgements(reply: str, count: int) -> list[str]:
    """Read the verdict on each question: `accept`, `reject`, or `none` where the reply has neither."""
    verdicts = ["none"] * count
    items = (json_object(reply, "verdicts") or {}).get("verdicts")
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, dict):
            continue
        number, verdict = item.get("id"), str(item.get("verdict", "")).strip().lower()
        if isinstance(number, int) and 1 <= number <= count and verdict in _VERDICTS:
            verdicts[number - 1] = verdict
    return verdicts


def write_made_set(made: MadeSet, folder: Path) -> None:
    """Write the set and what was rejected and, unless it exists, the review file, without the judge's verdicts."""

    def unjudged(row: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in row.items() if name != "judge"}

    write_json_lines(folder / GOLDEN_FILE, map(unjudged, made.accepted))
    write_json_lines(folder / REJECTED_FILE, made.rejected)
    judged = sorted([*made.accepted, *made.rejected], key=lambda row: row["id"])
    write_review(folder / REVIEW_FILE, list(map(unjudged, judged)))


def judge_agreement(review: Path, judged: dict[str, str]) -> dict[str, Any]:
    """Compare the verdicts in the review file with the judge's, by id: how many there are, and the share that agree."""
    persons: dict[str, str] = {}
    for number, row in read_json_lines(review):
        name, person = str(row.get("id")), str(row.get("person") or "").strip().lower()
        if name not in judged or person not in ("", *_VERDICTS):
            raise RefusedError(
                f"{review}, line {number}: expected the id of a question of this run and accept, reject or nothing as "
                f"`person`, got `{name}` and `{person}`. Correct or remove the line."
            )
        persons[name] = person
    reviewed = [name for name, person in persons.items() if person]
    differing = [name for name in reviewed if persons[name] != judged[name]]
    return {
        "reviewed": len(reviewed),
        "open": len(persons) - len(reviewed),
        "agreement": 1 - len(differing) / len(reviewed) if reviewed else None,
        "disagreements": differing,
    }
