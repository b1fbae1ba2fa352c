"""A library of made-up text: as large as wanted, the same for the same seed, with word frequencies as in real text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
DIMENSION = 384
FAMILY = 8
"""Children of one parent."""

TENANTS = (("large", 0.7), ("small-1", 0.1), ("small-2", 0.1), ("small-3", 0.1))
"""Tenants and their shares; questions come from the first."""

_FREQUENT_EN = "the of and to in that was his he it with is for as had at by on not be from but they which".split()
_FREQUENT_ZH = "的之一是了不在有人这为以上个大中他来到时其于也而者所与曰使军州王帝将年月日"
_ONSETS = "b br c ch d dr f g gr h k l m n p pr r s sh st t tr v w".split()
_NUCLEI = "a e i o u ai ea ou".split()
_CODAS = ["", "n", "r", "l", "s", "t", "nd", "st"]


@dataclass(frozen=True)
class Child:
    """One retrieval unit; `number` counts from 0, `start` and `end` lie in the parent's text."""

    number: int
    parent: int
    tenant: str
    start: int
    end: int
    text: str
    embedding: np.ndarray


@dataclass(frozen=True)
class Parent:
    """One passage with its children."""

    number: int
    tenant: str
    text: str
    children: tuple[Child, ...]


class SyntheticLibrary:
    """
    Half the parents are English, half Chinese; ranks of words follow a Zipf-Mandelbrot law with exponent 1.07.

    Vectors lie around real ones, which are as close to each other as those of a library: each is drawn between the
    vectors of three sentences of the sample book, which is in English and Chinese, with noise of a fifth of its length.
    """

    def __init__(self, children: int, seed: int = 20_755) -> None:
        self.parents_count = -(-children // FAMILY)
        self.children_count = self.parents_count * FAMILY
        self.seed = seed
        rng = np.random.default_rng(seed)
        self.english = _FREQUENT_EN + sorted({_word(rng) for _ in range(26_000)})[:20_000]
        rng.shuffle(self.english[len(_FREQUENT_EN) :])
        han = list(_FREQUENT_ZH) + [chr(code) for code in rng.choice(np.arange(0x4E00, 0x9000), 3_000, replace=False)]
        pairs = rng.integers(0, len(han), size=(17_000, 2))
        self.chinese = han + [han[a] + han[b] for a, b in pairs]

    def parents(self) -> Iterator[Parent]:
        """Make the parents one after the other, with their children and vectors."""
        rng = np.random.default_rng(self.seed + 1)
        tables = {True: _cumulative(len(self.english)), False: _cumulative(len(self.chinese))}
        names = [name for name, _ in TENANTS]
        real = _real_vectors(min(800, 64 + self.children_count // 20))
        tenants = rng.choice(names, size=self.parents_count, p=[share for _, share in TENANTS])
        for number in range(self.parents_count):
            english = number % 2 == 0
            words = self.english if english else self.chinese
            lengths = rng.integers(35, 76, size=FAMILY)
            ranks = np.searchsorted(tables[english], rng.random(lengths.sum()))
            vectors = _around(real, rng)
            texts, position = [], 0
            for length in lengths:
                texts.append(_sentence([words[rank] for rank in ranks[position : position + length]], english=english))
                position += length
            yield _family(number, str(tenants[number]), texts, vectors, separator=" " if english else "")

    def questions(self, count: int) -> list[str]:
        """
        Make English questions: three words, log-uniform over the ranks 30 to 10,000, in a frame of frequent ones.

        With about 20 tokens they are as long as those of people. English, where all systems agree on what a word is.
        """
        rng = np.random.default_rng(self.seed + 2)
        ranks = np.exp(rng.uniform(np.log(30), np.log(10_000), size=(count, 3))).astype(int)
        frame = "Who was {} and when did {} come to {}?"
        return [frame.format(*(self.english[min(r, len(self.english) - 1)] for r in row)) for row in ranks]


def _family(number: int, tenant: str, texts: list[str], vectors: np.ndarray, separator: str) -> Parent:
    children, start = [], 0
    for index, text in enumerate(texts):
        place = (start, start + len(text))
        children.append(Child(number * FAMILY + index, number, tenant, *place, text, vectors[index]))
        start = place[1] + len(separator)
    return Parent(number, tenant, separator.join(texts), tuple(children))


@cache
def _real_vectors(count: int) -> np.ndarray:
    """Embed sentences that people wrote; shape (count, dimension)."""
    from haystack import Document

    from shiguan.ingest.e5_document_embedder import E5DocumentEmbedder
    from shiguan.text.sentences import sentence_spans

    files = sorted((ROOT / "examples" / "book").rglob("ch*.xhtml"))
    texts = (re.sub(r"<[^>]*>", " ", file.read_text(encoding="utf-8")) for file in files)
    sentences = [" ".join(text[start:end].split()) for text in texts for start, end in sentence_spans(text)]
    chosen = [each for each in dict.fromkeys(sentences) if 20 <= len(each) <= 300][:count]
    documents = E5DocumentEmbedder().run([Document(content=sentence) for sentence in chosen])["documents"]
    return np.array([document.embedding for document in documents], dtype=np.float32)


def _around(real: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw the vectors of one family."""
    shares = rng.dirichlet([0.7] * 3, size=FAMILY)[:, :, None]
    mixed = (real[rng.integers(len(real), size=(FAMILY, 3))] * shares).sum(axis=1)
    noise = rng.standard_normal(mixed.shape)
    drawn = mixed + 0.2 * noise / np.linalg.norm(noise, axis=1, keepdims=True)
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


def _word(rng: np.random.Generator) -> str:
    syllables = rng.integers(1, 4)
    return "".join(
        _ONSETS[rng.integers(len(_ONSETS))] + _NUCLEI[rng.integers(len(_NUCLEI))] + _CODAS[rng.integers(len(_CODAS))]
        for _ in range(syllables)
    )


def _cumulative(size: int) -> np.ndarray:
    weights = 1.0 / (np.arange(size) + 2.7) ** 1.07
    table = np.cumsum(weights / weights.sum())
    table[-1] = 1.0
    return table


def _sentence(words: list[str], *, english: bool) -> str:
    return " ".join(words).capitalize() + "." if english else "".join(words) + "。"
