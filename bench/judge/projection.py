"""
Train what the alignment of claims lays over token vectors in Chinese and across languages.

    python -m bench.judge.projection --data DIR --out components/shiguan/claims/token_projection.npz

The vectors of a claim's tokens and those of a text's get a low-rank projection each, and a claim's tokens a weight
(Khattab and Zaharia 2020, ColBERT, section 3, https://arxiv.org/abs/2004.12832, with the encoder as it is). Each
example is a question or a claim beside up to six sentences of the passage that answers or says it, and one of another;
the loss is the cross-entropy of each sentence and of the choice between them. Seeded; nothing kept out is read.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from numpy.typing import NDArray
from torch import Tensor

from bench.judge import sets
from bench.quality.public_sets import DATA
from shiguan.claims.alignment import COMMON, compared_tokens
from shiguan.models.engine import DIMENSIONS, engine
from shiguan.text.sentences import sentence_spans

MOST = {"en_squad2": 4000, "zh_cmrc2018": 1500, "zh_drcd": 1500, "nq": 2600, "qamr": 3000, "jaquad": 1000} | {
    name: 300 if name in ("xq_en", "xq_zh") else 150 for name in sets.XQUAD
}
"""How many questions of each set are read."""
RANK, RATE, BATCH, SENTENCES = 64, 2e-3, 16, 6
_LONGEST = 400
_WITH_ANSWER = 0.6


@dataclass(frozen=True)
class Example:
    """What is said or asked, sentences, and which of them say or answer it."""

    claim: str
    sentences: tuple[str, ...]
    right: frozenset[int]


def examples(folder: Path, chance: random.Random) -> Iterator[Example]:
    """Read questions, sentences with their translations, and modern retellings of classical ones."""
    questions = list(sets.questions(folder))
    chance.shuffle(questions)
    read: Counter[str] = Counter()
    translations: dict[str, dict[str, sets.Question]] = {}
    for one in questions:
        if one.parallel:
            translations.setdefault(one.parallel, {})[one.set] = one
        read[one.set] += 1
        if read[one.set] <= MOST[one.set]:
            answer = one.passage[one.start : one.end] if chance.random() < _WITH_ANSWER else ""
            yield from _example(f"{_asked(one)} {answer}".strip(), one.passage, (one.start, one.end), chance)
    for rows in translations.values():
        for asked, read_in in (("xq_en", "xq_zh"), ("xq_zh", "xq_en")):
            if asked in rows and read_in in rows and chance.random() < 0.5:  # half are enough
                other = rows[read_in]
                yield from _example(_asked(rows[asked]), other.passage, (other.start, other.end), chance)
    for claim, passage, start, end in sets.across_sentences(folder, kept_out=False):
        yield from _example(claim, passage, (start, end), chance)
    for claim, passage, place in sets.tang_sentences(folder, kept_out=False):
        yield from _example(claim, passage, place, chance)


def _asked(question: sets.Question) -> str:
    return question.text.strip().rstrip("?？")


def _example(claim: str, passage: str, place: tuple[int, int], chance: random.Random) -> Iterator[Example]:
    spans = [span for span in sentence_spans(passage) if passage[slice(*span)].strip()]
    right = [at for at, (start, end) in enumerate(spans) if place[1] and start < place[1] and end > place[0]]
    if place[1] and not right:
        return
    others = [at for at in range(len(spans)) if at not in right]
    chosen = sorted(right + chance.sample(others, min(len(others), max(0, SENTENCES - len(right)))))
    texts = tuple(passage[slice(*spans[at])].strip()[:_LONGEST] for at in chosen)
    if texts:
        yield Example(claim, texts, frozenset(n for n, at in enumerate(chosen) if at in right))


class Projection(torch.nn.Module):
    """Lays a claim's tokens beside those of sentences: for each sentence how much of the claim it says."""

    def __init__(self, centre: NDArray[np.float32]) -> None:
        super().__init__()
        self.claim_in, self.text_in = (torch.nn.Parameter(torch.randn(DIMENSIONS, RANK) * 0.05) for _ in range(2))
        self.claim_out, self.text_out = (torch.nn.Parameter(torch.zeros(RANK, DIMENSIONS)) for _ in range(2))
        self.weight = torch.nn.Parameter(torch.zeros(DIMENSIONS))
        self.bias = torch.nn.Parameter(torch.zeros(()))
        self.steepness, self.middle = (torch.nn.Parameter(torch.tensor(value)) for value in (12.0, 0.55))
        self.centre = torch.from_numpy(centre)

    def forward(self, claim: Tensor, sentences: Sequence[Tensor]) -> Tensor:
        """Return the logarithm of the odds of each sentence; shapes: (tokens, 384) each."""
        claim = _unit(claim - self.centre)
        cosines = _unit(claim + claim @ self.claim_in @ self.claim_out) @ self._text(torch.cat(list(sentences))).T
        weights = F.softplus(claim @ self.weight + self.bias)
        best = torch.stack([part.max(1).values for part in cosines.split([len(one) for one in sentences], 1)])
        share: Tensor = best @ (weights / weights.sum())
        return self.steepness * (share - self.middle)

    def _text(self, tokens: Tensor) -> Tensor:
        tokens = _unit(tokens - self.centre)
        return _unit(tokens + tokens @ self.text_in @ self.text_out)


