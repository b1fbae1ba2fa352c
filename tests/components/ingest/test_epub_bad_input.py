"""Broken and hostile books: one clear sentence each, and the other books still go in."""

import random
import stat
import struct
import zipfile

import pytest
from haystack.dataclasses import ByteStream
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.doubles.epub_builder import CONTAINER, PARAGRAPH, EpubBuilder, chapter, nav_point, zip_bytes

from shiguan.ingest.epub_to_document import EPUBToDocument

TEXT = "The garrison of Fanyang marched south before dawn."
ENCRYPTION = (
    '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container" '
    'xmlns:enc="http://www.w3.org/2001/04/xmlenc#"><enc:EncryptedData>'
    '<enc:EncryptionMethod Algorithm="{algorithm}"/><enc:CipherData><enc:CipherReference URI="{uri}"/></enc:CipherData>'
    "</enc:EncryptedData></encryption>"
)
AES = "http://www.w3.org/2001/04/xmlenc#aes256-cbc"
OPF = "EPUB/book.opf"


def run(data, name="bad.epub"):
    good = ByteStream(EpubBuilder().build(), meta={"file_path": "good.epub"})
    bad = ByteStream(data, meta={"file_path": f"shelf/{name}"})
    result = EPUBToDocument().run(sources=[bad, good])
    assert [d.content for d in result["documents"] if d.meta["source"] == "good.epub"] == [TEXT]
    return result, [d for d in result["documents"] if d.meta["source"] == name]


def with_files(**files):
    return EpubBuilder(files={name.replace("__", "/"): data for name, data in files.items()})


def built(book):
    made = book() if callable(book) else book
    return made.build() if isinstance(made, EpubBuilder) else made


def patched(data, find, replace):
    assert find in data
    return data.replace(find, replace)


def symlink():
    info = zipfile.ZipInfo("EPUB/link.xhtml")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return zip_bytes([*EpubBuilder().entries().items(), (info, "/etc/passwd")])


def overlapping():
    """Two entries of the directory that point at the same bytes."""
    entries = {**EpubBuilder().entries(), "EPUB/a.bin": b"x" * 5000, "EPUB/b.bin": b"x" * 5000}
    data = zip_bytes(entries, zipfile.ZIP_STORED)
    first = data.index(b"EPUB/a.bin") - 30
    record = data.rindex(b"EPUB/b.bin") - 46
    return data[: record + 42] + struct.pack("<L", first) + data[record + 46 :]


def password():
    data = bytearray(EpubBuilder().build())
    record = data.rindex(b"PK\x01\x02")
    data[record + 8] |= 1
    return bytes(data)


def many_entries(count):
    return zip_bytes([*EpubBuilder().entries().items(), *((f"x/{i}", b"") for i in range(count))], zipfile.ZIP_STORED)


def claims_much():
    """Directory entries that claim 600 MiB of stored bytes between them."""
    data = bytearray(zip_bytes({**EpubBuilder().entries(), "EPUB/a.bin": b"x"}, zipfile.ZIP_STORED))
    record = data.rindex(b"EPUB/a.bin") - 46
    data[record + 24 : record + 28] = struct.pack("<L", 600 * 2**20)
    return bytes(data)


def container(opf):
    return with_files(**{"META-INF__container.xml": CONTAINER.format(opf=opf)})


def encrypted(algorithm, uri):
    return with_files(**{"META-INF__encryption.xml": ENCRYPTION.format(algorithm=algorithm, uri=uri)})


