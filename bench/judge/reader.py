"""Judges whether a passage supports a claim or answers a question: multilingual-e5-small with a low-rank adapter."""

import hashlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from shiguan.errors import ModelMissingError
from shiguan.models.engine import EncoderGraph, session_of
from shiguan.models.tokenizer import tokenizer
from shiguan.models.weights import DIMENSIONS, Weights, made_file, unpack_blocks, weights_file

APART, DEPTH = 4, 9
"""The layers that read every text by itself, which stay as they are packaged, and all that are used."""
SCALE = 2.0
"""What the product of an adapter's two matrices is multiplied by."""
ADAPTER = Path(__file__).with_name("judge.npz")

_PASSAGE, _OVERLAP, _CLAIM = 160, 40, 64
"""Tokens of a window, those that it shares with the next, and those of a part of a claim."""
_LONGEST_CLAIM = 512
_HIDDEN_FROM = -1e4
"""Added to an attention's logit where a token must not see another."""

Array = NDArray[np.float32]


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


_NOTHING_SAID = Verdict(0.0, 1.0, 0.0)


class AdaptedWeights(Weights):
    """The packaged weights with an adapter merged into them (Hu et al. 2021, LoRA, arXiv 2106.09685)."""

    def __init__(self, path: Path, adapter: Mapping[str, Array]) -> None:
        super().__init__(path)
        self.adapter = adapter

    def floats(self, name: str) -> Array:
        """Give a tensor of float32, the adapter's where it has one."""
        return self.adapter[name] if name in self.adapter else super().floats(name)

    def matrix(self, name: str) -> Array:
        """Give a matrix of a layer, with the adapter's product added."""
        matrix = super().matrix(name)
        if name + ".up" in self.adapter:
            matrix += SCALE * (self.adapter[name + ".up"] @ self.adapter[name + ".down"])
        return matrix


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


