"""
Measure the check of claims with minimal pairs: a true sentence, and the same sentence made false by one small change.

    python -m bench.quality.minimal_pairs [--half A|B] [--most N] [--kinds roles cut ...] [--show N] [--json FILE]
    python -m bench.quality.minimal_pairs --list 5                  # read some pairs of every kind, unchecked
    python -m bench.quality.minimal_pairs --verify                  # the sample book's through `shiguan verify`

Every sentence goes through the engine's `check_claim`, as `shiguan verify` does it, with its own passage and three
others of its book as numbered passages. `pair_rules.py` makes pairs of sentences of the public sets and books;
`golden/written_*.jsonl` have those that were written by hand, in other words than their books and sets have, or with
one change (`said otherwise`); `change` says what makes the false one false. Half A may be looked at while the check is
changed (`--show` prints what is wrong in it); half B is what the bars are for, and nothing of it is printed.

The exit code is 1 if a bar is missed, 2 if there are no public data.
"""

import argparse
import json
import random
import re
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

from bench.quality.pair_forms import FORMS
from bench.quality.pair_rules import RULES
from bench.quality.pair_sources import (
    SAMPLE,
    TANG,
    WRITTEN_SETS,
    book_sentences,
    read_books,
    read_sample,
    read_set,
    retellings,
)
from bench.quality.public_sets import DATA
from bench.quality.rows import Row

_SPACE = re.compile(r"\s+")
WRITTEN = Path(__file__).parent / "golden"
"""The folder of the pairs written by hand, `written_*.jsonl`."""
MOST, VERBATIM, MOST_READ = 30, 0.4, 12_000
"""How many pairs of each kind, language and half; what share is verbatim; how many sentences of a book are tried."""
BARS = {"cut": 0.0} | dict.fromkeys((kind for kind in RULES if kind != "cut"), 0.02)
"""The largest share of false pairs of each kind that may be supported."""
ONE_CHANGE = "said otherwise"
"""The form of true sentences by hand that change an order, a pronoun, the form of a number, or leave something out."""
TRUE_CONTRADICTED, VERBATIM_SUPPORTED, PARAPHRASED_FOUND = 0.01, 0.97, 0.95


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


@dataclass(frozen=True)
class Outcome:
    """What the check said of a pair: both verdicts with their reasons, and whether the true one cites its passage."""

    pair: Pair
    true: str
    false: str
    why_true: str
    why_false: str
    in_place: bool