NAMELESS = '<item id="e" href="" media-type="application/xhtml+xml"/>'
ADEPT = '<rights xmlns="http://ns.adobe.com/adept"/>'
UNREAD = "none of the files in its reading order"
OUTSIDE = "leads out of the archive"
REFUSED = {
    "empty-file": (b"", "the file is empty (0 bytes)"),
    "text-file": (b"This is a plain text file.", "is not a zip archive"),
    "only-the-first-two-bytes": (b"PK", "the zip archive is cut off"),
    "truncated-by-half": (EpubBuilder().build()[:700], "the zip archive is cut off"),
    "truncated-by-a-byte": (EpubBuilder().build()[:-1], "the zip archive"),
    "directory-garbled": (patched(EpubBuilder().build(), b"PK\x01\x02", b"PK\x07\x07"), "the zip archive is damaged"),
    "zip-that-is-no-epub": (zip_bytes({"notes.txt": "hello"}), "this zip archive is not an EPUB"),
    "container-names-nothing": (with_files(**{"META-INF__container.xml": "<container/>"}), "names no package file"),
    "container-is-garbage": (with_files(**{"META-INF__container.xml": b"\x00\xff"}), "names no package file"),
    "opf-without-a-name": (container(""), "its package file `` is missing"),
    "opf-outside-the-archive": (container("../../etc/passwd"), "its package file `../../etc/passwd` is missing"),
    "opf-empty": (with_files(**{"EPUB__book.opf": ""}), "its package file `EPUB/book.opf` cannot be read"),
    "spine-item-without-a-name": (EpubBuilder(spine=["e"], manifest_extra=NAMELESS), UNREAD),
    "spine-empty": (EpubBuilder(spine=[]), "has an empty spine"),
    "spine-of-unknown-ids": (EpubBuilder(spine=["nope"]), UNREAD),
    "chapters-missing": (with_files(**{"EPUB__ch1.xhtml": None}), UNREAD),
    "chapters-empty": (with_files(**{"EPUB__ch1.xhtml": ""}), UNREAD),
    "only-pictures": (with_files(**{"EPUB__ch1.xhtml": chapter('<img src="a.png" alt=""/>')}), "there is no text in it"),
    "encrypted-chapters": (encrypted(AES, "EPUB/ch1.xhtml"),
        "the book is locked: `META-INF/encryption.xml` says that `EPUB/ch1.xhtml` is encrypted"),
    "adobe-licence": (with_files(**{"META-INF__rights.xml": ADEPT}), "the book is locked: `META-INF/rights.xml`"),
    "zip-password": (password, "protected by a password"),
    "bomb-by-ratio": (lambda: with_files(**{"EPUB__big.bin": bytes(9 * 2**20)}), "is packed more than 100 to 1"),
    "bomb-by-claimed-size": (claims_much, "unpacks to more than 512 MiB"),
    "bomb-by-entries": (lambda: many_entries(10_001), "the limit is 10,000"),
    "bomb-by-overlap": (overlapping, "shares its bytes with another"),
    "path-with-dots": (with_files(**{"..__..__evil.xhtml": "x"}), OUTSIDE),
    "path-with-dots-inside": (with_files(**{"EPUB__..__..__evil": "x"}), OUTSIDE),
    "absolute-path": (with_files(__etc__passwd="x"), OUTSIDE),
    "windows-drive": (with_files(**{"C:__evil.xhtml": "x"}), OUTSIDE),
    "backslash-escape": (with_files(**{"..\\..\\evil.xhtml": "x"}), OUTSIDE),
    "symbolic-link": (symlink, "is a symbolic link"),
}  # fmt: skip


@pytest.mark.parametrize(("book", "cause"), REFUSED.values(), ids=REFUSED)
def test_bad_book_is_skipped_with_its_cause_and_the_others_go_in(book, cause):
    result, documents = run(built(book))
    assert documents == []
    (entry,) = result["skipped"]
    assert entry["source"] == "bad.epub"
    assert cause in entry["cause"]
    assert entry["next_step"]
    assert set(entry) == {"source", "cause", "next_step"}
    assert "Traceback" not in str(entry)
    assert "Error" not in entry["cause"]


def broken_chapter(data):
    chapters = {"ch1.xhtml": data, "ch2.xhtml": chapter("<h1>Two</h1>" + PARAGRAPH)}
    return EpubBuilder(chapters=chapters).build()


