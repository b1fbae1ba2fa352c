"""Questions with their right answers, read from golden sets and retrieval sets."""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from haystack import Document
from pydantic import AliasChoices, BaseModel, Field, StrictInt, StrictStr, ValidationError, model_validator

from shiguan.errors import RefusedError, shown
from shiguan.evaluation.json_lines import field_of, name_of, read_json_lines, unique_rows
from shiguan.resources import file_hash
from shiguan.tenants import odd_value

UNKNOWN = "und"  # the language of a question that names none, in the words of BCP 47


@dataclass(frozen=True)
class GoldPassage:
    """A passage that answers: by a quote without white space, or spans in code points; else all of the source."""

    quote: str = ""
    source: str = ""
    spans: tuple[tuple[int, int], ...] = ()
    grade: float = 1.0

    def stands_in(self, passage: Document) -> bool:
        """Return whether a passage, as far as it was kept, is from the source and has the quote or overlaps a span."""
        meta = passage.meta
        if self.source and self.source not in (meta.get("source"), meta.get("record_id"), meta.get("source_id")):
            return False
        if self.quote:
            return "".join(self.quote.split()) in "".join((passage.content or "").split())
        first, last = int(meta.get("start") or 0), int(meta.get("end") or 0)
        pieces = meta.get("kept") or [meta.get("cut") or (0, last - first)]
        return not self.spans or any(
            first + low < end and start < first + high for low, high in pieces for start, end in self.spans
        )


@dataclass(frozen=True)
class Question:
    """One question, with any of `answers` and all passages of `gold` that are right; of a retrieval set, documents."""

    id: str
    text: str
    gold: tuple[GoldPassage, ...] = ()
    answers: list[str] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)
    answerable: bool = True
    stratum: str = ""
    language: str = UNKNOWN

    @property
    def grades(self) -> dict[str, float]:
        """The grades of the documents that its passages are from, where these are named."""
        return {passage.source: passage.grade for passage in self.gold if passage.source}

    @property
    def best(self) -> list[GoldPassage]:
        """The passages with the highest grade."""
        highest = max((passage.grade for passage in self.gold), default=0)
        return [passage for passage in self.gold if passage.grade == highest]

    @property
    def gold_documents(self) -> set[str]:
        """The documents with the highest grade, which recall counts."""
        best = max(self.grades.values(), default=0)
        return {document for document, grade in self.grades.items() if grade == best}

    def document_of(self, passage: Document) -> str | None:
        """Name the judged document that a passage is right for, if any."""
        return next((gold.source for gold in self.gold if gold.source and gold.stands_in(passage)), None)


@dataclass(frozen=True)
class QuestionSet:
    """Questions in the order of their file, the SHA-256 of their files, and what a retrieval set adds."""

    questions: list[Question]
    hashes: dict[str, str]
    name: str
    unjudged: list[str] = field(default_factory=list)

    def only(self, ids: Iterable[str]) -> "QuestionSet":
        """Return the set with only these questions; an unknown one is refused."""
        by_id = {question.id: question for question in self.questions}
        if unknown := [name for name in ids if name not in by_id]:
            raise RefusedError(f"The set `{self.name}` has no question `{unknown[0]}`. Name one that it has.")
        return replace(self, questions=[by_id[name] for name in ids])


def read_golden_set(path: Path) -> QuestionSet:
    """
    Read a golden set, as docs/answers.md has it; a question for which nothing could be right is refused.

    The queries of a retrieval set can be read as they are.
    """
    questions = [_golden_question(name, row, place) for place, name, row in unique_rows(path, "question")]
    return QuestionSet(questions, {path.name: file_hash(path)}, path.stem)


def _golden_question(name: str, row: dict[str, Any], place: str) -> Question:
    gold, question = tuple(_gold_passages(row.get("gold"), place)), _question(name, row, place)
    answerable = row.get("answerable", not _meta(row).get("unanswerable", False))
    if answerable is not bool(question.answers or gold):
        raise RefusedError(
            f'{place}: an answerable question has answers or gold passages, and one with `"answerable": false` has '
            f"neither; `answerable` is {answerable!r}. Correct the line."
        )
    return replace(question, gold=gold, answerable=answerable)