def half_of(text: str) -> str:
    """Name the half of all pairs of a passage."""
    return "AB"[zlib.crc32(text.encode()) // 7 % 2]


def changed(text: str, kinds: Iterable[str], names: frozenset[str]) -> Iterator[tuple[str, str, str, str]]:
    """Make pairs of one sentence, one of each kind: kind, form, true, false."""
    draw = random.Random(text)
    for kind in kinds:
        made = [false for false in RULES[kind](text, draw, names) if false != text]
        if not made:
            continue
        false = draw.choice(made)
        rare = ["date moved", "clause dropped"]
        forms = ["verbatim"] if draw.random() < VERBATIM else [*draw.sample(["script or case", "signs"], 2), "verbatim"]
        for form in ["verbatim"] if kind == "cut" else [*rare, *forms]:
            true_form, false_form = FORMS[form](text), FORMS[form](false)
            if form == "verbatim" or (true_form != text and false_form not in (false, true_form)):
                yield kind, form, true_form, false_form
                break


def make_pairs(folder: Path, half: str, most: int, kinds: Sequence[str]) -> list[Pair]:
    """Make pairs by rule, up to `most` of each kind and language, from all sets and books in turn."""
    books = read_books(folder)
    queues = [retellings(folder) if book.name == TANG else book_sentences(book) for book in books]
    for queue in queues:
        random.Random(len(queue)).shuffle(queue)
        del queue[MOST_READ:]
    counts: Counter[tuple[str, str]] = Counter()
    pairs: list[Pair] = []
    seen: set[str] = set()
    for at in range(max(map(len, queues))):
        for book, (article, passage, text) in (
            (b, queue[at]) for b, queue in zip(books, queues, strict=True) if at < len(queue)
        ):
            wanted = [kind for kind in kinds if counts[book.language, kind] < most]
            if not wanted or half_of(passage) != half or text in seen:
                continue
            seen.add(text)
            for kind, form, true, false in changed(text, wanted, book.names(article)):
                if kind != "cut" and false[:-1] in book.whole:
                    continue
                counts[book.language, kind] += 1
                said = form if text in passage else "paraphrased"
                name = f"{kind}-{zlib.crc32(f'{kind} {text}'.encode()):08x}"
                pairs.append(
                    Pair(
                        name,
                        book.language,
                        kind,
                        said,
                        true,
                        false,
                        *book.around(article, passage, random.Random(text)),
                    )
                )
                break
    return pairs


def written_pairs(folder: Path | None, half: str = "") -> list[Pair]:
    """Read the pairs written by hand; without public data those on the sample book."""
    books = {(SAMPLE, language): read_sample(language) for language in ("en", "zh")}
    if folder is not None:
        books |= {(book.name, book.language): book for book in read_books(folder)}
        books |= {(name, "en"): read_set(folder, name, "en") for name in WRITTEN_SETS}
    pairs = []
    lines = (path.read_text(encoding="utf-8").splitlines() for path in sorted(WRITTEN.glob("written_*.jsonl")))
    for row in map(json.loads, chain.from_iterable(lines)):
        book = books.get((row["book"], row["language"]))
        if book is None:
            continue
        phrase = _SPACE.sub(" ", row["phrase"])
        article, passage = next(
            (
                (article, text)
                for article, texts in book.articles.items()
                for text in texts
                if phrase in _SPACE.sub(" ", text)
            ),
            ("", ""),
        )
        if not passage:
            raise ValueError(f"No passage of {row['book']} has the phrase of `{row['id']}`: {phrase!r}. Correct it.")
        if half in ("", row.get("half") or half_of(passage)):
            around = book.around(article, passage, random.Random(row["true"]))
            form = row.get("form", "paraphrased")
            pairs.append(Pair(row["id"], row["language"], row["kind"], form, row["true"], row["false"], *around))
    return pairs


def check(pair: Pair) -> Outcome:
    """Check both sentences of a pair against its passages, as `shiguan verify` does."""
    from haystack import Document

    from shiguan.engine.verification import check_claim

    passages = [
        Document(id=f"{number}", content=text, meta={"parent_id": f"{number}", "source": "book", "title": "book"})
        for number, text in enumerate(pair.passages)
    ]
    true, false = (check_claim(text, lambda _: passages) for text in (pair.true, pair.false))
    in_place = true.get("parent_id") == f"{pair.gold}"
    return Outcome(pair, true["verdict"], false["verdict"], true["reason"], false["reason"], in_place)


def verified(pairs: Sequence[Pair], library: Path) -> list[Outcome]:
    """Check pairs with `shiguan verify` on a library that has their book."""
    from shiguan.engine.runner import Runner
    from shiguan.evaluation.provenance import TENANT

    with Runner("embedded", "simple", data_dir=library) as runner:
        found = [
            {item["text"]: item for item in runner.verify("\n\n".join(texts), tenant_id=TENANT)["items"]}
            for texts in ([pair.true for pair in pairs], [pair.false for pair in pairs])
        ]
    outcomes = []
    for pair in pairs:
        true, false = found[0][pair.true], found[1][pair.false]
        quote, passage = _SPACE.sub("", true.get("quote") or ""), _SPACE.sub("", pair.passages[pair.gold])
        in_place = bool(quote) and (quote in passage or passage in quote)
        outcomes.append(Outcome(pair, true["verdict"], false["verdict"], true["reason"], false["reason"], in_place))
    return outcomes


def rows_of(outcomes: Sequence[Outcome]) -> list[Row]:
    """Work the shares out: of false sentences by kind and language, of true ones by form."""
    rows: list[Row] = []

    def add(
        name: str,
        of: Sequence[Outcome],
        hit: Iterable[bool],
        at_most: float | None = None,
        at_least: float | None = None,
    ) -> None:
        if of:
            rows.append(Row(name, sum(hit) / len(of), at_least, at_most, cases=len(of)))

    for language in sorted({one.pair.language for one in outcomes}):
        mine = [one for one in outcomes if one.pair.language == language]
        for kind in RULES:
            some = [one for one in mine if one.pair.kind == kind]
            add(f"{language}: false and supported, {kind}", some, (o.false == "supported" for o in some), BARS[kind])
        add(f"{language}: false and contradicted", mine, (o.false == "contradicted" for o in mine))
        add(f"{language}: true and contradicted", mine, (o.true == "contradicted" for o in mine), TRUE_CONTRADICTED)
        for form in FORMS:
            some = [one for one in mine if one.pair.form == form]
            add(f"{language}: true, {form}, supported", some, (o.true == "supported" for o in some))
        some = [one for one in mine if one.pair.form == ONE_CHANGE]
        add(f"{language}: true, {ONE_CHANGE}, supported", some, (o.true == "supported" for o in some))
        near = [one for one in mine if one.pair.form not in ("paraphrased", ONE_CHANGE)]
        add(
            f"{language}: true, verbatim or nearly, supported",
            near,
            (o.true == "supported" for o in near),
            None,
            VERBATIM_SUPPORTED,
        )
        for by_hand, what in ((True, "paraphrased by hand"), (False, "retold")):
            some = [
                one
                for one in mine
                if one.pair.form == "paraphrased" and one.pair.id.startswith(tuple(RULES)) != by_hand
            ]
            found = (o.true in ("supported", "partial") and o.in_place for o in some)
            add(f"{language}: true, {what}, supported or partial in its passage", some, found, None, PARAPHRASED_FOUND)
            add(f"{language}: true, {what}, supported", some, (o.true == "supported" for o in some))
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
    parser = argparse.ArgumentParser(description="Measure the check of claims with minimal pairs.")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the sets (default: $SHIGUAN_PUBLIC_DATA)")
    parser.add_argument(
        "--half", choices=("A", "B"), default="A", help="A may be looked at, B is for the bars (default: A)"
    )
    parser.add_argument(
        "--most", type=int, default=MOST, metavar="N", help=f"of each kind and language (default: {MOST})"
    )
    parser.add_argument(
        "--kinds", nargs="+", default=list(RULES), choices=list(RULES), metavar="KIND", help="only these"
    )
    parser.add_argument(
        "--list", type=int, default=0, metavar="N", help="print N pairs of each kind of half A, unchecked"
    )
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print N wrong ones of half A")
    parser.add_argument("--verify", action="store_true", help="check the sample book's pairs on an ingested library")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the outcomes here too")
    options = parser.parse_args(arguments)
    if options.verify:
        from bench.quality.sample_library import prepare

        with tempfile.TemporaryDirectory(prefix="shiguan-pairs-") as folder:
            return _report(verified(written_pairs(None), prepare(Path(folder))), options)
    if not (options.data / "en_squad2").is_dir():
        print(f"There are no public sets in {options.data}. Name their folder with --data.", file=sys.stderr)
        return 2
    pairs = [one for one in written_pairs(options.data, options.half) if one.kind in options.kinds]
    pairs += make_pairs(options.data, options.half, options.most, options.kinds)
    if options.list and options.half == "A":
        for kind, language in dict.fromkeys((one.kind, one.language) for one in pairs):
            for one in [p for p in pairs if (p.kind, p.language) == (kind, language)][: options.list]:
                print(f"{language} {kind} ({one.form})\n   {one.true}\n   {one.false}")
        return 0
    return _report([check(pair) for pair in pairs], options)


def _report(outcomes: list[Outcome], options: argparse.Namespace) -> int:
    rows = rows_of(outcomes)
    print(table(rows))
    if options.json:
        options.json.write_text(
            json.dumps([asdict(one) for one in outcomes], ensure_ascii=False, indent=1), encoding="utf-8"
        )
    wrong = [
        one
        for one in outcomes
        if one.false == "supported" or one.true not in ("supported", "partial") or not one.in_place
    ]
    for one in wrong[: options.show if options.half == "A" else 0]:
        print(f"{one.pair.id} {one.pair.language} ({one.pair.form})")
        print(f"   true: {one.true}{'' if one.in_place else ', elsewhere'}: {one.pair.true} [{one.why_true}]")
        print(f"   false: {one.false}: {one.pair.false} [{one.why_false}]")
    return int(not all(row.holds for row in rows))


if __name__ == "__main__":
    sys.exit(main())
