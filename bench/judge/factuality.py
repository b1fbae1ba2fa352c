"""
Train and measure what reads whether a text states what a stretch of it says.

    python -m bench.judge.factuality add --data DIR FILE …
    python -m bench.judge.factuality train --data DIR --out FOLDER --until 18:30
    python -m bench.judge.factuality measure --data DIR [--weights FILE]

It learns from `stated.tsv.gz`: stretches of passages, T or F (of every eighth passage nothing), and from half of
`golden/cut_claims.tsv.gz`. `add` appends what was written, lines of `T|F`, a passage and a claim of its words, where
these are found; of passages of the public sets only the place is kept, and of those kept out nothing. Training goes on
from `last.npz` in the folder where there is one; `pack` keeps it.
"""

import argparse
import gzip
import io
import re
import sys
import time
import zlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.judge.changes import HAN
from bench.judge.sets import book_texts, paragraphs, tang_passages
from bench.quality.cut_claims import PAIRS, is_learned, read_pairs
from bench.quality.minimal_pairs import half_of
from bench.quality.pair_sources import read_books
from bench.quality.public_sets import read
from bench.quality.rows import auroc
from shiguan.claims.restatement import places
from shiguan.models.factuality import ADAPTER, FactualityReader, window_of

STATED = Path(__file__).with_name("stated.tsv.gz")
_CLOSED = ("en_squad2", "zh_cmrc2018", "zh_drcd", "tang_modern2classical")
_REFERENCE = re.compile(r"@(\w{8}):(\d+):(\d+)")
_QUOTES = re.compile(r"[\"“”‘’「」『』《》.。！？!?]")
_RATES = {"adapter": 6e-4, "small": 1.2e-4, "heads": 8e-4}
_BATCH_TOKENS, _WARM_UP, _KEEP_EVERY = 1600, 20, 420.0


@dataclass(frozen=True)
class Stretch:
    """Words of a passage, and whether it states what they say."""

    source: str
    """`written` by hand, `cut` or `joined` out of sentences of the public sets by rule, `golden`, or `alone`."""
    passage: str
    places: tuple[tuple[int, int], ...]
    stated: bool

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


def texts_of(folder: Path) -> dict[str, str]:
    """Read the texts that are learned from, by what their rows say of them."""
    read_from = [*paragraphs(folder), *book_texts(folder, kept_out=False)]
    texts = [paragraph for text in read_from for paragraph in text.paragraphs]
    texts += [*tang_passages(folder, kept_out=False).values()]
    texts += [row["text"] for row in read(folder / "en_multihop" / "corpus.jsonl.gz")]
    plain = (re.sub(r"\s+", " ", text) for text in texts)
    return {f"{zlib.crc32(text.encode()):08x}": text for text in plain}


def stretches(folder: Path) -> Iterator[Stretch]:
    """Read what is learned from and measured; of what minimal pairs and evidence measure, nothing."""
    for _, kind, passage, claim in read_pairs(PAIRS):
        if found := next(places(claim, passage), None):
            yield Stretch("golden", passage, tuple(found), kind == "T")
    measured = "\n".join(text for book in read_books(folder) for text in book.texts if half_of(text) == "B")
    texts = texts_of(folder)
    with gzip.open(STATED, "rt", encoding="utf-8") as rows:
        for row in rows:
            source, kind, passage, spans = row.rstrip("\n").split("\t")
            if reference := _REFERENCE.fullmatch(passage):
                passage = texts.get(reference[1], "")[int(reference[2]) : int(reference[3])]
            if passage and passage not in measured:
                found = [tuple(map(int, span.split("-"))) for span in spans.split(",")]
                yield Stretch(source, passage, tuple((start, end) for start, end in found), kind == "T")


