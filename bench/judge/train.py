"""
Train the judge.

    python -m bench.judge.train --examples FILE.npz --out FOLDER --until 10:55 [--processes 2]

Goes on from `last.npz` in the folder where there is one. The learning rate falls to nothing in the last part of the
time, and every few minutes what was learned is kept; weights are averaged over the last steps. Each process reads its
own examples on one thread, and after every step all have the mean of what each has learned: on a busy machine that
waits less than threads that share each product.
"""

import argparse
import datetime
import json
import os
import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812 - its usual name
from numpy.typing import NDArray
from torch import Tensor

from bench.judge.changes import ANSWERED, NOT_ANSWERED, NOT_SUPPORTED
from bench.judge.network import Judge, Reading, stored_name
from bench.judge.prepare import UNKNOWN
from shiguan.models.weights import Weights, weights_file

SHARES = {
    "classical": 0.03, "told_zh": 0.01, "tang": 0.03, "zh_cmrc2018": 0.01, "zh_drcd": 0.01, "across": 0.03,
    "book_en": 0.03, "told_en": 0.02, "en_squad2": 0.02, "nq": 0.02, "qamr": 0.01, "cad": 0.02, "wice": 0.02,
    "written_en": 0.15, "written_zh": 0.04, "written_across": 0.03,
    "asked_en_squad2": 0.02, "asked_nq": 0.02, "asked_qamr": 0.005, "asked_zh_cmrc2018": 0.005, "asked_zh_drcd": 0.005,
    "asked_jaquad": 0.005, "asked_xq": 0.02, "asked_told_zh": 0.003, "asked_tang": 0.007, "asked_repeated": 0.005,
    "asked_written_en": 0.03, "asked_written_zh": 0.02, "asked_written_across": 0.02,
    "asked_read_en": 0.04, "asked_read_zh": 0.02, "asked_read_across": 0.02,
    "quoted_written_en": 0.12, "quoted_written_zh": 0.05, "quoted_written_across": 0.04, "quoted_nq": 0.07,
    "quoted_en_squad2": 0.03, "quoted_zh_cmrc2018": 0.01, "quoted_zh_drcd": 0.02,
    "quoted_read_en": 0.16, "quoted_read_zh": 0.05, "quoted_read_across": 0.06,
}  # fmt: skip
"""How often a set is drawn."""
RATES = {"adapter": 8e-4, "small": 1.5e-4, "heads": 1.2e-3}
BATCH_TOKENS = 1200
"""Of one process."""
WARM_UP, KEEP_EVERY, AVERAGE = 15, 240.0, 0.99


