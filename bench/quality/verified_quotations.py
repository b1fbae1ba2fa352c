"""
Measures `verify` with quotations made from three books: 1,000 in five equal kinds, and 200 with a place beside them.

    python -m bench.quality.verified_quotations --epub ../shared/data/epub --output .data/quotations

Everything is drawn from one seed. Of every four quotations the first two may be looked at while something is changed;
the others are reported beside them and are not looked at.
"""

import argparse
import json
import random
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from opencc import OpenCC

from shiguan.engine.library import Library
from shiguan.tenants import of_tenant
from shiguan.verify.quotations import QuotationSearch

BOOKS = ("moby-dick.epub", "jiutangshu_dev.epub", "childrens-literature.epub")
ELSEWHERE = ("wasteland.epub", "kusamakura-japanese-vertical-writing.epub")
EACH, PLACED = 200, 200
WIDE = re.compile(r"[\u3040-\u9fff]")
WORD = re.compile(r"[A-Za-z][a-z]{3,}")
NEGATIONS = {"en": (" not ", " never "), "zh": ("不", "未", "无")}


def book_texts(library: Library, tenant: str) -> dict[str, list[Any]]:
    """Give the passages of each book that are long enough to quote from, in order."""
    books: dict[str, list[Any]] = {}
    for one in library.stores["parents"].filter_documents(of_tenant(tenant)):
        if len(one.content) > 250:
            books.setdefault(one.meta["source"], []).append(one)
    return {name: sorted(found, key=lambda one: one.meta["position"]) for name, found in sorted(books.items())}


def words_only(stage: str, done: int, total: int) -> None:
    """End an ingest before it makes vectors, which quotations do not need."""
    del done, total
    if stage == "vectors":
        raise InterruptedError("words are enough")


def span_of(draw: random.Random, passage: Any, *, short: bool = False) -> str:
    """Cut some words out of a passage, from the beginning of one to the end of another."""
    text = passage.content
    wide = len(WIDE.findall(text)) > len(text) / 2
    size = draw.randint(12, 30 if short else 60) if wide else draw.randint(50, 110 if short else 260)
    start = draw.randrange(max(1, len(text) - size))
    piece = text[start : start + size]
    if not wide:
        piece = re.sub(r"\w*$", "", re.sub(r"^\w*\W+", "", piece)) if start else re.sub(r"\w*$", "", piece)
    return re.sub(r"^\W+|\W+$", "", piece)