GB = "安禄山起兵于范阳，河北诸郡望风瓦解，天下承平日久，人不知战。" * 8
XHTML = '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "http://www.w3.org/TR/xhtml11/DTD/xhtml11.dtd">'
XHTML_TYPE = 'media-type="application/xhtml+xml"'
# What costs nothing and needs no word.
HARMLESS = {
    "wrong-mimetype": with_files(mimetype="application/zip"),
    "no-mimetype": with_files(mimetype=None),
    "no-container-but-an-opf": with_files(**{"META-INF__container.xml": None}),
    "fonts-obfuscated-idpf": encrypted("http://www.idpf.org/2008/embedding", "f.otf"),
    "fonts-obfuscated-adobe": encrypted("http://ns.adobe.com/pdf/enc#RC", "f.otf"),
    "rights-without-encryption": with_files(**{"META-INF__rights.xml": "<rights/>"}),
    "backslashes-as-separators": lambda: zip_bytes(
        {name.replace("EPUB/", "EPUB\\"): data for name, data in EpubBuilder().entries().items()}
    ),
    "small-and-repetitive": with_files(**{"EPUB__pad.txt": b" " * 2**20}),
    "package-cut-off": with_files(**{"EPUB__book.opf": EpubBuilder().opf().replace("</package>", "")}),
    "dangling-manifest-item": EpubBuilder(manifest_extra='<item id="d" href="no.mp3" media-type="audio/mpeg"/>'),
    "spine-names-a-file-twice": EpubBuilder(spine=["ch1.xhtml", "ch1.xhtml"]),
    "nav-that-links-to-itself": EpubBuilder(
        nav='<li><a href="nav.xhtml">Self</a><ol><li><a href="nav.xhtml#x">x</a></li></ol></li>'
    ),
    "nav-of-great-depth": EpubBuilder(nav="<li><a href='ch1.xhtml'>x</a><ol>" * 300 + "</ol></li>" * 300),
    "ncx-of-great-depth": EpubBuilder(
        ncx="<navPoint><navLabel><text>x</text></navLabel><content src='ch1.xhtml'/>" * 300 + "</navPoint>" * 300
    ),
    "nav-garbage": with_files(**{"EPUB__nav.xhtml": b"\xff\xfe\x00"}),
    "percent-encoded-name": EpubBuilder(
        chapters={}, spine=["c"], files={"EPUB/第 一章.xhtml": chapter(PARAGRAPH)},
        manifest_extra=f'<item id="c" href="%E7%AC%AC%20%E4%B8%80%E7%AB%A0.xhtml" {XHTML_TYPE}/>',
    ),
    "href-of-another-case-with-a-fragment": EpubBuilder(
        chapters={}, spine=["c"], files={"EPUB/Text/Ch1.xhtml": chapter(PARAGRAPH)},
        manifest_extra=f'<item id="c" href="text/CH1.XHTML#top" {XHTML_TYPE}/>',
    ),
}  # fmt: skip
SOUP = "not well-formed"
# The body of a book's first chapter, or the whole chapter, or what makes the book; its text, and the warning.
READ = {name: (make, TEXT, None) for name, make in HARMLESS.items()} | {
    "unclosed-tags": ("<html><body><p>First<br><p>The <b>bold <i>move</b> ends", "The bold move ends", SOUP),
    "bare-ampersand-and-less-than": ("<p>Gao & Shi, 3 < 4 &unknown; men</p>", "Gao & Shi, 3 < 4 &unknown; men", SOUP),
    "undeclared-epub-prefix": (
        chapter("<p epub:type='x'>Prefix</p>").replace('xmlns:epub="http://www.idpf.org/2007/ops"', ""), "Prefix", None,
    ),
    "self-closed-anchor-in-tag-soup": ("<html><body><a id='x'/><p>One<p>Two</body>", "Two", SOUP),
    "nul-bytes": ("<p>be\x00fore</p>", "before", "1 control characters were removed"),
    "nul-reference": ("<p>be&#0;fore</p>", "before", None),
    "gb18030-declared": (chapter(f"<p>{GB}</p>").replace("UTF-8", "gb2312").encode("gb18030"), GB, None),
    "gb18030-not-declared": (f"<html><body><p>{GB}</p></body></html>".encode("gb18030"), GB, "was read as gb18030"),
    "gb18030-declared-as-utf-8": (chapter(f"<p>{GB}</p>").encode("gb18030"), GB, "was read as gb18030"),
    "utf-16-with-mark": (chapter("<p>Wide text</p>").encode("utf-16"), "Wide text", None),
    "utf-16-without-mark": (chapter("<p>Wide text</p>").encode("utf-16-le"), "Wide text", None),
    "latin-1-declared-in-meta": (
        "<html><head><meta charset='iso-8859-1'></head><body><p>\xc9t\xe9 noir</p>".encode("latin-1"), "Été noir", SOUP,
    ),
    "unknown-encoding": (chapter("<p>Plain</p>").replace("UTF-8", "x-nope"), "Plain", None),
    "prefixed-elements": (
        '<h:html xmlns:h="http://www.w3.org/1999/xhtml"><h:Body><h:p>Prefixed</h:p></h:Body></h:html>', "Prefixed", None,
    ),
    "big5-declared": (chapter("<p>國破山河在</p>").replace("UTF-8", "Big5").encode("big5"), "國破山河在", None),
    "public-doctype": (chapter("<p>a&nbsp;b</p>").replace("<html", f"{XHTML}<html", 1), "a b", None),
    "unfinished-doctype": ('<!DOCTYPE html [<!ENTITY a "b <html><body><p>here</p></body></html>', "here", "entities of its own"),
    "markup-from-entities": ("<p>&LT;b&GT; &AMP;</p>", "<b> &", None),
    "html-entities": ("<p>&eacute;t&eacute;&nbsp;&mdash; noir</p>", "été — noir", None),
    "duplicate-ids": ("<p id='a'>One</p><p id='a'>Two</p>", "Two", None),
    "deep-nesting": ("<div>" * 1500 + "deep" + "</div>" * 1500, "deep", None),
    "spine-item-missing": (EpubBuilder(spine=["ch1.xhtml", "gone"]), TEXT, "which the manifest lacks"),
    "spine-file-missing": (
        EpubBuilder(manifest_extra=f'<item id="d" href="no.xhtml" {XHTML_TYPE}/>', spine=["ch1.xhtml", "d"]),
        TEXT, "`no.xhtml` of the reading order is missing from the archive",
    ),
    "fallback-cycle": (
        EpubBuilder(
            manifest_extra='<item id="p" href="p.pdf" media-type="application/pdf" fallback="q"/>'
            '<item id="q" href="q.pdf" media-type="application/pdf" fallback="p"/>', spine=["p", "ch1.xhtml"],
        ),
        TEXT, "`p.pdf` of the reading order is no page",
    ),
    "note-that-refers-to-itself": (
        "<aside epub:type='footnote' id='n'>Loop<a epub:type='noteref' href='#n'>1</a></aside>", "Loop", None,
    ),
    "notes-that-refer-to-each-other": (
        "<p>Text<a epub:type='noteref' href='#a'>1</a></p>"
        "<aside epub:type='footnote' id='a'>A<a epub:type='noteref' href='#b'>2</a></aside>"
        "<aside epub:type='footnote' id='b'>B<a epub:type='noteref' href='#a'>1</a></aside>",
        "Text [Note: A (B)]", None,
    ),
    "notes-nobody-reaches-in-a-circle": (
        "<aside epub:type='footnote' id='a'>A<a epub:type='noteref' href='#b'>2</a></aside>"
        "<aside epub:type='footnote' id='b'>B<a epub:type='noteref' href='#a'>1</a></aside>",
        "A [Note: B]", None,
    ),
    "note-reference-to-a-missing-id": (
        "<p>Text<a epub:type='noteref' href='#gone'>1</a></p>", "Text\nThe garrison", "1 note marks lead nowhere",
    ),
    "remote-spine-item": (
        EpubBuilder(
            spine=["r", "ch1.xhtml"], manifest_extra=f'<item id="r" href="http://example.com/a.xhtml" {XHTML_TYPE}/>',
        ),
        TEXT, "`http://example.com/a.xhtml` of the reading order is missing",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("flawed", "text", "warning"), READ.values(), ids=READ)
def test_flawed_book_is_read_and_its_flaw_reported(flawed, text, warning):
    is_body = isinstance(flawed, str) and flawed.startswith(("<p", "<div", "<aside"))
    is_book = callable(flawed) or isinstance(flawed, EpubBuilder)
    result, documents = run(built(flawed) if is_book else broken_chapter(chapter(flawed) if is_body else flawed))
    assert result["skipped"] == []
    assert text in "\n".join(d.content for d in documents)
    if warning is None:
        assert result["warnings"] == []
    else:
        assert warning in " ".join(result["warnings"])
        assert all(sentence.startswith("bad.epub: ") for sentence in result["warnings"])


def test_broken_chapter_is_reported_and_the_rest_read():
    data = EpubBuilder(
        chapters={"ch1.xhtml": chapter("<p>" + "unpredictable " * 9 + "</p>"), "ch2.xhtml": chapter(PARAGRAPH)},
        compression=zipfile.ZIP_STORED,
    ).build()
    result, documents = run(patched(data, b"unpredictable u", b"unprefictable u"))
    assert [d.content for d in documents] == [TEXT]
    assert result["warnings"] == [
        "bad.epub: entry `EPUB/ch1.xhtml` is damaged (Bad CRC-32 for file 'EPUB/ch1.xhtml'); "
        "this chapter was left out, the rest was read."
    ]


LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))


