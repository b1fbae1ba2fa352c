"""
Train and measure what reads whether a text states what a stretch of it says.

    python -m bench.judge.factuality train --data DIR --out FOLDER --until 18:30
    python -m bench.judge.factuality measure --data DIR [--weights FILE]

It learns from pairs of a passage and words of it that were written for it (`stated.tsv.gz`; of every eighth passage
nothing), from half of `golden/cut_claims.tsv.gz`, and from clauses that the rules find stated in passages of the public
sets, which nearly all are. Training goes on from `last.npz` in the folder where there is one; `pack` keeps it.
"""

import argparse
import re
import sys
import time
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.judge.changes import HAN
from bench.judge.sets import paragraphs, tang_passages
from bench.quality.cut_claims import PAIRS, is_learned, read_pairs
from bench.quality.minimal_pairs import half_of
from bench.quality.pair_sources import read_books
from bench.quality.rows import auroc
from shiguan.claims.restatement import restates
from shiguan.models.factuality import ADAPTER, FactualityReader, window_of
from shiguan.text.sentences import sentence_spans

STATED = Path(__file__).with_name("stated.tsv.gz")
CLAUSES = 6_000
"""Of each language."""
_CUTS = {
    "en": re.compile(r"(?<=[,;:])\s+|\s+(?=(?:and|that|who|which|but|when|because|while|after|to|as|where|in|by)\b)"),
    "zh": re.compile(r"(?<=[，；：、])"),
}
_QUOTES = re.compile(r"[\"“”‘’「」『』《》.。！？!?]")
_LEADING = re.compile(r"(?:and|but|that|because|when|while|if)\s+")
_RATES = {"adapter": 8e-4, "small": 1.5e-4, "heads": 1e-3}
_BATCH_TOKENS, _WARM_UP, _KEEP_EVERY = 1600, 20, 420.0


@dataclass(frozen=True)
class Stretch:
    """Words of a passage, and whether it states what they say."""

    source: str
    passage: str
    place: tuple[int, int]
    stated: bool
    found: bool = True
    """Whether the rules find that it does."""

    @property
    def language(self) -> str:
        """Return the passage's language."""
        return "zh" if HAN.search(self.passage) else "en"

    @property
    def is_kept_out(self) -> bool:
        """Return whether nothing is trained on it."""
        if self.source == "golden":
            return not is_learned(self.passage)
        return zlib.crc32(self.passage.encode()) % 8 == 7


def stretches(folder: Path) -> Iterator[Stretch]:
    """Read what was written, and clauses of the public sets; of what minimal pairs and evidence measure, nothing."""
    measured = "\n".join(text for book in read_books(folder) for text in book.texts if half_of(text) == "B")
    for source, file in (("golden", PAIRS), ("written", STATED)):
        labels: dict[tuple[str, tuple[int, int]], set[str]] = defaultdict(set)
        places = [(kind, passage, restates(claim, passage), claim) for _, kind, passage, claim in read_pairs(file)]
        known = [(kind, passage, found or words_of(claim, passage), found) for kind, passage, found, claim in places]
        for kind, passage, place, _ in known:
            if place:
                labels[passage, place].add(kind)
        for kind, passage, place, found in known:
            # Where both are said of the same words, somebody else is put in the place of who did it.
            if place and len(labels[passage, place]) == 1 and (source == "golden" or passage not in measured):
                yield Stretch(source, passage, place, kind == "T", found is not None)
    for language in ("en", "zh"):
        yield from _clauses(folder, language, measured)


def alone(known: Sequence[Stretch], draw: np.random.Generator) -> Iterator[Stretch]:
    """Yield the words of stretches as sentences, alone or among others: without a frame nothing takes them back."""
    said: dict[str, list[str]] = {"en": [], "zh": []}
    for one in known:
        words = one.passage[slice(*one.place)].strip(" ,;:，；：、")
        if words and not _QUOTES.search(words):
            said[one.language].append(words[0].upper() + words[1:])
    for language, sentences in said.items():
        gap, stop = (" ", ".") if language == "en" else ("", "。")
        for words in sentences:
            others = [
                f"{sentences[at]}{stop}" for at in draw.integers(len(sentences), size=draw.choice([0, 0, 1, 2, 3]))
            ]
            first = int(draw.integers(len(others) + 1))
            before = gap.join([*others[:first], ""])
            passage = gap.join([*others[:first], f"{words}{stop}", *others[first:]])
            yield Stretch("alone", passage, (len(before), len(before) + len(words)), stated=True)


def words_of(claim: str, passage: str) -> tuple[int, int] | None:
    """Find a claim's words in a passage; a name put in the place of a pronoun may not be there."""
    words = re.findall(r"\w" if HAN.search(claim) else r"[^\W_]+", claim)
    runs = (r"\W{0,4}".join(map(re.escape, words[first:])) for first in range(min(4, len(words) - 1)))
    found = (re.search(run, passage, re.IGNORECASE) for run in runs)
    return next((one.span() for one in found if one), None)