def _question(name: str, row: dict[str, Any], place: str) -> Question:
    """Read a question and its history, from `text` and `history` or from `turns` that end with the question."""
    if row.get("text") is None and row.get("question") is None and row.get("turns"):
        *history, last = _turns(row["turns"], place)
        text = last["content"]
        if last["role"] != "user":
            raise RefusedError(f"{place}: the last turn must be of `user`, for it is the question. Correct the line.")
    else:
        text, history = _text_of(row, ("text", "question"), place), _turns(row.get("history"), place)
        if not text.strip():
            raise RefusedError(f"{place} has an empty question. Write one, or remove the line.")
    answers = row.get("answers") or []
    if not isinstance(answers, list) or not all(isinstance(item, str) and item.strip() for item in answers):
        raise RefusedError(f"{place}: `answers` must be a list of texts, got {answers!r:.60}. Correct the line.")
    about = {
        "type": row.get("type") or _meta(row).get("stratum") or "",
        "language": row.get("language") or row.get("lang") or _meta(row).get("lang") or UNKNOWN,
    }
    stratum, language = (name_of(about, name, place) for name in about)
    return Question(name, text, answers=answers, history=history, stratum=stratum, language=language)


def _meta(row: dict[str, Any]) -> dict[str, Any]:
    return row["meta"] if isinstance(row.get("meta"), dict) else {}


def _turns(turns: Any, place: str) -> list[dict[str, Any]]:
    turns = [] if turns is None else turns
    if not isinstance(turns, list) or not all(isinstance(turn, dict) for turn in turns):
        raise RefusedError(f'{place}: expected a list of turns {{"role", "content"}}, got {turns!r:.80}. Correct it.')
    for turn in turns:
        if field_of(turn, ("role",), place) not in ("user", "assistant"):
            raise RefusedError(f"{place}: a turn is of `user` or `assistant`, got {turn['role']!r:.60}. Correct it.")
    return [{"role": turn["role"], "content": _text_of(turn, ("content", "text"), place)} for turn in turns]


def _text_of(row: dict[str, Any], names: tuple[str, ...], place: str) -> str:
    text = field_of(row, names, place)
    if not isinstance(text, str):
        name = next(name for name in names if row.get(name) is not None)
        raise RefusedError(f"{place}: `{name}` must be a text, got {text!r:.60}. Correct the line.")
    return text


class _Gold(BaseModel, extra="forbid"):
    """What a line may say of a passage; the words at its place, as `text`, are for people."""

    quote: StrictStr = ""
    source: StrictStr | StrictInt = Field("", validation_alias=AliasChoices("source", "doc_id"))
    start: StrictInt = 0
    end: StrictInt = 0
    text: StrictStr = ""

    @model_validator(mode="after")
    def _can_be_found(self) -> Self:
        placed = bool({"start", "end"} & self.model_fields_set)
        known = self.quote.strip() or (placed and self.source)
        if not known or (placed and not 0 <= self.start < self.end):
            raise ValueError("it has neither words nor a place")
        return self


