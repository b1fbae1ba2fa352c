"""Marks of notes never change the number or word before them, whatever leads to the note, and in every format."""

import pytest
from haystack.dataclasses import ByteStream
from tests.doubles.docx_builder import DocxBuilder, paragraph, run
from tests.doubles.epub_builder import EpubBuilder, chapter

from shiguan.ingest.docx_file_to_document import DocxFileToDocument
from shiguan.ingest.epub_to_document import EPUBToDocument
from shiguan.ingest.html_page_to_document import HtmlPageToDocument


def book(*bodies):
    chapters = {f"{name}.xhtml": chapter(body) for name, body in zip("abc", bodies, strict=False)}
    return EPUBToDocument().run([ByteStream(EpubBuilder(chapters=chapters).build(), meta={"file_name": "a.epub"})])


def page(body):
    html = f"<!DOCTYPE html><html><body>{body}</body></html>"
    return HtmlPageToDocument().run([ByteStream(html.encode(), meta={"file_name": "a.html"})])


def word(body):
    raised = '<w:vertAlign w:val="superscript"/>'
    pieces = body.replace("</sup>", "<sup>").split("<sup>")
    data = DocxBuilder(paragraph(*(run(piece, raised if at % 2 else "") for at, piece in enumerate(pieces)))).build()
    return DocxFileToDocument().run([ByteStream(data, meta={"file_name": "a.docx"})])


def text(result):
    return "\n".join(document.content for document in result["documents"])


WRITTEN = {
    "He rose in 755<sup>1</sup> with 150,000<sup>2</sup> men.": "He rose in 755 with 150,000 men.",
    "Kucha<sup>1</sup>, Aksu<sup>2</sup>.": "Kucha, Aksu.",
    "大历十年<sup>1</sup>，有兵二万四千<sup>[2]</sup>人。": "大历十年，有兵二万四千人。",
    "It ended.<sup>1</sup> Then": "It ended. Then",
    "He fell<sup>1</sup> (757)<sup>2</sup> there": "He fell (757) there",
    "twice<sup>1</sup> and twice<sup>1</sup>": "twice and twice",
    "He rose in 755<sup>1, 2</sup> with 150,000<sup>3–5</sup> men.": "He rose in 755 with 150,000 men.",
    "with 150,000<sup>14,15</sup> men": "with 150,000^14,15 men",
    # Exponents, and numbers whose meaning is not known, stay apart.
    "10<sup>6</sup> men": "10^6 men", "10<sup>-6</sup> m": "10^-6 m", "5 km<sup>2</sup>": "5 km^2",
    "x<sup>2</sup> + y<sup>2</sup>": "x^2 + y^2", "note<sup>1</sup> and 9 m<sup>2</sup>": "note and 9 m^2",
    "a gap: wall<sup>14</sup>": "a gap: wall^14", "(a+b)<sup>2</sup>": "(a+b)^2",
    # No number of a note: ordinals, verses, isotopes.
    "2<sup>n</sup>, 2<sup>n + 1</sup>, e<sup>-x</sup>, x<sup>n</sup>, (1 + r)<sup>t</sup>.": (
        "2^n, 2^(n + 1), e^-x, x^n, (1 + r)^t."
    ),
    "with 150,000<sup>a</sup> men, 9,000<sup>b,c</sup> fell": "with 150,000^a men, 9,000^b,c fell",
    "the 2<sup>e</sup> M<sup>r</sup> at n<sup>o</sup> 4<sup>to</sup>, w<sup>ch</sup>": "the 2e Mr at no 4to, wch",
    "the 19<sup>th</sup> day": "the 19th day", "so. <sup>2</sup>And then": "so. 2 And then",
    "<sup>1</sup>In the night. <sup>2</sup>A day. <sup>14</sup>C": "1 In the night. 2 A day. 14C",
    "of <sup>14</sup>C": "of 14C",
    "In the night <sup>2</sup>a day came, <sup>3</sup>When": "In the night 2a day came, 3 When",
    "In 755<sup>iv</sup> he rose<sup>ii</sup>": "In 755^iv he rose^ii",
    "he rose<sup>1,</sup><sup>2</sup>, and<sup>3</sup><sup>,</sup><sup>4</sup> then": "he rose, and then",
    "In 755<sup> 1 </sup>he rose<sup> 2 </sup>, and": "In 755 he rose, and",
}  # fmt: skip


