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
from shiguan.models.engine import Embeddings, EncoderGraph, session_of
from shiguan.models.token_counter import tokenizer
from shiguan.models.weights import DIMENSIONS, Weights, made_file, weights_file

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
    """
    A token of a claim.

    :param start: Where it begins in the claim, in code points.
    :param end: Where it ends, exclusive.
    :param unsupported: The probability that the passage does not say it, 0 to 1.
    """

    start: int
    end: int
    unsupported: float


@dataclass(frozen=True)
class Verdict:
    """
    What a passage says of a claim, as probabilities that sum to 1.

    :param supported: The claim follows from the passage.
    :param not_said: The passage says neither the claim nor its opposite.
    :param contradicted: The passage says otherwise.
    :param words: The claim's tokens, in order.
    """

    supported: float
    not_said: float
    contradicted: float
    words: tuple[Word, ...] = ()


@dataclass(frozen=True)
class Reading:
    """
    Whether a passage answers a question, and where.

    :param log_odds: The logarithm of the odds that it does.
    :param places: Its tokens: start and end in code points, and how likely the answer, if any, is there.
    """

    log_odds: float
    places: tuple[tuple[int, int, float], ...] = ()

    def within(self, start: int, end: int) -> float:
        """Return the probability that the answer, if there is one, stands between two places."""
        return sum(likely for a, b, likely in self.places if a < end and b > start)


_NOTHING_SAID = Verdict(0.0, 1.0, 0.0)


class JudgeGraph(EncoderGraph):
    """
    The encoder over a passage and a claim or a question, one after the other.

    The first layers read each by itself; in the others the tokens of the latter, to which a mark of what it is has been
    added, also see the passage's. What comes out is the tokens after the former layers, and after all.
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
    """
    What was read of a text beside a passage.

    :param pooled: What the heads judge by.
    :param unsupported: For each of its tokens how little the passage supports it.
    :param answers: For each of the passage's tokens the logit that it answers.
    :param nowhere: That none does.
    """

    pooled: Array
    unsupported: Array
    answers: Array
    nowhere: float

    @property
    def log_odds(self) -> float:
        """The log-odds that one of the passage's tokens answers."""
        highest = float(self.answers.max())
        return highest + float(np.log(np.exp(self.answers - highest).sum())) - self.nowhere


class Judge:
    """
    Judges claims and questions by passages; safe to use from many threads, and the same at every run.

    A passage of more than 200 tokens, for a question 300, is read in windows, and the one that supports the claim, or
    answers the question, best decides. A claim of more than 64 tokens is read in parts, and the part with the least
    support decides; one of more than 512 is not read and counts as not said, as does one without text or without a
    passage. Of a question the first 64 tokens are read.
    """

    def __init__(self, graph: type[JudgeGraph] = JudgeGraph, adapter: Path = ADAPTER) -> None:
        path = weights_file()
        self._adapter = read = Adapter(adapter)
        made = made_file(
            f"judge-{graph.__name__}-{read.mark}.onnx", path, lambda: graph(AdaptedWeights(path, read.values)).content()
        )
        self._tokenizer, self._embeddings = tokenizer(), Embeddings(Weights(path))
        self._session = session_of(made)

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
        """
        Judge claims.

        :param pairs: Claims, each with a passage: best a window of one to three sentences.
        :returns: What each passage says of its claim, in their order.
        """
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
        said, beside = map(self._embeddings.words, ([piece for piece, *_ in passage], text))
        embeddings = np.concatenate([self._embeddings.placed(said), self._embeddings.placed(beside)])
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
        """
        Lay each token of a text beside those of the passage that are like it, and the other way round.

        As in Chen et al. 2017, ESIM, section 3.2, arXiv 1609.06038; likeness is of the words' embeddings and of what
        the layers that read each text by itself make of them.
        """
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