def _gold_passages(listed: Any, place: str) -> Iterator[GoldPassage]:
    for item in listed if isinstance(listed, list) else [] if listed is None else [str(listed)]:
        given = {name: value for name, value in item.items() if value is not None} if isinstance(item, dict) else item
        try:
            one = _Gold.model_validate(given)
        except ValidationError as error:
            fault = error.errors()[0]
            wanted = f'{place}: `gold` must be a list of {{"quote"}} or {{"doc_id", "start", "end"}}'
            where = f" (`{fault['loc'][0]}`: {fault['msg']})" if fault["loc"] else ""
            raise RefusedError(f"{wanted}, got {shown(item)}{where}. Correct the line.") from error
        yield GoldPassage(one.quote, str(one.source), ((one.start, one.end),) if one.end else ())


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
    - queries: `{"id", "text", "answers"?, "gold"?: [{"doc_id", "start", "end"}], "meta"?}`; `turns` may replace the
      text, a list of `{"role", "text"}` whose last one is the question
    - qrels: `{"query_id", "doc_id", "score"}`; a score of 0 means that the document was judged not relevant
    """
    rows = unique_rows(corpus, "document")
    documents = {name: len(_text_of(row, ("text",), place)) for place, name, row in rows}
    lines = {name: (place, row) for place, name, row in unique_rows(queries, "question")}
    # A broken question is refused whether it is asked or not.
    questions = {name: _question(name, row, place) for name, (place, row) in lines.items()}
    grades = _read_grades(qrels, documents, questions)
    unjudged = [query_id for query_id in questions if query_id not in grades]
    if unjudged and (not grades or not skip_unjudged):
        raise RefusedError(
            f"{len(unjudged):,} of {len(questions):,} questions have no relevant document in {qrels} "
            f"({', '.join(unjudged[:3])}). They cannot be scored: check that the files belong together, or "
            "leave these questions out with `--skip-unjudged`."
        )
    chosen = []
    for name in spread([name for name in questions if name in grades], limit):
        place, row = lines[name]
        spans = _spans(row.get(gold_field), documents, place)
        gold = (GoldPassage("", document, spans.get(document, ()), grade) for document, grade in grades[name].items())
        chosen.append(replace(questions[name], gold=tuple(gold)))
    hashes = {str(path.name): file_hash(path) for path in (corpus, queries, qrels)}
    return QuestionSet(chosen, hashes, name=corpus.resolve().parent.name, unjudged=unjudged)


def spread(items: list[str], limit: int | None) -> list[str]:
    """Choose `limit` items, spread evenly over the list."""
    if limit is None or limit >= len(items):
        return items
    if limit < 1:
        raise ValueError(f"`limit` must be positive, got {limit}.")
    return [items[at * len(items) // limit] for at in range(limit)]


def _read_grades(qrels: Path, documents: Container[str], questions: Iterable[str]) -> dict[str, dict[str, float]]:
    """Read the judgements above 0; one of what does not exist is refused, for it would count as a miss."""
    judged: dict[str, dict[str, float]] = {name: {} for name in questions}
    for number, row in read_json_lines(qrels):
        place = f"{qrels}, line {number}"
        query_id, doc_id = (name_of(row, name, place) for name in ("query_id", "doc_id"))
        grade = field_of(row, ("score",), place)
        if isinstance(grade, bool) or not isinstance(grade, int | float) or not grade >= 0 or odd_value(grade):
            raise RefusedError(f"{place}: the score must be a number of at least 0, got {shown(grade)}. Correct it.")
        if query_id not in judged or doc_id not in documents:
            missing = f"document `{doc_id}`" if query_id in judged else f"question `{query_id}`"
            raise RefusedError(f"{place}: there is no {missing}. Give the files that belong together.")
        if doc_id in judged[query_id]:
            raise RefusedError(f"{place} judges `{doc_id}` for `{query_id}` a second time. Keep one of the two lines.")
        judged[query_id][doc_id] = float(grade)
    above = {name: {doc_id: grade for doc_id, grade in found.items() if grade > 0} for name, found in judged.items()}
    return {name: found for name, found in above.items() if found}


def _spans(marked: Any, documents: dict[str, int], place: str) -> dict[str, tuple[tuple[int, int], ...]]:
    """Read the marked places of the answer; several in one document are alternatives."""
    spans: dict[str, tuple[tuple[int, int], ...]] = {}
    for one in _gold_passages(marked, place):
        length = documents.get(one.source, 0)
        if not one.spans or one.spans[0][1] > length:
            given = " to ".join(map(str, one.spans[0])) if one.spans else f"`{one.quote:.40}`"
            raise RefusedError(
                f"{place}: gold {given} is not a place in the document `{one.source}`, which has {length:,} "
                "characters. Correct it."
            )
        spans[one.source] = spans.get(one.source, ()) + one.spans
    return spans