@pytest.mark.parametrize("form", [page, word, lambda body: book(f"<p>{body}</p>")], ids=["page", "word", "book"])
@pytest.mark.parametrize("body", WRITTEN)
def test_a_raised_number_never_joins_what_is_before_it(body, form):
    assert text(form(body if form is word else f"<p>{body}</p>")) == WRITTEN[body]


RAISED = "<p>In 755<span {}>1</span> with 10<span {}>6</span> men.</p>"
LETTER = '<p>He rose<sup><a href="#a">a</a></sup> then.</p><p id="a">{}At Fanyang, says Liu.</p>'
ROW = "<tr><td>Suiye<sup>b</sup></td><td>1,480<sup>c</sup></td><td>the 2<sup>e</sup></td></tr>"


@pytest.mark.parametrize(
    ("body", "seen"),
    [
        # Raised by a class or style, or not.
        *(
            (RAISED.format(mark, mark), "In 755 with 10^6 men.")
            for mark in (
                'class="super"', 'class="superscript"', 'style="vertical-align: super; font-size: 60%"',
                'style="vertical-align: 0.4em"', 'style="vertical-align:35%"', 'style="vertical-align: 4pt"',
                'style="position:relative; top: -.5em"',
            )
        ),
        ('<p>In 755<span class="year">1</span>.</p>', "In 7551."),
        ('<p>In 755<span style="vertical-align: 1px; top: 0">1</span>.</p>', "In 7551."),
        # Lowered, struck or small.
        ("log<sub>2</sub>8 and 1010<sub>2</sub> in 755", "log2 8 and 1010_2 in 755"),
        ("now <s>10</s>5, not 3<strike>8</strike>", "now 10 5, not 3 8"),
        ("<sup>235</sup><sub>92</sub>U", "235_92U"),
        ("H<sub>2</sub>O, C<sub>60</sub>H, a<sub>1</sub>, x<sub>n</sub>2, <s>a</s>5", "H2O, C60H, a1, xn2, a5"),
        ("It cost 48<small>2</small> coins, a<small>2</small>.", "It cost 48 2 coins, a2."),
        ('It cost 48<font size="1">2</font> coins.', "It cost 48 2 coins."),
        # What cannot be an exponent is the number of a note.
        ("安禄山<sup>12</sup>起兵<sup>[20]</sup>。In 755<sup>[31]</sup> f<sup>(2)</sup> and 7<sup>8</sup>.", "安禄山起兵。In 755 f^(2) and 7^8."),
        # Stars and daggers that are raised are marks of notes.
        ("In 755<sup>*</sup> with 150,000 men<sup>†</sup>.", "In 755 with 150,000 men."),
        ('In 755<a href="#gone">*</a> he rose.<sup>[**]</sup> Then', "In 755 he rose. Then"),
        ("于755年<sup>※</sup>起兵，众十五万<span style='vertical-align:super'>＊</span>人", "于755年起兵，众十五万人"),
        ("他起兵<sup>①</sup>于范阳<sup>[②③]</sup>。", "他起兵于范阳。"),
        # What is raised behind a letter of a formula belongs to it, and a note begins with its own mark.
        ("The space V<sup>*</sup> is dual.", "The space V* is dual."),
        ("<sup>*</sup> At Fanyang.", "* At Fanyang."),
        # Letters that mark notes below a table never join a word.
        (f"<table>{ROW}{ROW}</table><p>Maria<sup>a</sup></p>", "Suiye^b | 1,480^c | the 2e\n" * 2 + "Mariaa"),
        # Links to a note, to a paragraph, to nothing.
        (LETTER.format("<sup>a</sup> "), "He rose [Note: At Fanyang, says Liu.] then."),
        (LETTER.format(""), "He rosea then.\nAt Fanyang, says Liu."),
        ('<p>It held 48<a href="#nowhere">3</a> gates.</p>', "It held 48 3 gates."),
        ('<p>See question <a href="#q2">2</a>, chapter <a href="#x">3</a>.</p><p id="q2">2. Why did he rise?</p>',
         "See question 2, chapter 3.\n2. Why did he rise?"),
    ],
)  # fmt: skip
def test_a_mark_never_joins_a_number_or_a_word_of_a_page(body, seen):
    assert text(page(body)) == seen


