"""The judge in torch, for training: the packaged encoder with a low-rank adapter and two heads."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from numpy.typing import NDArray
from torch import Tensor, nn

from shiguan.models.weights import Weights, unpack_blocks

APART = 4
"""The layers, from the first, that read every text by itself; they stay as they are in the packaged weights."""
RANK = 16
SCALE = 2.0
"""What the product of an adapter's two matrices is multiplied by, which lets them learn at one rate with the rest."""


class LowRank(nn.Module):
    """A matrix that stays, and a product of two small ones that is learned (Hu et al. 2021, LoRA, arXiv 2106.09685)."""

    def __init__(self, weights: Weights, name: str) -> None:
        super().__init__()
        columns = weights.inner if name.endswith(".fo") else weights.hidden
        matrix = torch.from_numpy(unpack_blocks(weights.blocks(name + ".w", columns)))
        self.register_buffer("matrix", matrix, persistent=False)
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
    """
    One passage with its claims, as tokens one after another.

    :param ids: Tokens of the passage and of each claim, each with its marks of start and end.
    :param lengths: Of the passage and of each claim.
    """

    ids: NDArray[np.int64]
    lengths: tuple[int, ...]

    @property
    def owners(self) -> NDArray[np.int64]:
        """The text that each token is of; 0 is the passage."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)


class Layer(nn.Module):
    """A layer of the encoder."""

    def __init__(self, weights: Weights, number: int) -> None:
        super().__init__()
        self.heads = weights.heads
        for name in ("q", "k", "v", "ao", "fi", "fo"):
            setattr(self, name, LowRank(weights, f"l{number}.{name}"))
        self.aln, self.oln = Norm(weights, f"l{number}.aln"), Norm(weights, f"l{number}.oln")

    def forward(self, inputs: Tensor, sizes: Sequence[int], seen: Sequence[Tensor]) -> Tensor:
        """Let the tokens of each reading see those that its mask allows."""

        def split(tokens: Tensor) -> Tensor:
            return tokens.view(len(tokens), self.heads, -1).transpose(0, 1)

        parts = zip(*(split(m(inputs)).split(sizes, 1) for m in (self.q, self.k, self.v)), seen, strict=True)
        mixed = [F.scaled_dot_product_attention(q, k, v, attn_mask=mask) for q, k, v, mask in parts]
        attended = torch.cat(mixed, 1).transpose(0, 1).reshape(inputs.shape)
        hidden = self.aln(inputs + self.ao(attended))
        result: Tensor = self.oln(hidden + self.fo(F.gelu(self.fi(hidden))))
        return result


class Judge(nn.Module):
    """
    Reads passages, each with some claims: the passage by itself, each claim with the passage.

    The tokens of a claim see the claim and the passage; those of the passage see the passage alone, so that one reading
    of it serves all its claims.
    """

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.words = weights.blocks("emb.word", weights.hidden)
        kind = weights.floats("emb.type")[: weights.hidden]
        positions = weights.floats("emb.pos").reshape(-1, weights.hidden) + kind
        self.register_buffer("positions", torch.from_numpy(positions), persistent=False)
        self.first = Norm(weights, "emb.ln")
        layers = [Layer(weights, number) for number in range(weights.layers)]
        self.apart, self.together = nn.ModuleList(layers[:APART]), nn.ModuleList(layers[APART:])
        for parameter in (*self.first.parameters(), *self.apart.parameters()):
            parameter.requires_grad = False
        self.of_claim = nn.Parameter(torch.zeros(weights.hidden))
        self.words_head = nn.Sequential(nn.Linear(weights.hidden, 128), nn.GELU(), nn.Linear(128, 1))
        self.head = nn.Sequential(nn.Linear(5 * weights.hidden + 2, 256), nn.GELU(), nn.Linear(256, 3))

    def forward(self, readings: Sequence[Reading]) -> tuple[Tensor, Tensor]:
        """
        Judge all claims.

        :returns: For each claim the logits of supported, not said and contradicted, and for each token of the claims
            (marks of start and end included) that of being unsupported.
        """
        sizes = [len(reading.ids) for reading in readings]
        owners = [torch.from_numpy(reading.owners) for reading in readings]
        own = [(o[:, None] == o[None]) for o in owners]
        both = [mask | (o[None] == 0) for mask, o in zip(own, owners, strict=True)]
        owner = torch.cat(owners)
        with torch.no_grad():
            ids = np.concatenate([reading.ids for reading in readings])
            places = np.concatenate([np.arange(n) for reading in readings for n in reading.lengths])
            hidden = self.first(torch.from_numpy(unpack_blocks(self.words[ids])) + self.positions[places])
            for layer in self.apart:
                hidden = layer(hidden, sizes, own)
        hidden = hidden + self.of_claim * (owner > 0)[:, None]
        for layer in self.together:
            hidden = layer(hidden, sizes, both)
        return self._heads(hidden, readings, owner)

    def _heads(self, hidden: Tensor, readings: Sequence[Reading], owner: Tensor) -> tuple[Tensor, Tensor]:
        lengths = [n for reading in readings for n in reading.lengths]
        of_passage = [at == 0 for reading in readings for at in range(len(reading.lengths))]
        texts = hidden.split(lengths)
        means = torch.stack([F.normalize(text[1:-1].mean(0), dim=0) for text in texts]) * hidden.shape[1] ** 0.5
        starts = torch.stack([text[0] for text in texts])
        claims = torch.tensor([at for at, passage in enumerate(of_passage) if not passage])
        passages = torch.tensor(np.maximum.accumulate(np.where(of_passage, np.arange(len(lengths)), 0)))[claims]
        a, b = means[claims], means[passages]
        unsupported = self.words_head(hidden[owner > 0])[:, 0]
        words = [one[1:-1] for one in unsupported.split([lengths[at] for at in claims.tolist()])]
        worst = torch.stack([torch.stack([one.max(), one.mean()]) for one in words])
        features = torch.cat([starts[claims], a, b, (a - b).abs(), a * b, worst], 1)
        return self.head(features), unsupported
