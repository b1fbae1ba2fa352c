"""
Print how well the local check of `HallucinationGrader` tells supported from unsupported, on whole public sets.

    python -m bench.quality.groundedness --data DIR [--json FILE]
    python -m bench.quality.groundedness --data DIR --fit
    python -m bench.quality.groundedness --data DIR --centre components/shiguan/claims/token_centre.npy

Every answer goes through the component itself, as `precise` wires it, without a language model. An answer counts as
supported as its least supported claim. Beside it stands token overlap: the share of a claim's words that the passages
have anywhere.

- `groundedness_wice`: claims of Wikipedia and the pages that they cite. AUROC of supported against not supported, and
  against partial and not supported together.
- `groundedness_mtrag_human`: answers of models with human faithfulness from 1 to 4. AUROC of 3.5 and more against less
  than 3.
- `evidence_expmrc`: evidence sentences with one number, date or name swapped (seeded, see swaps.py). Found is every
  verdict but `supported`; a false alarm is such a verdict on an untouched sentence.
- `xquad_enzh`: sentences of parallel paragraphs on the paragraph in the other language. Kept is every verdict but
  `unsupported`. Wrong is the paragraph without the sentence, another one of the article or of another article, and the
  sentence with one thing swapped (across.py).
- `tang_modern2classical`: modern sentences and the classical passages that they retell. AUROC of the right passages
  against three drawn at random.

The weights were set on half A of the first two sets (an even CRC-32 of the claim's or the conversation's id); the table
gives half B by itself. The exit code is 1 if a bar is missed, 2 if there are no data.
"""

import argparse
import itertools
import json
import random
import re
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from bench.quality.public_sets import DATA, read
from bench.quality.rows import Row, auroc, table
from numpy.typing import NDArray

if TYPE_CHECKING:
    from shiguan.claims.claim_support import Weights


_WORD = re.compile(r"\w+")
ALIGNMENTS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
UNRELATED = (0.1, 0.2, 0.3, 0.4)
SAME = (0.75, 0.8, 0.85, 0.9, 1.0)
"""What `--fit` tries."""
SWAPS_FOUND = {"en": 0.987, "zh": 0.995}
"""The share of swaps that must be found, by language."""


@dataclass(frozen=True)
class Case:
    """One answer with what people said of it."""

    id: str
    answer: str
    passages: tuple[str, ...]
    label: Any
    question: str = ""

    @property
    def half(self) -> str:
        """`A`, on which weights were set, or `B`."""
        return "AB"[zlib.crc32(self.id.encode()) % 2]


def token_overlap(answer: str, passages: Iterable[str]) -> float:
    """Give the share of an answer's words that its passages have."""
    said = set(_WORD.findall(" ".join(passages).lower()))
    words = set(_WORD.findall(answer.lower()))
    return len(words & said) / len(words) if words else 1.0


def wice_cases(folder: Path) -> list[Case]:
    """Read the claims with the pages that they cite."""
    rows = read(folder / "groundedness_wice" / "claims.jsonl.gz")
    return [Case(row["id"], row["response"], ("\n".join(row["source_sentences"]),), row["label"]) for row in rows]


def mtrag_cases(folder: Path) -> list[Case]:
    """Read the answers with their mean faithfulness."""
    rows = read(folder / "groundedness_mtrag_human" / "data.jsonl.gz")
    return [
        Case(
            "-".join(row["id"].split("-")[:2]),
            row["response"],
            tuple(passage["text"] for passage in row["source"]),
            row["faithfulness_mean"],
            row["question"],
        )
        for row in rows
    ]


class LocalCheck:
    """The component, asked for its verdicts alone."""

    def __init__(self) -> None:
        from shiguan.grading.hallucination_grader import HallucinationGrader

        self._grader = HallucinationGrader(on_unsupported="mark")
        self._grader.warm_up()

    def verdicts(self, answer: str, passages: Sequence[str], question: str = "") -> list[dict[str, Any]]:
        """Check an answer."""
        from haystack import Document
        from haystack.dataclasses import ChatMessage

        documents = [Document(content=text, meta={"number": number}) for number, text in enumerate(passages, start=1)]
        graded = self._grader.run([ChatMessage.from_assistant(answer)], documents, question)
        found: list[dict[str, Any]] = graded["verdicts"]
        return found

    def least(self, answer: str, passages: Sequence[str], question: str = "") -> float:
        """Score an answer."""
        return min((verdict["score"] for verdict in self.verdicts(answer, passages, question)), default=1.0)