def _clauses(folder: Path, language: str, measured: str) -> Iterator[Stretch]:
    """Cut clauses out of sentences, beside their neighbours, where the rules find them stated."""
    draw = np.random.default_rng(5)
    texts = [paragraph for text in paragraphs(folder) for paragraph in text.paragraphs]
    texts += tang_passages(folder, kept_out=False).values()
    texts = [text for text in texts if bool(HAN.search(text)) == (language == "zh") and text not in measured]
    made = 0
    for at in draw.permutation(len(texts)):
        text = re.sub(r"\s+", " ", texts[at])[:6000]
        spans = sentence_spans(text)
        for number in draw.permutation(len(spans))[:3]:
            beside = spans[max(0, number - 1)][0], spans[min(len(spans) - 1, number + 1)][1]
            passage, pieces = text[slice(*beside)], _CUTS[language].split(text[slice(*spans[number])])
            if len(passage) > 900:
                continue
            for first in draw.permutation(len(pieces))[:4]:
                claim = " ".join(pieces[first : first + draw.integers(1, 6)]).strip(" ,;:，；：、.。")
                claim = _LEADING.sub("", claim.replace(" ", "") if language == "zh" else claim)
                if len(claim) >= (4 if language == "zh" else 12) and (place := restates(claim, passage)):
                    made += 1
                    yield Stretch("clauses", passage, place, stated=True)
        if made >= CLAUSES:
            return


@lru_cache(200_000)
def tokens(stretch: Stretch) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the tokens of the window around a stretch, and which of them are its."""
    pieces, inside = window_of(stretch.passage, *stretch.place)
    return np.array(pieces), inside


def train(options: argparse.Namespace) -> None:
    """Learn until the learning rate is nothing."""
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits

    from bench.judge.network import Factuality
    from bench.judge.train import keep, optimizer_of, pace, take_over, time_of_day, trained
    from shiguan.models.weights import Weights, weights_file

    torch.manual_seed(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    known = [one for one in stretches(options.data) if not one.is_kept_out and tokens(one)[1].any()]
    written, clauses = ([one for one in known if (one.source == "clauses") == is_clause] for is_clause in (False, True))
    clauses += [one for one in alone(written, np.random.default_rng(options.seed)) if tokens(one)[1].any()]
    began = time.time()
    until = time_of_day(options.until, began)
    model = Factuality(Weights(weights_file()))
    if (options.out / "last.npz").exists():
        take_over(model, options.out / "last.npz")
    learned = trained(model)
    optimizer = optimizer_of(learned, _RATES)
    draw = np.random.default_rng([options.seed, int(began)])
    step, read, seen, kept, share = 0, 0, 0.6, began, 1.0
    while share > 0:
        # As many clauses of books and sentences alone as of what was written: they are easy, and true.
        chosen = draw.permutation(len(clauses))[: len(written)]
        waiting = draw.permutation(np.array([*written, *(clauses[at] for at in chosen)], object)).tolist()
        while waiting and share > 0:
            batch: list[Stretch] = []
            while waiting and sum(len(tokens(one)[0]) for one in batch) < _BATCH_TOKENS:
                batch.append(waiting.pop())
            share = pace(time.time(), began, until)
            for group in optimizer.param_groups:
                group["lr"] = group["rate"] * min(1.0, (step + 1) / _WARM_UP) * share
            # Some labels are disputable.
            labels = torch.tensor([0.98 if one.stated else 0.02 for one in batch])
            with torch.autocast("cpu", torch.bfloat16):
                odds = model([tokens(one) for one in batch])
            loss = binary_cross_entropy_with_logits(odds.float(), labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(learned.values(), 1.0)
            optimizer.step()
            step, read = step + 1, read + sum(len(tokens(one)[0]) for one in batch)
            seen = 0.97 * seen + 0.03 * loss.item()
            if step % 50 == 0:
                spent = f"{time.time() - began:.0f} s"
                print(step, spent, f"{read} tokens, loss {seen:.3f}, pace {share:.2f}", flush=True)
            if time.time() - kept > _KEEP_EVERY:
                kept = time.time()
                keep(options.out / "last.npz", learned)
    keep(options.out / "last.npz", learned)


def measure(options: argparse.Namespace) -> None:
    """Print what is told apart of what is kept out, and what would be lost and found at some thresholds."""
    reader = FactualityReader(options.weights)
    known = [one for one in stretches(options.data) if one.is_kept_out]
    odds = np.array([reader.log_odds(one.passage, *one.place) for one in known])
    print(
        "| what the rules find | stated | not | AUROC | "
        + " | ".join(f"below {limit}: stated, not" for limit in options.limits)
        + " |"
    )
    print("|---|---:|---:|---:|" + "---|" * len(options.limits))
    for source in ("golden", "written", "clauses"):
        for language in ("en", "zh"):
            at = [n for n, one in enumerate(known) if one.source == source and one.language == language and one.found]
            stated, here = np.array([known[n].stated for n in at]), odds[at]
            apart = f"{auroc(here[stated].tolist(), here[~stated].tolist()):.3f}" if 0 < stated.sum() < len(at) else ""
            shares = [
                " · ".join(f"{(here[part] < limit).mean():.3f}" for part in (stated, ~stated) if part.any())
                for limit in options.limits
            ]
            counted = f"{stated.sum()} | {(~stated).sum()}"
            print(f"| {source}, {language} | {counted} | {apart} | " + " | ".join(shares) + " |")


def main() -> int:
    """Train or measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tasks = parser.add_subparsers(required=True)
    learning, measuring = tasks.add_parser("train"), tasks.add_parser("measure")
    for one in (learning, measuring):
        one.add_argument("--data", type=Path, required=True)
    learning.add_argument("--out", type=Path, required=True)
    learning.add_argument("--until", required=True, help="the time of the day, UTC, at which the learning rate is 0")
    learning.add_argument("--seed", type=int, default=1)
    learning.set_defaults(task=train)
    measuring.add_argument("--weights", type=Path, default=ADAPTER)
    measuring.add_argument("--limits", type=float, nargs="+", default=[-4.0, -3.0, -2.0, -1.0, 0.0])
    measuring.set_defaults(task=measure)
    options = parser.parse_args()
    options.task(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
