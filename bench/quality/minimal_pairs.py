"""
Measure the check of claims with minimal pairs: a true sentence, and the same sentence with one small change that makes it false.

    python -m bench.quality.minimal_pairs [--data DIR] [--half A|B] [--most N] [--kinds roles cut ...] [--show N] [--json FILE]
    python -m bench.quality.minimal_pairs --written                 # the pairs written by hand, which need no public data
    python -m bench.quality.minimal_pairs --verify LIBRARY          # a sample through `shiguan verify` on ingested books

Every sentence goes through `check_claim` of the engine, as `shiguan verify` does it, with its own paragraph and three others of
its book as numbered passages. `pair_rules.py` makes the pairs from the public sets and books; `golden/written_pairs.jsonl` has
those written by hand, in other words than the book's. Half A may be looked at while the check is changed (`--show` prints what
is wrong in it); half B is what the bars are for and is not printed.

The exit code is 1 if a bar is missed, 2 if there are no data.
"""

import argparse
import gzip
import json
import os
import random
import re
import sys
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from html import unescape
from pathlib import Path
from typing import Any

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")
os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("SHIGUAN_PUBLIC_DATA", ROOT.parent / "shared" / "data"))
WRITTEN = Path(__file__).parent / "golden" / "written_pairs.jsonl"
SETS = ("en_squad2", "zh_cmrc2018", "zh_drcd", "evidence_expmrc", "tang_modern2classical")
BOOKS = {"moby-dick": "en", "childrens-literature": "en", "jiutangshu_dev": "zh"}
MOST, OTHERS, VERBATIM = 40, 3, 0.4
"""How many pairs of each kind, language and half; how many passages stand beside the right one, how many are verbatim."""
FALSE_SUPPORTED, CUT_SUPPORTED, TRUE_CONTRADICTED, VERBATIM_SUPPORTED, PARAPHRASED_FOUND = 0.02, 0.0, 0.01, 0.97, 0.95
_PARAGRAPH, _TAG, _SPACE = re.compile(r"<p\b[^>]*>(.*?)</p>", re.S), re.compile(r"<[^>]+>"), re.compile(r"\s+")
_HAN = re.compile(r"[\u4e00-\u9fff]")


@dataclass(frozen=True)
class Passage:
    """A paragraph, or a few, of a book or an article."""

    book: str
    title: str
    language: str
    text: str


