"""The sample book is an EPUB that any reader accepts, and the same bytes every time."""

import importlib.util
import os
import posixpath
import re
import zipfile
from pathlib import Path
from urllib.parse import unquote

import pytest
from lxml import etree

ROOT = Path(__file__).resolve().parents[2]
OPF = "{http://www.idpf.org/2007/opf}"
XHTML = "{http://www.w3.org/1999/xhtml}"
NCX = "{http://www.daisy.org/z3986/2005/ncx/}"
EPUB_TYPE = "{http://www.idpf.org/2007/ops}type"


def _load():
    spec = importlib.util.spec_from_file_location("build_book", ROOT / "examples" / "build_book.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build_book = _load().build_book


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
    return {
        n: etree.fromstring(b, parser)
        for n, b in files.items()
        if n.endswith((".xhtml", ".opf", ".ncx", ".svg", ".xml"))
    }


@pytest.fixture(scope="module")
def manifest(trees):
    items = trees["EPUB/package.opf"].iter(OPF + "item")
    return {item.get("id"): (posixpath.join("EPUB", item.get("href")), item) for item in items}


def _body(tree):
    return "".join(tree.find(f".//{XHTML}body").itertext())


def test_build_twice_gives_the_same_bytes(book, tmp_path):
    again = build_book(tmp_path / "other" / "name.epub")
    assert again.read_bytes() == book.read_bytes()


def test_build_does_not_depend_on_file_times_or_line_endings(book, tmp_path):
    source = ROOT / "examples" / "book"
    copy = tmp_path / "copy"
    for path in source.rglob("*"):
        if path.is_file():
            target = copy / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
            os.utime(target, (10**9, 10**9))
    assert build_book(tmp_path / "copy.epub", copy).read_bytes() == book.read_bytes()


def test_build_leaves_an_unchanged_book_untouched(tmp_path):
    target = build_book(tmp_path / "book.epub")
    os.utime(target, (10**9, 10**9))
    build_book(target)
    assert target.stat().st_mtime == 10**9
    assert [p.name for p in tmp_path.iterdir()] == ["book.epub"]


def test_build_replaces_a_broken_book(book, tmp_path):
    target = tmp_path / "book.epub"
    target.write_bytes(b"half a book")
    assert build_book(target).read_bytes() == book.read_bytes()


def test_build_of_another_folder_says_what_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no file `mimetype`"):
        build_book(tmp_path / "x.epub", tmp_path)


def test_mimetype_comes_first_and_is_not_compressed(book):
    with zipfile.ZipFile(book) as archive:
        first = archive.infolist()[0]
        assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)
        assert first.extra == b""
        assert archive.read(first) == b"application/epub+zip"


def test_container_names_the_package(trees):
    root = trees["META-INF/container.xml"]
    assert [r.get("full-path") for r in root.iter("{*}rootfile")] == ["EPUB/package.opf"]


def test_manifest_and_archive_hold_the_same_files(files, manifest):
    listed = {name for name, _ in manifest.values()} | {"mimetype", "META-INF/container.xml", "EPUB/package.opf"}
    assert listed == set(files)


def test_spine_navigation_and_ncx_agree(trees, manifest):
    spine = [manifest[ref.get("idref")][0] for ref in trees["EPUB/package.opf"].iter(OPF + "itemref")]
    toc = next(n for n in trees["EPUB/nav.xhtml"].iter(XHTML + "nav") if n.get(EPUB_TYPE) == "toc")
    nav = [("".join(a.itertext()), a.get("href")) for a in toc.iter(XHTML + "a")]
    ncx = [
        (point.findtext(f"{NCX}navLabel/{NCX}text"), point.find(NCX + "content").get("src"))
        for point in trees["EPUB/toc.ncx"].iter(NCX + "navPoint")
    ]
    assert nav == ncx
    chapters = list(dict.fromkeys(posixpath.join("EPUB", href.partition("#")[0]) for _, href in nav))
    assert chapters == [name for name in spine if name in chapters]
    assert set(spine) - set(chapters) == {f"EPUB/text/{n}.xhtml" for n in ("cover", "titlepage", "copyright")} | {
        "EPUB/nav.xhtml"
    }


def test_navigation_labels_are_the_headings_they_point_to(trees):
    for anchor in trees["EPUB/nav.xhtml"].find(f".//{XHTML}nav").iter(XHTML + "a"):
        name, _, fragment = anchor.get("href").partition("#")
        tree = trees[posixpath.join("EPUB", name)]
        section = tree.find(f".//{XHTML}section") if not fragment else tree.find(f".//*[@id='{fragment}']")
        heading = next(e for e in section if re.fullmatch(r"h[1-6]", etree.QName(e).localname))
        assert "".join(anchor.itertext()) == "".join(heading.itertext())


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


def test_ids_are_unique_in_each_file(trees):
    for name, tree in trees.items():
        ids = [e.get("id") for e in tree.iter(etree.Element) if e.get("id")]
        assert len(ids) == len(set(ids)), name


def test_every_note_is_referred_to_once_and_links_back(trees):
    references, notes = {}, {}
    for name, tree in trees.items():
        for element in tree.iter(etree.Element):
            kind = element.get(EPUB_TYPE) or ""
            if kind == "noteref":
                path, _, fragment = element.get("href").partition("#")
                target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
                assert (target, fragment) not in references
                references[target, fragment] = (name, element.get("id"))
            elif kind in ("footnote", "endnote"):
                notes[name, element.get("id")] = element
    assert set(references) == set(notes)
    assert {name for name, _ in references.values()} >= {"EPUB/text/ch01.xhtml", "EPUB/text/ch04.xhtml"}
    for (name, _), note in notes.items():
        back = next(note.iter(XHTML + "a")).get("href")
        path, _, fragment = back.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
        assert (target, fragment) in references.values()
        assert len("".join(note.itertext()).strip()) > 30


def test_the_book_has_the_structure_that_ingest_must_handle(trees):
    tags = {etree.QName(e).localname for t in trees.values() for e in t.iter(etree.Element)}
    assert tags >= {"blockquote", "figure", "figcaption", "table", "caption", "h3", "aside", "ol", "dl"}
    types = {e.get(EPUB_TYPE) for t in trees.values() for e in t.iter(etree.Element)}
    assert types >= {
        "cover",
        "titlepage",
        "copyright-page",
        "preface",
        "chapter",
        "appendix",
        "endnotes",
        "index",
        "noteref",
    }


def test_the_book_is_long_enough_in_both_languages(trees):
    text = "".join(_body(t) for n, t in trees.items() if n.startswith("EPUB/text/"))
    assert 3_500 <= len(re.findall(r"[A-Za-z][A-Za-z'’-]*", text)) <= 6_000
    assert 5_000 <= len(re.findall(r"[\u4e00-\u9fff]", text)) <= 9_000


def test_chapters_state_their_language(trees):
    for number in range(1, 9):
        tree = trees[f"EPUB/text/ch0{number}.xhtml"]
        text = _body(tree)
        han = len(re.findall(r"[\u4e00-\u9fff]", text))
        expected = "zh-Hans" if han > len(text) / 2 else "en"
        assert tree.get("lang") == tree.get("{http://www.w3.org/XML/1998/namespace}lang") == expected
        assert expected == ("en" if number % 2 else "zh-Hans")
