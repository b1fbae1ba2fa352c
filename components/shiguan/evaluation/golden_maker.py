"""Makes a golden set from an ingested library with a language model, or of what readers said of answers."""

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
from shiguan.evaluation.json_lines import field_of, fingerprint, read_json_lines, unique_rows, write_json_lines
from shiguan.evaluation.questions import golden_question
from shiguan.evaluation.results import RunStore
from shiguan.llm.calls import LlmReply, ask_llm
from shiguan.llm.json_replies import json_object
from shiguan.llm.prompt_rendering import render_prompt
from shiguan.llm.source_blocks import SourceBlock, render_sources
from shiguan.text.languages import detect_language
from shiguan.text.passages import shingles, similarity

UNANSWERABLE = "unanswerable"
TYPES = (
    "fact", "person", "time", "place", "number", "reason", "manner", "definition", "comparison", "list", "quote",
    UNANSWERABLE,
)  # fmt: skip
VERDICTS = ("accept", "reject")

_FIELDS = ("type", "question", "answer", "quote")
_SHORTEST, _LONGEST, _LONGEST_ANSWER = 4, 300, 300
_QUOTES = "“”\"'… "
_EDGE_BEFORE, _EDGE_AFTER = r"(?<![A-Za-z0-9])", r"(?![A-Za-z0-9])"


class MadeQuestions(NamedTuple):
    """The questions that a reply gave, and what was wrong with the others."""

    rows: list[dict[str, str]]
    faults: Counter[str]


def read_questions(reply: str, passage: str) -> MadeQuestions:
    """Read the questions of a reply that hold against its passage, answer and quote as they stand there."""
    items = (json_object(reply, "questions") or {}).get("questions")
    if not isinstance(items, list) or not items:
        return MadeQuestions([], Counter(["nonsense"]))
    made = MadeQuestions([], Counter())
    for item in items:
        given = [item.get(name) or "" if isinstance(item, dict) else None for name in _FIELDS]
        words = [" ".join(value.split()) for value in given if isinstance(value, str)]
        row = dict(zip(_FIELDS, words, strict=False))
        if fault := _fault(row, passage):
            made.faults[fault] += 1
        else:
            made.rows.append(row)
    return made


def _fault(row: dict[str, str], passage: str) -> str:
    """Say why a question is of no use; one that is gets its answer and quote as the passage has them."""
    if len(row) < len(_FIELDS) or not _SHORTEST <= len(row["question"]) <= _LONGEST:
        return "malformed"
    row["type"] = row["type"].lower()
    if row["type"] not in TYPES:
        return "unknown type"
    if row["type"] == UNANSWERABLE:
        return "unanswerable with an answer" if row["answer"] else ""
    answer, quote = _as_written(row["answer"], passage), _as_written(row["quote"], passage)
    if not answer or len(row["answer"]) > _LONGEST_ANSWER:
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
    # `11 men` is not said where `111 men` is.
    before, after = (_EDGE_BEFORE if words[0][0].isascii() else ""), (_EDGE_AFTER if words[-1][-1].isascii() else "")
    found = re.search(before + pattern + after, passage, re.IGNORECASE)
    return found[0] if found else ""


def read_judgements(reply: str, count: int) -> list[str | None]:
    verdicts: list[str | None] = [None] * count
    items = (json_object(reply, "verdicts") or {}).get("verdicts")
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


class JudgeAgreement(NamedTuple):
    """How far a judge and a person agree."""

    reviewed: int
    open: int
    silent: int
    agreement: float | None
    kappa: float | None
    disagreements: list[str]


def judge_agreement(review: Path, judged: dict[str, str]) -> JudgeAgreement:
    pairs: list[tuple[str, str]] = []
    different, left, silent = [], 0, 0
    for number, row in read_json_lines(review):
        place = f"{review}, line {number}"
        name = str(field_of(row, ("id",), place))
        if name not in judged:
            raise RefusedError(
                f"{place}: the question `{name}` is not of this run. Remove the line, or name its folder."
            )
        person = person_verdict(row, place)
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


def person_verdict(row: dict[str, Any], place: str) -> str:
    person = str(row.get("person") or "").strip().lower()
    if person and person not in VERDICTS:
        raise RefusedError(f"{place}: `person` must be accept, reject or empty, got `{person}`. Correct the line.")
    return person


