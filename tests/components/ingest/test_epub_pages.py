"""Where printed pages begin, and CFIs, from books of every kind to the citation."""

import io

import pytest
from haystack.dataclasses import ByteStream
from tests.doubles.epub_builder import EpubBuilder, chapter
from tests.doubles.epub_cfi import CfiReader

from shiguan.claims.citations import cited_place
from shiguan.ingest.epub_to_document import EPUBToDocument
from shiguan.ingest.parent_child_splitter import ParentChildSplitter
from shiguan.ingest.source_stamper import SourceStamper
from shiguan.text.places import page_label

BREAKS = '<span epub:type="pagebreak" id="p{0}" title="{0}"/>'
BODY = (
    "<p>Before any page.</p><p>{0}On sixty-two.</p><p>Still there, but then{1} the next one.</p>"
    "<p>Whole on it.</p><p>{2}The last.</p>"
)
WORDS = ("Before any page.", "On sixty-two.", "Still there", "the next one", "Whole on it.", "The last.")


def parents_of(data):
    result = EPUBToDocument().run(sources=[ByteStream(data, meta={"file_name": "book.epub"})])
    assert not result["skipped"]
    stamped = SourceStamper().run(result["documents"], tenant_id="t")["documents"]
    return ParentChildSplitter().run(stamped)["parents"], result["warnings"]


def cited(data, *words):
    """The citations of the first place of each of these words."""
    parents, _ = parents_of(data)
    found = []
    for word in words:
        parent = next(parent for parent in parents if word in parent.content)
        start = parent.content.index(word)
        found.append(cited_place(parent, (start, start + len(word))))
    return found


def pages(data, *words):
    return [one.get("page") for one in cited(data, *words)]


def book(*labels, marks=BREAKS, **more):
    return EpubBuilder(chapters={"ch1.xhtml": chapter(BODY.format(*(marks.format(label) for label in labels)))}, **more)


def page_list(*lines):
    items = "".join(f'<li><a href="{href}">{label}</a></li>' for href, label in lines)
    return chapter(f'<nav epub:type="toc"><ol/></nav><nav epub:type="page-list"><ol>{items}</ol></nav>')


NAV_ITEM = '<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
IDS = '<a id="{0}"></a>'


@pytest.mark.parametrize(
    "marks",
    [
        BREAKS, '<span role="doc-pagebreak" aria-label="Page {0}."/>', '<span epub:type="pagebreak">{0}</span>',
        '<a class="pagenum" id="Page_{0}">[Pg {0}]</a>', '<span epub:type="pagebreak" id="page_{0}"/>',
        '<a id="page{0}"></a>',
    ],
)  # fmt: skip
def test_a_page_begins_at_a_break_however_it_is_written(marks):
    assert pages(book(62, 63, 64, marks=marks).build(), *WORDS) == [None, "62", "62", "63", "63", "64"]


def test_a_page_list_leads_to_pages():
    nav = page_list(("ch1.xhtml#x", "xii"), ("ch1.xhtml#y", "1"), ("ch1.xhtml#z", "Page 2"))
    data = book("x", "y", "z", marks=IDS, manifest_extra=NAV_ITEM, files={"EPUB/nav.xhtml": nav}).build()
    assert pages(data, *WORDS) == [None, "xii", "xii", "1", "1", "2"]
    targets = "".join(
        f'<pageTarget type="normal" value="{n}"><navLabel><text>{n}</text></navLabel><content src="ch1.xhtml#{i}"/></pageTarget>'
        for n, i in ((63, "x"), (99, "y"), (100, "z"))
    )
    ncx = f'<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap/><pageList>{targets}</pageList></ncx>'
    data = book("x", "y", "z", marks=IDS, ncx="", files={"EPUB/toc.ncx": ncx}, version="2.0").build()
    # Behind a wide gap there is no page.
    assert pages(data, *WORDS) == [None, None, None, "99", "99", "100"]


def test_a_list_that_lies_is_told_and_what_cannot_be_known_is_not_said():
    lines = [("ch1.xhtml#x", "63"), ("ch1.xhtml#y", "63"), ("ch1.xhtml#z", "66"), ("ch1.xhtml#lost", "67")]
    lines += [("gone.xhtml#a", "68"), ("ch1.xhtml", "<b>&#x202e;</b>")]
    data = book("x", "y", "z", marks=IDS, manifest_extra=NAV_ITEM, files={"EPUB/nav.xhtml": page_list(*lines)}).build()
    # 64 and 65 begin somewhere behind a mark that says 63.
    assert pages(data, *WORDS) == [None, "63–65", "63–65", "63–65", "63–65", "66"]
    [warning] = [text for text in parents_of(data)[1] if "list of pages" in text]
    assert "2 of its entries lead nowhere" in warning
    assert "1 have no label" in warning
    assert "1 pages are in it twice" in warning


def test_a_book_without_pages_has_paragraphs_alone():
    places = cited(book("x", "y", "z", marks="").build(), "Before", "Whole on it.")
    assert ["page" in one for one in places] == [False, False]
    assert [one["paragraph"] for one in places] == [1, 4]


