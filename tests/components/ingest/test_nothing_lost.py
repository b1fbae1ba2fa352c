"""Of every kind of file, the characters that a reader sees are read, or said to be left out: a hundredth at most is not."""

import html
import io
import os
import re
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from haystack.dataclasses import ByteStream
from tests.doubles.docx_builder import DocxBuilder, paragraph, run, table
from tests.doubles.epub_builder import EpubBuilder, chapter

MOST_LOST = 0.01
TAGS = re.compile(r"(?s)<(script|style|head|rt|rp|annotation|annotation-xml)\b[^>]*?(?<!/)>.*?</\1>|<!--.*?-->|<[^>]*>")
PROSE = "In the {}th year the garrison of Fanyang marched south, and 150,000 men followed its banners. 安禄山反于范阳。"
LINES = [PROSE.format(n) for n in range(1, 40)]


def seen(markup):
    """What stands between the tags of a page, read without a parser."""
    body = re.search(r"(?is)<body\b.*", markup)
    return html.unescape(TAGS.sub("", body[0] if body else markup))


def of_book(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        [package] = [name for name in archive.namelist() if name.endswith(".opf")]
        opf = archive.read(package).decode()
        items = {}
        for item in re.findall(r"<(?:\w+:)?item\b[^>]*>", opf):
            found = dict(re.findall(r"""([\w-]+)\s*=\s*["']([^"']*)["']""", item))
            items[found["id"]] = found["href"]
        spine = re.findall(r"""<(?:\w+:)?itemref\b[^>]*?idref\s*=\s*["']([^"']+)""", opf)
        names = (str(Path(package).parent / items[name]) for name in dict.fromkeys(spine) if name in items)
        return "".join(seen(archive.read(name).decode()) for name in names if name in archive.namelist())


def of_word(data):
    """All text elements, of alternatives the first, without what is deleted."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = [archive.read(name).decode() for name in archive.namelist() if re.fullmatch(r"word/\w+\.xml", name)]
    text = re.sub(r"(?s)<mc:Fallback.*?</mc:Fallback>|<w:moveFrom\b.*?</w:moveFrom>", "", "".join(parts))
    return html.unescape("".join(re.findall(r"<(?:w|m):t(?: [^>]*)?>([^<]*)<", text)))


READ = {".epub": of_book, ".docx": of_word, ".html": lambda data: seen(data.decode())}
SONG = ["The river rises.", "We go home.", "The river rises.", "We stay here.", "The river rises."]
BODY = "".join(f"<p>{line}</p>" for line in LINES)
PAGE = (
    "<!DOCTYPE html><html><head><title>T</title></head><body><nav><a href='/'>Home</a> <a href='/in'>Sign in</a></nav>"
    f"<h1>Annals</h1>{BODY}<table><tr><th>City</th><td>9</td></tr></table><details><p>More</p></details></body></html>"
)
WORD = DocxBuilder(
    "".join(paragraph(line) for line in LINES)
    + paragraph(f"<w:ins>{run('Inserted.')}</w:ins>", '<w:r><w:footnoteReference w:id="2"/></w:r>')
    + table([paragraph("City"), table([paragraph("nine")])])
    + f"<w:sdt><w:sdtContent>{paragraph('Controlled.')}</w:sdtContent></w:sdt>",
    footnotes={2: paragraph("A note of the clerk.")},
    parts={"word/header1.xml": DocxBuilder("").part("hdr", paragraph("Running head"))},
)
OWN = {
    "book.epub": lambda: EpubBuilder(chapters={"a.xhtml": chapter(f"<h1>One</h1>{BODY}"), "b.xhtml": chapter("<p>End.</p>")}).build(),
    "page.html": PAGE.encode,
    "word.docx": WORD.build,
}  # fmt: skip
ROOT = Path(__file__).parents[3]
SHARED = Path(os.environ.get("SHIGUAN_PUBLIC_DATA", ROOT.parent / "shared" / "data")).parent
LONG = ("jiutangshu_dev", "moby-dick")
FILES = sorted(
    path
    for folder in ("data/epub", "cases")
    for path in (SHARED / folder).rglob("*")
    if path.suffix in {".epub", ".docx", ".html"}
)  # fmt: skip


def check(reading, name, data):
    answer = reading.convert(ByteStream(data, meta={"file_name": name}), lambda: None)
    assert answer["skipped"] == []
    documents = answer["documents"]
    told = documents[0][2].get("left_out") or {}
    assert all(f"{kind} ({size:,} characters)" in " ".join(answer["warnings"]) for kind, size in told.items())
    headings = {heading for *_, meta in documents for heading in meta.get("section") or ()}
    read = "".join([*(content for _, content, _ in documents), *headings])
    # Numbers of notes, lines and pages are no text, and go where the notes are put.
    there = Counter(filter(str.isalpha, READ[Path(name).suffix](data)))
    lost = (there - Counter(read)).total() - sum(told.values())
    assert lost <= MOST_LOST * there.total(), f"{name}: {lost} of {there.total()} characters are lost without a word"


@pytest.mark.parametrize("name", OWN)
def test_of_each_kind_of_file_everything_is_read_or_told(reading, name):
    check(reading, name, OWN[name]())


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("song.md", lambda: "\n\n".join(SONG).encode()),
        ("song.docx", lambda: DocxBuilder("".join(map(paragraph, SONG))).build()),
        ("song.html", lambda: "".join(f"<p>{line}</p>" for line in SONG).encode()),
        ("song.epub", lambda: EpubBuilder(chapters={"a.xhtml": chapter("".join(f"<p>{x}</p>" for x in SONG))}).build()),
    ],
)
def test_what_a_section_says_again_is_read_each_time(reading, name, data):
    documents = reading.convert(ByteStream(data(), meta={"file_name": name}), lambda: None)["documents"]
    assert [content for _, content, _ in documents] == SONG
    assert len({name for name, *_ in documents}) == len(SONG)


@pytest.mark.skipif(not FILES, reason=f"no public data at {SHARED}; see bench/quality/README.md")
@pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.name, marks=[pytest.mark.slow] * (p.stem in LONG)) for p in FILES]
)
def test_of_public_files_everything_is_read_or_told(reading, path):
    check(reading, path.name, path.read_bytes())