@pytest.mark.parametrize(
    ("properties", "seen"), [('<w:vertAlign w:val="subscript"/>', "10_2 men"), ("<w:strike/>", "10 2 men")]
)
def test_a_lowered_or_struck_number_of_a_word_file_never_joins_another(properties, seen):
    parts = [run("10"), run("2", properties), run(" men")]
    assert text(DocxFileToDocument().run([ByteStream(DocxBuilder(paragraph(*parts)).build())])) == seen


def test_lowered_letters_of_several_terms_stay_lowered():
    written = {
        "x|n+1|": "x_(n+1)", "a|i,j|": "a_(i,j)", "y|−1|": "y_−1", "∑|i=1|": "∑_(i=1)", "C|10–13|": "C10–13",
        "T|max|": "Tmax", "H|2|SO": "H2SO", "x |n+1|": "x n+1",
    }  # fmt: skip
    for body, seen in written.items():
        letters, lowered, tail = body.split("|")
        assert text(page(f"<p>Let {letters}<sub>{lowered}</sub>{tail}.</p>")) == f"Let {seen}."
        parts = [run(f"Let {letters}"), run(lowered, '<w:vertAlign w:val="subscript"/>'), run(f"{tail}.")]
        result = DocxFileToDocument().run([ByteStream(DocxBuilder(paragraph(*parts)).build())])
        assert text(result) == f"Let {seen}."


def test_a_number_raised_by_a_style_sheet_is_a_raised_number():
    css = "p{margin:0} @media screen { a, .Override-3 , i.x { vertical-align : super } .year{color:red} }"
    body = '<p>In 755<span class="override-3">1</span> with <span class="year">7</span>.</p>'
    assert text(page(f"<style>{css}</style>{body}")) == "In 755 with 7."
    book = EpubBuilder(chapters={"a.xhtml": chapter(body)}, files={"OEBPS/a.css": css}).build()
    result = EPUBToDocument().run([ByteStream(book, meta={"file_name": "a.epub"})])
    assert text(result) == "In 755 with 7."


@pytest.mark.parametrize(
    ("link", "seen"),
    [
        ('<link rel="stylesheet" href="a.css"/>', "Seen."),
        ('<link rel="stylesheet" media="amzn-mobi" href="a.css"/>', "Seen.\nHidden."),
        ('<link rel="alternate stylesheet" href="a.css"/>', "Seen.\nHidden."),
        ('<link rel="stylesheet" href="gone.css"/>', "Seen.\nHidden."),
        ("", "Seen.\nHidden."),
    ],
)
def test_what_a_linked_style_sheet_hides_is_left_out(link, seen):
    body = '<p>Seen.</p><p class="other">Hidden.</p>'
    chapters = {"a.xhtml": chapter(body, f"<title>A</title>{link}")}
    book = EpubBuilder(chapters=chapters, files={"EPUB/a.css": ".other{display:none}"}).build()
    assert text(EPUBToDocument().run([ByteStream(book, meta={"file_name": "a.epub"})])) == seen


def test_the_style_sheet_in_a_chapter_is_that_of_the_chapter_alone():
    body = '<div class="row"><span>In 755</span><span class="n">1</span></div>'
    style = "<style>.row{display:flex} .m{color:red}</style>"
    assert text(book(style + body, body)) == "In 755\n1\nIn 7551"