GOLDEN_FILE, REJECTED_FILE, REVIEW_FILE = "golden.jsonl", "rejected.jsonl", "review.jsonl"
REVIEW_SHARE = 0.1
"""How much of what was judged a person looks at."""

MOST_FRUITLESS = 10
"""After so many passages in a row that gave nothing the model is not asked any more."""

_UNANSWERABLE_SHARE = 0.5
_SAME = 0.6
_SHORTEST_PASSAGE = 80

Track = Callable[[list[Document]], Iterable[Document]]


class MadeSet(NamedTuple):
    """What came of a run."""

    accepted: list[dict[str, Any]]
    rejected: list[dict[str, Any]]
    faults: Counter[str]
    passages: int
    llm_calls: int
    verdicts: dict[str, str]
    stopped: bool = False


class GoldenMaker:
    """
    Two calls per passage: one writes a question of each of a few types, one judges them. What the first wrote is held
    against the passage before the second sees it. What a passage gave is on the disk before the next one is read.
    """

    def __init__(self, chat_generator: ChatGenerator, *, per_passage: int = 3, seed: int = 0) -> None:
        if not 1 <= per_passage < len(TYPES):
            raise ValueError(f"`per_passage` must be 1 to {len(TYPES) - 1}, got {per_passage}.")
        self.chat_generator = chat_generator
        self.per_passage = per_passage
        self.seed = seed

    def make(self, parents: Sequence[Document], count: int, store: RunStore, track: Track) -> MadeSet:
        chosen = self.choose(parents)
        made = collected(chosen, store.records, count)
        fruitless = 0
        for parent in track(chosen):
            if len(made.accepted) >= count or fruitless == MOST_FRUITLESS:
                break
            if parent.id not in store.records:
                store.add(parent.id, self.ask(parent))
                before, made = len(made.accepted), collected(chosen, store.records, count)
                fruitless = 0 if len(made.accepted) > before else fruitless + 1
        return made._replace(stopped=fruitless == MOST_FRUITLESS)

    def choose(self, parents: Sequence[Document]) -> list[Document]:
        long = [parent for parent in parents if len(parent.content or "") >= _SHORTEST_PASSAGE]
        long.sort(key=lambda one: one.id)
        random.Random(self.seed).shuffle(long)  # noqa: S311
        return long

    def ask(self, parent: Document) -> dict[str, Any]:
        passage = parent.content or ""
        language = detect_language(passage)
        context = render_sources([SourceBlock(number=1, text=passage, title=str(parent.meta.get("title") or ""))])

        def asked(prompt: str, **more: Any) -> LlmReply:
            return ask_llm(self.chat_generator, render_prompt(prompt, context=context, language=language, **more))

        reply = asked("golden_maker", types=self.types_for(parent))
        if reply.failure:
            return {"rows": [], "faults": {"the model failed": 1}, "llm_calls": 1}
        made = read_questions(reply.text, passage)
        rows: list[dict[str, Any]] = [dict(row) for row in made.rows]
        if rows:
            questions = [{"question": row["question"], "answer": row["answer"]} for row in rows]
            verdicts = read_judgements(asked("golden_judge", questions=questions).text, len(rows))
            made.faults["judge said neither"] += verdicts.count(None)
            source = parent.meta.get("record_id") or parent.meta.get("source", "")
            for row, verdict in zip(rows, verdicts, strict=True):
                row |= {"judge": verdict or "none", "source": source, "language": language}
        faults = {kind: count for kind, count in made.faults.items() if count}
        return {"rows": rows, "faults": faults, "llm_calls": 2 if rows else 1}

    def types_for(self, parent: Document) -> list[str]:
        draw = random.Random(f"{self.seed} {parent.id}")  # noqa: S311
        types = draw.sample([kind for kind in TYPES if kind != UNANSWERABLE], self.per_passage)
        if draw.random() < _UNANSWERABLE_SHARE:
            types[-1] = UNANSWERABLE
        return types


