"""The judge in torch, for training: the packaged encoder with a low-rank adapter and two heads."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from numpy.typing import NDArray
from torch import Tensor, nn

from shiguan.models.adapter import APART, DEPTH, SCALE
from shiguan.models.weights import Weights, unpack_blocks

RANK = 16
INNER = 128


class LowRank(nn.Module):
    """A matrix that stays, and a product of two small ones that is learned (Hu et al. 2021, LoRA, arXiv 2106.09685)."""

    def __init__(self, weights: Weights, name: str) -> None:
        super().__init__()
        matrix = torch.from_numpy(weights.matrix(name))
        columns = matrix.shape[1]
        self.register_buffer("matrix", matrix.to(torch.bfloat16), persistent=False)
        self.bias = nn.Parameter(torch.from_numpy(weights.floats(name + ".b").copy()))
        self.down = nn.Parameter(torch.randn(RANK, columns) * columns**-0.5)
        self.up = nn.Parameter(torch.zeros(len(matrix), RANK))

    def forward(self, inputs: Tensor) -> Tensor:
        """Multiply by both."""
        return F.linear(inputs, self.matrix, self.bias) + F.linear(F.linear(inputs, self.down), self.up * SCALE)


class Norm(nn.Module):
    """A layer normalization."""

    def __init__(self, weights: Weights, name: str) -> None:
        super().__init__()
        self.epsilon = weights.epsilon
        self.weight = nn.Parameter(torch.from_numpy(weights.floats(name + ".w").copy()))
        self.bias = nn.Parameter(torch.from_numpy(weights.floats(name + ".b").copy()))

    def forward(self, inputs: Tensor) -> Tensor:
        """Normalize."""
        return F.layer_norm(inputs, self.weight.shape, self.weight, self.bias, self.epsilon)


@dataclass(frozen=True)
class Reading:
    """One passage with its claims, or with a question, as tokens one after another."""

    ids: NDArray[np.int64]
    lengths: tuple[int, ...]
    asked: tuple[bool, ...]

    @property
    def owners(self) -> NDArray[np.int64]:
        """The text that each token is of; 0 is the passage."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @property
    def kinds(self) -> NDArray[np.int64]:
        """What each token is of: 0 the passage, 1 a claim, 2 a question."""
        return np.repeat([0, *(1 + asked for asked in self.asked[1:])], self.lengths)


class Layer(nn.Module):
    """A layer of the encoder."""

    def __init__(self, weights: Weights, number: int) -> None:
        super().__init__()
        self.heads = weights.heads
        for name in ("q", "k", "v", "ao", "fi", "fo"):
            setattr(self, name, LowRank(weights, f"l{number}.{name}"))
        self.aln, self.oln = Norm(weights, f"l{number}.aln"), Norm(weights, f"l{number}.oln")

    def forward(self, inputs: Tensor, sizes: Sequence[int], seen: Sequence[Tensor | None]) -> Tensor:
        """Let the tokens of each reading see those that its mask allows."""

        def split(tokens: Tensor) -> Tensor:
            return tokens.view(len(tokens), self.heads, -1).transpose(0, 1)

        parts = zip(*(split(m(inputs)).split(sizes, 1) for m in (self.q, self.k, self.v)), seen, strict=True)
        mixed = [F.scaled_dot_product_attention(q, k, v, attn_mask=mask) for q, k, v, mask in parts]
        attended = torch.cat(mixed, 1).transpose(0, 1).reshape(inputs.shape)
        hidden = self.aln(inputs + self.ao(attended))
        result: Tensor = self.oln(hidden + self.fo(F.gelu(self.fi(hidden))))
        return result