def _separated(name: str, cases: list[Case], scores: list[float], labels: tuple[Any, Any], *, at_least: float) -> Row:
    up, down = labels

    def area(values: Sequence[float], half: str | None) -> float:
        pairs = [(v, case.label) for v, case in zip(values, cases, strict=True) if half in (None, case.half)]
        return auroc([v for v, label in pairs if up(label)], [v for v, label in pairs if down(label)])

    overlap = [token_overlap(case.answer, case.passages) for case in cases]
    used = sum(up(case.label) or down(case.label) for case in cases)
    return Row(name, area(scores, None), at_least, None, area(scores, "B"), area(overlap, None), used)


def groundedness_rows(check: LocalCheck, folder: Path) -> list[Row]:
    """Measure the two sets with human labels."""
    wice, mtrag = wice_cases(folder), mtrag_cases(folder)
    of_wice = [check.least(case.answer, case.passages) for case in wice]
    of_mtrag = [check.least(case.answer, case.passages, case.question) for case in mtrag]
    supported = "supported".__eq__
    return [
        _separated(
            "wice: supported / not supported", wice, of_wice, (supported, "not_supported".__eq__), at_least=0.95
        ),
        _separated("wice: supported / partial or not", wice, of_wice, (supported, "supported".__ne__), at_least=0.84),
        _separated("mtrag: faithful / not", mtrag, of_mtrag, ((3.5).__le__, (3.0).__gt__), at_least=0.936),
    ]


def fit(folder: Path) -> "Weights":
    """Find the weights that tell supported from unsupported best on half A of the two sets with human labels."""
    from shiguan.claims.checker import ClaimChecker
    from shiguan.claims.claim_support import FITTED, Weights, judge
    from shiguan.claims.claims import split_claims

    def read_half(cases: list[Case]) -> list[tuple[Any, list[Any], list[float | None]]]:
        found = []
        for case in (case for case in cases if case.half == "A"):
            checker = ClaimChecker(dict(enumerate(case.passages, start=1)))
            laid = [checker.laid_beside(one.reading) for one in checker.read(split_claims(case.answer))]
            found.append((case.label, [reading for reading, _ in laid], [aligned for _, aligned in laid]))
        return found

    wice, mtrag = read_half(wice_cases(folder)), read_half(mtrag_cases(folder))

    def worth(weights: "Weights") -> float:
        def scores(read: list[tuple[Any, list[Any], list[float | None]]]) -> list[tuple[Any, float]]:
            return [
                (label, min((one.score for one in judge(readings, alignments, weights)), default=1.0))
                for label, readings, alignments in read
            ]

        def area(pairs: list[tuple[Any, float]], up: Any, down: Any) -> float:
            return auroc(
                [score for label, score in pairs if up(label)], [score for label, score in pairs if down(label)]
            )

        of_wice = scores(wice)
        supported = "supported".__eq__
        return (
            area(of_wice, supported, "not_supported".__eq__)
            + area(of_wice, supported, "supported".__ne__)
            + area(scores(mtrag), (3.5).__le__, (3.0).__gt__)
        )

    return max(
        (Weights(FITTED.shares, *values) for values in itertools.product(ALIGNMENTS, UNRELATED, SAME)), key=worth
    )


def centre(folder: Path) -> "NDArray[np.float32]":
    """Return the mean vector of the tokens of 280 passages in English, Chinese, modern and classical, and Japanese."""
    from shiguan.models.engine import engine

    texts: list[str] = []
    for name in ("en_squad2", "en_multihop", "zh_cmrc2018", "zh_drcd", "tang_modern2classical"):
        texts += random.Random(name).sample([row["text"] for row in read(folder / name / "corpus.jsonl.gz")], 40)
    others = read(folder / "judge" / "passages.jsonl.gz")
    for name in ("jaquad", "nq"):
        texts += random.Random(name).sample([row["text"] for row in others if row["set"] == name], 40)
    mean: NDArray[np.float32] = np.concatenate([engine().token_vectors(text[:1500])[1] for text in texts]).mean(0)
    return mean


