"""What a reader gets from a book: order, headings, notes, kinds, languages, places."""

import pytest
from haystack.dataclasses import ByteStream
from tests.doubles.epub_builder import PARAGRAPH, EpubBuilder, chapter, nav_point

from shiguan.ingest.epub_to_document import EPUBToDocument


def convert(book, **options):
    result = EPUBToDocument(**options).run(sources=[ByteStream(book.build(), meta={"file_path": "shelf/book.epub"})])
    assert result["skipped"] == []
    return result["documents"]


def of_body(body, **book):
    return convert(EpubBuilder(chapters={"ch1.xhtml": chapter(body)}, **book))


def contents(documents):
    return [document.content for document in documents]


def sections(documents):
    return [document.meta["section"] for document in documents]


def kinds(documents):
    return [(document.meta["kind"], document.content) for document in documents]


def li(label, href="", children=""):
    link = f'<a href="{href}">{label}</a>' if href else f"<span>{label}</span>"
    return f"<li>{link}{f'<ol>{children}</ol>' if children else ''}</li>"


def test_meta_names_source_title_author_language_and_place():
    (document,) = convert(EpubBuilder(language="en-GB", creators=["Ann Author", "Bo Writer"]))
    assert document.content == "The garrison of Fanyang marched south before dawn."
    assert document.meta == {
        "source": "book.epub",
        "file_path": "shelf/book.epub",
        "title": "The Test Book",
        "author": "Ann Author, Bo Writer",
        "language": "en",
        "section": ["One"],
        "kind": "text",
        "anchor": {"href": "EPUB/ch1.xhtml", "spine": 0, "path": "/html/body/p[1]", "offset": 0},
        "cfi": [(0, "/6/2!/4/4/1", 0)],
        "work": {"title": "The Test Book", "author": ["Ann Author", "Bo Writer"]},
    }


def test_meta_of_a_stream_is_added_but_for_the_converters_own_keys():
    given = {"file_path": "book.epub", "shelf": "A", "title": "Better title", "section": "mine", "pages": [[0, "9"]]}
    meta = EPUBToDocument().run(sources=[ByteStream(EpubBuilder().build(), meta=given)])["documents"][0].meta
    assert (meta["shelf"], meta["title"], meta["section"]) == ("A", "Better title", ["One"])
    assert "pages" not in meta


def test_main_title_and_authors_by_role_or_the_name_of_the_file():
    extra = (
        '<dc:title id="t2">Real Title</dc:title><meta refines="#t2" property="title-type">main</meta>'
        '<dc:creator id="tr">Translator</dc:creator><meta refines="#tr" property="role">trl</meta>'
    )
    meta = convert(EpubBuilder(metadata_extra=extra))[0].meta
    assert (meta["title"], meta["author"]) == ("Real Title", "Ann Author")
    assert convert(EpubBuilder(title=""))[0].meta["title"] == "book"


def test_spine_order_counts_not_manifest_order():
    chapters = {f"c{i}.xhtml": chapter(f"<p>Chapter file number {i}.</p>") for i in (1, 2, 3)}
    documents = convert(EpubBuilder(chapters=chapters, spine=["c3.xhtml", "c1.xhtml", "c2.xhtml"]))
    assert contents(documents) == [f"Chapter file number {i}." for i in (3, 1, 2)]
    assert [d.meta["anchor"]["spine"] for d in documents] == [0, 1, 2]


