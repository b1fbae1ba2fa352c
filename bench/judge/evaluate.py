"""
Measure the judge on what it was not trained on.

    python -m bench.judge.evaluate [--data DIR] [--cases DIR] [--weights FILE.npz] [--most 60] [--float32]

- small changes: sentences of *Moby-Dick* and of the half of 旧唐书 that is kept out, as they stand or said otherwise,
  against the same with one small change (changes.py);
- `tang`: modern sentences and the classical passages that they retell, against the same with a change, and against
  other passages;
- `across`: sentences of XQuAD and their translations, articles kept out, against changes and other sentences;
- WiCE, the half kept out: claims and the best five windows of the page;
- `told`: what was written on passages that are kept out: true sentences in other words, against false ones, others on
  the same matter that the passage does not say, and true ones on its neighbours;
- minimal pairs written by hand, where there is a folder of them;
- questions on *Moby-Dick* and 旧唐书: the eight windows with most of a question's words, in their order and in that of
  the judge, and whether what it finds most likely tells questions with an answer from those without one;
- questions of SQuAD 2, CMRC and DRCD, and those written, beside their passages, which are kept out, and beside others.

Of each of the former: AUROC of true against false, and at thresholds with 1, 2 and 5 % of the false ones supported,
the share of the true ones that are supported.
"""

import argparse
import json
import os
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bench.judge import sets, written
from bench.judge.changes import HAN, NOT_SAID, SUPPORTED
from bench.judge.prepare import Example, across, changed, tang
from bench.quality.book_questions import OWN, UNANSWERABLE, contains_quote, read_book_questions
from bench.quality.public_sets import DATA
from bench.quality.rows import auroc
from shiguan.models.judge import ADAPTER, Judge, JudgeGraph
from shiguan.text.sentences import sentence_spans
from shiguan.text.terms import terms

WINDOWS = 5
"""Of a long text, those nearest to a claim by its words are read."""
FALSE_POSITIVES = (0.01, 0.02, 0.05)


@dataclass(frozen=True)
class Case:
    """A claim and what it is judged by; the best of the windows decides."""

    group: str
    claim: str
    windows: tuple[str, ...]
    true: bool
    changed: tuple[tuple[int, int], ...] | None = None


class Float32Graph(JudgeGraph):
    """The same in float32."""

    def linear(self, inputs: str, *names: str) -> str:
        """Multiply as they are."""
        matrix = np.concatenate([self.weights.matrix(name) for name in names])
        product = self.node("MatMul", inputs, self.constant(names[0] + ".w", matrix.T))
        return self.node("Add", product, self._bias(*names))

    linear_in_blocks = linear_by_token = linear

    def linear_by_dimension(self, inputs: str, name: str, _: str) -> str:
        """Multiply as they are."""
        return self.linear(inputs, name)


def of_examples(group: str, examples: Iterable[Example]) -> Iterator[Case]:
    """Take the claims of examples."""
    for example in examples:
        for claim in example.claims:
            kind = "other sentence" if claim.label == NOT_SAID and claim.wrong is None else "change"
            for name in ("change", "other sentence") if claim.label == SUPPORTED else (kind,):
                yield Case(f"{group}: {name}", claim.text, (example.passage,), claim.label == SUPPORTED, claim.wrong)


