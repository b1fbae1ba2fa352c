"""Reads the public sets that the judge is trained on, and says what of them is kept out."""

import random
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lxml import etree

from bench.judge.changes import CONTRADICTED, HAN, NOT_SAID, SUPPORTED, frequent_han_names, latin_names
from bench.quality.public_sets import read
from shiguan.text.names import SURNAMES
from shiguan.text.sentences import sentence_spans

LABELS = {"supported": SUPPORTED, "not_said": NOT_SAID, "contradicted": CONTRADICTED}
BOOKS = {
    "childrens-literature": "en",
    "cole-voyage-of-life": "en",
    "wasteland": "en",
    "kusamakura-japanese-vertical-writing": "ja",
}
HELD_OUT_BOOK = "moby-dick"
CHAPTERS = "jiutangshu_dev"
"""The book of which half the chapters are kept out."""


def is_kept_out(name: str) -> bool:
    """Return whether a chapter, a claim or an article, by its name, is in the half that nothing is trained on."""
    return zlib.crc32(name.encode()) % 2 == 1


@dataclass(frozen=True)
class Text:
    """A text of a set: its sentences are changed, each beside its neighbours."""

    set: str
    paragraphs: tuple[str, ...]


def chapters(epub: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Read the title and the paragraphs of each file of a book."""
    with zipfile.ZipFile(epub) as archive:
        for name in archive.namelist():
            if not name.endswith((".xhtml", ".html")):
                continue
            root = etree.fromstring(archive.read(name), etree.XMLParser(recover=True, resolve_entities=False))
            for ruby in root.iter("{*}rt", "{*}rp"):
                ruby.text = ""
            texts = [re.sub(r"\s+", " ", "".join(p.itertext())).strip() for p in root.iter("{*}p", "{*}li")]
            title = "-".join((root.findtext(".//{*}title") or "").split()[:2])
            yield title, tuple(text for text in texts if len(text) > 20)


def book_texts(folder: Path, *, kept_out: bool) -> Iterator[Text]:
    """Read the books: those trained on, or those kept out."""
    for book, language in {HELD_OUT_BOOK: "en"}.items() if kept_out else BOOKS.items():
        for _, paragraphs in chapters(folder / "epub" / f"{book}.epub"):
            yield Text(f"book_{language}", paragraphs)
    for title, paragraphs in chapters(folder / "epub" / f"{CHAPTERS}.epub"):
        if is_kept_out(title) == kept_out:
            yield Text("classical", paragraphs)


def chapter_of(passage: str) -> str:
    """Return the chapter of a passage of the Tang histories by its identifier."""
    return "-".join(passage.split("-")[1:3])


def tang_passages(folder: Path, *, kept_out: bool) -> dict[str, str]:
    """Read the passages of the Tang histories in the half of their chapters."""
    rows = read(folder / "tang_modern2classical" / "corpus.jsonl.gz")
    return {row["id"]: row["text"] for row in rows if is_kept_out(chapter_of(row["id"])) == kept_out}


def tang_sentences(folder: Path, *, kept_out: bool) -> list[tuple[str, str, tuple[int, int]]]:
    """Read modern sentences, each with its classical passage and the place in it."""
    passages = tang_passages(folder, kept_out=kept_out)
    found = []
    for row in read(folder / "tang_modern2classical" / "queries.jsonl.gz"):
        gold = row["gold"][0]
        if gold["doc_id"] in passages:
            found.append((row["text"], passages[gold["doc_id"]], (gold["start"], gold["end"])))
    return found


def known_names(folder: Path) -> list[str]:
    """Collect the names of persons in the classical texts, those trained on and those kept out."""
    texts = [*tang_passages(folder, kept_out=False).values(), *tang_passages(folder, kept_out=True).values()]
    return sorted(frequent_han_names("\n".join(texts), SURNAMES), key=lambda name: (-len(name), name))


def names_of(text: Text, known: Sequence[str]) -> list[str]:
    """Give the names of a text, and of others of the same surnames, whom it does not have."""
    whole = "\n".join(text.paragraphs)
    if not HAN.search(whole):
        return latin_names(whole)
    here = [name for name in known if name in whole]
    if text.set.startswith("zh"):
        here += sorted(frequent_han_names(whole * 2, SURNAMES))
    surnames = {name[0] for name in here}
    relatives = [name for name in known if name[0] in surnames][:: max(1, len(known) // 800)]
    given = [name[1:] for name in here if len(name) == 3 and whole.count(name[1:]) > whole.count(name)]
    return list(dict.fromkeys([*here, *given, *relatives]))


def paragraphs(folder: Path) -> Iterator[Text]:
    """Read the paragraphs of the question sets, but those that evidence is measured on."""
    measured = _measured(folder)
    for name in ("en_squad2", "zh_cmrc2018", "zh_drcd"):
        for row in read(folder / name / "corpus.jsonl.gz"):
            if row["text"][:60] not in measured:
                yield Text(name, (row["text"],))
    for row in read(folder / "dated_zztj_qi" / "corpus.jsonl.gz"):
        yield Text("classical", (row["text"],))
    for row in read(folder / "judge" / "passages.jsonl.gz"):
        if row["set"] in ("nq", "jaquad"):
            yield Text(row["set"], (row["text"],))


def _measured(folder: Path) -> set[str]:
    rows = [row for name in ("en", "zh") for row in read(folder / "evidence_expmrc" / f"{name}.jsonl.gz")]
    return {row["source"][:60] for row in rows}


QUESTION_SETS = ("en_squad2", "zh_cmrc2018", "zh_drcd")
XQUAD = tuple(f"xq_{language}" for language in "en zh ar de el es hi ro ru th tr vi".split())


@dataclass(frozen=True)
class Question:
    """A question with its passage, and the answer's place in it; 0 and 0 where the passage does not answer it."""

    set: str
    text: str
    passage: str
    start: int
    end: int
    parallel: str = ""


def is_reading_kept_out(passage: str) -> bool:
    """Return whether a passage of the question sets is in the quarter that reading is measured on."""
    return zlib.crc32(passage.encode()) % 4 == 1


def questions(folder: Path, *, kept_out: bool = False) -> Iterator[Question]:
    """Read questions, each with the passage that answers it or, of SQuAD 2, that it was written against."""
    if not kept_out:
        passages = {row["id"]: row["text"] for row in read(folder / "judge" / "passages.jsonl.gz")}
        rows = read(folder / "judge" / "questions.jsonl.gz")
        closed = _closed_articles(folder, passages)
        for row in rows:
            if row["set"] not in XQUAD or row["passage"].partition("-")[2] not in closed:
                text = passages[row["passage"]]
                yield Question(row["set"], row["question"], text, row["start"], row["end"], row.get("parallel", ""))
    measured = _measured(folder)
    for name in QUESTION_SETS:
        texts = {row["id"]: row["text"] for row in read(folder / name / "corpus.jsonl.gz")}
        usable = {key: text for key, text in texts.items() if is_reading_kept_out(key) == kept_out}
        for row in read(folder / name / "queries.jsonl.gz"):
            gold = row["gold"][0]
            if (text := usable.get(gold["doc_id"])) and text[:60] not in measured:
                yield Question(name, row["text"], text, gold["start"], gold["end"])
        for row in read(folder / name / "unanswerable_queries.jsonl.gz") if name == "en_squad2" else ():
            if text := usable.get(row["meta"]["written_against_doc"]):
                yield Question(name, row["text"], text, 0, 0)


def unseen_questions(folder: Path, name: str, file: str) -> set[str]:
    """Return the questions of a set's file that nothing is trained on."""
    rows = read(folder / name / f"{file}.jsonl.gz")
    if name not in QUESTION_SETS:
        return {row["id"] for row in rows}
    passages = (row["gold"][0]["doc_id"] if row.get("gold") else row["meta"]["written_against_doc"] for row in rows)
    return {row["id"] for row, passage in zip(rows, passages, strict=True) if is_reading_kept_out(passage)}


def _closed_articles(folder: Path, passages: dict[str, str]) -> set[str]:
    kept_out = xquad_kept_out(folder)
    return {key.partition("-")[2] for key, text in passages.items() if key.startswith("xq_en-") and text in kept_out}


def xquad_kept_out(folder: Path) -> set[str]:
    """Return the English paragraphs of XQuAD whose articles are measured on."""
    rows = read(folder / "xquad_enzh" / "corpus_en.jsonl.gz")
    return {row["text"] for row in rows if is_kept_out(row["id"].rpartition("-")[0])}


def across_sentences(folder: Path, *, kept_out: bool) -> list[tuple[str, str, int, int]]:
    """Read sentences of XQuAD, each with the paragraph in the other language and the place of its translation there."""
    place = folder / "xquad_enzh"
    texts = {lang: {row["id"]: row["text"] for row in read(place / f"corpus_{lang}.jsonl.gz")} for lang in ("en", "zh")}
    found = []
    for name in sorted(texts["en"].keys() & texts["zh"].keys()):
        spans = {lang: sentence_spans(texts[lang][name]) for lang in texts}
        if is_kept_out(name.rpartition("-")[0]) != kept_out or len(spans["en"]) != len(spans["zh"]):
            continue
        for at in range(len(spans["en"])):
            for lang, other in (("en", "zh"), ("zh", "en")):
                (start, end), place_ = spans[lang][at], spans[other][at]
                found.append((texts[lang][name][start:end], texts[other][name], *place_))
    return found


def inference_pairs(folder: Path) -> Iterator[tuple[str, str, str, int]]:
    """Read public pairs of a claim and a passage: set, claim, passage, label."""
    for row in read(folder / "judge" / "claims.jsonl.gz"):
        yield row["set"], row["claim"], row["passage"], LABELS[row["label"]]


def wice_claims(folder: Path, *, kept_out: bool) -> list[dict[str, Any]]:
    """Read the claims of WiCE in one half."""
    rows = read(folder / "groundedness_wice" / "claims.jsonl.gz")
    return [row for row in rows if is_kept_out(row["id"]) == kept_out]


def seeded(name: str) -> random.Random:
    """Give a source of chance that is the same at every run."""
    return random.Random(zlib.crc32(name.encode()))
