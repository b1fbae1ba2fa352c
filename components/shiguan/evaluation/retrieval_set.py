"""Reads a set of questions with judged documents: corpus, queries and qrels."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from shiguan.errors import RefusedError
from shiguan.evaluation.json_lines import field_of, file_hash, read_json_lines, unique_rows
from shiguan.evaluation.questions import UNKNOWN, Question, QuestionSet, read_turns

_SHOWN = 3
"""How many ids an error names."""


def read_retrieval_set(
    corpus: Path,
    queries: Path,
    qrels: Path,
    *,
    limit: int | None = None,
    skip_unjudged: bool = False,
    gold_field: str = "gold",
) -> QuestionSet:
    """
    Read a set and check that its three files belong together.

    - corpus: `{"id", "title", "text", "meta"}`, one record a line
    - queries: `{"id", "text", "answers"?, "gold"?: [{"doc_id", "start", "end"}], "meta"?}`; a conversation may stand
      in place of the text: `turns`, a list of `{"role", "text"}` whose last one is the question
    - qrels: `{"query_id", "doc_id", "score"}`; a score of 0 says that the document was judged not relevant
    """
    rows = unique_rows(corpus, "document")
    documents = {name: len(str(field_of(row, ("text",), place))) for place, name, row in rows}
    lines = {name: (place, row) for place, name, row in unique_rows(queries, "question")}
    # A broken question is refused whether it is asked or not.
    questions = {name: _question(name, *line) for name, line in lines.items()}
    grades = _read_grades(qrels, documents.keys(), questions.keys())
    unjudged = [query_id for query_id in questions if query_id not in grades]
    if len(unjudged) == len(questions):
        raise RefusedError(f"{qrels} names no relevant document for any question of {queries}. Check that both fit.")
    if unjudged and not skip_unjudged:
        raise RefusedError(
            f"{len(unjudged):,} of {len(questions):,} questions have no relevant document in {qrels} "
            f"({_some(unjudged)}). They cannot be scored: add judgements, or leave them out with `--skip-unjudged`."
        )
    chosen = []
    for name in spread([name for name in questions if name in grades], limit):
        place, row = lines[name]
        spans = read_spans(row.get(gold_field) or [], documents, place)
        chosen.append(replace(questions[name], grades=grades[name], spans=spans))
    hashes = {str(path.name): file_hash(path) for path in (corpus, queries, qrels)}
    return QuestionSet(chosen, hashes, name=corpus.resolve().parent.name, corpus=corpus, unjudged=unjudged)


def spread(items: list[str], limit: int | None) -> list[str]:
    """Choose some of a list, evenly spread over it."""
    if limit is None or limit >= len(items):
        return items
    if limit < 1:
        raise ValueError(f"`limit` must be positive, got {limit}.")
    return [items[at * len(items) // limit] for at in range(limit)]


def _read_grades(qrels: Path, documents: Iterable[str], questions: Iterable[str]) -> dict[str, dict[str, float]]:
    documents, questions = set(documents), set(questions)
    grades: dict[str, dict[str, float]] = {}
    seen: set[tuple[str, str]] = set()
    lost: dict[str, list[str]] = {"document": [], "question": []}
    for number, row in read_json_lines(qrels):
        place = f"{qrels}, line {number}"
        query_id, doc_id = (str(field_of(row, (name,), place)) for name in ("query_id", "doc_id"))
        grade = field_of(row, ("score",), place)
        if isinstance(grade, bool) or not isinstance(grade, int | float) or not grade >= 0:
            raise RefusedError(f"{place}: the score must be a number of at least 0, got {grade!r}. Correct it.")
        if (query_id, doc_id) in seen:
            raise RefusedError(f"{place} judges `{doc_id}` for `{query_id}` a second time. Keep one of the two lines.")
        seen.add((query_id, doc_id))
        if query_id not in questions:
            lost["question"].append(query_id)
        elif doc_id not in documents:
            lost["document"].append(doc_id)
        elif grade > 0:
            grades.setdefault(query_id, {})[doc_id] = float(grade)
    for kind, ids in lost.items():
        if ids:
            raise RefusedError(
                f"{qrels} judges {len(ids):,} times a {kind} that does not exist ({_some(ids)}). A judgement that "
                "nothing can meet would count as a miss: give the files that belong together, or remove these lines."
            )
    return grades


def _question(name: str, place: str, row: dict[str, Any]) -> Question:
    text, history = read_turns(row, place)
    meta = row["meta"] if isinstance(row.get("meta"), dict) else {}
    return Question(
        id=name,
        text=text,
        answers=[str(answer) for answer in row.get("answers") or []],
        history=history,
        stratum=str(meta.get("stratum") or ""),
        language=str(meta.get("lang") or row.get("lang") or UNKNOWN),
    )


def read_spans(gold: Any, documents: dict[str, int], place: str) -> dict[str, list[tuple[int, int]]]:
    """Read the places of an answer."""
    if not isinstance(gold, list) or not all(isinstance(span, dict) for span in gold):
        raise RefusedError(f'{place}: gold must be a list of {{"doc_id", "start", "end"}}. Correct it.')
    spans: dict[str, list[tuple[int, int]]] = {}
    for span in gold:
        doc_id, start, end = (field_of(span, (name,), place) for name in ("doc_id", "start", "end"))
        length = documents.get(str(doc_id))
        if length is None:
            raise RefusedError(f"{place}: gold names the document `{doc_id}`, which does not exist. Correct it.")
        if not (isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= length):
            raise RefusedError(
                f"{place}: gold {start} to {end} is no place in `{doc_id}`, which has {length:,} characters. "
                "Correct it."
            )
        spans.setdefault(str(doc_id), []).append((start, end))
    return spans


def _some(ids: list[str]) -> str:
    shown = ", ".join(dict.fromkeys(ids[:_SHOWN]))
    return f"{shown}, ..." if len(ids) > _SHOWN else shown