Read = tuple[Reading, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""A passage with its claims or a question, their labels, the marks of their tokens, and the places of the answers."""


class Examples:
    """What `prepare` made."""

    def __init__(self, path: Path) -> None:
        stored = np.load(path)
        self.ids, self.wrong, self.lengths, self.labels = (stored[k] for k in ("ids", "wrong", "lengths", "labels"))
        self.texts = np.concatenate([[0], np.cumsum(stored["groups"])])
        self.at = np.concatenate([[0], np.cumsum(self.lengths)])
        self.answers = stored["answers"]
        self.sets = stored["sets"][stored["of_set"]]

    def readings(self, number: int, chance: np.random.Generator) -> Iterator[Read]:
        """Give a passage with its claims, or with a question that it answers, and again with one that it does not."""
        passage, end = self.texts[number], self.texts[number + 1]
        texts = np.arange(passage + 1, end)
        labels = self.labels[texts]
        if (claims := texts[labels < ANSWERED]).size:
            yield self._reading(passage, claims)
        for label in (ANSWERED, NOT_ANSWERED):
            if (asked := texts[labels == label]).size:
                yield self._reading(passage, [chance.choice(asked)])

    def _reading(self, passage: int, texts: Iterable[int]) -> Read:
        chosen = [passage, *texts]
        tokens = [slice(self.at[text], self.at[text + 1]) for text in chosen]
        labels = self.labels[chosen].astype(np.int64)
        reading = Reading(
            np.concatenate([self.ids[place] for place in tokens]).astype(np.int64),
            tuple(int(n) for n in self.lengths[chosen]),
            tuple((labels >= ANSWERED).tolist()),
        )
        marks = np.concatenate([self.wrong[place] for place in tokens[1:]]).astype(np.int64)
        return reading, labels[1:], marks, self.answers[chosen[1:]].astype(np.int64)

    def drawn(self, chance: np.random.Generator) -> Iterator[int]:
        """Draw examples for ever: a set by its share, and each of its examples once before any comes again."""
        names = [name for name in SHARES if (self.sets == name).any()]
        shares = np.array([SHARES[name] for name in names])
        waiting: dict[str, list[int]] = defaultdict(list)
        while True:
            name = names[int(chance.choice(len(names), p=shares / shares.sum()))]
            if not waiting[name]:
                waiting[name] = chance.permutation(np.flatnonzero(self.sets == name)).tolist()
            yield waiting[name].pop()


def place_losses(answered: Tensor, scores: Sequence[Tensor], answers: Tensor) -> tuple[Tensor, Tensor]:
    """
    Give each question's loss, and the log-odds that it is answered.

    One of the passage's tokens, or none, is drawn: the loss is the logarithm of the probability of drawing one of the
    answer's, or none where there is no answer.
    """
    found, odds = [], []
    for none, of_tokens, (start, end) in zip(-answered, scores, answers.tolist(), strict=True):
        whole = torch.logsumexp(of_tokens, 0)
        right = torch.logsumexp(of_tokens[start - 1 : end - 1], 0) if end else none
        found.append(torch.logaddexp(whole, none) - right)
        odds.append(whole - none)
    return torch.stack(found), torch.stack(odds)


def losses(verdicts: Tensor, words: Tensor, labels: Tensor, marks: Tensor) -> tuple[Tensor, Tensor]:
    """Give the losses of the claims' verdicts and of their words; each is the batch's mean."""
    asked = labels >= ANSWERED
    verdicts, labels = verdicts[~asked], labels[~asked]
    logs = F.log_softmax(verdicts, 1)
    known = labels != NOT_SUPPORTED
    # Which of the two it is counts less than that it is one of them.
    not_supported = -torch.logsumexp(logs[:, 1:], 1)
    exact = F.nll_loss(logs, labels.clamp(max=2), reduction="none")
    of_claims = torch.where(labels == 0, exact, torch.where(known, 0.7 * not_supported + 0.3 * exact, not_supported))
    told = marks != UNKNOWN
    # Few words are wrong, so that they count more.
    weight = torch.where(marks == 1, 2.0, 1.0)[told]
    of_words = F.binary_cross_entropy_with_logits(words[told], marks[told].float(), weight, reduction="sum")
    return of_claims.sum() / (len(of_claims) + 1), of_words / (told.sum() + 1)


def trained(model: Judge) -> dict[str, Tensor]:
    """Give what is learned, by its names in the adapter's file."""
    return {stored_name(name): value for name, value in model.named_parameters() if value.requires_grad}


def keep(path: Path, values: dict[str, Tensor]) -> None:
    """Write the weights, whole or not at all."""
    new = path.with_name(".new.npz")
    np.savez(new, **{name: value.detach().numpy() for name, value in values.items()})
    new.replace(path)


def take_over(model: Judge, path: Path) -> None:
    """Take over what was kept."""
    with torch.no_grad(), np.load(path) as stored:
        for name, value in trained(model).items():
            if name in stored:  # what is new begins anew
                value.copy_(torch.from_numpy(stored[name].astype(np.float32)))


def optimizer_of(learned: dict[str, Tensor], rates: dict[str, float]) -> torch.optim.Optimizer:
    """Return what changes the weights, each group of them at its rate: adapters, what else is in layers, and heads."""
    groups: dict[str, list[Tensor]] = {name: [] for name in rates}
    for name, value in learned.items():
        kind = "small" if re.match(r"l\d+\.", name) else "heads"
        groups["adapter" if name.endswith((".down", ".up")) else kind].append(value)
    parts = [{"params": values, "rate": rates[kind]} for kind, values in groups.items()]
    return torch.optim.AdamW(parts, betas=(0.9, 0.98), weight_decay=0.01)


def time_of_day(written: str, now: float) -> float:
    """Return when a time of the day, in UTC, comes next."""
    began = datetime.datetime.fromtimestamp(now, datetime.UTC)
    until = datetime.datetime.combine(began, datetime.time.fromisoformat(written), datetime.UTC)
    return (until if until > began else until + datetime.timedelta(days=1)).timestamp()


def pace(now: float, began: float, until: float) -> float:
    """Give the share of the learning rate: whole for two fifths of the time, then falling to nothing."""
    return max(0.0, min(1.0, (until - now) / (0.6 * (until - began))))


class Trainer:
    """One of the processes: its model, its examples, and what it has in common with the others."""

    def __init__(self, rank: int, options: argparse.Namespace, began: float) -> None:
        self.rank, self.options, self.began = rank, options, began
        self.examples = Examples(options.examples)
        self.chance = np.random.default_rng([options.seed, rank, int(began)])
        self.queue = self.examples.drawn(self.chance)
        self.model = Judge(Weights(weights_file()))
        if (options.out / "last.npz").exists():
            take_over(self.model, options.out / "last.npz")
        self.learned = trained(self.model)
        self.average = {name: value.detach().clone() for name, value in self.learned.items()}
        self.optimizer = optimizer_of(self.learned, RATES)
        self.step = self.tokens = 0
        self.seen: dict[str, float] = {}

    def learn(self, share: float) -> None:
        """Take one step at a share of the learning rates."""
        for group in self.optimizer.param_groups:
            group["lr"] = group["rate"] * min(1.0, (self.step + 1) / WARM_UP) * share
        batch: list[Read] = []
        while (size := sum(len(reading.ids) for reading, *_ in batch)) < BATCH_TOKENS:
            batch += self.examples.readings(next(self.queue), self.chance)
        labels, marks, places = (torch.from_numpy(np.concatenate([one[at] for one in batch])) for at in (1, 2, 3))
        with torch.autocast("cpu", torch.bfloat16):
            found = self.model([one[0] for one in batch])
        verdicts, answers, words = (one.float() for one in found[:3])
        of_claims, of_words = losses(verdicts, words, labels, marks)
        asked = labels >= ANSWERED
        of_questions, odds = torch.zeros(()), torch.zeros(0)
        if asked.any():
            each, odds = place_losses(answers[asked], [one.float() for one in found[3]], places[asked])
            of_questions = each.sum() / (len(each) + 1)
        self.optimizer.zero_grad(set_to_none=True)
        (of_claims + of_questions + of_words).backward()
        self._share_gradients()
        torch.nn.utils.clip_grad_norm_(self.learned.values(), 1.0)
        self.optimizer.step()
        self.step += 1
        self.tokens += size * self.options.processes
        with torch.no_grad():
            for name, value in self.learned.items():
                self.average[name].lerp_(value, 1 - min(AVERAGE, self.step / (self.step + 10)))
        right = ((verdicts.argmax(1) == 0) == (labels == 0))[~asked]
        answered = (odds > 0) == (labels == ANSWERED)[asked]
        for name, now in {
            "claims": of_claims, "questions": of_questions, "words": of_words, "right": right.float().mean(),
            "answered": answered.float().mean(),
        }.items():  # fmt: skip
            if torch.isfinite(now):
                self.seen[name] = 0.98 * self.seen.get(name, float(now.detach())) + 0.02 * float(now.detach())

    def _share_gradients(self) -> None:
        # A batch without questions has none of theirs.
        each = [torch.zeros_like(v) if v.grad is None else v.grad for v in self.learned.values()]
        gradients = torch.cat([one.reshape(-1) for one in each])
        dist.all_reduce(gradients)
        gradients /= self.options.processes
        parts = gradients.split([value.numel() for value in self.learned.values()])
        for value, part in zip(self.learned.values(), parts, strict=True):
            value.grad = part.view_as(value)

    def report(self, share: float) -> None:
        """Print where training stands."""
        seen = {name: round(value, 3) for name, value in self.seen.items()}
        spent = f"{time.time() - self.began:.0f} s"
        print(self.step, spent, seen, self.tokens, f"tokens, pace {share:.2f}", flush=True)

    def keep(self) -> None:
        """Write what was learned, and how well it fits."""
        keep(self.options.out / "last.npz", self.learned)
        keep(self.options.out / "average.npz", self.average)
        with (self.options.out / "progress.jsonl").open("a") as file:
            file.write(json.dumps({"tokens": self.tokens, "step": self.step, **self.seen}) + "\n")


def run(rank: int, options: argparse.Namespace, began: float, until: float) -> None:
    """Train in one of the processes, until the learning rate is nothing."""
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    meeting = f"file://{options.out}/.meeting{int(began)}"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=options.processes)
    trainer = Trainer(rank, options, began)
    kept, share = time.time(), torch.ones(1)
    while share[0] > 0:
        share[0] = pace(time.time(), began, until)
        dist.broadcast(share, 0)
        trainer.learn(float(share[0]))
        if rank == 0 and trainer.step % 20 == 0:
            trainer.report(float(share[0]))
        if rank == 0 and time.time() - kept > KEEP_EVERY:
            kept = time.time()
            trainer.keep()
    if rank == 0:
        trainer.keep()
        trainer.report(0)


def main() -> int:
    """Start the processes."""
    parser = argparse.ArgumentParser(description="Train the judge.")
    parser.add_argument("--examples", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--until", required=True, help="the time of the day, UTC, at which the learning rate is nothing"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    now = time.time()
    until = time_of_day(options.until, now)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    torch.multiprocessing.spawn(run, (options, now, until), nprocs=options.processes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