class Encoder(nn.Module):
    """The packaged encoder: the layers that read each text by itself stay, the others learn."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.table = weights.blocks("emb.word", weights.hidden)
        kind = weights.floats("emb.type")[: weights.hidden]
        positions = weights.floats("emb.pos").reshape(-1, weights.hidden) + kind
        self.register_buffer("positions", torch.from_numpy(positions), persistent=False)
        self.first = Norm(weights, "emb.ln")
        layers = [Layer(weights, number) for number in range(DEPTH)]
        self.apart, self.together = nn.ModuleList(layers[:APART]), nn.ModuleList(layers[APART:DEPTH])
        for parameter in (*self.first.parameters(), *self.apart.parameters()):
            parameter.requires_grad = False

    @torch.no_grad()
    def read_apart(
        self, ids: NDArray[np.int64], lengths: Sequence[int], sizes: Sequence[int], seen: Sequence[Tensor | None]
    ) -> tuple[Tensor, Tensor]:
        """Give the embeddings of the words of texts of some lengths, and what the layers that stay make of them."""
        words = torch.from_numpy(unpack_blocks(self.table[ids]))
        alone = self.first(words + self.positions[np.concatenate([np.arange(length) for length in lengths])])
        for layer in self.apart:
            alone = layer(alone, sizes, seen)
        return words, alone

    def read_together(self, hidden: Tensor, sizes: Sequence[int], seen: Sequence[Tensor | None]) -> Tensor:
        """Give what the layers that learn make of tokens."""
        for layer in self.together:
            hidden = layer(hidden, sizes, seen)
        return hidden


class Judge(Encoder):
    """
    Reads passages, each with some claims or one question.

    The tokens of a claim see the claim and the passage; those of the passage see the passage alone, so that one reading
    of it serves all its claims. A question and its passage see each other.
    """

    def __init__(self, weights: Weights) -> None:
        super().__init__(weights)
        self.of_claim = nn.Parameter(torch.zeros(weights.hidden))
        self.of_question = nn.Parameter(torch.zeros(weights.hidden))
        self.sharpness = nn.Parameter(torch.tensor([8.0, 8.0]))
        self.words_in = nn.Linear(4 * weights.hidden + 2, INNER)
        self.words_out = nn.Linear(INNER, 1)
        pooled = 5 * weights.hidden + 2 * INNER + 2
        self.verdict_in, self.verdict_out = nn.Linear(pooled, 256), nn.Linear(256, 3)
        self.answer_in, self.answer_out = nn.Linear(pooled, 256), nn.Linear(256, 1)
        self.sought = nn.Linear(weights.hidden, weights.hidden)
        self.place_in, self.place_out = nn.Linear(4 * weights.hidden + 2, INNER), nn.Linear(INNER, 1)
        # Of a hundred tokens, all alike, one or none is likely to begin with.
        nn.init.constant_(self.place_out.bias, -5.0)

    def forward(self, readings: Sequence[Reading]) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
        """Judge all claims, and find which questions are answered."""
        sizes = [len(reading.ids) for reading in readings]
        owners = [torch.from_numpy(reading.owners) for reading in readings]
        own = [(o[:, None] == o[None]) for o in owners]
        # What a passage says to a question is found by reading it with the question in mind; a question is read alone.
        both = [
            torch.ones_like(mask) if reading.asked[1] else mask | (o[None] == 0)
            for mask, o, reading in zip(own, owners, readings, strict=True)
        ]
        kind = torch.from_numpy(np.concatenate([reading.kinds for reading in readings]))
        ids = np.concatenate([reading.ids for reading in readings])
        words, alone = self.read_apart(ids, [n for reading in readings for n in reading.lengths], sizes, own)
        hidden = alone + torch.stack([torch.zeros_like(self.of_claim), self.of_claim, self.of_question])[kind]
        hidden = self.read_together(hidden, sizes, both)
        features, texts, places = [], [], []
        for text, far, near, reading in zip(*(x.split(sizes) for x in (words, alone, hidden)), readings, strict=True):
            parts = [x.split(reading.lengths) for x in (text, far, near)]
            for number in range(1, len(reading.lengths)):
                features.append(self._beside(*(part[0] for part in parts), *(part[number] for part in parts)))
                texts.append((parts[2][0], parts[2][number]))
                if reading.asked[number]:
                    places.append(self._places(*(part[number] for part in parts), *(part[0] for part in parts)))
        inner = F.gelu(self.words_in(torch.cat(features)))
        wrong = self.words_out(inner)[:, 0]
        lengths = [len(text) for _, text in texts]
        pooled = torch.stack(
            [
                self._pooled(*pair, *rest)
                for pair, *rest in zip(texts, inner.split(lengths), wrong.split(lengths), strict=True)
            ]
        )
        verdicts = self.verdict_out(F.gelu(self.verdict_in(pooled)))
        scores = self.place_out(F.gelu(self.place_in(torch.cat(places))))[:, 0] if places else verdicts.new_zeros(0)
        answered = self.answer_out(F.gelu(self.answer_in(pooled)))[:, 0]
        return verdicts, answered, wrong, list(scores.split([len(one) for one in places]))

    def _places(self, words: Tensor, alone: Tensor, read: Tensor, *passage: Tensor) -> Tensor:
        """Lay each token of the passage beside those of a question that are like it, and what the question seeks."""
        likeness = [_cosines(of_passage, of_text) for of_passage, of_text in zip(passage, (words, alone), strict=False)]
        likeness = [one[1:-1, 1:-1] for one in likeness]
        beside = F.softmax(self.sharpness[0] * likeness[0] + self.sharpness[1] * likeness[1], 1) @ read[1:-1]
        token, nearest = passage[2][1:-1], [one.amax(1, keepdim=True) for one in likeness]
        return torch.cat([token, beside, (token - beside).abs(), token * self.sought(read[0]), *nearest], 1)

    def _beside(self, words: Tensor, alone: Tensor, read: Tensor, *text: Tensor) -> Tensor:
        """
        Lay each token of a text beside those of the passage that are like it.

        As in Chen et al. 2017, ESIM, section 3.2, arXiv 1609.06038; likeness is of the words' embeddings and of how
        the layers that read every text by itself see them.
        """
        likeness = [_cosines(of_text, of_passage) for of_text, of_passage in zip(text, (words, alone), strict=False)]
        logits = self.sharpness[0] * likeness[0] + self.sharpness[1] * likeness[1]
        # Its marks of start and end stand for nothing.
        weights = F.softmax(logits[:, 1:-1], 1)
        beside, beside_alone = weights @ read[1:-1], weights @ alone[1:-1]
        nearest = [one[:, 1:-1].amax(1, keepdim=True) for one in likeness]
        return torch.cat([text[2], beside, (text[2] - beside).abs(), (text[1] - beside_alone).abs(), *nearest], 1)

    def _pooled(self, passage: Tensor, text: Tensor, inner: Tensor, wrong: Tensor) -> Tensor:
        a, b = (F.normalize(one[1:-1].mean(0), dim=0) * one.shape[1] ** 0.5 for one in (text, passage))
        worst = [inner[1:-1].amax(0), inner[1:-1].mean(0), wrong[1:-1].amax(0)[None], wrong[1:-1].mean(0)[None]]
        return torch.cat([text[0], a, b, (a - b).abs(), a * b, *worst])


class Factuality(Encoder):
    """Reads texts, of each of which a stretch is marked, and tells whether the text states what the stretch says."""

    def __init__(self, weights: Weights) -> None:
        super().__init__(weights)
        self.marks = weights.start_id, weights.end_id
        self._known: dict[bytes, Tensor] = {}
        self.of_stretch = nn.Parameter(torch.zeros(weights.hidden))
        self.stated_in, self.stated_out = nn.Linear(4 * weights.hidden, INNER), nn.Linear(INNER, 1)

    def forward(self, texts: Sequence[tuple[NDArray[np.int64], NDArray[np.bool_]]]) -> Tensor:
        """Give the log-odds for some texts: the tokens of each, and which of them are the stretch's."""
        sizes = [len(pieces) + 2 for pieces, _ in texts]
        marked = torch.from_numpy(np.concatenate([np.pad(inside, 1) for _, inside in texts]))
        alone = torch.cat(self._read_apart_once([pieces for pieces, _ in texts])).float()
        hidden = self.read_together(alone + marked[:, None] * self.of_stretch, sizes, [None] * len(texts))
        parts = zip(hidden.split(sizes), marked.split(sizes), strict=True)
        pooled = [torch.cat([one[0], one[m].mean(0), one[m].amax(0), one[m][0]]) for one, m in parts]
        odds: Tensor = self.stated_out(F.gelu(self.stated_in(torch.stack(pooled))))[:, 0]
        return odds

    def _read_apart_once(self, texts: Sequence[NDArray[np.int64]]) -> list[Tensor]:
        """Keep what the layers that stay make of each text: it is read again with every stretch, at every pass."""
        start, end = self.marks
        new = {key: pieces for pieces in texts if (key := pieces.tobytes()) not in self._known}
        if new:
            sizes = [len(pieces) + 2 for pieces in new.values()]
            ids = np.concatenate([[start, *pieces, end] for pieces in new.values()])
            _, alone = self.read_apart(ids, sizes, sizes, [None] * len(sizes))
            self._known |= dict(zip(new, alone.bfloat16().split(sizes), strict=True))
        return [self._known[pieces.tobytes()] for pieces in texts]


def stored_name(name: str) -> str:
    """Return the name that a parameter has in the adapter's file."""
    if name.startswith("together."):
        _, number, rest = name.split(".", 2)
        name = f"l{int(number) + APART}.{rest}"
    return re.sub(r"\.weight$", ".w", re.sub(r"\.bias$", ".b", name))


def _cosines(some: Tensor, others: Tensor) -> Tensor:
    return F.normalize(some, dim=1) @ F.normalize(others, dim=1).T
