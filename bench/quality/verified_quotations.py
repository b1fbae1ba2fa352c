"""
Measures `verify` with quotations made from three books: 1,000 in five equal kinds, and 200 with a place beside them.

    python -m bench.quality.verified_quotations --epub ../shared/data/epub --output .data/quotations
    python -m bench.quality.verified_quotations --epub ../shared/data/epub --output .data/quotations --notes

With `--notes` the quotations run across the notes of *The Waste Land*, of the sample book and of chapters of the 旧唐书
into which notes are written, or are taken out of a note; beside each stands one with a word changed and one with words
left out, which must not be found. The exit code is 1 where less than .98 of the true ones or any other is found.

Everything is drawn from one seed. Of every four quotations the first two may be looked at while something is changed;
the others are reported beside them and are not looked at.
"""

import argparse
import json
import random
import re
import statistics
import sys
import tempfile
import time
import zipfile
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
NOTED, NOTED_CHAPTERS, MOST_NOTES, ACROSS_FOUND = "noted", 12, 100, 0.98
_PARAGRAPH = re.compile(r"<p>([^<]{150,})</p>")
# Where a quotation may begin and end: not inside a number, and not behind a denial.
_NUMERAL = "[0-9〇零一二三四五六七八九十百千万亿余]"
_UNCLEAN = (
    re.compile(rf"(?:[不未无没非莫勿仅第][能敢肯得可会曾有]?|{_NUMERAL})$"),
    re.compile(rf"^(?:{_NUMERAL}|[年月日里丈尺步])"),
)
_UNCLEAN_WORD = re.compile(r"\b(?:no|not|never|nor|only|almost|nearly|few|hardly|without|than)\W+$", re.IGNORECASE)
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


def is_wide(text: str) -> bool:
    """Whether more than a third of a text is Chinese or Japanese."""
    return len(WIDE.findall(text)) > len(text) / 3


def is_clean(before: str, piece: str, after: str) -> bool:
    """Whether a piece of a text begins and ends where something may be cut out of it."""
    start = not _UNCLEAN[0].search(before) and not _UNCLEAN_WORD.search(before)
    return start and not (re.search(_NUMERAL + "$", piece) and _UNCLEAN[1].search(after))


def span_of(draw: random.Random, passage: Any, *, short: bool = False) -> str:
    """Cut some words out of a passage, from the beginning of one to the end of another."""
    text = passage.content
    wide = len(WIDE.findall(text)) > len(text) / 2
    size = draw.randint(12, 30 if short else 60) if wide else draw.randint(50, 110 if short else 260)
    start = draw.randrange(max(1, len(text) - size))
    piece = text[start : start + size]
    if not wide:
        piece = re.sub(r"\w*$", "", re.sub(r"^\w*\W+", "", piece)) if start else re.sub(r"\w*$", "", piece)
    piece = re.sub(r"^\W+|\W+$", "", piece)
    at = text.find(piece, start)
    return piece if is_clean(text[:at], piece, text[at + len(piece) :]) else ""


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
    if is_wide(text):
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


def with_notes(book: Path, copy: Path) -> Path:
    """Write notes into some chapters of a Chinese book: at a stop of every long paragraph, words of another."""
    draw = random.Random(20261128)
    with zipfile.ZipFile(book) as source, zipfile.ZipFile(copy, "w") as target:
        pages = {name: source.read(name) for name in source.namelist()}
        chapters = [name for name, page in pages.items() if name.endswith("xhtml") and len(page) > 20_000][
            :NOTED_CHAPTERS
        ]
        for name, page in pages.items():
            text = page.decode() if name in chapters else ""
            paragraphs = list(_PARAGRAPH.finditer(text))
            notes = []
            for number, match in reversed(list(enumerate(paragraphs))):
                at = (
                    match.start(1)
                    + draw.choice([m.start() for m in re.finditer("[，。]", match[1][20:-20])] or [0])
                    + 20
                )
                words = draw.choice(draw.choice(paragraphs)[1].split("。")[:-1] or ["案"])
                notes.append(f'<aside epub:type="footnote" id="n{number}"><p>{words}。</p></aside>')
                text = f'{text[:at]}<a epub:type="noteref" href="#n{number}">{number + 1}</a>{text[at:]}'
            target.writestr(name, text.replace("</body>", f"{''.join(notes)}</body>") if notes else page)
    return copy


