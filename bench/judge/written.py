"""Reads what was written for training: sentences in other words, true and false, and questions, on passages."""

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.judge import sets
from bench.judge.changes import HAN, NOT_SAID, NOT_SUPPORTED, SUPPORTED, Claim, Example
from bench.quality.public_sets import read
from shiguan.text.sentences import sentence_spans

WRITTEN = Path(__file__).with_name("written.jsonl.gz")
GOLDEN = Path(__file__).parents[1] / "quality" / "golden"
_WINDOW = 260
_LEAST, _MOST = 120, 420
_LONG, _LONG_HAN = 1_000, 380
STORIES = "childrens-literature"


@dataclass(frozen=True)
class Written:
    """What was written on one passage: sentences true, false and unsaid of it, and questions that it answers or not."""

    id: str
    group: str
    passage: str
    true: tuple[str, ...]
    false: tuple[str, ...]
    unsaid: tuple[str, ...]
    asked: tuple[tuple[str, str], ...]
    unasked: tuple[str, ...]

    @property
    def set(self) -> str:
        """Its language, or that it is of another than the passage."""
        told = " ".join([*self.true, *self.unasked])
        here, there = (bool(HAN.search(text)) for text in (told, self.passage))
        return "across" if here != there else "zh" if here else "en"


def written(folder: Path, *, kept_out: bool = False) -> Iterator[Written]:
    """Read what was written, but on passages that are measured on; of every eighth group nothing is trained on."""
    passages = {key: re.sub(r"\s+", " ", text) for key, text in _passages(folder).items()}
    measured = _measured()
    for row in read(WRITTEN):
        passage = row.get("passage") or passages[row["id"]]
        group = row["group"]
        if is_kept_out(group) != kept_out or any(phrase in passage for phrase in measured):
            continue
        asked = tuple((question, answer) for question, answer in row["asked"])
        yield Written(
            row["id"], group, passage, tuple(row["true"]), tuple(row["false"]), tuple(row["unsaid"]), asked,
            tuple(row["unasked"]),
        )  # fmt: skip


def is_kept_out(group: str) -> bool:
    """Return whether nothing is trained on what was written on a group of passages."""
    return zlib.crc32(group.encode()) % 8 == 3


def _measured() -> list[str]:
    rows = [row for file in sorted(GOLDEN.glob("written_*.jsonl")) for row in read(file)]
    return [re.sub(r"\s+", " ", row["phrase"]) for row in rows if "phrase" in row]


def _passages(folder: Path) -> dict[str, str]:
    found = {row["id"]: row["text"] for row in read(folder / "judge" / "passages.jsonl.gz") if row["set"] == "nq"}
    for name in sets.QUESTION_SETS:
        found |= {row["id"]: row["text"] for row in read(folder / name / "corpus.jsonl.gz")}
    for title, paragraphs in sets.chapters(folder / "epub" / f"{sets.CHAPTERS}.epub"):
        if not sets.is_kept_out(title):
            usable = [text for text in _windows(paragraphs) if _LEAST < len(text) < _MOST]
            found |= {f"jts-{title}-{number}": text for number, text in enumerate(usable)}
            found |= {f"jtl-{title}-{number}": text for number, text in enumerate(_windows(paragraphs, _LONG_HAN))}
    for file, (_, paragraphs) in enumerate(sets.chapters(folder / "epub" / f"{STORIES}.epub")):
        found |= {f"cl-{file}-{number}": text for number, text in enumerate(_windows(paragraphs, _LONG))}
    return found


def _windows(paragraphs: tuple[str, ...], longest: int = _WINDOW) -> Iterator[str]:
    """Cut a chapter into runs of sentences."""
    text = ""
    for paragraph in paragraphs:
        for start, end in sentence_spans(paragraph):
            if text and len(text) + end - start > longest:
                yield text
                text = ""
            text += (" " if text and not HAN.search(text) else "") + paragraph[start:end]
    if text:
        yield text


def claims(folder: Path, *, kept_out: bool = False) -> Iterator[Example]:
    """Make examples of each passage, with sentences written on it and on its neighbours."""
    rows = [row for row in written(folder, kept_out=kept_out) if row.true]
    for number, row in enumerate(rows):
        chance = sets.seeded(row.id)
        found = [Claim(text, SUPPORTED, None) for text in row.true]
        found += [Claim(text, NOT_SUPPORTED, None) for text in row.false]
        found += [Claim(text, NOT_SAID, None) for text in row.unsaid]
        near = [other for other in rows[max(0, number - 6) : number + 7] if other is not row and other.set == row.set]
        others = [other for other in near if other.group == row.group] or near
        found += [
            Claim(chance.choice(other.true), NOT_SAID, None) for other in chance.sample(others, min(4, len(others)))
        ]
        yield Example(f"written_{row.set}", row.passage, tuple(found))


def questions(folder: Path, *, kept_out: bool = False) -> Iterator[sets.Question]:
    """Read the questions; what was written against a passage has no answer there."""
    for row in written(folder, kept_out=kept_out):
        name = f"{'written' if row.true else 'read'}_{row.set}"
        for question, answer in row.asked:
            start = row.passage.find(answer)
            yield sets.Question(name, question, row.passage, start, start + len(answer))
        for question in row.unasked:
            yield sets.Question(name, question, row.passage, 0, 0)