def _unit(vectors: Tensor) -> Tensor:
    return vectors / vectors.norm(dim=-1, keepdim=True).clamp_min(1e-6)


class Vectors:
    """The vectors of every text of the examples; a claim's without those of its names and numbers."""

    def __init__(self, some: Sequence[Example]) -> None:
        self._texts, self._claims = {}, {}
        for text in {text for one in some for text in one.sentences}:
            self._texts[text] = engine().token_vectors(text)[1].astype(np.float16)
        for claim in {one.claim for one in some}:
            places, vectors = engine().token_vectors(claim)
            self._claims[claim] = vectors[compared_tokens(claim, places)].astype(np.float16)

    def of(self, one: Example, other: str) -> tuple[Tensor, list[Tensor], Tensor]:
        """Return a claim's vectors, those of its sentences and of another, and which of them are right."""
        texts = [(self._texts[text], float(at in one.right)) for at, text in enumerate((*one.sentences, other))]
        texts = [(vectors, right) for vectors, right in texts if len(vectors)]
        read = [torch.from_numpy(vectors.astype(np.float32)) for vectors, _ in texts]
        claim = torch.from_numpy(self._claims[one.claim].astype(np.float32))
        return claim, read, torch.tensor([right for _, right in texts])


def loss_of(odds: Tensor, right: Tensor) -> Tensor:
    """Return the loss of one claim: of each sentence by itself, and of the right ones among all."""
    each = F.binary_cross_entropy_with_logits(odds, right, pos_weight=torch.tensor(2.0))
    if not right.any():
        return each
    among = torch.logsumexp(odds, 0) - torch.logsumexp(odds[right > 0], 0)
    return each + among / 2


def train(some: list[Example], model: Projection, vectors: Vectors, chance: random.Random) -> None:
    """Go through the examples once."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0)
    steps = len(some) // BATCH
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, steps + 1, pct_start=0.1)
    chance.shuffle(some)
    seen = 0.0
    for step in range(steps):
        batch = some[step * BATCH : (step + 1) * BATCH]
        losses = []
        for at, one in enumerate(batch):
            claim, sentences, right = vectors.of(one, batch[at - 1].sentences[0])
            if len(claim) and sentences:
                losses.append(loss_of(model(claim, sentences), right))
        loss = torch.stack(losses).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        rate.step()
        seen = 0.98 * seen + 0.02 * loss.item() if seen else loss.item()
        if step % 100 == 0:
            print(f"{step} of {steps} steps, loss {seen:.3f}", flush=True)


def main() -> int:
    """Train and write."""
    parser = argparse.ArgumentParser(description="Train the projection of the alignment.")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    torch.manual_seed(1)
    chance = random.Random(7)
    some = list(examples(chosen.data, chance))
    print(f"{len(some)} examples", flush=True)
    model = Projection(COMMON)
    train(some, model, Vectors(some), chance)
    learned: dict[str, Any] = {
        name: value.detach().numpy().astype(np.float16) for name, value in model.named_parameters()
    }
    np.savez(chosen.out, **learned)
    return 0


if __name__ == "__main__":
    sys.exit(main())
