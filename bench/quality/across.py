"""
Measures what is done across languages: the check of an answer, and the search with wordings in a book's language.

    python -m bench.quality.across LIBRARY [--data DIR]

prints what wordings in the language of the book bring to questions in another one. LIBRARY has the three books of
books_qa for the tenant `evaluation`. Each question of the group "across languages" goes through `advanced` twice, with
a model that replies nothing and with one that replies the wording recorded in golden/book_wordings.json, a plain
translation made without a look at the books; no other model is asked. Counted are the questions that the first 5 and 10
passages of the fusion answer, and those whose answer the reader is shown. Intervals are of the paired bootstrap of
`bench.quality.comparison`.
"""

import argparse
import json
import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.quality.book_questions import ACROSS, BookQuestion, contains_quote, read_book_questions
from bench.quality.differences import compare_metric
from bench.quality.public_sets import DATA, read
from bench.quality.rows import Row, auroc
from bench.quality.swaps import swaps
from haystack import component
from haystack.dataclasses import ChatMessage

from shiguan.claims.alignment import Alignment
from shiguan.claims.checker import ClaimChecker
from shiguan.claims.claim_support import Support
from shiguan.engine.runner import Runner
from shiguan.evaluation.provenance import TENANT
from shiguan.text.sentences import sentence_spans


@dataclass(frozen=True)
class Across:
    """A sentence in one language and the paragraph in the other that it stands in, by itself or among others."""

    claim: str
    language: str
    half: str
    texts: dict[str, str]


def across_cases(folder: Path) -> list[Across]:
    """Pair the sentences of parallel paragraphs that have as many in both languages, and at least three."""
    place = folder / "xquad_enzh"
    texts = {lang: {row["id"]: row["text"] for row in read(place / f"corpus_{lang}.jsonl.gz")} for lang in ("en", "zh")}
    spans = {lang: {name: sentence_spans(text) for name, text in texts[lang].items()} for lang in texts}
    both = sorted(spans["en"].keys() & spans["zh"].keys())
    even = [name for name in both if len(spans["en"][name]) == len(spans["zh"][name]) >= 3]
    found = []
    for name in even:
        article = name.rpartition("-")[0]
        chance = random.Random(name)
        others = [other for other in even if other.rpartition("-")[0] != article]
        siblings = [other for other in even if other.rpartition("-")[0] == article and other != name]
        for at in range(len(spans["en"][name])):
            for lang, other in (("en", "zh"), ("zh", "en")):
                text, (start, end) = texts[other][name], spans[other][name][at]
                read_from = {
                    "right paragraph": text,
                    "without the sentence": text[:start] + text[end:],
                    "another article": texts[other][chance.choice(others)],
                }
                if siblings:
                    read_from["same article"] = texts[other][chance.choice(siblings)]
                start, end = spans[lang][name][at]
                half = "AB"[zlib.crc32(article.encode()) % 2]
                found.append(Across(texts[lang][name][start:end], lang, half, read_from))
    return found


def support(claim: str, text: str) -> Support:
    """Say what a passage in another language says to a claim."""
    return ClaimChecker({1: text}).relation(claim, 1)


def across_rows(folder: Path) -> list[Row]:
    """Measure what is kept of right sentences, and found of wrong ones, on both halves together and on half B."""
    cases = across_cases(folder)
    rows = []
    for language in ("en", "zh"):
        mine = [case for case in cases if case.language == language]
        scores: dict[str, list[tuple[str, float, bool]]] = {}
        for case in mine:
            for name, text in case.texts.items():
                found = support(case.claim, text)
                scores.setdefault(name, []).append((case.half, found.score, found.verdict != "unsupported"))
        sources = [
            {"id": str(at), "lang": language, "title": "", "source": case.claim, "answers": [],
             "evidences": [{"text": case.claim}]}
            for at, case in enumerate(mine)
        ]  # fmt: skip
        for swap in swaps(sources):
            case = mine[int(swap.id)]
            found = support(swap.claim, case.texts["right paragraph"])
            name = f"{swap.kind} swapped"
            scores.setdefault(name, []).append((case.half, found.score, found.verdict != "unsupported"))

        right = scores.pop("right paragraph")
        rows.append(_share(f"across, {language} claim: right paragraph, kept", right, kept=True))
        for name, wrong in scores.items():
            areas = [
                auroc([s for h, s, _ in right if h in half], [s for h, s, _ in wrong if h in half])
                for half in ("AB", "B")
            ]
            rows.append(_share(f"across, {language} claim: {name}, found", wrong, kept=False))
            if "swapped" not in name:
                rows.append(
                    Row(f"across, {language} claim: right / {name}", areas[0], half_b=areas[1], cases=len(wrong))
                )
    return rows


