"""Questions on whole books: which passage answers is told by quotes, so that any way of cutting can be scored."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from haystack import Document

from shiguan.query.query_rewriter import QueryRewriter

OWN, ACROSS, FOLLOW_UPS, UNANSWERABLE = "own language", "across languages", "follow-ups", "unanswerable"
BOOK_FILES = ("moby-dick.epub", "childrens-literature.epub", "jiutangshu_dev.epub")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True)
class BookQuestion:
    """One question on a book; of each of its `sides`, which are quotes without white space, one is needed."""

    id: str
    book: str
    language: str
    group: str
    text: str
    history: list[dict[str, str]] = field(default_factory=list)
    sides: tuple[tuple[str, ...], ...] = ()
    answers: tuple[str, ...] = ()

    @property
    def query(self) -> str:
        """What is searched: the question, and for a follow-up the words that tell most of its history."""
        if not self.history:
            return self.text
        rewriter = QueryRewriter(None, method="contextualize")
        return str(rewriter.run(query=self.text, history=self.history)["query"])

    def rank(self, passages: Iterable[Document]) -> int | None:
        """Say how many passages must be read until every side is answered."""
        missing = list(self.sides)
        for number, passage in enumerate(passages, start=1):
            if passage.meta.get("source") != self.book:
                continue
            text = passage.content or ""
            missing = [quotes for quotes in missing if not contains_quote(text, quotes)]
            if not missing:
                return number
        return None


def contains_quote(text: str, quotes: Iterable[str]) -> bool:
    """Tell whether one of some quotes stands in a text, white space aside."""
    plain = _SPACE.sub("", text)
    return any(_SPACE.sub("", quote) in plain for quote in quotes)


def read_book_questions(path: Path, *, unanswerable: bool = False) -> list[BookQuestion]:
    """Read the questions on books."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [_question(row) for row in rows if unanswerable or row["answerable"]]


def _question(row: dict[str, Any]) -> BookQuestion:
    sides: dict[int, list[str]] = {}
    for gold in row["gold"]:
        sides.setdefault(gold.get("side", 1), []).append(_SPACE.sub("", gold["quote"]))
    history = row.get("history") or []
    group = FOLLOW_UPS if history else ACROSS if row["cross"] else OWN
    group = group if row["answerable"] else UNANSWERABLE
    quotes = tuple(tuple(sides[side]) for side in sorted(sides))
    return BookQuestion(
        row["id"],
        row["book"],
        row["language"],
        group,
        row["question"],
        history,
        quotes,
        tuple(row.get("answers") or ()),
    )


def share_within(ranks: Sequence[int | None], k: int) -> float:
    """Give the share of questions that the first passages answer."""
    return sum(rank is not None and rank <= k for rank in ranks) / len(ranks) if ranks else 0.0