def test_a_note_has_the_page_that_it_stands_on():
    body = (
        f'<p>{BREAKS.format(7)}Text<a epub:type="noteref" href="#n">1</a> goes on.</p>'
        f'<aside epub:type="footnote" id="n"><p>{BREAKS.format(8)}A remark.</p></aside><p>{BREAKS.format(9)}More.</p>'
    )
    data = EpubBuilder(chapters={"ch1.xhtml": chapter(body)}).build()
    assert pages(data, "Text", "goes on.", "More.") == ["7", "7", "9"]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("63", "63"), ("[Pg 63]", "63"), ("page_63", "63"), ("p. iv", "iv"), ("第63頁", "63"), ("A-12", "A-12"), ("63a", "63a"),
        ("Plate IV", "Plate IV"), ("S. 12", "12"), ("", ""), ("page", "page"), ("<b>1</b>", ""), ("6\u202e3", "63"), ("6\n3", "6 3"),
        ("9" * 1_000_000, ""), ("=1+1", ""), ("\\input{x}", ""), ("[6](javascript:x)", ""),
    ],
)  # fmt: skip
def test_a_label_is_what_a_page_can_be_called(text, label):
    assert page_label(text) == label


def test_existing_passages_are_the_same_passages_with_and_without_pages():
    with_pages, _ = parents_of(book(62, 63, 64).build())
    without, _ = parents_of(book(62, 63, 64, marks="").build())
    assert [parent.id for parent in with_pages] == [parent.id for parent in without]
    old = {name: value for name, value in without[0].meta.items() if name not in ("pages", "cfi", "paragraph", "work")}
    place = cited_place(type(without[0])(content=without[0].content, meta=old), (0, 6))
    assert set(place) & {"page", "paragraph", "cfi"} == set()
    quoted = {"exact": "Before", "prefix": "", "suffix": " any page.\n\nOn sixty-two.\n\nStill"}
    assert place["selector"] == {"type": "TextQuoteSelector", **quoted}


CHAPTERS = {
    "plain": "<p>The garrison marched south.</p>",
    "wrapped lines": "<p>The garrison\n\t\t   marched   <i>very\n far</i>\n south.</p>",
    "astral": "<p>𠀀𠀁 the 𠀂garrison 𠀃marched.</p>",
    "hidden": "<p>The gar\u00adri\u00adson\u200b marched<!-- a comment --> south<?x y?>wards.</p>",
    "cdata and entities": "<p>The <![CDATA[garrison]]> &amp; its &#x4e00; friends&#160;marched.</p>",
    "lines": "<div class='poem'><p>One line</p><p>and another</p></div>",
    "table": "<table><tr><td>One</td><td>two</td></tr><tr><td>three</td><td>four</td></tr></table>",
    "pre": "<pre>\n  kept   as it\n is  </pre>",
    "nested": "<div> <div>a<b>b</b>c<b>d<i>e</i></b> f</div> tail </div>",
}  # fmt: skip


@pytest.mark.parametrize("body", CHAPTERS.values(), ids=CHAPTERS)
def test_every_span_of_a_chapter_is_what_a_second_implementation_reads_at_its_cfi(body):
    data = EpubBuilder(chapters={"a.xhtml": chapter("<p>Another file.</p>"), "b.xhtml": chapter(body)}).build()
    reader = CfiReader(io.BytesIO(data))
    [parent] = [one for one in parents_of(data)[0] if "Another" in one.content]
    text = parent.content
    seen = 0
    for start in range(len(text)):
        for end in range(start + 1, len(text) + 1):
            if text[start].isspace() or text[end - 1].isspace() or "|" in (text[start], text[end - 1]):
                continue
            cfi = cited_place(parent, (start, end))["cfi"]
            if start < 13 < end:
                assert cfi == f"epubcfi(/6/2!/4/2/1:{start})"  # across two files
                continue
            read = "".join(piece for piece in reader.text(cfi) if isinstance(piece, str))
            squeezed = "".join(text[start:end].replace("|", "").split())
            assert "".join(read.translate({0xAD: None, 0x200B: None}).split()) == squeezed
            seen += 1
    assert seen > 60


def test_a_chapter_that_was_mended_has_no_cfi():
    data = EpubBuilder(chapters={"a.xhtml": "<html><body><p>Not closed<p>at all</body></html>"}).build()
    assert "cfi" not in cited(data, "Not closed")[0]


def test_what_the_book_says_that_it_is_is_kept_and_bounded():
    extra = (
        '<dc:creator id="e">Ed Itor</dc:creator><meta refines="#e" property="role">edt</meta>'
        '<dc:contributor id="t">Tr Ans</dc:contributor><meta refines="#t" property="role">trl</meta>'
        "<dc:publisher>Zhonghua &amp;\n Co</dc:publisher><dc:date>1975-05-01</dc:date>"
        "<dc:identifier>urn:uuid:1</dc:identifier><dc:identifier>urn:isbn:978-0-306-40615-7</dc:identifier>"
        '<meta property="schema:bookEdition">2nd ed.</meta>'
    )
    data = EpubBuilder(title="T\u202eitle" + "x" * 1_000_000, metadata_extra=extra).build()
    work = parents_of(data)[0][0].meta["work"]
    assert work.pop("title") == "Title" + "x" * 495
    assert work == {
        "author": ["Ann Author"], "editor": ["Ed Itor"], "translator": ["Tr Ans"], "edition": "2nd ed.", "year": "1975",
        "publisher": "Zhonghua & Co", "identifier": ["9780306406157", "urn:uuid:1"],
    }  # fmt: skip