def _share(name: str, scored: Sequence[tuple[str, float, bool]], *, kept: bool) -> Row:
    def share(half: str) -> float:
        some = [is_kept == kept for of, _, is_kept in scored if of in half]
        return sum(some) / len(some) if some else 0.0

    return Row(name, share("AB"), half_b=share("B"), cases=len(scored))


def fit_aligned(folder: Path) -> float:
    """Find the alignment from which on a sentence says a claim in another language."""
    alignment = Alignment()
    shares = []
    for case in (case for case in across_cases(folder) if case.half == "A"):
        text = case.texts["right paragraph"]
        found = alignment.best(case.claim, [text[start:end] for start, end in sentence_spans(text)], across=True)
        shares.append(found[0] if found else 0.0)
    return int(100 * sorted(shares)[len(shares) // 50]) / 100


WORDINGS = Path(__file__).parent / "golden" / "book_wordings.json"
MEASURES = ("R@5", "R@10", "shown")


@component
class RecordedModel:
    """Replies one recorded wording in every language that it is asked for."""

    def __init__(self) -> None:
        self.wording = ""

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, Any]:
        """Reply to the rewriter's prompt; what was not recorded has no translation."""
        reply = {"translations": dict.fromkeys(("en", "zh"), self.wording)} if self.wording else {}
        return {"replies": [ChatMessage.from_assistant(json.dumps(reply))] if messages else []}


def measured(runner: Runner, question: BookQuestion) -> list[float]:
    """Ask a question."""
    wanted = ["parent_fetcher.documents", "answers"]
    outputs = runner.trace(question.text, tenant_id=TENANT, outputs=wanted)["outputs"]
    rank = question.rank(outputs[wanted[0]] or [])
    answer = outputs["answers"][0]
    quotes = [cited["quote"] for cited in answer.meta.get("citations", []) if cited["source"] == question.book]
    shown = bool(question.sides) and all(any(contains_quote(text, side) for text in quotes) for side in question.sides)
    return [float(rank is not None and rank <= 5), float(rank is not None and rank <= 10), float(shown)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    wordings: dict[str, str] = json.loads(WORDINGS.read_text(encoding="utf-8"))
    questions = read_book_questions(options.data / "books_qa" / "questions.jsonl")
    asked = [question for question in questions if question.group == ACROSS]
    model = RecordedModel()
    ways: list[list[list[float]]] = [[], []]
    with Runner("embedded", "advanced", data_dir=options.library) as runner:
        runner.pipeline.get_component("query_rewriter").chat_generator = model
        for question in asked:
            for way, wording in zip(ways, ("", wordings[question.id]), strict=True):
                model.wording = wording
                way.append(measured(runner, question))
    print(f"{len(asked)} questions on books in another language, without and with a wording in the book's language")
    for name, before, after in zip(MEASURES, *(zip(*way, strict=True) for way in ways), strict=True):
        found = compare_metric(name, before, after)
        interval = f"{found.difference:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"
        counts = f"gained {found.gained}, lost {found.lost}"
        print(f"{name:6} {found.before:.3f} {found.after:.3f}  {interval}  {counts}")
    for question, before, after in zip(asked, *ways, strict=True):
        if before != after:
            print(f"  {question.id}: {dict(zip(MEASURES, before, strict=True))} -> {after}")


if __name__ == "__main__":
    main()
