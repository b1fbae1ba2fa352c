"""The sample book is an EPUB that any reader accepts, and the same bytes every time."""

import os
import posixpath
import re
import zipfile
from pathlib import Path
from urllib.parse import unquote

import pytest
from examples.build_book import build_book
from lxml import etree

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    return build_book(tmp_path_factory.mktemp("book") / "book.epub")


@pytest.fixture(scope="module")
def files(book):
    with zipfile.ZipFile(book) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def trees(files):
    """Every XML file, parsed strictly: one that is not well formed fails here."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    kinds = (".xhtml", ".opf", ".ncx", ".svg", ".xml")
    return {name: etree.fromstring(data, parser) for name, data in files.items() if name.endswith(kinds)}


def test_build_does_not_depend_on_names_file_times_or_line_endings(book, tmp_path):
    assert build_book(tmp_path / "other" / "name.epub").read_bytes() == book.read_bytes()
    source = ROOT / "examples" / "book"
    copy = tmp_path / "copy"
    for path in source.rglob("*"):
        if path.is_file():
            target = copy / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
            os.utime(target, (10**9, 10**9))
    assert build_book(tmp_path / "copy.epub", copy).read_bytes() == book.read_bytes()


def test_mimetype_comes_first_and_is_not_compressed(book):
    with zipfile.ZipFile(book) as archive:
        first = archive.infolist()[0]
        assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)
        assert first.extra == b""
        assert archive.read(first) == b"application/epub+zip"


def test_every_reference_stays_inside_the_book_and_resolves(files, trees):
    seen = 0
    for name, tree in trees.items():
        for element in tree.iter(etree.Element):
            for key, value in element.attrib.items():
                if etree.QName(key).localname not in ("href", "src", "data", "poster") or name.startswith("META-INF"):
                    continue
                assert not re.match(r"[a-z]+:|//", value), f"{name} refers to something outside the book: {value}"
                path, _, fragment = value.partition("#")
                target = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(path))) if path else name
                assert target in files, f"{name}: {value}"
                if fragment:
                    assert trees[target].find(f".//*[@id='{fragment}']") is not None, f"{name}: {value}"
                seen += 1
    assert seen > 100
    assert b"url(" not in files["EPUB/css/book.css"]
    assert b"@import" not in files["EPUB/css/book.css"]