class Judge:
    """
    Judges claims and questions by passages; safe to use from many threads, and the same at every run.

    A passage of more than 160 tokens is read in windows, and the one that supports the claim, or answers the question,
    best decides. A claim of more than 64 tokens is read in parts, and the part with the least support decides; one of
    more than 512 is not read and counts as not said, as does one without text or without a passage. Of a question the
    first 64 tokens are read. Get the process's by `judge`.
    """

    def __init__(self, graph: type[JudgeGraph] = JudgeGraph, adapter: Path = ADAPTER) -> None:
        path = weights_file()
        self._adapter, mark = _adapter(adapter)
        made = made_file(
            f"judge-{graph.__name__}-{mark}.onnx", path, lambda: graph(AdaptedWeights(path, self._adapter)).content()
        )
        self._weights = weights = Weights(path)
        self._tokenizer = tokenizer()
        self._words = weights.blocks("emb.word", DIMENSIONS)
        kind = weights.floats("emb.type")[:DIMENSIONS]
        self._positions = weights.floats("emb.pos").reshape(-1, DIMENSIONS) + kind
        self._session = session_of(made)

    def verdicts(self, pairs: Sequence[tuple[str, str]]) -> list[Verdict]:
        """
        Judge claims.

        :param pairs: Claims, each with a passage: best a window of one to three sentences.
        :returns: What each passage says of its claim, in their order.
        """
        return [self._verdict(claim, passage) for claim, passage in pairs]

    def answers(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """
        Judge whether passages answer questions.

        :param pairs: Questions, each with a passage.
        :returns: The probability of each, 0 to 1, in their order; 0 without text.
        """
        return [self._answer(question, passage) for question, passage in pairs]

    def _answer(self, question: str, passage: str) -> float:
        asked = np.array([piece for piece, *_ in self._tokenizer.pieces(question)[:_CLAIM]], np.int64)
        said = self._tokenizer.pieces(passage)
        if not len(asked) or not said:
            return 0.0
        read = (self._pooled(asked, window, "of_question")[0] for window in _windows(said))
        return max(float(_sigmoid(self._perceived("answer", pooled))[0]) for pooled in read)

    def _verdict(self, claim: str, passage: str) -> Verdict:
        pieces, said = self._tokenizer.pieces(claim), self._tokenizer.pieces(passage)
        if not pieces or not said or len(pieces) > _LONGEST_CLAIM:
            return _NOTHING_SAID
        parts = [
            max((self._read(part, window) for window in _windows(said)), key=lambda verdict: verdict.supported)
            for part in np.array_split(np.array(pieces), -(-len(pieces) // _CLAIM))
        ]
        least = min(parts, key=lambda verdict: verdict.supported)
        words = tuple(word for part in parts for word in part.words)
        return Verdict(least.supported, least.not_said, least.contradicted, words)

    def _read(self, claim: NDArray[np.int64], passage: list[int]) -> Verdict:
        pooled, wrong = self._pooled(claim[:, 0], passage, "of_claim")
        spans = [Word(int(a), int(b), float(p)) for (_, a, b), p in zip(claim, _sigmoid(wrong), strict=True)]
        supported, not_said, contradicted = map(float, _softmax(self._perceived("verdict", pooled)))
        return Verdict(supported, not_said, contradicted, tuple(spans))

    def _pooled(self, text: NDArray[np.int64], passage: list[int], mark: str) -> tuple[Array, Array]:
        """Read a text beside a passage: give what the heads judge by, and for each token how little it is supported."""
        start, end = self._weights.start_id, self._weights.end_id
        said, beside = [start, *passage, end], [start, *text.tolist(), end]
        words = unpack_blocks(self._words[said + beside])
        places = np.concatenate([self._positions[: len(said)], self._positions[: len(beside)]])
        is_beside = np.arange(len(words)) >= len(said)
        own = np.where(is_beside[:, None] == is_beside, np.float32(0), np.float32(_HIDDEN_FROM))
        both = np.where(is_beside[:, None], np.float32(0), own)
        alone, read = self._session.run(
            None,
            {
                "embeddings": (words + places)[None],
                "own": own[None, None],
                "both": both[None, None],
                "mark": (is_beside[:, None] * self._adapter[mark])[None].astype(np.float32),
            },
        )
        at = len(said)
        return self._laid_beside(*((x[:at], x[at:]) for x in (words, alone[0], read[0])))

    def _laid_beside(
        self, words: tuple[Array, Array], alone: tuple[Array, Array], read: tuple[Array, Array]
    ) -> tuple[Array, Array]:
        """
        Lay each token of a text beside those of the passage that are like it.

        As in Chen et al. 2017, ESIM, section 3.2, arXiv 1609.06038; likeness is of the words' embeddings and of what
        the layers that read each text by itself make of them.
        """
        likeness = [_unit(text) @ _unit(passage[1:-1]).T for passage, text in (words, alone)]
        sharpness = self._adapter["sharpness"]
        weights = _softmax(sharpness[0] * likeness[0] + sharpness[1] * likeness[1])
        passage, text = read
        beside, beside_alone = weights @ passage[1:-1], weights @ alone[0][1:-1]
        nearest = [one.max(1, keepdims=True) for one in likeness]
        features = [text, beside, np.abs(text - beside), np.abs(alone[1] - beside_alone), *nearest]
        inner = _gelu(self._linear("words_in", np.concatenate(features, 1)))[1:-1]
        wrong = self._linear("words_out", inner)[:, 0]
        a, b = (_unit(one[1:-1].mean(0)) * np.float32(DIMENSIONS**0.5) for one in (text, passage))
        worst = [inner.max(0), inner.mean(0), [wrong.max(), wrong.mean()]]
        return np.concatenate([text[0], a, b, np.abs(a - b), a * b, *worst]).astype(np.float32), wrong

    def _perceived(self, head: str, pooled: Array) -> Array:
        return self._linear(f"{head}_out", _gelu(self._linear(f"{head}_in", pooled)))

    def _linear(self, name: str, inputs: Array) -> Array:
        result: Array = inputs @ self._adapter[name + ".w"].T + self._adapter[name + ".b"]
        return result


def _windows(pieces: Sequence[tuple[int, int, int]]) -> Iterator[list[int]]:
    ids = [piece for piece, *_ in pieces]
    for at in range(0, max(1, len(ids) - _OVERLAP), _PASSAGE - _OVERLAP):
        yield ids[at : at + _PASSAGE]


def _unit(vectors: Array) -> Array:
    unit: Array = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
    return unit


def _softmax(logits: Array) -> Array:
    powers: Array = np.exp(logits - logits.max(-1, keepdims=True))
    powers /= powers.sum(-1, keepdims=True)
    return powers


def _sigmoid(x: Array) -> Array:
    result: Array = 1 / (1 + np.exp(-x))
    return result


def _gelu(x: Array) -> Array:
    """Multiply by the normal distribution, as Abramowitz and Stegun 1964, formula 7.1.26, have it to 1.5e-7."""
    t = 1 / (1 + 0.3275911 * np.abs(x) / np.sqrt(2))
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    half = 0.5 * series * np.exp(-(x**2) / 2)
    result: Array = (x * np.where(x > 0, 1 - half, half)).astype(np.float32)
    return result


def _adapter(path: Path) -> tuple[dict[str, Array], str]:
    """Read the adapter, and give the beginning of its hash."""
    try:
        content = path.read_bytes()
        mark = hashlib.sha256(content).hexdigest()[:12]
        with np.load(BytesIO(content)) as stored:
            return {name: stored[name].astype(np.float32) for name in stored.files}, mark
    except (OSError, ValueError, BadZipFile) as error:
        raise ModelMissingError(
            f"The judge's weights `{path}` cannot be read ({error}); they are part of the package. Install it again "
            "with `pip install --force-reinstall shiguan`."
        ) from error


_loading = threading.Lock()


def judge() -> Judge:
    """Give the process's judge; `ModelMissingError` where its weights or the embedder's cannot be read."""
    with _loading:
        return _load()


@cache
def _load() -> Judge:
    return Judge()
