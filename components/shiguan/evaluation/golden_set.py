"""Reads and writes golden sets: questions with the answers and passages that a person holds for right."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiguan.errors import RefusedError
from shiguan.evaluation.json_lines import field_of, file_hash, read_json_lines
from shiguan.evaluation.question import UNKNOWN, Question
from shiguan.evaluation.retrieval_set import read_turns

if TYPE_CHECKING:
    from haystack import Document


@dataclass(frozen=True)
class GoldPassage:
    """A passage that answers, named so that any way of cutting the source can be scored."""

    quote: str = ""
    source: str = ""
    start: int | None = None
    end: int | None = None

    def stands_in(self, document: "Document") -> bool:
        """Tell whether a passage of the library holds this one."""
        meta = document.meta
        if self.source and self.source not in (meta.get("source"), meta.get("record_id"), meta.get("source_id")):
            return False
        if self.quote:
            return _plain(self.quote) in _plain(document.content or "")
        if self.start is None or self.end is None:
            return True
        return int(meta.get("start", 0)) < self.end and self.start < int(meta.get("end", 0))


@dataclass(frozen=True)
class GoldenQuestion:
    """One question of a golden set."""

    question: Question
    gold: tuple[GoldPassage, ...] = ()


@dataclass(frozen=True)
class GoldenSet:
    """Questions with known answers."""

    questions: list[GoldenQuestion]
    hashes: dict[str, str]


def read_golden_set(path: Path) -> GoldenSet:
    """
    Read a golden set.

    One question a line: `{"id", "question", "answers"?: ["..."], "gold"?: [{"quote", "source"?}], "answerable"?,
    "history"?: [{"role", "content"}], "type"?, "language"?}`. Each of `answers` is enough. A passage of `gold` is named
    by words of it (`quote`), or by `doc_id`, `start` and `end` in code points. The question may be called `text`. A
    question is answerable unless it says otherwise; the queries of a retrieval set can be read as they are.
    """
    questions: dict[str, GoldenQuestion] = {}
    for number, row in read_json_lines(path):
        place = f"{path}, line {number}"
        one = _golden_question(row, place)
        if one.question.id in questions:
            raise RefusedError(f"{place} repeats the id `{one.question.id}`. Give every question an id of its own.")
        questions[one.question.id] = one
    if not questions:
        raise RefusedError(f"{path} has no questions. Give a file with at least one.")
    return GoldenSet(list(questions.values()), {path.name: file_hash(path)})


def write_golden_set(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write a golden set, whole or not at all."""
    draft = path.with_name(path.name + ".part")
    draft.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    draft.replace(path)


def gold_parents(one: GoldenQuestion, documents: Sequence["Document"]) -> list[list[str]]:
    """Find the stored passages that hold the gold ones."""
    return [[document.id for document in documents if passage.stands_in(document)] for passage in one.gold]


def _plain(text: str) -> str:
    return "".join(text.split())


def _golden_question(row: dict[str, Any], place: str) -> GoldenQuestion:
    text, history = read_turns(row, place)
    meta = row.get("meta") if isinstance(row.get("meta"), dict) else {}
    assert isinstance(meta, dict)  # noqa: S101
    answerable = row.get("answerable", not meta.get("unanswerable", False))
    if not isinstance(answerable, bool):
        raise RefusedError(f"{place}: `answerable` must be true or false, got {answerable!r}. Correct the line.")
    answers = _strings(row.get("answers"), "answers", place)
    gold = tuple(_gold_passages(row.get("gold"), place))
    if answerable and not answers and not gold:
        raise RefusedError(
            f"{place} has neither answers nor gold passages, so nothing could be right. Add some, or write "
            '"answerable": false.'
        )
    if not answerable and (answers or gold):
        raise RefusedError(f"{place} says that nothing answers it and gives an answer. Take one of the two out.")
    question = Question(
        id=str(field_of(row, ("id",), place)),
        text=text,
        answers=answers,
        history=history,
        answerable=answerable,
        stratum=str(row.get("type") or meta.get("stratum") or ""),
        language=str(row.get("language") or row.get("lang") or meta.get("lang") or UNKNOWN),
    )
    return GoldenQuestion(question, gold)


def _strings(value: Any, name: str, place: str) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
        raise RefusedError(f"{place}: `{name}` must be a list of texts, got {value!r:.60}. Correct the line.")
    return value


def _gold_passages(value: Any, place: str) -> list[GoldPassage]:
    wanted = f'{place}: `gold` must be a list of {{"quote"}} or {{"doc_id", "start", "end"}}'
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise RefusedError(f"{wanted}, got {value!r:.60}. Correct the line.")
    found = []
    for item in value:
        quote, source = item.get("quote", ""), item.get("source") or item.get("doc_id") or ""
        start, end = item.get("start"), item.get("end")
        placed = type(start) is int and type(end) is int and 0 <= start < end
        if not isinstance(quote, str) or not isinstance(source, str) or not (quote.strip() or (source and placed)):
            raise RefusedError(f"{wanted}, got {item!r:.60}. Correct the line.")
        found.append(GoldPassage(quote, source, start if placed else None, end if placed else None))
    return found