PROGRAMS = {
    "Wikipedia": '<sup id="r0"><a href="#n">[1]</a></sup>|<ol class="references"><li id="n"><span>^ <a href="#r0"><sup><i>a</i>'
    "</sup></a></span> <span>At Fanyang, says Liu.</span></li></ol>",
    "LaTeXML": '<span class="ltx_note ltx_role_footnote"><sup class="ltx_note_mark">1</sup><span class="ltx_note_outer"><span>'
    '<sup class="ltx_note_mark">1</sup><span class="ltx_tag ltx_tag_note">1</span>At Fanyang, says Liu.</span></span></span>|',
    "whole note a link": '<a href="#n" id="a1">[1]</a>|<ol class="footnotes"><li id="n"><a href="#a1">At Fanyang, says Liu.'
    "</a></li></ol>",
    "Tufte": '<label class="margin-toggle">⊕</label><span class="marginnote">At Fanyang, says Liu.</span>|',
    "Substack": '<a data-component-name="FootnoteAnchorToDOM" id="a1" class="footnote-anchor" href="https://x.org/p#n">1</a>|'
    '<div class="footnote"><a id="n" href="https://x.org/p#a1">1</a><div><p>At Fanyang, says Liu.</p></div></div>',
    "Zhihu": '<sup data-text="At Fanyang, says Liu." data-draft-type="reference">[1]</sup>|',
    "Asciidoctor": '<sup class="footnote">[<a id="a1" class="footnote" href="#n" title="View footnote.">1</a>]</sup>|'
    '<div class="footnote" id="n"><a href="#a1">1</a>. At Fanyang, says Liu.</div>',
    "Org": '<sup><a id="a1" class="footref" href="#n" role="doc-backlink">1</a></sup>|<h2>Footnotes:</h2><div><sup>'
    '<a id="n" href="#a1" role="doc-backlink">1</a></sup> <div role="doc-footnote"><p>At Fanyang, says Liu.</p></div></div>',
    "docutils": '<a class="footnote-reference" href="#n" id="a1">[1]</a>|<table class="docutils footnote" id="n"><tbody><tr><td>'
    '<a class="fn-backref" href="#a1">[1]</a></td><td>At Fanyang, says Liu.</td></tr></tbody></table>',
    "Calibre": '<sup><a href="#n" id="a1" class="noteref" title="1">1</a></sup>|<dl class="footnote"><dt id="n">[<a href="#a1" '
    'title="1">←1</a>]</dt><dd><p>At Fanyang, says Liu.</p></dd></dl>',
    "modern footnotes": '<sup><a href="javascript:void(0)">1</a></sup><span class="modern-footnotes-footnote__note">At Fanyang, '
    "says Liu.</span>|",
    "WordPress": '<sup class="fn"><a href="#n" id="a1">1</a></sup>|<ol class="wp-block-footnotes"><li id="n">At Fanyang, says '
    'Liu. <a href="#a1">↩︎</a></li></ol>',
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_notes_stand_at_their_marks_whatever_program_wrote_the_page(program):
    mark, _, notes = PROGRAMS[program].partition("|")
    result = page(f"<p>He rose in 755{mark} with 150,000 men.</p>{notes}")
    assert text(result) == "He rose in 755 [Note: At Fanyang, says Liu.] with 150,000 men."


def test_marks_of_notes_that_were_left_out_are_counted():
    assert page("<p>In 755<sup>1</sup> and 756<sup>2</sup>, 757<sup>*</sup>.</p>")["warnings"] == [
        "a.html: 3 raised marks of notes lead to no note; they were left out."
    ]


TEXT = "<h1>One</h1><p>In 755{0} with 150,000{1} men.</p>"
LINKS = ('<a href="#n1"><sup>1</sup></a>', '<sup><a href="#n2">2</a></sup>')
NOTES = '<p id="n1">1. At Fanyang.</p><p id="n2">2. So he says.</p>'
PLACED = "In 755 [Note: At Fanyang.] with 150,000 [Note: So he says.] men."


@pytest.mark.parametrize("title", ["Notes", "NOTES", "Notes to Chapter 1", "Endnotes", "注释", "註釋", "Anmerkungen"])
def test_a_chapter_of_notes_is_known_by_its_title(title):
    links = [link.replace("#", "b.xhtml#").replace("<sup>", "").replace("</sup>", "") for link in LINKS]
    notes = NOTES.replace("1. ", "").replace("2. ", "")
    assert text(book(TEXT.format(*links), f"<h1>{title}</h1><h2>One</h2>{notes}")) == PLACED


PACKED = {
    "one way": '<p><a id="n1"></a>1. At Fanyang. <a id="n2"></a>2. So he says.</p>',
    "lines": '<p><span id="n1">1</span> At Fanyang.<br/><span id="n2">2</span> So he says.</p>',
    "below a word": '<p>Notes: <a id="n1"></a>1. At Fanyang. <a id="n2"></a>2. So he says.</p>',
    "in one element": '<p><span><a id="n1"></a>1. At Fanyang.<br/><a id="n2"></a>2. So he says.</span></p>',
    "quotation": '<blockquote><a id="n1">1</a> At Fanyang.<br/><a id="n2">2</a> So he says.</blockquote>',
    "section": '<section><h2>Notes</h2><a id="n1">1</a> At Fanyang.<br/><a id="n2">2</a> So he says.</section>',
    "cells": '<table><tr><td id="n1">1</td><td>At Fanyang.</td></tr><tr><td id="n2">2</td><td>So he says.</td></tr></table>',
    "both ways": '<div><sup><a id="n1" href="#r1">1</a></sup> At Fanyang. <sup><a id="n2" href="#r2">2</a></sup> So he says.</div>',
}


@pytest.mark.parametrize("packed", PACKED.values(), ids=PACKED)
def test_each_of_several_notes_of_a_paragraph_goes_to_its_own_mark(packed):
    links = [f'<span id="r{n}">{link}</span>' for n, link in enumerate(LINKS, start=1)]
    assert text(page(TEXT.format(*links) + packed)).removesuffix("\nNotes:") == PLACED


def test_a_one_way_link_to_a_note_with_its_number_is_a_mark():
    assert text(page(TEXT.format(*LINKS) + "<hr/>" + NOTES)) == PLACED


def test_parts_to_which_contents_lead_are_no_notes():
    contents = '<p><a href="#n1">1</a> <a href="#n2">2</a></p>'
    parts = '<section><a id="n1"></a><p>It fell.</p><a id="n2"></a><p>It rose.</p></section>'
    assert text(page(contents + parts)).split("\n")[-2:] == ["It fell.", "It rose."]


STATED = {
    '<span data-wr-footernote="At Fanyang."></span>': "[Note: At Fanyang.]",
    '<img class="qqreader-footnote" alt="At Fanyang." src="note.png"/>': "[Note: At Fanyang.]",
    '<img zy-footnote="At Fanyang." alt="note" src="note.png"/>': "[Note: At Fanyang.]",
    '<span class="tooltip" title="At Fanyang.">*</span>': "[Note: At Fanyang.]",
    '<sup title="At Fanyang.">[1]</sup>': "[Note: At Fanyang.]",
    '<a class="footnote" href="javascript:void(0)" title="&lt;p&gt;At Fanyang.&lt;/p&gt;">1</a>': "[Note: At Fanyang.]",
    '<sup data-note="At Fanyang.">1</sup>': "[Note: At Fanyang.]",
    '<span class="tip note" data-tooltip="At Fanyang.">※</span>': "[Note: At Fanyang.]",
    '<span class="footnote" data-footnote-content="At Fanyang."></span>': "[Note: At Fanyang.]",
    '<sup class="note" data-tip="At Fanyang.">①</sup>': "[Note: At Fanyang.]",
    '<span class="noteref" aria-label="At Fanyang.">①</span>': "[Note: At Fanyang.]",
    '<img class="footnote" title="At Fanyang." src="n.png"/>': "[Note: At Fanyang.]",
    '<a href="#" title="At Fanyang.">[1]</a>': "[Note: At Fanyang.]",
    '<a class="duokan-footnote" href="#"><img alt="At Fanyang." src="n.png"/></a>': "[Note: At Fanyang.]",
    '<img class="note" title="At Fanyang." alt="note" src="n.png"/>': "[Note: At Fanyang.]",
    '<a data-bs-toggle="popover" data-bs-content="At Fanyang.">[1]</a>': "[Note: At Fanyang.]",
    '<a class="plate" href="#"><img alt="Fanyang in 755" src="n.png"/></a>': "[Image: Fanyang in 755]",
    '<span class="footnote">At Fanyang.</span>': "[Note: At Fanyang.]",
    '<span class="sidenote">At Fanyang.</span>': "[Note: At Fanyang.]",
    '<small epub:type="footnote">At <i>Fanyang</i>.</small>': "[Note: At Fanyang.]",
    # What an attribute says of a word stands behind it.
    '<span class="footnote" title="It is a coin of Kucha.">coins</span>': "coins [Note: It is a coin of Kucha.]",
    '<span data-note="It is a coin of Kucha.">coins</span>': "coins [Note: It is a coin of Kucha.]",
    '<span class="footnote" title="Footnote 1">At Fanyang.</span>': "[Note: At Fanyang.]",
    # A title of other things is no note.
    '<a href="http://x.org" title="Go to the site">1</a>': "1",
    '<abbr title="anno Domini">AD</abbr>': "AD",
    '<span class="pagenum" title="Page:Old Book.djvu/12"><span>[12]</span></span>': "",
    '<img class="note" alt="note" src="note.png"/>': "",
}


@pytest.mark.parametrize("mark", STATED)
def test_a_note_in_an_attribute_is_put_at_its_mark(mark):
    result = page(f"<p>He rose {mark} in the year.</p>")
    assert text(result) == " ".join(f"He rose {STATED[mark]} in the year.".split())
    assert len(result["documents"][0].meta.get("notes", [])) == ("[Note" in STATED[mark])


@pytest.mark.parametrize(
    ("note", "seen"),
    [
        ("755 was the year.", "755 was the year."), ("12 December, says Liu.", "12 December, says Liu."),
        ("1 In winter.", "In winter."), ("[1] In winter.", "In winter."), ("1. In winter.", "In winter."),
        ("755. In winter.", "755. In winter."), ("* In winter.", "In winter."),
    ],
)  # fmt: skip
def test_a_number_that_is_not_that_of_its_mark_begins_a_note(note, seen):
    linked = f'<p>He rose<a epub:type="noteref" href="#n">1</a> then.</p><ol epub:type="footnotes"><li id="n">{note}</li></ol>'
    stated = f'<p>He rose<sup title="{note}">1</sup> then.</p>'
    for body in (linked, stated):
        assert text(book(body)) == f"He rose [Note: {seen}] then."


@pytest.mark.parametrize("mark", ["注一", "校二", "原注3", "譯註4", "校記5", "编者注6", "校勘記七"])
def test_chinese_marks_of_notes_are_known(mark):
    body = (
        f'<p>他起兵<a href="#n" id="r">〔{mark}〕</a>于范阳。</p><p><a href="#r" id="n">〔{mark}〕</a>他本作幽州。</p>'
    )
    assert text(book(body)) == "他起兵[脚注：他本作幽州。]于范阳。"


def test_a_link_to_a_note_comes_before_what_its_picture_says():
    picture = '<img class="footnote" alt="Short." src="n.png"/>'
    mark = f'<a class="duokan-footnote" epub:type="noteref" href="#n">{picture}</a>'
    body = f'<p>He rose{mark} then.</p><aside epub:type="footnote" id="n"><p>At Fanyang, long.</p></aside>'
    assert text(book(body)) == "He rose [Note: At Fanyang, long.] then."
