"""A mode over the public sets, for measuring answers: corpora that are ingested once, and halves of questions."""

import argparse
import random
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.quality.book_questions import BOOK_FILES, BookQuestion, contains_quote, read_book_questions
from bench.quality.public_sets import DATA, is_missing
from bench.quality.retrieval_bars import BOOKS, stamped_folder
from haystack import Document

from shiguan.answer.answerability_gate import Signals, highest_probability, signals_of
from shiguan.answer.quotations import quotations
from shiguan.engine.runner import Runner
from shiguan.evaluation.json_lines import read_json_lines
from shiguan.evaluation.provenance import TENANT, ingest_corpus
from shiguan.evaluation.scoring import contains_answer

SAMPLE, SEED = 200, 7
READ, NEAREST = "context_builder.documents", "embedding_retriever.documents"


@dataclass(frozen=True)
class Case:
    """A question and what an answer to it has: one of `answers`, or of the `quotes` of every side."""

    id: str
    text: str
    answers: tuple[str, ...] = ()
    quotes: tuple[tuple[str, ...], ...] = ()
    group: str = ""

    def is_in(self, texts: Sequence[str]) -> bool:
        """Whether an accepted answer, or a sentence of each side, stands in the texts."""
        quoted = bool(self.quotes) and all(any(contains_quote(text, side) for text in texts) for side in self.quotes)
        return quoted or any(contains_answer(text, self.answers) > 0 for text in texts if self.answers)

    def in_half(self, half: int | None) -> bool:
        """Whether it is one of the half that the CRC-32 of its id says; None for both."""
        return in_half(self.id, half)


def in_half(key: str, half: int | None) -> bool:
    """Whether a key is of the half that its CRC-32 says; None for both."""
    return half is None or zlib.crc32(key.encode()) % 2 == half


@dataclass(frozen=True)
class Observation:
    """What was shown for a question without a model, the signals of whether it answers, and the limit by the rules."""

    case: Case
    signals: Signals
    highest: float
    quotes: tuple[str, ...]
    passages: tuple[str, ...]

    @property
    def shown(self) -> bool:
        """Whether the answer stands in what was shown."""
        return self.case.is_in(self.quotes)


class Bench:
    """Asks `simple` over corpora that are ingested once."""

    def __init__(self, data: Path, keep: Path, half: int | None, *, by_words: bool = False) -> None:
        self.data = data
        self.keep = keep
        self.half = half
        self.by_words = by_words

    def library(self, corpus: str | Sequence[Path]) -> Path:
        """Ingest a corpus, such as `en_squad2/corpus`, files or the three books, unless that was done before."""
        names = [f"epub/{name}" for name in BOOK_FILES] if corpus == BOOKS else [f"{corpus}.jsonl.gz"]
        files = [self.data / name for name in names] if isinstance(corpus, str) else list(corpus)
        folder = stamped_folder(self.keep, files)
        ingest_corpus(files, deployment="embedded", data_dir=folder)
        return folder

    def cases(self, queries: str, count: int | None = SAMPLE) -> list[Case]:
        """Draw questions of a file such as `en_squad2/queries`, the same every time; yes and no are no answers."""
        rows = [row for _, row in read_json_lines(self.data / f"{queries}.jsonl.gz")]
        found = [_case(row) for row in rows]
        kept = [one for one in found if one.in_half(self.half) and {"yes", "no"}.isdisjoint(one.answers)]
        return kept if count is None else random.Random(SEED).sample(kept, min(count, len(kept)))

    def book_cases(self) -> list[Case]:
        """Read the questions on books, those that no book answers included."""
        asked = read_book_questions(self.data / BOOKS / "questions.jsonl", unanswerable=True)
        return [case for case in map(_book_case, asked) if case.in_half(self.half)]

    def books(self) -> dict[str, str]:
        """Tell which book each of these is about."""
        asked = read_book_questions(self.data / BOOKS / "questions.jsonl", unanswerable=True)
        return {question.id: question.book for question in asked}

    def observed(self, corpus: str | Sequence[Path], cases: Sequence[Case]) -> Iterator[Observation]:
        """Ask questions over a corpus and look at what would be shown."""
        with self.mode(corpus) as runner:
            for case in cases:
                found = runner.trace(case.text[:2000], tenant_id=TENANT, outputs=[READ, NEAREST])["outputs"]
                documents: list[Document] = found[READ] or []
                quoted = quotations(documents, case.text)
                shown = tuple((one.document.content or "")[slice(*one.window)] for one in quoted)
                read = tuple(document.content or "" for document in documents)
                signals = signals_of(case.text, documents, found[NEAREST] or [])
                yield Observation(case, signals, highest_probability(case.text, documents), shown, read)

    @contextmanager
    def mode(self, corpus: str | Sequence[Path], mode: str = "simple") -> Iterator[Runner]:
        """Load a mode over a corpus."""
        with closing(Runner("embedded", mode, data_dir=self.library(corpus))) as runner:
            runner.warm_up()
            if self.by_words:
                runner.pipeline.get_component("text_embedder").run = lambda **_: {"embedding": []}
            yield runner


def _case(row: dict[str, Any]) -> Case:
    # In both languages of a parallel set the gold passage is told by its offsets; its answers by their words.
    quotes = tuple(gold["text"] for gold in row.get("gold") or [] if gold.get("text"))
    return Case(str(row["id"]), row["text"], tuple(row.get("answers") or ()), (quotes,) if quotes else ())


def _book_case(question: BookQuestion) -> Case:
    return Case(question.id, question.query, question.answers, question.sides, f"{question.group}, {question.language}")


def parallel_cases(data: Path, asked: str, answered: str) -> list[Case]:
    """Give the questions of XQuAD in one language with the answers of the other one."""
    rows = {row["id"]: row for _, row in read_json_lines(data / f"xquad_enzh/queries_{answered}.jsonl.gz")}
    questions = [row for _, row in read_json_lines(data / f"xquad_enzh/queries_{asked}.jsonl.gz")]
    both = [(row, rows.get(row["id"])) for row in questions]
    return [Case(row["id"], row["text"], tuple(other["answers"])) for row, other in both if other]


def calibration_options(description: str, arguments: list[str] | None) -> argparse.Namespace | None:
    """Read the command line of a calibration; None where the public sets are missing, which is printed."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of public sets (default: %(default)s)")
    parser.add_argument("--keep", type=Path, default=Path(".data/bars"), help="where ingested corpora are kept")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables between the marks of this file")
    options = parser.parse_args(arguments)
    if is_missing(options.data):
        return None
    return options


def print_tables(text: str, file: Path | None, marks: str) -> None:
    """Print tables, and write them between the two marks of a file where one is named."""
    print(f"\n{text}")
    if file:
        begin, end = (f"<!-- {marks}: {which} -->" for which in ("begin", "end"))
        before, rest = file.read_text(encoding="utf-8").split(begin)
        file.write_text(f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}", encoding="utf-8")
