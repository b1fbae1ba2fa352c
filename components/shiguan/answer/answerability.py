"""How likely the passages closest to a question hold its answer: one calibrated probability for all modes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from haystack import Document

from shiguan.text.languages import detect_language
from shiguan.text.rarity import covered, question_weights
from shiguan.text.terms import terms

# What is looked at: as many passages as are quoted, and the words of questions up to this length.
_READ, _MOST_WORDS = 3, 12


@dataclass(frozen=True)
class Signals:
    """
    What speaks for an answer, each about 0 to 1.

    :param cosine: The best cosine of the question and a child.
    :param coverage: The share of the question's weight, by rarity, that the best passage has.
    :param agreement: How near the passage with the most words is by its vectors: its best cosine over the best one.
    :param margin: How far the best cosine stands out from the mean of those found.
    :param length: How many different words the question has.
    :param same_language: The share of the passages that are in the question's language.
    """

    cosine: float
    coverage: float
    agreement: float
    margin: float
    length: float
    same_language: float


def signals_of(question: str, documents: Sequence[Document], nearest: Sequence[Document]) -> Signals:
    """Read the signals from the passages, best first, and the children nearest by their vectors, with cosines."""
    weights = question_weights(question)
    language = detect_language(question)
    cosines: dict[str, float] = {}
    for child in nearest:
        parent = str(child.meta.get("parent_id") or child.id)
        cosines[parent] = max(cosines.get(parent, 0.0), child.score or 0.0)
    best = max(cosines.values(), default=0.0)
    usual = sum(child.score or 0.0 for child in nearest) / len(nearest) if nearest else 0.0
    read = documents[:_READ]
    shares = [covered(weights, _words(document)) for document in read]
    widest = max(range(len(read)), key=lambda at: shares[at], default=0)
    return Signals(
        cosine=best,
        coverage=max(shares, default=0.0),
        agreement=cosines.get(read[widest].id, 0.0) / best if read and best else 0.0,
        margin=best - usual,
        length=min(len(weights), _MOST_WORDS) / _MOST_WORDS,
        same_language=sum(_language(document) == language for document in read) / len(read) if read else 0.0,
    )


def _words(document: Document) -> set[str]:
    section = document.meta.get("section") or []
    headings = section if isinstance(section, str) else " ".join(map(str, section))
    return set(terms(f"{document.meta.get('title') or ''} {headings} {document.content or ''}"))


def _language(document: Document) -> str:
    return str(document.meta.get("language") or detect_language(document.content or ""))


@dataclass(frozen=True)
class Calibration:
    """The weights of a logistic model over the signals."""

    bias: float
    cosine: float
    coverage: float
    agreement: float
    margin: float
    length: float
    same_language: float

    def probability(self, signals: Signals) -> float:
        """Give the probability, 0 to 1."""
        weights = asdict(self)
        odds = self.bias + sum(weights[name] * value for name, value in asdict(signals).items())
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, odds))))


# Fitted by `python -m bench.quality.calibration` on public paragraph sets and one half of the questions on books.
FITTED: Final = Calibration(-3.0, 0, 5.0, 0, 0, 0, 0)


def probability(question: str, documents: Sequence[Document], nearest: Sequence[Document]) -> float:
    """Give the probability, 0 to 1, that the first passages hold an answer to a question."""
    return FITTED.probability(signals_of(question, documents, nearest)) if documents else 0.0
