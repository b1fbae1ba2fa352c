"""Judges whether a passage supports a claim or answers a question: multilingual-e5-small with a low-rank adapter."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shiguan.models.adapter import APART, DEPTH, AdaptedWeights, Adapter, Array, gelu
from shiguan.models.engine import EncoderGraph, GraphReader
from shiguan.models.weights import DIMENSIONS

JUDGED = frozenset({"en", "zh"})
"""The languages of which enough was learned."""
ADAPTER = Path(__file__).with_name("judge.npz")

_CLAIMED, _ASKED, _OVERLAP, _TEXT = 200, 300, 40, 64
"""Tokens of a window that is read for a claim and of one for a question, as it learned from them, those that it shares
with the next, and those of a question or of a part of a claim."""
_LONGEST_CLAIM = 512
_HIDDEN_FROM = -1e4
"""Added to an attention's logit where a token must not see another."""

Pieces = Sequence[tuple[int, int, int]]


UNREAD = -20.0
"""The log-odds of a question or a passage without text."""


@dataclass(frozen=True)
class Word:
    """A token of a claim: its place in code points, and the probability, 0 to 1, that the passage does not say it."""

    start: int
    end: int
    unsupported: float


@dataclass(frozen=True)
class Verdict:
    """What a passage says of a claim, as probabilities that sum to 1, and the tokens of the claim in order."""

    supported: float
    not_said: float
    contradicted: float
    words: tuple[Word, ...] = ()


@dataclass(frozen=True)
class Reading:
    """The log-odds that a passage answers a question, and how likely the answer is at each span of a token."""

    log_odds: float
    places: tuple[tuple[int, int, float], ...] = ()

    def within(self, start: int, end: int) -> float:
        """Return the probability that the answer, if there is one, stands between two places."""
        return sum(likely for a, b, likely in self.places if a < end and b > start)


_NOTHING_SAID = Verdict(0.0, 1.0, 0.0)


class JudgeGraph(EncoderGraph):
    """
    The encoder over a passage and a claim or a question: the first layers read each by itself, the others together.

    The tokens of the latter get a mark of what it is. The tokens after the first layers, and after all, come out.
    """

    weights: AdaptedWeights
    inputs: ClassVar[dict[str, list[Any]]] = {
        "own": [1, 1, "tokens", "tokens"],
        "both": [1, 1, "tokens", "tokens"],
        "mark": [1, "tokens", DIMENSIONS],
    }

    def encoder(self) -> list[str]:
        """Append the layers."""
        hidden = self.start()
        for number in range(APART):
            hidden = self.layer(hidden, number, "own")
        alone = hidden
        hidden = self.node("Add", hidden, "mark")
        for number in range(APART, DEPTH):
            hidden = self.layer(hidden, number, "both")
        return [alone, hidden]


@dataclass(frozen=True)
class Beside:
    """What was read of a text beside a passage, for each token of the text, and for each of the passage's."""

    pooled: Array
    unsupported: Array
    answers: Array
    nowhere: float

    @property
    def log_odds(self) -> float:
        """The log-odds that one of the passage's tokens answers."""
        highest = float(self.answers.max())
        return highest + float(np.log(np.exp(self.answers - highest).sum())) - self.nowhere