def dressed(draw: random.Random, text: str) -> str:
    """Write a quotation as people do: another script, other stops, breaks, ellipses, an editor's brackets."""
    wide = bool(WIDE.search(text))
    words = list(text) if wide else text.split()
    middle = len(words) // 2
    kinds: list[Callable[[], str]] = [
        lambda: re.sub(r"[，。；、,;]", lambda _: draw.choice(["", "，" if wide else ","]), text),
        lambda: ("" if wide else " ").join([*words[:middle], "\n", *words[middle:]]),
        lambda: ("" if wide else " ").join([*words[:middle], draw.choice(["[sic]", "[as he says]"]), *words[middle:]]),
        lambda: ("" if wide else " ").join(
            [*words[: middle - 3], draw.choice(["……", "[...]", "…"]), *words[middle + 3 :]]
        ),
        lambda: ("　" if wide else "  ").join(
            [
                text[: len(text) // 2 + 1].rpartition(" ")[0] or text[:6],
                text[len((text[: len(text) // 2 + 1].rpartition(" ")[0]) or text[:6]) :].strip(),
            ]
        ),
        lambda: re.sub(r"[“”‘’「」『』\"]", "", text) if wide else re.sub(r"[“”\"]", "'", text).replace("—", " - "),
        lambda: OpenCC("s2t").convert(text) if wide else re.sub(r"\b(\w{4})(\w{4,})\b", "\\1-\n\\2", text, count=1),
        lambda: text.upper() if not wide else OpenCC("s2tw").convert(text),
    ]
    return draw.choice(kinds)()


def altered(draw: random.Random, text: str, others: Sequence[Any]) -> str:
    """Change a number, a name, a negation or a word of a quotation, as little as possible."""
    if WIDE.search(text):
        at = [m.start() for m in re.finditer(r"[一二三四五六七八九]", text)]
        if at and draw.random() < 0.4:
            place = draw.choice(at)
            return text[:place] + draw.choice([c for c in "一二三四五六七八九" if c != text[place]]) + text[place + 1 :]
        places = [m.start() for m in WIDE.finditer(text)][1:-1]
        place = draw.choice(places)
        if draw.random() < 0.4:
            return text[:place] + draw.choice(NEGATIONS["zh"]) + text[place:]
        other = draw.choice([c for c in WIDE.findall(draw.choice(others).content) if c != text[place]])
        return text[:place] + other + text[place + 1 :]
    words = list(WORD.finditer(text))[1:-1] or list(WORD.finditer(text))
    word = draw.choice(words)
    if draw.random() < 0.3:
        return text[: word.start()] + draw.choice(NEGATIONS["en"]).strip() + " " + text[word.start() :]
    other = draw.choice([w for w in WORD.findall(draw.choice(others).content) if w.lower() != word[0].lower()])
    return text[: word.start()] + other + text[word.end() :]


def quotations(library: Library) -> list[dict[str, Any]]:
    """Make the 1,000 quotations, and the 200 with a place."""
    draw = random.Random(20261123)
    books, elsewhere = book_texts(library, "default"), book_texts(library, "elsewhere")
    rows: list[dict[str, Any]] = []

    def passage(of: dict[str, list[Any]] = books, book: str = "") -> Any:
        return draw.choice(of[book or draw.choice(list(of))])

    def span(**options: Any) -> tuple[str, Any]:
        while True:
            found = passage(**options)
            text = span_of(draw, found)
            if len(text) > (11 if WIDE.search(text) else 35):
                return text, found

    for kind in ("found", "dressed", "altered", "stitched", "absent"):
        for _ in range(EACH):
            text, one = span()
            if kind == "dressed":
                text = dressed(draw, text)
            elif kind == "altered":
                text = altered(draw, text, books[one.meta["source"]])
            elif kind == "stitched":
                other, two = span(book=one.meta["source"])
                while two.meta["section"] == one.meta["section"]:
                    other, two = span(book=one.meta["source"])
                text += draw.choice(["", "……", "。"] if WIDE.search(text) else [" ", " … ", ". "]) + other
            elif kind == "absent":
                text, one = span(of=elsewhere)
            rows.append(
                {"id": len(rows), "kind": kind, "verdict": "found" if kind == "dressed" else kind, "text": text}
            )
    for number in range(PLACED):
        text, one = span()
        right, meta = number % 2 == 0, one.meta
        while not right and (meta["title"], meta["section"]) == (one.meta["title"], one.meta["section"]):
            meta = passage().meta if number % 4 == 1 else passage(book=one.meta["source"]).meta
        named = draw.choice([f"{meta['title']}, {meta['section'][-1]}", f"《{meta['title']}》{meta['section'][-1]}"])
        if right and draw.random() < 0.3:
            named = draw.choice([meta["title"], meta["author"] or meta["title"]])
        rows.append(
            {
                "id": len(rows),
                "kind": "placed",
                "verdict": "found" if right else "misattributed",
                "text": text,
                "source": named,
            }
        )
    return rows


def main() -> None:
    """Make the library where it is not there, the quotations, and what `verify` says of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epub", type=Path, required=True)
    parser.add_argument("--output", type=Path, default=Path(".data/quotations"))
    parser.add_argument(
        "--show", type=int, default=0, help="how many wrong ones of the half that may be looked at to print"
    )
    options = parser.parse_args()
    library = Library(data_dir=options.output / "library")
    for tenant, names in (("default", BOOKS), ("elsewhere", ELSEWHERE)):
        missing = {*names} - {one["source"] for one in library.sources(tenant_id=tenant)}
        for one in library.ingest(
            [options.epub / name for name in sorted(missing)], tenant_id=tenant, progress=words_only
        ):
            print("read", one.file)
    rows = quotations(library)
    (options.output / "quotations.jsonl").write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows))
    search = QuotationSearch(library.stores, "default")
    times: list[float] = []
    right: Counter[tuple[int, str, str]] = Counter()
    wrong = []
    for row in rows:
        began = time.process_time()
        found = search.check(row["text"], row.get("source", ""))
        times.append(1000 * (time.process_time() - began))
        row["got"] = found["verdict"]
        key = (row["id"] // 2 % 2, row["kind"] if row["kind"] != "placed" else f"placed, {row['verdict']}")
        right[(*key, "all")] += 1
        right[(*key, "right")] += found["verdict"] == row["verdict"]
        right[(*key, "wrongly found")] += found["verdict"] == "found" != row["verdict"]
        if found["verdict"] != row["verdict"] and row["id"] // 2 % 2 == 0:
            wrong.append({**row, "where": found["section"], "stands": found["quote"]})
    for half in (0, 1):
        print("looked at" if half == 0 else "held out")
        mine = {key: n for key, n in right.items() if key[0] == half}
        for kind in dict.fromkeys(key[1] for key in mine):
            all_, good, bad = (mine.get((half, kind, name), 0) for name in ("all", "right", "wrongly found"))
            print(f"  {kind:24} {good:4} of {all_:4}, wrongly found {bad}")
    made = [row for row in rows if row["kind"] != "placed"]
    print(f"right of 1,000: {sum(row['got'] == row['verdict'] for row in made) / len(made):.3f}")
    p95 = statistics.quantiles(times, n=20)[18]
    print(f"ms of processor a quotation: median {statistics.median(times):.1f}, p95 {p95:.1f}")
    for row in wrong[: options.show]:
        print(json.dumps(row, ensure_ascii=False))


if __name__ == "__main__":
    main()