def swap_rows(check: LocalCheck, folder: Path, language: str) -> list[Row]:
    """Measure how many swapped numbers, dates and names are found."""
    from bench.quality.swaps import swaps

    made = swaps(read(folder / "evidence_expmrc" / f"{language}.jsonl.gz"))
    missed: Counter[str] = Counter()
    alarms = 0
    for swap in made:
        missed[swap.kind] += all(v["verdict"] == "supported" for v in check.verdicts(swap.claim, [swap.source]))
        alarms += any(v["verdict"] != "supported" for v in check.verdicts(swap.evidence, [swap.source]))
    kinds = Counter(swap.kind for swap in made)
    rows = [Row(f"swaps {language}: found", 1 - missed.total() / len(made), SWAPS_FOUND[language], cases=len(made))]
    rows += [
        Row(f"swaps {language}: {kind}s found", 1 - missed[kind] / kinds[kind], cases=kinds[kind])
        for kind in sorted(kinds)
    ]
    return [*rows, Row(f"swaps {language}: false alarms", alarms / len(made), at_most=0.05, cases=len(made))]


def classical_row(check: LocalCheck, folder: Path) -> list[Row]:
    """Measure modern sentences against the classical passages that they retell."""
    place = folder / "tang_modern2classical"
    texts = {row["id"]: row["text"] for row in read(place / "corpus.jsonl.gz")}
    gold: dict[str, list[str]] = {}
    for row in read(place / "qrels.jsonl.gz"):
        if row["score"] >= 2:
            gold.setdefault(row["query_id"], []).append(texts[row["doc_id"]])
    everything = list(texts.values())
    right, wrong, overlaps, other_overlaps = [], [], [], []
    for row in [row for row in read(place / "queries.jsonl.gz") if row["id"] in gold][::4]:
        others = random.Random(row["id"]).sample(everything, 3)
        if not check.verdicts(row["text"], others):
            # A question in direct speech claims nothing.
            continue
        right.append(check.least(row["text"], gold[row["id"]]))
        wrong.append(check.least(row["text"], others))
        overlaps.append(_character_overlap(row["text"], gold[row["id"]]))
        other_overlaps.append(_character_overlap(row["text"], others))
    return [
        Row(
            "tang: right passages / random ones",
            auroc(right, wrong),
            overlap=auroc(overlaps, other_overlaps),
            cases=2 * len(right),
        )
    ]


def _character_overlap(text: str, passages: Iterable[str]) -> float:
    return token_overlap(" ".join(text), [" ".join(passage) for passage in passages])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; gives the exit code."""
    from bench.quality.across import across_rows, fit_aligned

    parser = argparse.ArgumentParser(description="Measure the local check of answers on public sets.")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the sets (default: $SHIGUAN_PUBLIC_DATA)")
    parser.add_argument("--fit", action="store_true", help="print the weights that are best on half A, and stop")
    parser.add_argument("--centre", type=Path, help="write what all token vectors have in common, and stop")
    parser.add_argument("--json", type=Path, help="write the numbers here, too")
    chosen = parser.parse_args(arguments)
    if not chosen.data.is_dir():
        print(f"There are no data at {chosen.data}. Name their folder with --data.", file=sys.stderr)
        return 2
    if chosen.centre:
        np.save(chosen.centre, centre(chosen.data))
        return 0
    if chosen.fit:
        print(fit(chosen.data), f"_ALIGNED_ACROSS={fit_aligned(chosen.data)}")
        return 0
    started = time.perf_counter()
    check = LocalCheck()
    rows: list[Row] = []
    parts = [groundedness_rows, partial(swap_rows, language="en"), partial(swap_rows, language="zh"), classical_row]
    # Each part is printed when it is done: the whole takes long, and a run that is cut off keeps what it has.
    for part in [*parts, lambda _, data: across_rows(data)]:
        found = part(check, chosen.data)
        print("\n".join(table(found).splitlines()[2 if rows else 0 :]), flush=True)
        rows += found
    print(f"\n{time.perf_counter() - started:.0f} s")
    if chosen.json:
        chosen.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
