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
"""The model is no longer asked after this many passages in a row without an accepted question."""

_SEED = 0  # the same library gives the same set
_VERDICTS = ("accept", "reject")
_REVIEW_SHARE = 0.1  # of the judged questions go to a person
_UNANSWERABLE_SHARE = 0.5  # of the passages get an unanswerable question
_SAME = 0.6  # questions at least this similar count as the same
_SHORTEST_PASSAGE = 80
_FIELDS = ("type", "question", "answer", "quote")
_SHORTEST, _LONGEST = 4, 300
_QUOTES = "“”\"'… "
_EDGE_BEFORE, _EDGE_AFTER = r"(?<![A-Za-z0-9])", r"(?![A-Za-z0-9])"

Track = Callable[[list[Document]], Iterable[Document]]


class MadeSet(NamedTuple):
    """The questions of a run by the judge's verdict, and the faults of the model's replies."""

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

    The questions are checked against the passage before they are judged, and saved before the next passage is read.
    """

    def __init__(self, chat_generator: ChatGenerator) -> None:
        self.chat_generator = chat_generator

    def make(self, parents: Sequence[Document], count: int, store: RunStore, track: Track) -> MadeSet:
        chosen = sorted((p for p in parents if len(p.content or "") >= _SHORTEST_PASSAGE), key=lambda parent: parent.id)
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
        """Have the questions of one passage written and judged; returns `rows`, `faults` and `llm_calls`."""
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
                faults["no verdict of the judge"] = neither
        return {"rows": rows, "faults": dict(faults), "llm_calls": 2 if rows else 1}


def read_questions(reply: str, passage: str) -> tuple[list[dict[str, Any]], Counter[str]]:
    """Read the questions of a reply whose answers are in the passage, and count what is wrong with the others."""
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
    """Describe why a question cannot be used; answer and quote of a usable one are written as in the passage."""
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
    """Find words in a passage, whatever their case and white space, and return them as they are written there."""
    words = text.strip(_QUOTES).split()
    if not words:
        return ""
    pattern = r"\s*".join(re.escape(word) for word in words)
    # `11 men` is not in `111 men`.
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
    """Collect the questions of all passages in order, each once."""
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
    """Write the set and what was rejected and, unless it exists, the review file, without the judge's verdicts."""

    def unjudged(row: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in row.items() if name != "judge"}

    write_json_lines(folder / GOLDEN_FILE, map(unjudged, made.accepted))
    write_json_lines(folder / REJECTED_FILE, made.rejected)
    if not (folder / REVIEW_FILE).exists():
        judged = sorted([*made.accepted, *made.rejected], key=lambda row: row["id"])
        drawn = random.Random(_SEED).sample(judged, min(len(judged), max(1, round(_REVIEW_SHARE * len(judged)))))  # noqa: S311
        write_json_lines(folder / REVIEW_FILE, ({"id": row["id"], "person": "", **unjudged(row)} for row in drawn))


class JudgeAgreement(NamedTuple):
    """Agreement of judge and person: the share, and Cohen's kappa; `silent` questions have no verdict of the judge."""

    reviewed: int
    open: int
    silent: int
    agreement: float | None
    kappa: float | None
    disagreements: list[str]


def judge_agreement(review: Path, judged: dict[str, str]) -> JudgeAgreement:
    """Compare the verdicts in the review file with the judge's, by id."""
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
    """Compute agreement beyond chance (Cohen, "A Coefficient of Agreement for Nominal Scales", 1960), if defined."""
    if not pairs:
        return None
    total = len(pairs)
    observed = sum(first == second for first, second in pairs) / total
    firsts, seconds = Counter(first for first, _ in pairs), Counter(second for _, second in pairs)
    chance = sum(firsts[name] * seconds[name] for name in firsts) / total**2
    return None if chance == 1 else (observed - chance) / (1 - chance)