def across_notes(library: Library) -> list[dict[str, Any]]:
    """Make quotations across notes and out of them, and beside each a changed one and one with words left out."""
    draw = random.Random(20261128)
    rows: list[dict[str, Any]] = []
    parents = library.stores["parents"].filter_documents(of_tenant(NOTED))
    long: dict[bool, list[Any]] = {True: [], False: []}
    for one in parents:
        long[is_wide(one.content)] += [one] if len(one.content) > 250 else []
    for parent in sorted(parents, key=lambda one: (one.meta["source"], one.meta["position"])):
        text, blocks = parent.content, parent.meta["blocks"]
        spans = [(note["start"], note["end"]) for block in blocks for note in block.get("notes") or ()]
        for start, end in spans:
            before = max([0, *(stop for _, stop in spans if stop <= start)])
            after = min([len(text), *(begin for begin, _ in spans if begin >= end)])
            left, right = _side(draw, text[before:start], last=True), _side(draw, text[end:after], last=False)
            inner = re.sub(r"^\[(?:脚注：|Note: )|\]$", "", text[start:end]).strip()
            wide = is_wide(left + right)
            if left and right:
                gap = "" if wide or not right[0].isalnum() else " "
                words = (left, right) if wide else (left.split(), right.split())
                fewer = [part[: len(part) // 2] + part[len(part) // 2 + (4 if wide else 2) :] for part in words]
                cut = (left + gap + fewer[1]) if wide else f"{left}{gap}{' '.join(fewer[1])}"
                made = [
                    ("across", left + gap + right),
                    ("across, changed", altered(draw, left + gap + right, long[wide])),
                ]
                if _letters(cut) not in _letters(text[before:start] + text[end:after]):
                    made.append(("across, shortened", cut))
                rows += [{"language": "zh" if wide else "en", "kind": kind, "text": one} for kind, one in made]
            if len(inner) > (11 if is_wide(inner) else 35):
                rows.append({"language": "zh" if is_wide(inner) else "en", "kind": "in a note", "text": inner})
    kept: Counter[tuple[str, str]] = Counter()
    draw.shuffle(rows)
    for row in rows:
        kept[row["language"], row["kind"]] += 1
        row["number"] = kept[row["language"], row["kind"]]
    return [row for row in rows if row["number"] <= MOST_NOTES]


def _letters(text: str) -> str:
    return re.sub(r"[\W_]", "", text)


def _side(draw: random.Random, text: str, *, last: bool) -> str:
    """Take the words next to a note: whole words, from a clean place on."""
    wide = is_wide(text)
    for _ in range(9):
        size = draw.randint(10, 24) if wide else draw.randint(30, 90)
        piece = text[-size:] if last else text[:size]
        if not wide:
            piece = re.sub(r"^\w*\W+", "", piece) if last and size < len(text) else piece
            piece = re.sub(r"\w*$", "", piece) if not last and size < len(text) else piece
        piece = piece.strip()
        before = text[: text.rfind(piece)] if last else ""
        behind = "" if last else text[text.find(piece) + len(piece) :]
        if len(piece) > (7 if wide else 20) and "\n" not in piece and is_clean(before, piece, behind):
            return piece
    return ""


def measure_notes(library: Library, epub: Path, show: int) -> int:
    """Print how many quotations across notes are found; 1 where too few true ones, or any other, are."""
    from examples.build_book import build_book

    with tempfile.TemporaryDirectory() as folder:
        books = [build_book(Path(folder) / "an-lushan-rebellion.epub"), epub / "wasteland.epub"]
        books.append(with_notes(epub / "jiutangshu_dev.epub", Path(folder) / "jiutangshu_noted.epub"))
        there = {one["source"] for one in library.sources(tenant_id=NOTED)}
        missing = [book for book in books if book.name not in there]
        for one in library.ingest(missing, tenant_id=NOTED, progress=words_only) if missing else ():
            print("read", one.file)
    search = QuotationSearch(library.stores, NOTED)
    counts: Counter[tuple[str, str, str]] = Counter()
    for row in across_notes(library):
        found = search.check(row["text"])
        key = (row["language"], row["kind"])
        counts[(*key, "all")] += 1
        counts[(*key, "found")] += found["verdict"] == "found"
        if (found["verdict"] == "found") != (row["kind"] in ("across", "in a note")) and show > 0:
            show -= 1
            print(json.dumps({**row, "got": found["verdict"], "stands": found["quote"]}, ensure_ascii=False))
    missed = 0
    for language, kind in sorted({key[:2] for key in counts}):
        all_, found_ = (counts[language, kind, name] for name in ("all", "found"))
        good = found_ >= ACROSS_FOUND * all_ if kind in ("across", "in a note") else not found_
        missed += not good
        print(f"{language} {kind:20} {found_:4} of {all_:4} found{'' if good else ' (missed)'}")
    return int(missed > 0)


def main() -> int:
    """Make the library where it is not there, the quotations, and what `verify` says of them; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epub", type=Path, required=True)
    parser.add_argument("--output", type=Path, default=Path(".data/quotations"))
    parser.add_argument(
        "--show", type=int, default=0, help="how many wrong ones of the half that may be looked at to print"
    )
    parser.add_argument("--notes", action="store_true", help="quotations across notes instead")
    options = parser.parse_args()
    library = Library(data_dir=options.output / "library")
    if options.notes:
        return measure_notes(library, options.epub, options.show)
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
    return 0


if __name__ == "__main__":
    sys.exit(main())