def small_changes(folder: Path, most: int) -> Iterator[Case]:
    """Change sentences of the books that are kept out."""
    names = sets.known_names(folder)
    found: dict[str, list[Example]] = defaultdict(list)
    for text in sets.book_texts(folder, kept_out=True):
        if len(text.paragraphs) > 1:
            found[text.set] += changed(text, sets.names_of(text, names), sets.seeded(text.paragraphs[0]), 2)
    for name, examples in found.items():
        yield from of_examples(name, sets.seeded(name).sample(examples, min(most, len(examples))))
    yield from of_examples("tang", list(tang(folder, names, kept_out=True))[:: max(1, 500 // most)][:most])
    yield from of_examples("across", list(across(folder, kept_out=True))[:: max(1, 400 // most)][:most])


def nearest_windows(claim: str, texts: Sequence[str], count: int = WINDOWS) -> tuple[str, ...]:
    """Find the windows of one and two sentences that share most words with a claim."""
    windows = []
    for text in texts:
        spans = sentence_spans(text)
        for at, (start, end) in enumerate(spans):
            windows.append(text[start:end])
            if at + 1 < len(spans):
                windows.append(text[start : spans[at + 1][1]])
    said = _parts(claim)
    return tuple(sorted(windows, key=lambda w: (-len(said & _parts(w)) / (40 + len(_parts(w))), len(w)))[:count])


def _parts(text: str) -> set[str]:
    if HAN.search(text):
        return {text[at : at + 2] for at in range(len(text) - 1)} | set(text)
    return {word[:6] for word in re.findall(r"\w+", text.lower())}


def wice(folder: Path, most: int) -> Iterator[Case]:
    """Read the half of WiCE that is kept out."""
    for row in sets.wice_claims(folder, kept_out=True)[: 2 * most]:
        windows = nearest_windows(row["response"], ["\n".join(row["source_sentences"])])
        for group in ("wice: supported / not", "wice: supported / partial or not"):
            if group.endswith("or not") or row["label"] != "partially_supported":
                yield Case(group, row["response"], windows, row["label"] == "supported")


def by_hand(folder: Path, book: Path) -> Iterator[Case]:
    """Read the minimal pairs that were written by hand."""
    if not folder.is_dir():
        return
    for line in (folder / "huaixi.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield Case("written: huaixi", row["true"], (row["passage"],), true=True)
        for claim in row["false"]:
            yield Case("written: huaixi", claim, (row["passage"],), true=False)
    texts = [re.sub(r"<[^>]+>", "", p) for f in sorted(book.rglob("*.xhtml")) for p in _paragraphs(f)]
    for line in (folder / "sample_book.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        same = [text for text in texts if bool(HAN.search(text)) == bool(HAN.search(row["text"]))]
        yield Case("written: sample book", row["text"], nearest_windows(row["text"], same), true=row["true"])


def told(folder: Path, most: int) -> Iterator[Case]:
    """Read what was written on passages that are kept out: told in other words, told otherwise, and not said."""
    found = [row for row in written.written(folder, kept_out=True) if row.true]
    rows = sets.seeded("told").sample(found, len(found))
    counts: Counter[str] = Counter()
    for row in rows:
        counts[row.set] += 1
        others = [other.true[0] for other in found if other.group == row.group and other is not row]
        for kind, false in (("otherwise", row.false), ("not said", row.unsaid), ("said elsewhere", others)):
            if false and counts[row.set] <= most:
                yield Case(f"told {row.set}: {kind}", row.true[0], (row.passage,), true=True)
                yield Case(f"told {row.set}: {kind}", false[0], (row.passage,), true=False)


def _paragraphs(file: Path) -> list[str]:
    return re.findall(r"<p\b[^>]*>(.*?)</p>", file.read_text(encoding="utf-8"), re.DOTALL)


def on_books(folder: Path, engine: Judge) -> Iterator[str]:
    """Write which window stands first, and how well questions without an answer are told apart, for each book."""
    yield "| questions on | a window answers | nothing does | first right: by words · judge | AUROC: words · judge |"
    yield "|---|---:|---:|---|---|"
    asked = read_book_questions(folder / "books_qa" / "questions.jsonl", unanswerable=True)
    for book, language in ((sets.HELD_OUT_BOOK, "en"), (sets.CHAPTERS, "zh")):
        texts = [p for _, paragraphs in sets.chapters(folder / "epub" / f"{book}.epub") for p in paragraphs]
        windows = _Windows(texts)
        first: list[tuple[bool, bool]] = []
        scores: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
        for question in asked:
            if (question.book, question.language) != (f"{book}.epub", language):
                continue
            if question.group not in (OWN, UNANSWERABLE):
                continue
            found = windows.nearest(question.text)
            quotes = [quote for side in question.sides for quote in side]
            right = [contains_quote(text, quotes) for text, _ in found]
            likely = [engine.answer(question.text, text).log_odds for text, _ in found]
            answerable = question.group == OWN
            if answerable and any(right):
                first.append((right[0], right[int(np.argmax(likely))]))
            if not answerable or any(right):
                scores[answerable].append((found[0][1], max(likely)))
        areas = (auroc([s[at] for s in scores[True]], [s[at] for s in scores[False]]) for at in (0, 1))
        shown = " · ".join(f"{np.mean(column):.2f}" for column in zip(*first, strict=True))
        yield f"| {book} | {len(first)} | {len(scores[False])} | {shown} | {' · '.join(f'{a:.2f}' for a in areas)} |"


def on_sets(folder: Path, engine: Judge, most: int = 90) -> Iterator[str]:
    """Write how well questions are told from others beside whole passages, and where the answer is looked for."""
    yield "| questions of | answered | not | AUROC | likeliest token is in the answer |"
    yield "|---|---:|---:|---:|---:|"
    asked = [*sets.questions(folder, kept_out=True), *written.questions(folder, kept_out=True)]
    for name in (*sets.QUESTION_SETS, "written_en", "written_zh", "written_across"):
        answered = [one for one in asked if one.set == name and one.end][:most]
        # Where no question of the set is without an answer, those of other passages stand for them.
        others = [one for one in asked if one.set == name and not one.end][:most]
        others = others or [replace(one, passage=answered[at - 7].passage) for at, one in enumerate(answered)]
        read = [engine.answer(one.text, one.passage) for one in answered]
        area = auroc([r.log_odds for r in read], [engine.answer(one.text, one.passage).log_odds for one in others])
        tokens = [max(one.places, key=lambda place: place[2]) for one in read]
        right = [a < one.end and b > one.start for one, (a, b, _) in zip(answered, tokens, strict=True)]
        yield f"| {name} | {len(answered)} | {len(others)} | {area:.3f} | {np.mean(right):.2f} |"


class _Windows:
    """Windows of three sentences, ranked by the rarity of the words that they share with a question."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = []
        for text in texts:
            spans = sentence_spans(text)
            self.texts += [
                text[spans[at][0] : spans[min(len(spans), at + 3) - 1][1]][:900] for at in range(0, len(spans), 2)
            ]
        self._words = [frozenset(terms(text)) for text in self.texts]
        self._counts = Counter(word for words in self._words for word in words)

    def nearest(self, question: str, count: int = 8) -> list[tuple[str, float]]:
        asked = {
            word: float(np.log(len(self.texts) / self._counts[word])) for word in terms(question) if self._counts[word]
        }
        scored = [
            (sum(weight for word, weight in asked.items() if word in words) / (30 + len(words)) ** 0.5, at)
            for at, words in enumerate(self._words)
        ]
        scored.sort(key=lambda one: (-one[0], one[1]))
        return [(self.texts[at], score) for score, at in scored[:count]]


def table(
    cases: Sequence[Case], scores: Sequence[float], words: Sequence[Sequence[tuple[float, bool]]]
) -> Iterator[str]:
    """Write the table."""
    yield "| what | true | false | AUROC | true kept at 1 · 2 · 5 % of false | thresholds | changed words, AUROC |"
    yield "|---|---:|---:|---:|---|---|---:|"
    for group in dict.fromkeys(case.group for case in cases):
        of = [(s, c.true, w) for s, c, w in zip(scores, cases, words, strict=True) if c.group == group]
        up, down = ([s for s, true, _ in of if true is wanted] for wanted in (True, False))
        limits = [float(np.quantile(down, 1 - share)) if down else 1.0 for share in FALSE_POSITIVES]
        kept = " · ".join(f"{np.mean([s > limit for s in up]):.2f}" for limit in limits) if up else ""
        marks = [one for *_, w in of for one in w]
        area = auroc([p for p, wrong in marks if wrong], [p for p, wrong in marks if not wrong])
        shown = f"{area:.3f}" if any(wrong for _, wrong in marks) else ""
        at = " · ".join(f"{limit:.3f}" for limit in limits)
        yield f"| {group} | {len(up)} | {len(down)} | {auroc(up, down):.3f} | {kept} | {at} | {shown} |"


def main() -> None:
    """Measure and print."""
    root = Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description="Measure the judge.")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument(
        "--cases", type=Path, default=Path(os.environ.get("SHIGUAN_CASES", root.parent / "shared" / "cases"))
    )
    parser.add_argument("--weights", type=Path, default=ADAPTER)
    parser.add_argument("--most", type=int, default=60, help="passages of each set")
    parser.add_argument("--float32", action="store_true", help="without 8-bit products")
    chosen = parser.parse_args()
    engine = Judge(Float32Graph if chosen.float32 else JudgeGraph, chosen.weights)
    cases = [
        *small_changes(chosen.data, chosen.most),
        *wice(chosen.data, chosen.most),
        *told(chosen.data, chosen.most),
        *by_hand(chosen.cases / "minimal_pairs", root / "examples" / "book"),
    ]
    began, tokens = time.process_time(), 0
    known: dict[tuple[str, tuple[str, ...]], tuple[float, list[tuple[float, bool]]]] = {}
    for case in cases:
        if (case.claim, case.windows) in known or not case.windows:
            continue
        verdicts = engine.verdicts([(case.claim, window) for window in case.windows])
        best = max(verdicts, key=lambda verdict: verdict.supported)
        tokens += sum(
            len(verdict.words) + len(window) // 2 for verdict, window in zip(verdicts, case.windows, strict=True)
        )
        marks = [
            (word.unsupported, any(a < word.end and b > word.start for a, b in case.changed))
            for word in best.words
            if case.changed is not None
        ]
        known[case.claim, case.windows] = best.supported, marks
    spent, pairs = time.process_time() - began, sum(len(windows) for _, windows in known)
    cases = [case for case in cases if case.windows]
    found = [known[case.claim, case.windows] for case in cases]
    print("\n".join(table(cases, [score for score, _ in found], [marks for _, marks in found])))
    print(f"\n{pairs} pairs, {1000 * spent / pairs:.1f} ms of CPU a pair\n")
    print("\n".join([*on_books(chosen.data, engine), "", *on_sets(chosen.data, engine)]))


if __name__ == "__main__":
    main()
