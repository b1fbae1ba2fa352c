"""Makes a golden set from an ingested library with a language model; a person reviews one question in ten."""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from haystack import Document
from haystack.components.generators.chat.types import ChatGenerator

from shiguan.errors import RefusedError
from shiguan.evaluation.answer_metrics import contains_answer
from shiguan.evaluation.attribution import folded
from shiguan.evaluation.json_lines import field_of, read_json_lines, write_json_lines
from shiguan.evaluation.results import RunStore
from shiguan.llm.calls import LlmReply, ask_llm
from shiguan.llm.json_replies import json_object
from shiguan.llm.prompt_rendering import render_prompt
from shiguan.llm.source_blocks import SourceBlock, render_sources
from shiguan.text.languages import detect_language
from shiguan.text.passages import shingles, similarity

UNANSWERABLE = "unanswerable"
TYPES = "fact person time place number reason manner definition comparison list quote".split()
PER_PASSAGE = 3
GOLDEN_FILE, REJECTED_FILE, REVIEW_FILE = "golden.jsonl", "rejected.jsonl", "review.jsonl"
MOST_FRUITLESS = 10
"""After so many passages in a row that gave nothing the model is not asked any more."""

_SEED = 0  # the same library gives the same set
_VERDICTS = ("accept", "reject")
_REVIEW_SHARE = 0.1  # how much of what was judged a person looks at
_UNANSWERABLE_SHARE = 0.5  # of the passages
_SAME = 0.6  # questions that are as alike as this are one
_SHORTEST_PASSAGE = 80
_FIELDS = ("type", "question", "answer", "quote")
_SHORTEST, _LONGEST = 4, 300
_QUOTES = "“”\"'… "
_EDGE_BEFORE, _EDGE_AFTER = r"(?<![A-Za-z0-9])", r"(?![A-Za-z0-9])"

Track = Callable[[list[Document]], Iterable[Document]]


class MadeSet(NamedTuple):
    """The questions of a run with the judge's verdicts, and what the model got wrong."""

    accepted: list[dict[str, Any]]
    rejected: list[dict[str, Any]]
    faults: Counter[str]
    passages: int
    llm_calls: int
    stopped: bool = False

    @property
    def verdicts(self) -> dict[str, str]:
        return {row["id"]: row["judge"] for row in [*self.accepted, *self.rejected]}


class GoldenMaker:
    """
    Asks for questions passage by passage, in two calls each: one writes them, one judges them.

    What the first wrote is compared with the passage before the second sees it. What a passage gave is on the disk
    before the next one is read.
    """

    def __init__(self, chat_generator: ChatGenerator) -> None:
        self.chat_generator = chat_generator

    def make(self, parents: Sequence[Document], count: int, store: RunStore, track: Track) -> MadeSet:
        chosen = sorted((one for one in parents if len(one.content or "") >= _SHORTEST_PASSAGE), key=lambda one: one.id)
        random.Random(_SEED).shuffle(chosen)  # noqa: S311
        made = _collected(chosen, store.records, count)
        fruitless = 0
        for parent in track(chosen):
            if len(made.accepted) >= count or fruitless == MOST_FRUITLESS:
                break
            if parent.id not in store.records:
                store.add(parent.id, self.ask(parent))
                before, made = len(made.accepted), _collected(chosen, store.records, count)
                fruitless = 0 if len(made.accepted) > before else fruitless + 1
        return made._replace(stopped=fruitless == MOST_FRUITLESS)

    def ask(self, parent: Document) -> dict[str, Any]:
        """Have the questions of one passage written and judged: `rows`, `faults` and `llm_calls`."""
        passage = parent.content or ""
        language = detect_language(passage)
        context = render_sources([SourceBlock(number=1, text=passage, title=str(parent.meta.get("title") or ""))])

        def asked(prompt: str, **more: Any) -> LlmReply:
            return ask_llm(self.chat_generator, render_prompt(prompt, context=context, language=language, **more))

        draw = random.Random(f"{_SEED} {parent.id}")  # noqa: S311
        types = draw.sample(TYPES, PER_PASSAGE)
        if draw.random() < _UNANSWERABLE_SHARE:
            types[-1] = UNANSWERABLE
        reply = asked("golden_maker", types=types)
        if reply.failure:
            return {"rows": [], "faults": {"the model failed": 1}, "llm_calls": 1}
        rows, faults = read_questions(reply.text, passage)
        if rows:
            questions = [{"question": row["question"], "answer": row["answer"]} for row in rows]
            verdicts = read_judgements(asked("golden_judge", questions=questions).text, len(rows))
            source = parent.meta.get("record_id") or parent.meta.get("source", "")
            for row, verdict in zip(rows, verdicts, strict=True):
                row |= {"judge": verdict, "source": source, "language": language}
            if neither := verdicts.count("none"):
                faults["judge said neither"] = neither
        return {"rows": rows, "faults": dict(faults), "llm_calls": 2 if rows else 1}


def read_questions(reply: str, passage: str) -> tuple[list[dict[str, Any]], Counter[str]]:
    """Read the questions of a reply whose answers stand in the passage, and what is wrong with the others."""
    items = (json_object(reply, "questions") or {}).get("questions")
    if not isinstance(items, list) or not items:
        return [], Counter(["nonsense"])
    rows: list[dict[str, Any]] = []
    faults: Counter[str] = Counter()
    for item in items:
        given = [item.get(name) or "" if isinstance(item, dict) else None for name in _FIELDS]
        words = [" ".join(value.split()) for value in given if isinstance(value, str)]
        row = dict(zip(_FIELDS, words, strict=False))
        if fault := _fault(row, passage):
            faults[fault] += 1
        else:
            rows.append(row)
    return rows, faults