def add(options: argparse.Namespace) -> None:
    """Append pairs to what is learned from."""
    refer, rows = _references(options.data), list[str]()
    for file in options.files:
        source = file.stem.rstrip("0123456789")
        for line in file.read_text("utf-8").splitlines():
            kind, passage, claim = line.split("\t")
            passage = re.sub(r"\s+", " ", passage).strip()
            found = next(places(claim, passage), None)
            if found and (told := refer(passage)):
                spans = ",".join(f"{start}-{end}" for start, end in found)
                rows.append("\t".join((source, kind, told, spans)))
    with gzip.open(STATED, "rt", encoding="utf-8") if STATED.exists() else io.StringIO() as known:
        rows = [*known.read().splitlines(), *rows]
    labels: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        _, kind, place = row.split("\t", 2)
        labels[place].add(kind)
    # Where both are said of the same words, somebody else is put in the place of who did it.
    kept = [row for row in dict.fromkeys(rows) if len(labels[row.split("\t", 2)[2]]) == 1]
    with STATED.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as out:
        out.write("".join(f"{row}\n" for row in kept).encode())
    print(f"{len(kept)} stretches in {STATED}")


def _references(folder: Path) -> Callable[[str], str]:
    """Return what tells where a passage stands in the public sets, the passage of none, and nothing of a closed one."""
    texts = texts_of(folder)
    every, keys = "\n".join(texts.values()), [*texts]
    begins = [*accumulate((len(text) + 1 for text in texts.values()), initial=0)]
    rows = [row["text"] for name in _CLOSED for row in read(folder / name / "corpus.jsonl.gz")]
    rows += [row["text"] for row in read(folder / "judge" / "passages.jsonl.gz")]
    closed = re.sub(r"[^\S\n]+", " ", "\n".join(row.replace("\n", " ") for row in rows))

    @lru_cache(None)
    def refer(passage: str) -> str:
        at = every.find(passage)
        if at < 0:
            return "" if passage in closed else passage
        number = bisect_right(begins, at) - 1
        return f"@{keys[number]}:{at - begins[number]}:{at - begins[number] + len(passage)}"

    return refer


def alone(known: Sequence[Stretch], draw: np.random.Generator) -> Iterator[Stretch]:
    """Yield the words of stretches as sentences, alone or among others: without a frame nothing takes them back."""
    said: dict[str, list[str]] = {"en": [], "zh": []}
    for one in known:
        words = one.passage[slice(*one.places[0])].strip(" ,;:，；：、")
        if words and len(one.places) == 1 and not _QUOTES.search(words):
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
            yield Stretch("alone", passage, ((len(before), len(before) + len(words)),), stated=True)


@lru_cache(200_000)
def tokens(stretch: Stretch) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the tokens of the window around a stretch, and which of them are its."""
    pieces, inside = window_of(stretch.passage, stretch.places)
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
    clauses, joined, against, written = (
        [one for one in known if one.source == source] for source in ("cut", "joined", "golden", "written")
    )
    # What was written against the check, and what is joined of two parts, is the hardest: it is read twice as often.
    written += 2 * (joined + against)
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
        # Half as many clauses of books and sentences alone as of what was written: they are easy.
        chosen = draw.permutation(len(clauses))[: len(written) // 2]
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
    odds = np.array([reader.log_odds(one.passage, one.places) for one in known])
    print(
        "| of kept out | stated | not | AUROC | "
        + " | ".join(f"below {limit}: stated, not" for limit in options.limits)
        + " |"
    )
    print("|---|---:|---:|---:|" + "---|" * len(options.limits))
    for source in ("golden", "written", "cut", "joined"):
        for language in ("en", "zh"):
            at = [n for n, one in enumerate(known) if one.source == source and one.language == language]
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
    adding, learning, measuring = (tasks.add_parser(name) for name in ("add", "train", "measure"))
    for one in (adding, learning, measuring):
        one.add_argument("--data", type=Path, required=True)
    adding.add_argument("files", type=Path, nargs="+")
    adding.set_defaults(task=add)
    learning.add_argument("--out", type=Path, required=True)
    learning.add_argument("--until", required=True, help="the time of the day, UTC, at which the learning rate is 0")
    learning.add_argument("--seed", type=int, default=1)
    learning.set_defaults(task=train)
    measuring.add_argument("--weights", type=Path, default=ADAPTER)
    measuring.add_argument("--limits", type=float, nargs="+", default=[0.0, 1.0, 2.0, 3.0])
    measuring.set_defaults(task=measure)
    options = parser.parse_args()
    options.task(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
