"""Judges whether a passage supports a claim: multilingual-e5-small with a low-rank adapter, in ONNX Runtime."""

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
    The encoder over a passage and a claim, one after the other.

    The first layers read each by itself; in the others the claim's tokens also see the passage's. What comes out is the
    tokens after the former, and after all.
    """

    weights: AdaptedWeights
    inputs: ClassVar[dict[str, list[Any]]] = {
        "own": [1, 1, "tokens", "tokens"],
        "both": [1, 1, "tokens", "tokens"],
        "of_claim": [1, "tokens", 1],
    }

    def encoder(self) -> list[str]:
        """Append the layers."""
        hidden = self.start()
        for number in range(APART):
            hidden = self.layer(hidden, number, "own")
        alone = hidden
        mark = self.node("Mul", "of_claim", self.constant("mark", self.weights.adapter["of_claim"]))
        hidden = self.node("Add", hidden, mark)
        for number in range(APART, DEPTH):
            hidden = self.layer(hidden, number, "both")
        return [alone, hidden]


class Judge:
    """
    Judges claims by passages; safe to use from many threads, and the same at every run.

    A passage of more than 160 tokens is read in windows, and the one that supports the claim best decides. A claim of
    more than 64 tokens is read in parts, and the part with the least support decides; one of more than 512 is not read
    and counts as not said, as does one without text or without a passage. Get the process's by `judge`.
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
        start, end = self._weights.start_id, self._weights.end_id
        said, claimed = [start, *passage, end], [start, *claim[:, 0].tolist(), end]
        words = unpack_blocks(self._words[said + claimed])
        places = np.concatenate([self._positions[: len(said)], self._positions[: len(claimed)]])
        of_claim = np.arange(len(words)) >= len(said)
        own = np.where(of_claim[:, None] == of_claim, np.float32(0), np.float32(_HIDDEN_FROM))
        both = np.where(of_claim[:, None], np.float32(0), own)
        alone, read = self._session.run(
            None,
            {
                "embeddings": (words + places)[None],
                "own": own[None, None],
                "both": both[None, None],
                "of_claim": of_claim.astype(np.float32)[None, :, None],
            },
        )
        at = len(said)
        probabilities, wrong = self._heads(*((x[:at], x[at:]) for x in (words, alone[0], read[0])))
        spans = [Word(int(a), int(b), float(p)) for (_, a, b), p in zip(claim, wrong, strict=True)]
        supported, not_said, contradicted = map(float, probabilities)
        return Verdict(supported, not_said, contradicted, tuple(spans))

    def _heads(
        self, words: tuple[Array, Array], alone: tuple[Array, Array], read: tuple[Array, Array]
    ) -> tuple[Array, Array]:
        """
        Judge what was read: each token of the claim is laid beside those of the passage that are like it.

        As in Chen et al. 2017, ESIM, section 3.2, arXiv 1609.06038; likeness is of the words' embeddings and of what
        the layers that read each text by itself make of them.

        :returns: The probabilities of supported, not said and contradicted; for each token of the claim without its
            marks of start and end that of being unsupported.
        """
        likeness = [_unit(claim) @ _unit(passage[1:-1]).T for passage, claim in (words, alone)]
        sharpness = self._adapter["sharpness"]
        weights = _softmax(sharpness[0] * likeness[0] + sharpness[1] * likeness[1])
        passage, claim = read
        beside, beside_alone = weights @ passage[1:-1], weights @ alone[0][1:-1]
        nearest = [one.max(1, keepdims=True) for one in likeness]
        features = [claim, beside, np.abs(claim - beside), np.abs(alone[1] - beside_alone), *nearest]
        inner = _gelu(self._linear("words_in", np.concatenate(features, 1)))[1:-1]
        wrong = self._linear("words_out", inner)[:, 0]
        a, b = (_unit(text[1:-1].mean(0)) * np.float32(DIMENSIONS**0.5) for text in (claim, passage))
        worst = [inner.max(0), inner.mean(0), [wrong.max(), wrong.mean()]]
        pooled = np.concatenate([claim[0], a, b, np.abs(a - b), a * b, *worst]).astype(np.float32)
        logits = self._linear("verdict_out", _gelu(self._linear("verdict_in", pooled)))
        return _softmax(logits), (1 / (1 + np.exp(-wrong))).astype(np.float32)

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
