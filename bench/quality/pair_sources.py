"""Reads books and public sets as passages, and cuts them into sentences that can stand alone as a claim."""

import random
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import unescape
from pathlib import Path

from bench.quality.pair_rules import han_names
from bench.quality.public_sets import ROOT, read

SAMPLE, SAMPLE_TEXT = "sample", ROOT / "examples" / "book" / "EPUB" / "text"
SETS = {"en_squad2": "en", "en_multihop": "en", "zh_cmrc2018": "zh", "zh_drcd": "zh"}
WRITTEN_SETS = ("conv_rag_mtrag",)
"""Sets of which there are only pairs written by hand."""
BOOKS = {"moby-dick": "en", "childrens-literature": "en", "jiutangshu_dev": "zh"}
TANG = "tang_modern2classical"
LEAST = {"zh": 250, "en": 700}
"""Shorter paragraphs of a book are read together with the next, in characters."""
_PAGE = re.compile(r"<span[^>]*pagebreak[^>]*>[^<]*</span>")
_PARAGRAPH, _TAG, _SPACE = re.compile(r"<p\b[^>]*>(.*?)</p>", re.S), re.compile(r"<[^>]+>"), re.compile(r"\s+")
_NO_CLAIM = re.compile(r"[“”‘\"「」『』《》？?！!：:;；\n\[\]|]")
OTHERS = 3
"""How many passages stand beside the right one."""


@dataclass(frozen=True)
class Book:
    """A book, or a set of articles: its passages by article."""

    name: str
    language: str
    articles: Mapping[str, Sequence[str]]

    @cached_property
    def texts(self) -> list[str]:
        """All passages."""
        return [text for texts in self.articles.values() for text in texts]

    @cached_property
    def whole(self) -> str:
        """All passages as one text."""
        return "\n".join(self.texts)

    @cached_property
    def _names(self) -> dict[str, frozenset[str]]:
        if self.name in BOOKS:
            return dict.fromkeys(self.articles, han_names(self.whole))
        return {article: han_names("\n".join(texts)) for article, texts in self.articles.items()}

    def names(self, article: str) -> frozenset[str]:
        """Give the names of persons: of a book those of all its chapters, of a set those of the article."""
        return frozenset() if self.language == "en" else self._names[article]

    def around(self, article: str, passage: str, draw: random.Random) -> tuple[tuple[str, ...], int]:
        """Put a passage among others of its article, or else of the book; gives its place."""
        near = [text for text in dict.fromkeys(self.articles[article]) if passage not in text and text not in passage]
        far = [
            text for text in draw.sample(self.texts, min(8, len(self.texts))) if text != passage and text not in near
        ]
        others = [*draw.sample(near, min(OTHERS, len(near))), *far][:OTHERS]
        gold = draw.randrange(len(others) + 1)
        return (*others[:gold], passage, *others[gold:]), gold


def _paragraphs(pages: Iterable[str], language: str) -> Iterator[str]:
    for page in pages:
        held = ""
        for paragraph in _PARAGRAPH.findall(_PAGE.sub("", page)):
            held = f"{held}\n\n{_SPACE.sub(' ', unescape(_TAG.sub('', paragraph))).strip()}".strip()
            if len(held) >= LEAST[language]:
                yield held
                held = ""
        if held:
            yield held


def read_epub(path: Path, language: str) -> Book:
    """Read the paragraphs of a book, by chapter."""
    with zipfile.ZipFile(path) as book:
        pages = {name: book.read(name).decode("utf-8") for name in sorted(book.namelist()) if name.endswith("html")}
    return Book(path.stem, language, {name: [*_paragraphs([page], language)] for name, page in pages.items()})


def read_sample(language: str) -> Book:
    """Read the sample book of this repository: its English or its Chinese chapters."""
    pages = {path.name: path.read_text(encoding="utf-8") for path in sorted(SAMPLE_TEXT.glob("ch*.xhtml"))}
    pages = {
        name: page for name, page in pages.items() if ('lang="zh' in page.partition(">")[2][:300]) == (language == "zh")
    }
    return Book(SAMPLE, language, {name: [*_paragraphs([page], language)] for name, page in pages.items()})


def read_set(folder: Path, name: str, language: str) -> Book:
    """Read the passages of a public set."""
    evidence = name.startswith("expmrc")
    file = Path("evidence_expmrc", f"{language}.jsonl.gz") if evidence else Path(name, "corpus.jsonl.gz")
    articles = defaultdict(list)
    for row in read(folder / file):
        articles[row["title"]].append(row["source" if evidence else "text"])
    return Book(name, language, {title: [*dict.fromkeys(texts)] for title, texts in articles.items()})


def read_books(folder: Path) -> list[Book]:
    """Read the public sets and books."""
    sets = [*SETS.items(), (TANG, "zh"), ("expmrc-en", "en"), ("expmrc-zh", "zh")]
    found = [read_set(folder, name, language) for name, language in sets]
    return [*found, *(read_epub(folder / "epub" / f"{name}.epub", language) for name, language in BOOKS.items())]


def sentences(text: str, language: str) -> list[str]:
    """Give the sentences that can stand alone as a claim: no question, no quotation, neither long nor short."""
    from shiguan.text.sentences import sentence_spans

    found = []
    for one in (text[start:end] for start, end in sentence_spans(text)):
        words = len(re.findall("[a-z]{2,} ", one))
        fits = 12 <= len(one) <= 90 if language == "zh" else words >= 4 and len(one.split()) <= 38 and one[0].isupper()
        if fits and one.endswith("。" if language == "zh" else ".") and not _NO_CLAIM.search(one):
            found.append(one)
    return found


def book_sentences(book: Book) -> list[tuple[str, str, str]]:
    """Give every sentence of a book with its article and passage."""
    found = ((article, text) for article, texts in book.articles.items() for text in texts)
    return [(article, text, one) for article, text in found for one in sentences(text, book.language)]


def retellings(folder: Path) -> list[tuple[str, str, str]]:
    """Read modern sentences with the classical passage that they retell."""
    rows = {row["id"]: row for row in read(folder / TANG / "corpus.jsonl.gz")}
    found = []
    for row in read(folder / TANG / "queries.jsonl.gz"):
        of, text = rows[row["gold"][0]["doc_id"]], row["text"].rstrip("，；。") + "。"
        if row["meta"]["stratum"] != "hard" and 12 <= len(text) <= 80 and not _NO_CLAIM.search(text):
            found.append((of["title"], of["text"], text))
    return found