class Judge(GraphReader):
    """
    Judges claims and questions by passages; safe to use from many threads, and the same at every run.

    A long passage is read in windows, of which the best decides, a long claim in parts, of which the worst does.
    """

    def __init__(self, graph: type[JudgeGraph] = JudgeGraph, adapter: Path = ADAPTER) -> None:
        self._adapter = read = Adapter(adapter)
        super().__init__(
            f"judge-{graph.__name__}-{read.mark}.onnx", lambda path: graph(AdaptedWeights(path, read.values))
        )

    def answer(self, question: str, passage: str) -> Reading:
        """Read a passage, best a window of a few sentences, for a question."""
        asked = [piece for piece, *_ in self._tokenizer.pieces(question)[:_TEXT]]
        said = self._tokenizer.pieces(passage)
        if not asked or not said:
            return Reading(UNREAD)
        found = [(window, self._beside(asked, window, "of_question")) for window in _windows(said, _ASKED)]
        window, read = max(found, key=lambda one: one[1].log_odds)
        likely = _softmax(read.answers).tolist()
        return Reading(read.log_odds, tuple((a, b, share) for (_, a, b), share in zip(window, likely, strict=True)))

    def verdicts(self, pairs: Sequence[tuple[str, str]]) -> list[Verdict]:
        """Judge claims, each with a passage, best a window of one to three sentences."""
        return [self._verdict(claim, passage) for claim, passage in pairs]

    def _verdict(self, claim: str, passage: str) -> Verdict:
        pieces, said = self._tokenizer.pieces(claim), self._tokenizer.pieces(passage)
        if not pieces or not said or len(pieces) > _LONGEST_CLAIM:
            return _NOTHING_SAID
        parts = [
            max(
                (self._judged(part, window) for window in _windows(said, _CLAIMED)),
                key=lambda verdict: verdict.supported,
            )
            for part in np.array_split(np.array(pieces), -(-len(pieces) // _TEXT))
        ]
        least = min(parts, key=lambda verdict: verdict.supported)
        words = tuple(word for part in parts for word in part.words)
        return Verdict(least.supported, least.not_said, least.contradicted, words)

    def _judged(self, claim: NDArray[np.int64], passage: Pieces) -> Verdict:
        read = self._beside(claim[:, 0].tolist(), passage, "of_claim")
        unsupported = 1 / (1 + np.exp(-read.unsupported))
        spans = [Word(int(a), int(b), float(p)) for (_, a, b), p in zip(claim, unsupported, strict=True)]
        supported, not_said, contradicted = map(float, _softmax(self._adapter.head("verdict", read.pooled)))
        return Verdict(supported, not_said, contradicted, tuple(spans))

    def _beside(self, text: list[int], passage: Pieces, mark: str) -> Beside:
        """Read a text, as tokens, beside a passage; the mark says what it is."""
        said, beside = map(self._words, ([piece for piece, *_ in passage], text))
        embeddings = np.concatenate([self._placed(said), self._placed(beside)])
        is_beside = np.arange(len(embeddings)) >= len(said)
        own = np.where(is_beside[:, None] == is_beside, np.float32(0), np.float32(_HIDDEN_FROM))
        both = np.where(is_beside[:, None] | (mark == "of_question"), np.float32(0), own)
        alone, read = self._session.run(
            None,
            {
                "embeddings": embeddings[None],
                "own": own[None, None],
                "both": both[None, None],
                "mark": (is_beside[:, None] * self._adapter.values[mark])[None].astype(np.float32),
            },
        )
        at = len(said)
        return self._laid_beside((said, beside), *((x[:at], x[at:]) for x in (alone[0], read[0])))

    def _laid_beside(self, words: tuple[Array, Array], alone: tuple[Array, Array], read: tuple[Array, Array]) -> Beside:
        """Lay each token of a text beside those of the passage that are like it, and back (ESIM, Chen et al. 2017)."""
        likeness = [_unit(text) @ _unit(passage[1:-1]).T for passage, text in (words, alone)]
        sharpness = self._adapter.values["sharpness"]
        logits = sharpness[0] * likeness[0] + sharpness[1] * likeness[1]
        weights = _softmax(logits)
        passage, text = read[0][1:-1], read[1]
        beside, beside_alone = weights @ passage, weights @ alone[0][1:-1]
        nearest = [one.max(1, keepdims=True) for one in likeness]
        features = [text, beside, np.abs(text - beside), np.abs(alone[1] - beside_alone), *nearest]
        inner = gelu(self._adapter.linear("words_in", np.concatenate(features, 1)))[1:-1]
        wrong = self._adapter.linear("words_out", inner)[:, 0]
        a, b = (_unit(one.mean(0)) * np.float32(DIMENSIONS**0.5) for one in (text[1:-1], passage))
        worst = [inner.max(0), inner.mean(0), [wrong.max(), wrong.mean()]]
        pooled = np.concatenate([text[0], a, b, np.abs(a - b), a * b, *worst]).astype(np.float32)
        asked = _softmax(logits[1:-1].T) @ text[1:-1]
        nearest = [one[1:-1].max(0)[:, None] for one in likeness]
        sought = passage * self._adapter.linear("sought", text[0])
        features = [passage, asked, np.abs(passage - asked), sought, *nearest]
        answers = self._adapter.head("place", np.concatenate(features, 1))
        return Beside(pooled, wrong, answers[:, 0], -float(self._adapter.head("answer", pooled)[0]))


def _windows(pieces: Pieces, size: int) -> Iterator[Pieces]:
    for at in range(0, max(1, len(pieces) - _OVERLAP), size - _OVERLAP):
        yield pieces[at : at + size]


def _unit(vectors: Array) -> Array:
    unit: Array = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
    return unit


def _softmax(logits: Array) -> Array:
    powers: Array = np.exp(logits - logits.max(-1, keepdims=True))
    powers /= powers.sum(-1, keepdims=True)
    return powers


_loading = threading.Lock()


def judge() -> Judge:
    """Return the process's judge; `ModelMissingError` where the weights are not installed, or are other ones."""
    with _loading:
        return _load()


@cache
def _load() -> Judge:
    return Judge()