def _fault(row: dict[str, str], passage: str) -> str:
    """Say why a question cannot be used; one that can gets its answer and quote as the passage has them."""
    if len(row) < len(_FIELDS) or not _SHORTEST <= len(row["question"]) <= _LONGEST:
        return "malformed"
    row["type"] = row["type"].lower()
    if row["type"] == UNANSWERABLE:
        return "unanswerable with an answer" if row["answer"] else ""
    if row["type"] not in TYPES:
        return "unknown type"
    answer, quote = _as_written(row["answer"], passage), _as_written(row["quote"], passage)
    if not answer or len(row["answer"]) > _LONGEST:
        return "answer not in the passage"
    if contains_answer(row["question"], [row["answer"]]):
        return "answer in the question"
    row |= {"answer": answer, "quote": quote if folded(answer) in folded(quote) else answer}
    return ""


def _as_written(text: str, passage: str) -> str:
    """Find words in a passage, whatever their case and white space, and give them as they stand there."""
    words = text.strip(_QUOTES).split()
    if not words:
        return ""
    pattern = r"\s*".join(re.escape(word) for word in words)
    # `11 men` does not stand in `111 men`.
    before, after = (_EDGE_BEFORE if words[0][0].isascii() else ""), (_EDGE_AFTER if words[-1][-1].isascii() else "")
    found = re.search(before + pattern + after, passage, re.IGNORECASE)
    return found[0] if found else ""


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


def _collected(chosen: Sequence[Document], records: dict[str, dict[str, Any]], count: int) -> MadeSet:
    """Put together what the passages gave, in their order, each question once."""
    accepted: list[dict[str, Any]] = []
    rejected: list[dict[str, Any]] = []
    faults: Counter[str] = Counter()
    seen: list[frozenset[tuple[str, ...]]] = []
    asked = [parent.id for parent in chosen if parent.id in records]
    for parent_id in asked:
        faults.update(records[parent_id]["faults"])
        for place, row in enumerate(records[parent_id]["rows"], start=1):
            runs = shingles(row["question"])
            if any(similarity(runs, other) >= _SAME for other in seen):
                faults["nearly the same question"] += 1
                continue
            seen.append(runs)
            whole = _golden_row(f"{parent_id[:12]}-{place}", row)
            (accepted if row["judge"] == "accept" else rejected).append(whole)
    calls = sum(records[parent_id]["llm_calls"] for parent_id in asked)
    return MadeSet(accepted[:count], rejected, faults, len(asked), calls)


def _golden_row(name: str, row: dict[str, Any]) -> dict[str, Any]:
    answerable = row["type"] != UNANSWERABLE
    copied = {key: row[key] for key in ("question", "language", "type", "judge")}
    whole: dict[str, Any] = {"id": name, **copied, "answerable": answerable}
    if answerable:
        whole["answers"] = [row["answer"]]
        whole["gold"] = [{"source": row["source"], "quote": row["quote"]}]
    return whole


def write_made_set(made: MadeSet, folder: Path) -> None:
    """Write the set, what was rejected, and once the file that a person edits, without the judge's verdicts."""

    def unjudged(row: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in row.items() if name != "judge"}

    write_json_lines(folder / GOLDEN_FILE, map(unjudged, made.accepted))
    write_json_lines(folder / REJECTED_FILE, made.rejected)
    if not (folder / REVIEW_FILE).exists():
        judged = sorted([*made.accepted, *made.rejected], key=lambda row: row["id"])
        drawn = random.Random(_SEED).sample(judged, min(len(judged), max(1, round(_REVIEW_SHARE * len(judged)))))  # noqa: S311
        write_json_lines(folder / REVIEW_FILE, ({"id": row["id"], "person": "", **unjudged(row)} for row in drawn))


class JudgeAgreement(NamedTuple):
    """How far judge and person agree: the share, and Cohen's kappa; `silent` are questions without a verdict."""

    reviewed: int
    open: int
    silent: int
    agreement: float | None
    kappa: float | None
    disagreements: list[str]


def judge_agreement(review: Path, judged: dict[str, str]) -> JudgeAgreement:
    """Compare what a person wrote into the review file with the judge's verdicts, by id."""
    pairs: dict[str, tuple[str, str]] = {}
    left = silent = 0
    for number, row in read_json_lines(review):
        place = f"{review}, line {number}"
        name = str(field_of(row, ("id",), place))
        if name not in judged:
            raise RefusedError(
                f"{place}: this run has no question `{name}`. Remove the line, or name the run's folder."
            )
        person = str(row.get("person") or "").strip().lower()
        if person and person not in _VERDICTS:
            raise RefusedError(f"{place}: `person` must be accept, reject or empty, got `{person}`. Correct the line.")
        if not person:
            left += 1
        elif judged[name] not in _VERDICTS:
            silent += 1
        else:
            pairs[name] = (judged[name], person)
    differing = [name for name, (judge, person) in pairs.items() if judge != person]
    agreement = 1 - len(differing) / len(pairs) if pairs else None
    return JudgeAgreement(len(pairs) + silent, left, silent, agreement, cohens_kappa(list(pairs.values())), differing)


def cohens_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Give agreement beyond chance (Cohen, "A Coefficient of Agreement for Nominal Scales", 1960); or None."""
    if not pairs:
        return None
    total = len(pairs)
    observed = sum(first == second for first, second in pairs) / total
    firsts, seconds = Counter(first for first, _ in pairs), Counter(second for _, second in pairs)
    chance = sum(firsts[name] * seconds[name] for name in firsts) / total**2
    return None if chance == 1 else (observed - chance) / (1 - chance)