def collected(chosen: Sequence[Document], records: dict[str, dict[str, Any]], count: int) -> MadeSet:
    made = MadeSet([], [], Counter(), 0, 0, {})
    seen: list[frozenset[tuple[str, ...]]] = []
    passages = calls = 0
    for parent in chosen:
        record = records.get(parent.id)
        if record is None:
            continue
        passages += 1
        calls += record["llm_calls"]
        made.faults.update(record["faults"])
        for place, row in enumerate(record["rows"], start=1):
            runs = shingles(row["question"])
            if any(similarity(runs, other) >= _SAME for other in seen):
                made.faults["nearly the same question"] += 1
                continue
            seen.append(runs)
            whole = _golden_row(f"{parent.id[:12]}-{place}", row)
            made.verdicts[whole["id"]] = row["judge"]
            (made.accepted if row["judge"] == "accept" else made.rejected).append(whole)
    return MadeSet(made.accepted[:count], made.rejected, made.faults, passages, calls, made.verdicts)


def write_made_set(made: MadeSet, folder: Path, seed: int) -> None:
    """Write the set, what was rejected, and once the file that a person edits, without the verdicts that might lead."""
    write_json_lines(folder / GOLDEN_FILE, [{k: v for k, v in row.items() if k != "judge"} for row in made.accepted])
    write_json_lines(folder / REJECTED_FILE, made.rejected)
    review = folder / REVIEW_FILE
    if review.exists():
        return
    judged = sorted([*made.accepted, *made.rejected], key=lambda row: row["id"])
    drawn = random.Random(seed).sample(judged, min(len(judged), max(1, round(REVIEW_SHARE * len(judged)))))  # noqa: S311
    shown = [
        {"id": row["id"], "person": "", **{k: v for k, v in row.items() if k not in ("id", "judge")}} for row in drawn
    ]
    write_json_lines(review, shown)


def _golden_row(name: str, row: dict[str, Any]) -> dict[str, Any]:
    answerable = row["type"] != UNANSWERABLE
    copied = {key: row[key] for key in ("question", "language", "type", "judge")}
    whole: dict[str, Any] = {"id": name, **copied, "answerable": answerable}
    if answerable:
        whole["answers"] = [row["answer"]]
        whole["gold"] = [{"source": row["source"], "quote": row["quote"]}]
    return whole


def feedback_rows(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """
    Make one question of all that was `said` of its answers, the newest `given`; `entries` are the newest first.

    Where all readers call them right, the newest quotes are the gold, or nothing answers it if that was the answer.
    Else `gold` and `answers` are empty: what would be right is for the reviewer to say.
    """
    rows: dict[str, dict[str, Any]] = {}
    for entry in entries:
        question = " ".join(entry["query"].split())
        if question not in rows:
            answerable = entry["status"] not in ("not_found", "refused")
            rows[question] = {
                "id": f"feedback-{fingerprint(question)[:12]}", "person": "", "question": question, "type": "feedback",
                "language": detect_language(question), "answerable": answerable, "answers": [],
                "gold": entry["citations"] if answerable else [], "given": entry["answer"], "said": [],
            }  # fmt: skip
        row = rows[question]
        row["said"].append({name: entry[name] for name in ("kind", "note", "receipt", "conversation_id")})
        if entry["kind"] != "right":
            row.update(gold=[], answerable=True)
    return list(rows.values())


def review_feedback(entries: Iterable[dict[str, Any]], folder: Path) -> dict[str, int]:
    """Add new questions to a folder's review file, as edited, and write the golden set of those that were accepted."""
    review = folder / "feedback_review.jsonl"
    lines = list(unique_rows(review, "question")) if review.exists() and review.stat().st_size else []
    accepted, left = [], 0
    for place, name, row in lines:
        person = person_verdict(row, place)
        left += not person
        if person == "accept":
            golden_question(name, row, place)
            accepted.append({key: value for key, value in row.items() if key not in ("person", "given", "said")})
    known = {name for _, name, _ in lines}
    new = [row for row in feedback_rows(entries) if row["id"] not in known]
    folder.mkdir(parents=True, exist_ok=True)
    write_json_lines(review, [*(row for _, _, row in lines), *new])
    write_json_lines(folder / "feedback_golden.jsonl", accepted)
    return {"new": len(new), "open": left + len(new), "accepted": len(accepted)}