SECTIONS = {
    "nav and headings combine without duplicates": (
        {
            "part1.xhtml": "<h1>Part One</h1><p>An opening.</p>",
            "ch3.xhtml": "<h1>3. The Revolt</h1><p>First.</p><h2>The siege</h2><p>Second.</p>",
        },
        li("Part One", "part1.xhtml", li("Chapter 3. The Revolt", "ch3.xhtml")),
        [["Part One"], ["Part One", "Chapter 3. The Revolt"], ["Part One", "Chapter 3. The Revolt", "The siege"]],
    ),
    "an entry holds over files without headings": ({"a.xhtml": "<h2>Storm</h2><p>One.</p>", "b.xhtml": "<p>Two.</p>"},
        li("Storm", "a.xhtml"), [["Storm"], ["Storm"]]),
    "a heading of its rank in a file outside the nav ends an entry": (
        {"a.xhtml": "<h1>Listed</h1><p>One.</p>", "b.xhtml": "<h1>Unlisted</h1><p>Two.</p>"}, li("Listed", "a.xhtml"),
        [["Listed"], ["Unlisted"]]),
    "a group without a link stands above its entries only": (
        {"a.xhtml": "<section id='x'><h2>A tale</h2><p>One.</p></section><section><h2>End</h2><p>Two.</p></section>"},
        li("Grimm", "", li("A tale", "a.xhtml#x")), [["Grimm", "A tale"], ["End"]]),
    "headings alone nest by rank and section": (
        {
            "a.xhtml": "<h1>Book</h1><p>a</p><h2>Chapter</h2><p>b</p><h4>Deep</h4><p>c</p><h2>Next</h2><p>d</p>"
            "<section><h1>Inner</h1><p>e</p></section><p>f</p>"
        },
        None,
        [["Book"], ["Book", "Chapter"], ["Book", "Chapter", "Deep"], ["Book", "Next"], ["Book", "Next", "Inner"], ["Book", "Next"]],
    ),
    "a heading in two lines is one": (
        {"a.xhtml": "<h2>CHAPTER I</h2><h2>The<br/>Ferry</h2><p>a</p><h2>CHAPTER II</h2><p>b</p>"}, None,
        [["CHAPTER I The Ferry"], ["CHAPTER II"]]),
    "a number before its title in a header is one heading": (
        {"a.xhtml": "<section><header><h2>第二章</h2><h1>潼关</h1></header><p>甲</p><h2>失守</h2><p>乙</p></section>"}, None,
        [["第二章 潼关"], ["第二章 潼关", "失守"]]),
    "a section of nothing but a heading names what follows": (
        {"a.xhtml": "<section><h1>The Fall</h1></section><section><p>a</p></section>"}, None, [["The Fall"]]),
    "a title drawn as a picture is a heading": ({"a.xhtml": '<h1><img src="t.png" alt="The Storm"/></h1><p>a</p>'},
        None, [["The Storm"]]),
    "the deeper of two entries with one target wins": ({"a.xhtml": "<p>a</p>"},
        li("Part", "a.xhtml", li("Chapter", "a.xhtml")), [["Part", "Chapter"]]),
    "a target inside the heading belongs to it": (
        {"a.xhtml": "<h2><a id='x'/>One</h2><p>a</p><h2><a id='y'/>Two</h2><p>b</p>"},
        li("One", "a.xhtml#x") + li("Two", "a.xhtml#y"), [["One"], ["Two"]]),
    "a heading that the label already says is not repeated": (
        {"a.xhtml": "<section><h1>本纪　卷九</h1><h2>玄宗下</h2><p>甲</p><h2>肃宗</h2><p>乙</p></section>"},
        li("本纪 卷九 玄宗下", "a.xhtml"), [["本纪 卷九 玄宗下"], ["本纪 卷九 玄宗下", "肃宗"]]),
    **{
        f"of {label} and {heading}, the fuller is shown": (
            {"a.xhtml": f"<h1>{heading}</h1><p>a</p>"}, li(label, "a.xhtml"), [shown],
        )
        for label, heading, shown in (
            ("Chapter 1. Loomings", "LOOMINGS", ["Chapter 1. Loomings"]), ("1", "Chapter 1: The Storm", ["Chapter 1: The Storm"]),
            ("Chapter 1", "The Storm", ["Chapter 1", "The Storm"]), ("190 The Clover", "II. The Clover", ["190 The Clover"]),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize(("bodies", "nav", "expected"), SECTIONS.values(), ids=SECTIONS)
def test_headings_above_a_block_are_those_of_the_contents_and_of_the_text(bodies, nav, expected):
    chapters = {name: chapter(body) for name, body in bodies.items()}
    assert sections(convert(EpubBuilder(chapters=chapters, nav=nav))) == expected


def test_label_that_names_the_start_of_reading_is_no_section():
    start = '<li><a epub:type="bodymatter" href="ch1.xhtml">Start reading</a></li>'
    documents = of_body("<h1>The Storm</h1><p>a</p>", nav=li("Start reading", "ch1.xhtml"), landmarks=start)
    assert sections(documents) == [["The Storm"]]


def test_ncx_gives_sections_where_there_is_no_nav():
    ncx = nav_point("第一编", "c1.xhtml", nav_point("第一章 起兵", "c1.xhtml#s1") + nav_point("第二章", "c1.xhtml#s2"))
    body = "<p>引子。</p><div id='s1'><p>范阳。</p></div><div id='s2'><p>潼关。</p></div>"
    book = EpubBuilder(chapters={"c1.xhtml": chapter(body, attributes="")}, ncx=ncx, version="2.0", language="zh-CN")
    assert sections(convert(book)) == [["第一编"], ["第一编", "第一章 起兵"], ["第一编", "第二章"]]


# The mark, and the note.
MARKS = {
    "epub-type": ('<a epub:type="noteref" href="#n1">1</a>', '<aside epub:type="footnote" id="n1"><p>A lie.</p></aside>'),
    "role-with-back-link": (
        '<sup>[<a role="doc-noteref" href="#n1">1</a>]</sup>', '<section role="doc-endnotes"><ol>'
        '<li id="n1" role="doc-endnote"><p>A lie. <a role="doc-backlink" href="#r">↩</a></p></li></ol></section>',
    ),
    "plain-links-both-ways": ('<a id="r1" href="#n1"><sup>1</sup></a>', '<hr/><p><a id="n1" href="#r1">1</a>. A lie.</p>'),
    "class-of-the-list": ('<sup><a href="#n1">[1]</a></sup>', '<div class="footnotes"><p id="n1">[1] A lie.</p></div>'),
    "anchor-before-the-text": ('<a id="r1" href="#n1">1</a>', '<p><a id="n1"/><a href="#r1">1</a> A lie.</p>'),
    "definition-list": ('<a href="#n1" id="r1">*</a>',
        '<dl><dt id="n1"><a href="#r1">*</a></dt><dd>A lie. <a href="#r1">back</a></dd></dl>'),
    "picture-as-mark": ('<a class="duokan-footnote" href="#n1"><img src="n.png"/></a>',
        '<ol class="duokan-footnote-content"><li class="duokan-footnote-item" id="n1"><p>A lie.</p></li></ol>'),
    "only-the-mark-says-so": ('<a epub:type="noteref" href="#n1">1</a>', '<p id="n1">1. A lie.</p>'),
    "only-the-note-says-so": ('<a href="#n1">†</a>', '<aside epub:type="rearnote" id="n1">A lie.</aside>'),
}  # fmt: skip


@pytest.mark.parametrize(("mark", "note"), MARKS.values(), ids=MARKS)
def test_note_stands_where_the_text_refers_to_it(mark, note):
    body = f"<h1>One</h1><p>He swore loyalty{mark} to the throne.</p>{note}"
    documents = of_body(body)
    assert contents(documents)[0] == "He swore loyalty [Note: A lie.] to the throne."
    assert "A lie." not in " ".join(contents(documents)[1:])
    (place,) = documents[0].meta["notes"]
    assert documents[0].content[place["start"] : place["end"]] == "[Note: A lie.]"
    assert place["anchor"]["href"] == "EPUB/ch1.xhtml"


def test_endnote_in_another_file_outside_the_reading_order_is_found():
    chapters = {
        "c.xhtml": chapter("<p>He fled<a href='notes.xhtml#n7' epub:type='noteref'>7</a>.</p>"),
        "notes.xhtml": chapter(
            "<section epub:type='endnotes'><h1>Notes</h1><p id='n7' epub:type='endnote'>To Shu.</p></section>"
        ),
    }
    for where in ({}, {"nonlinear": ("notes.xhtml",)}, {"spine": ["c.xhtml"]}):
        book = EpubBuilder(chapters=chapters, **where)
        (document,) = convert(book)
        assert document.content == "He fled [Note: To Shu.]."
        assert document.meta["notes"][0]["anchor"]["href"] == "EPUB/notes.xhtml"
        assert document.meta["notes"][0]["anchor"]["path"] == "/html/body/section[1]/p[1]"


REF = "<a epub:type='noteref' href='#{}'>{}</a>"
ONE = REF.format("n", 1)
NOTES = {
    "a note with two marks is put in once": (
        f"<p>First{ONE}.</p><p>Second{ONE}.</p><aside epub:type='footnote' id='n'>The note.</aside>",
        [("text", "First [Note: The note.]."), ("text", "Second.")]),
    "a note nobody refers to is a footnote": ("<p>Text.</p><aside epub:type='footnote' id='n'><p>1. Alone.</p></aside>",
        [("text", "Text."), ("footnote", "1. Alone.")]),
    "the label of a note is in the language of the text": (
        f"<p xml:lang='zh'>禄山反于范阳{ONE}，河北皆陷。</p><aside epub:type='footnote' id='n'>今北京。</aside>",
        [("text", "禄山反于范阳[脚注：今北京。]，河北皆陷。")]),
    "a note before its mark is moved to the mark": (
        f"<aside epub:type='footnote' id='n'>Early.</aside><p>Late{ONE}.</p>", [("text", "Late [Note: Early.].")]),
    "a note inside a note follows it": (
        f"<p>Text{REF.format('a', 1)}.</p><aside epub:type='footnote' id='a'>Outer{REF.format('b', 2)}.</aside>"
        "<aside epub:type='footnote' id='b'>Inner.</aside>",
        [("text", "Text [Note: Outer (Inner.).].")],
    ),
    "words as a mark stay in the sentence": (
        f"<p>He fell, {REF.format('n', 'as told below')}, at night.</p><aside epub:type='footnote' id='n'>By poison.</aside>",
        [("text", "He fell, as told below [Note: By poison.], at night.")],
    ),
    "a mark in a part that is left out keeps its note": (
        f"<section epub:type='titlepage'><p>Title{REF.format('n', '*')}</p></section><p>Text.</p>"
        "<aside epub:type='footnote' id='n'>Of the title.</aside>",
        [("text", "Text."), ("footnote", "Of the title.")],
    ),
    "numbers that link to chapters are no notes": (
        "<p>See <a href='#c2' id='r'>2</a> for more.</p><section id='c2'><h2><a href='#r'>2</a> Two</h2><p>Long.</p></section>",
        [("text", "See 2 for more."), ("text", "Long.")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), NOTES.values(), ids=NOTES)
def test_note_is_read_once_and_where_it_belongs(body, expected):
    assert kinds(of_body(body)) == expected


def test_note_of_a_heading_comes_right_after_it():
    body = f"<h1>The Pass{REF.format('n', '*')}</h1><p>Text.</p><aside epub:type='footnote' id='n'>Tongguan.</aside>"
    documents = of_body(body)
    assert kinds(documents) == [("footnote", "Tongguan."), ("text", "Text.")]
    assert sections(documents) == [["The Pass"], ["The Pass"]]


KINDS = {
    "quotes, captions, tables and lists": (
        "<blockquote><p>Obey the edict.</p></blockquote>"
        "<figure><img src='m.png' alt='Map of the northern frontier'/><figcaption>The frontier in 755</figcaption></figure>"
        "<table><caption>Forces</caption><tr><th></th><th>Men</th></tr><tr><td>Fanyang</td><td><p>91,400</p></td></tr></table>"
        "<ul><li>grain</li><li><p>horses</p></li></ul>",
        [
            ("quote", "Obey the edict."), ("caption", "The frontier in 755"), ("caption", "Forces"),
            ("table", "| Men\nFanyang | 91,400"), ("text", "grain\nhorses"),
        ],
    ),
    "a heading in a quotation is part of it": ("<h1>One</h1><blockquote><h3>Edict</h3><p>Obey.</p></blockquote>",
        [("quote", "Edict"), ("quote", "Obey.")]),
    "a heading without text below it is text": (
        "<h1>Years</h1><p>a</p><h2>755: Fanyang</h2><h2>Rebellion</h2><h2>756: Tongguan</h2><p>b</p><h2>757: Suiyang</h2>",
        [("text", "a"), ("text", "755: Fanyang"), ("text", "Rebellion"), ("text", "b"), ("text", "757: Suiyang")],
    ),
    "a book of headings only": ("<h1>Only</h1><h2>Headings</h2>", [("text", "Only"), ("text", "Headings")]),
    "an epigraph on a title page is kept": (
        "<section epub:type='titlepage'><h1>T</h1><div epub:type='epigraph'><p>Know thyself.</p></div></section><p>a</p>",
        [("quote", "Know thyself."), ("text", "a")],
    ),
    "empty cells keep their columns": (
        "<table><tr><td>a</td><td/><td>c</td></tr><tr><td/><td>e</td><td>f</td></tr></table>", [("table", "a |  | c\n | e | f")],
    ),
    "a table for layout is text": ("<table><tr><td><p>One.</p></td></tr><tr><td><p>Two.</p></td></tr></table>",
        [("text", "One."), ("text", "Two.")]),
    "a picture without caption gives its description": (
        "<p>Before.</p><img src='a.png' alt='A map of the Yellow River'/><img src='b.png' alt='image 3'/>"
        "<img src='c.png' alt='IMG_0042.jpg'/><img src='d.png' alt='安史之乱形势图'/>",
        [("text", "Before."), ("caption", "[Image: A map of the Yellow River]"), ("caption", "[图：安史之乱形势图]")],
    ),
    "a letter drawn as a picture stays in its word": (
        "<p><img src='o.png' alt='T'/>he emperor fled, <img alt='〓' src='g.png'/>.</p><p><img src='x' alt='O'/></p>",
        [("text", "The emperor fled, 〓.")]),
    "verse keeps its lines and stanzas": (
        "<div class='poem'><div class='stanza'><p>国破山河在，</p><p>城春草木深。</p></div>"
        "<div class='stanza'><p>感时花溅泪，</p><p>恨别鸟惊心。</p></div></div><p>a<br/>b</p>",
        [("text", "国破山河在，\n城春草木深。"), ("text", "感时花溅泪，\n恨别鸟惊心。"), ("text", "a\nb")],
    ),
    "preformatted text keeps its white space": ("<pre>\n  one\n    two\n</pre>", [("text", "  one\n    two")]),
    "preformatted text keeps its white space between elements": (
        "<pre><b>def</b> <i>f</i>():\n  <b>return</b> <i>1</i>\n<i>f</i>()<br/>end <b>of</b>\n</pre>",
        [("text", "def f():\n  return 1\nf()\nend of")]),
    "ruby keeps the base text": ("<p><ruby>山路<rp>（</rp><rt>やまみち</rt><rp>）</rp></ruby>を登りながら、こう考えた。</p>",
        [("text", "山路を登りながら、こう考えた。")]),
    "page and line numbers are dropped": (
        "<p>The ar<span epub:type='pagebreak' id='p9'>9</span>my<span class='lnum'>10</span> fled.</p>"
        "<p class='pagenum'>11</p><p><span class='pagenum'>not a number</span></p>",
        [("text", "The army fled."), ("text", "not a number")],
    ),
    "white space is collapsed and invisible marks are dropped": (
        "<p>\n  Lu\u00ado\u200byang&nbsp;&#12288; fell\t. </p>", [("text", "Luoyang fell .")]),
}  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), KINDS.values(), ids=KINDS)
def test_block_has_the_kind_and_the_text_that_a_reader_sees(body, expected):
    assert kinds(of_body(body)) == expected


def test_loose_text_between_paragraphs_is_kept_with_its_offset():
    documents = of_body("<div>Loose one. <p>Inner.</p> Loose two.</div>")
    assert [(d.content, d.meta["anchor"]["path"], d.meta["anchor"]["offset"]) for d in documents] == [
        ("Loose one.", "/html/body/div[1]", 0),
        ("Inner.", "/html/body/div[1]/p[1]", 0),
        ("Loose two.", "/html/body/div[1]", 18),
    ]


def test_front_matter_is_left_out_by_type_and_kept_on_request():
    chapters = {
        "cover.xhtml": chapter("<section epub:type='cover'><p>The cover.</p></section>"),
        "rights.xhtml": chapter("<p>All rights reserved.</p>").replace("<body>", "<body epub:type='copyright-page'>"),
        "c.xhtml": chapter(PARAGRAPH),
        "idx.xhtml": chapter("<section role='doc-index'><p>An Lushan, 3</p></section>"),
    }
    book = EpubBuilder(chapters=chapters)
    assert contents(convert(book)) == ["The garrison of Fanyang marched south before dawn."]
    assert len(convert(book, include_front_matter=True)) == 4


LEFT_OUT = {
    "landmark": {"landmarks": "<li><a epub:type='copyright-page' href='x.xhtml'>C</a></li>"},
    "guide": {"guide": "<guide><reference type='title-page' href='x.xhtml'/></guide>"},
    "nonlinear": {"nonlinear": ("x.xhtml",)},
    "not in the spine": {"spine": ["c.xhtml"]},
}


@pytest.mark.parametrize("how", LEFT_OUT)
def test_file_is_left_out(how):
    chapters = {"c.xhtml": chapter(PARAGRAPH), "x.xhtml": chapter("<p>Not of the book.</p>")}
    book = EpubBuilder(**{"chapters": chapters, "nav": li("One", "c.xhtml"), **LEFT_OUT[how]})
    (document,) = convert(book)
    assert document.content == "The garrison of Fanyang marched south before dawn."
    assert list(document.meta["left_out"].values()) == [16]
    assert len(convert(book, include_front_matter=True)) == 2


def test_page_of_links_is_taken_for_contents():
    links = "".join(f"<p><a href='c.xhtml#s{i}'>Chapter number {i}</a></p>" for i in range(6))
    chapters = {"t.xhtml": chapter(links), "c.xhtml": chapter(PARAGRAPH)}
    assert len(convert(EpubBuilder(chapters=chapters))) == 1


def test_book_marked_as_front_matter_throughout_is_read_all_the_same():
    book = EpubBuilder(chapters={"c.xhtml": chapter(PARAGRAPH).replace("<body>", "<body epub:type='cover'>")})
    result = EPUBToDocument().run(sources=[ByteStream(book.build(), meta={"file_path": "b.epub"})])
    assert len(result["documents"]) == 1
    warning = "b.epub: the whole text is marked as cover, contents or the like; nothing was left out."
    assert result["warnings"] == [warning]
    guide = "<guide><reference type='cover' href='ch1.xhtml'/><reference type='text' href='ch1.xhtml'/></guide>"
    assert len(convert(EpubBuilder(guide=guide))) == 1


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("zh-Hans-CN", "zh"), ("cn", "zh"), ("chi", "zh"), ("lzh", "zh"), ("und", None), ("", None), ("en", None),
        ("英文", None),
    ],
)  # fmt: skip
def test_stated_language_is_reduced_and_dropped_where_the_script_contradicts(stated, expected):
    book = EpubBuilder(chapters={"c.xhtml": chapter("<p>安禄山起兵于范阳。</p>", attributes="")}, language=stated)
    assert convert(book)[0].meta.get("language") == expected


def test_language_of_a_paragraph_overrides_the_book():
    body = "<p>English here.</p><p xml:lang='la'>Respondebat illa.</p>"
    assert [d.meta["language"] for d in of_body(body)] == ["en", "la"]