@pytest.mark.parametrize(
    ("entities", "name"),
    [
        ('<!ENTITY x SYSTEM "{secret}"><!ENTITY % y SYSTEM "http://example.com/y.dtd"> %y;', "x"),
        (f'<!ENTITY l0 "lol">{LAUGHS}', "l9"),
    ],
    ids=["external", "bomb"],
)
def test_entities_of_a_page_are_not_expanded(tmp_path, entities, name):
    (tmp_path / "secret.txt").write_text("the secret")
    declared = f"<!DOCTYPE html [{entities.replace('{secret}', (tmp_path / 'secret.txt').as_uri())}]><html"
    page = chapter(f"<p>Before &{name}; after.</p>").replace("<html", declared, 1)
    result, documents = run(broken_chapter(page))
    assert documents[0].content == f"Before &{name}; after."
    assert "declares entities of its own, which are not expanded" in result["warnings"][0]


def test_entities_in_package_files_are_not_expanded(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret")
    book = EpubBuilder(title="Title &x;")
    opf = book.opf().replace("<package", f'<!DOCTYPE p [<!ENTITY x SYSTEM "{secret.as_uri()}">]><package', 1)
    _, documents = run(EpubBuilder(files={OPF: opf}).build())
    assert documents[0].meta["title"] == "Title &x;"


@pytest.mark.parametrize("text", ["字" * 1_700_000, "word " * 1_000_000], ids=["han", "latin"])
def test_chapter_of_five_megabytes_in_one_line_is_read_whole(text):
    _, documents = run(broken_chapter(chapter(f"<p>{text}</p>")))
    assert documents[0].content == text.strip()


def test_many_links_into_one_block_are_judged_in_bounded_time():
    links = "".join(f"<p><a href='#x' id='l{i}'>{i}</a></p>" for i in range(4000))
    back = "".join(f"<a href='#l{i}'>{i}</a>" for i in range(4000))
    _, documents = run(broken_chapter(chapter(f"{links}<p id='x'>{back}</p>{PARAGRAPH}")))
    assert documents[-1].content == TEXT


def test_nested_notes_put_in_once_do_not_grow():
    notes = "".join(
        f"<aside epub:type='footnote' id='n{i}'>N{i}<a epub:type='noteref' href='#n{i + 1}'>1</a>"
        f"<a epub:type='noteref' href='#n{i + 1}'>2</a></aside>"
        for i in range(400)
    )
    _, documents = run(broken_chapter(chapter(f"<p>T<a epub:type='noteref' href='#n0'>1</a></p>{notes}")))
    text = "\n".join(d.content for d in documents)
    assert documents[0].content == "T [Note: N0 (N1 (N2 (N3)))]"
    assert all(text.count(f"N{i}") >= 1 for i in range(400))
    assert len(text) < 10_000


BASE = EpubBuilder(
    chapters={
        "a.xhtml": chapter(
            "<section epub:type='chapter'><h1 id='h'>One</h1><p>A<a epub:type='noteref' href='#n'>1</a></p><table><tr><td>x"
            "</td><td>y</td></tr></table><blockquote><p>q</p></blockquote><aside epub:type='footnote' id='n'>note</aside>"
            "</section>"
        )
    },
    nav="<li><a href='a.xhtml#h'>One</a></li>",
    ncx=nav_point("One", "a.xhtml"),
)
RAW = BASE.build()
PARTS = sorted(BASE.entries())


@settings(max_examples=80)
@given(st.data())
def test_no_mutation_of_the_archive_raises(data):
    raw = bytearray(RAW)
    for _ in range(data.draw(st.integers(1, 12))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    result = EPUBToDocument().run(sources=[ByteStream(bytes(raw[: data.draw(st.integers(0, len(raw)))] or raw))])
    assert bool(result["documents"]) != bool(result["skipped"])


@settings(max_examples=80)
@given(part=st.sampled_from(PARTS), seed=st.integers(0, 2**32), cuts=st.integers(1, 8))
def test_no_mutation_of_a_file_in_the_book_raises(part, seed, cuts):
    chance = random.Random(seed)
    text = BASE.entries()[part]
    for _ in range(cuts):
        at, end = sorted((chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)))
        if chance.random() < 0.5:
            end = min(end, at + 5)
        put = chance.choice(["", "<", ">", "&", "\x00", "<p>", "</p>", "]]>", "\ud7ff", text[at:end] * 2])
        text = text[:at] + put + text[end:]
    result = EPUBToDocument().run(sources=[ByteStream(zip_bytes({**BASE.entries(), part: text}))])
    assert bool(result["documents"]) != bool(result["skipped"])
    for entry in result["skipped"]:
        assert "could not be read (" not in entry["cause"], entry


TAGS = "p div section h1 h2 h3 ul ol li table tr td blockquote aside span a sup ruby rt pre br nav dl dd".split()
ATTRIBUTES = st.sampled_from([
    "", " id='n'", " href='#n'", " epub:type='footnote'", " epub:type='noteref' href='#n'", " class='poem'", " hidden=''",
])  # fmt: skip
TREES = st.recursive(
    st.text(st.sampled_from("ab 一二\n"), max_size=6),
    lambda inner: st.builds(
        lambda tag, attributes, children: f"<{tag}{attributes}>{''.join(children)}</{tag}>",
        st.sampled_from(TAGS), ATTRIBUTES, st.lists(inner, max_size=4),
    ),
    max_leaves=25,
)  # fmt: skip


@settings(max_examples=60)
@given(st.lists(TREES, max_size=6))
def test_any_tree_keeps_its_invariants(trees):
    body = "".join(trees) + "<p>end</p>"
    result = EPUBToDocument().run(sources=[ByteStream(EpubBuilder(chapters={"c": chapter(body)}).build())])
    assert not result["skipped"] or "no text" in result["skipped"][0]["cause"]
    for document in result["documents"]:
        assert document.content == document.content.rstrip()
        assert document.content.strip()
        assert document.meta["anchor"]["offset"] >= 0
        for note in document.meta.get("notes", []):
            assert document.content[note["start"] : note["end"]][0] == "["
            assert document.content[note["start"] : note["end"]][-1] == "]"