@dataclass(frozen=True)
class Pair:
    """A true and a false sentence with their passages; `gold` is the place of the right one among these."""

    id: str
    language: str
    kind: str
    form: str
    true: str
    false: str
    passages: tuple[str, ...]
    gold: int

    @property
    def half(self) -> str:
        """`A`, which may be looked at, or `B`: the same for all pairs of a passage."""
        return "AB"[zlib.crc32(self.passages[self.gold].encode()) // 7 % 2]


@dataclass(frozen=True)
class Outcome:
    """What the check said of a pair: both verdicts, the reasons, and whether the true one was found in its passage."""

    pair: Pair
    true: str
    false: str
    why_true: str
    why_false: str
    in_place: bool


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read a gzipped JSONL file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def book_passages(path: Path, language: str) -> Iterator[Passage]:
    """Read the paragraphs of an EPUB, short ones together."""
    least = 250 if language == "zh" else 700
    with zipfile.ZipFile(path) as book:
        for name in sorted(one for one in book.namelist() if one.endswith("html")):
            held = ""
            for paragraph in _PARAGRAPH.findall(book.read(name).decode("utf-8")):
                text = _SPACE.sub(" ", unescape(_TAG.sub("", paragraph))).strip()
                held = f"{held}\n\n{text}".strip()
                if len(held) >= least:
                    yield Passage(path.stem, name, language, held)
                    held = ""


def read_passages(folder: Path) -> list[Passage]:
    """Read the passages of the public sets and books."""
    found = []
    for name in ("en_squad2", "zh_cmrc2018", "zh_drcd"):
        rows = read_rows(folder / name / "corpus.jsonl.gz")
        found += [Passage(name, row["title"], name[:2], row["text"]) for row in rows]
    for language in ("en", "zh"):
        rows = read_rows(folder / "evidence_expmrc" / f"{language}.jsonl.gz")
        found += [Passage(f"expmrc-{language}", row["title"], language, row["source"]) for row in rows]
    for name, language in BOOKS.items():
        found += book_passages(folder / "epub" / f"{name}.epub", language)
    return list({passage.text: passage for passage in found}.values())


def sentences(passage: Passage) -> list[str]:
    """Give the sentences that can stand alone as a claim: no question, no quotation, not too long."""
    from shiguan.text.sentences import sentence_spans

    found = []
    for start, end in sentence_spans(passage.text):
        text = passage.text[start:end]
        wide = passage.language == "zh"
        long_enough = 12 <= len(text) <= 90 if wide else 6 <= len(text.split()) <= 38
        if (
            not long_enough
            or not text.endswith("。" if wide else ".")
            or re.search(r"[“”‘\"「」『』《？?！!：:;；\n\[\]|]", text)
        ):
            continue
        if not wide and (not text[0].isupper() or len(re.findall(r"[a-z]{2,} ", text)) < 4):
            continue
        found.append(text)
    return found


def pairs_of(text: str, kinds: Iterable[str]) -> Iterator[tuple[str, str, str, str]]:
    """Make pairs of one sentence, one of each kind: kind, form, true, false."""
    from bench.quality.pair_rules import FORMS, RULES

    draw = random.Random(text)
    for kind in kinds:
        changed = [false for false in RULES[kind](text, draw) if false != text]
        if not changed:
            continue
        false = draw.choice(changed)
        rare = ["clause dropped", "date moved", *draw.sample(["script or case", "signs"], 2), "verbatim"]
        for form in ["verbatim"] if draw.random() < VERBATIM else rare:
            true_form = FORMS[form](text)
            false_form = false if kind == "cut" else FORMS[form](false)
            if (
                form == "verbatim"
                or (true_form != text and false_form not in (false, true_form))
                or (kind == "cut" and true_form != text)
            ):
                yield kind, form, true_form, false_form
                break


def beside(passage: Passage, by_book: dict[str, list[Passage]], draw: random.Random) -> tuple[tuple[str, ...], int]:
    """Put a passage among others of its article, or else of its book."""
    near = [one.text for one in by_book[passage.book] if one.title == passage.title and one.text != passage.text]
    far = [
        one.text for one in draw.sample(by_book[passage.book], 8) if one.text != passage.text and one.text not in near
    ]
    near = [text for text in near if passage.text not in text and text not in passage.text]
    others = [*draw.sample(near, min(OTHERS, len(near))), *far][:OTHERS]
    gold = draw.randrange(OTHERS + 1)
    return (*others[:gold], passage.text, *others[gold:]), gold


def make_pairs(folder: Path, half: str, most: int, kinds: Sequence[str]) -> list[Pair]:
    """Make pairs by rule, up to `most` of each kind and language, from as many sets and books as have some."""
    passages = read_passages(folder)
    by_book: dict[str, list[Passage]] = defaultdict(list)
    everything: dict[str, str] = {}
    for passage in passages:
        by_book[passage.book].append(passage)
    for book, of_book in by_book.items():
        everything[book] = "\n".join(one.text for one in of_book)
    draw = random.Random(20261128)
    rows = [(passage, text) for passage in passages for text in sentences(passage)] + _retellings(folder)
    draw.shuffle(rows)
    # One of each set after the other, so that the long books do not crowd out the rest.
    queues = [[row for row in rows if row[0].book == book] for book in sorted({row[0].book for row in rows})]
    rows = [queue[at] for at in range(max(map(len, queues))) for queue in queues if at < len(queue)]
    counts: Counter[tuple[str, str]] = Counter()
    made: list[Pair] = []
    for passage, text in rows:
        if "AB"[zlib.crc32(passage.text.encode()) // 7 % 2] != half:
            continue
        wanted = [kind for kind in kinds if counts[passage.language, kind] < most]
        for kind, form, true, false in pairs_of(text, wanted):
            if false[:-1] in everything.get(passage.book, "") and kind != "cut":
                continue
            key = (passage.language, kind)
            form = "paraphrased" if text not in passage.text else form
            counts[key] += 1
            around, gold = (
                beside(passage, by_book, random.Random(text))
                if passage.book in by_book
                else _among(passage, folder, text)
            )
            made.append(
                Pair(
                    f"{kind}-{zlib.crc32((text + kind).encode()):08x}",
                    passage.language,
                    kind,
                    form,
                    true,
                    false,
                    around,
                    gold,
                )
            )
            break
    return made


def _retellings(folder: Path) -> list[tuple[Passage, str]]:
    """Read modern sentences with the classical passage that they retell."""
    texts = {row["id"]: row for row in read_rows(folder / "tang_modern2classical" / "corpus.jsonl.gz")}
    found = []
    for row in read_rows(folder / "tang_modern2classical" / "queries.jsonl.gz"):
        one = texts[row["gold"][0]["doc_id"]]
        text = row["text"] if row["text"].endswith("。") else row["text"].rstrip("，；") + "。"
        if row["meta"]["stratum"] != "hard" and 12 <= len(text) <= 80 and not re.search(r"[“”「『《？！：；]", text):
            found.append((Passage("tang", one["title"], "zh", one["text"]), text))
    return found


_TANG: list[str] = []


def _among(passage: Passage, folder: Path, text: str) -> tuple[tuple[str, ...], int]:
    if not _TANG:
        _TANG.extend(row["text"] for row in read_rows(folder / "tang_modern2classical" / "corpus.jsonl.gz"))
    draw = random.Random(text)
    others = [one for one in draw.sample(_TANG, OTHERS + 1) if one != passage.text][:OTHERS]
    gold = draw.randrange(OTHERS + 1)
    return (*others[:gold], passage.text, *others[gold:]), gold


def check(pair: Pair) -> Outcome:
    """Check both sentences of a pair against its passages, as `shiguan verify` does."""
    from haystack import Document
    from shiguan.engine.verification import check_claim

    documents = [
        Document(id=f"p{number}", content=text, meta={"parent_id": f"p{number}", "source": "book", "title": "book"})
        for number, text in enumerate(pair.passages)
    ]
    true, false = (check_claim(text, lambda _: documents) for text in (pair.true, pair.false))
    return Outcome(
        pair,
        true["verdict"],
        false["verdict"],
        true["reason"],
        false["reason"],
        true.get("parent_id") == f"p{pair.gold}",
    )


@dataclass(frozen=True)
class Row:
    """A line of the table: a share of some cases, and its bar."""

    name: str
    cases: int
    value: float
    at_most: float | None = None
    at_least: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the bar is kept."""
        return (self.at_most is None or self.value <= self.at_most) and (
            self.at_least is None or self.value >= self.at_least
        )


def _share(outcomes: Sequence[Outcome], hit: Iterable[bool]) -> float:
    return sum(hit) / len(outcomes) if outcomes else 0.0


def rows_of(outcomes: Sequence[Outcome]) -> list[Row]:
    """Work the shares out: false ones by kind and language, true ones by form."""
    rows: list[Row] = []
    for language in sorted({one.pair.language for one in outcomes}):
        mine = [one for one in outcomes if one.pair.language == language]
        for kind in dict.fromkeys(one.pair.kind for one in mine):
            some = [one for one in mine if one.pair.kind == kind]
            bar = CUT_SUPPORTED if kind == "cut" else FALSE_SUPPORTED
            rows.append(
                Row(
                    f"{language}: false and supported, {kind}",
                    len(some),
                    _share(some, (o.false == "supported" for o in some)),
                    bar,
                )
            )
        rows.append(
            Row(
                f"{language}: false and contradicted",
                len(mine),
                _share(mine, (o.false == "contradicted" for o in mine)),
            )
        )
        rows.append(
            Row(
                f"{language}: true and contradicted",
                len(mine),
                _share(mine, (o.true == "contradicted" for o in mine)),
                TRUE_CONTRADICTED,
            )
        )
        for form in dict.fromkeys(one.pair.form for one in mine):
            some = [one for one in mine if one.pair.form == form]
            if form == "paraphrased":
                hit = (o.true in ("supported", "partial") and o.in_place for o in some)
                rows.append(
                    Row(
                        f"{language}: true, paraphrased, supported or partial in its passage",
                        len(some),
                        _share(some, hit),
                        None,
                        PARAPHRASED_FOUND,
                    )
                )
                rows.append(
                    Row(
                        f"{language}: true, paraphrased, supported",
                        len(some),
                        _share(some, (o.true == "supported" for o in some)),
                    )
                )
            else:
                rows.append(
                    Row(
                        f"{language}: true, {form}, supported",
                        len(some),
                        _share(some, (o.true == "supported" for o in some)),
                    )
                )
        near = [one for one in mine if one.pair.form != "paraphrased"]
        if near:
            rows.append(
                Row(
                    f"{language}: true, verbatim or nearly, supported",
                    len(near),
                    _share(near, (o.true == "supported" for o in near)),
                    None,
                    VERBATIM_SUPPORTED,
                )
            )
    return rows


def table(rows: Iterable[Row]) -> str:
    """Write the table in Markdown."""
    lines = ["| what | cases | share | bar |", "|---|---:|---:|---:|"]
    for row in rows:
        bar = (
            f"≤ {row.at_most:g}"
            if row.at_most is not None
            else f"≥ {row.at_least:g}"
            if row.at_least is not None
            else ""
        )
        lines.append(f"| {row.name} | {row.cases} | {row.value:.3f}{'' if row.holds else ' (missed)'} | {bar} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; gives the exit code."""
    from bench.quality.pair_rules import RULES

    parser = argparse.ArgumentParser(description="Measure the check of claims with minimal pairs.")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the sets (default: $SHIGUAN_PUBLIC_DATA)")
    parser.add_argument(
        "--half", choices=("A", "B"), default="A", help="A may be looked at, B is for the bars (default: A)"
    )
    parser.add_argument(
        "--most", type=int, default=MOST, metavar="N", help=f"pairs of each kind and language (default: {MOST})"
    )
    parser.add_argument(
        "--kinds", nargs="+", default=list(RULES), choices=list(RULES), metavar="KIND", help="only these"
    )
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print so many wrong ones of half A")
    parser.add_argument(
        "--list", type=int, default=0, metavar="N", help="print so many pairs of each kind of half A, unchecked"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the outcomes here too")
    options = parser.parse_args(arguments)
    if not (options.data / "en_squad2").is_dir():
        print(f"There are no public sets in {options.data}. Name their folder with --data.", file=sys.stderr)
        return 2
    pairs = make_pairs(options.data, options.half, options.most, options.kinds)
    if options.list and options.half == "A":
        for key in dict.fromkeys((one.language, one.kind) for one in pairs):
            for one in [p for p in pairs if (p.language, p.kind) == key][: options.list]:
                print(f"{one.language} {one.kind} ({one.form})\n   {one.true}\n   {one.false}")
        return 0
    outcomes = [check(pair) for pair in pairs]
    rows = rows_of(outcomes)
    print(table(rows))
    if options.json:
        options.json.write_text(
            json.dumps([asdict(one) for one in outcomes], ensure_ascii=False, indent=1), encoding="utf-8"
        )
    if options.half == "A":
        wrong = [one for one in outcomes if one.false == "supported" or one.true not in ("supported", "partial")]
        for one in wrong[: options.show]:
            print(
                f"{one.pair.language} {one.pair.kind} ({one.pair.form})\n   true  {one.true}: {one.pair.true} [{one.why_true}]\n   false {one.false}: {one.pair.false} [{one.why_false}]"
            )
    return int(not all(row.holds for row in rows))


if __name__ == "__main__":
    sys.exit(main())
