import pytest
from haystack.dataclasses import ByteStream
from tests.doubles.processor_time import assert_grows_with_length

from shiguan.ingest.html_page_to_document import HtmlPageToDocument


def read(page):
    return HtmlPageToDocument().run([ByteStream(page.encode(), meta={"file_path": "a.html"})])


PAGE = """<!DOCTYPE html><html lang="zh"><head><title> 旧唐书 &amp; 注 </title><meta charset="gb2312"><style>p {}</style></head>
<body><nav><a href="#a">目录</a></nav><h1>旧唐书</h1><p>刘昫<b>等</b>撰。</p><script>var x = "脚本";</script>
<h2>卷二百</h2><p>安禄山，营州柳城杂种胡人也。<br>母阿史德氏。</p><blockquote>史臣曰：治乱有数。</blockquote></body></html>"""


def test_headings_quotes_and_bold_words_are_kept_and_menus_left_out():
    result = read(PAGE)
    assert [(d.content, d.meta["section"], d.meta["kind"]) for d in result["documents"]] == [
        ("刘昫等撰。", ["旧唐书"], "text"),
        ("安禄山，营州柳城杂种胡人也。\n母阿史德氏。", ["旧唐书", "卷二百"], "text"),
        ("史臣曰：治乱有数。", ["旧唐书", "卷二百"], "quote"),
    ]
    assert (result["skipped"], result["documents"][0].meta["title"]) == ([], "旧唐书 & 注")
    assert result["documents"][0].meta["anchor"]["path"].startswith("/html/body/p")
    assert result["documents"][0].meta["file_path"] == "a.html"


@pytest.mark.parametrize(
    ("body", "seen", "left_out"),
    [
        ('<p>He rose<span style="DISPLAY : none">hidden</span> then.</p>', "He rose then.", {"hidden text": 6}),
        ("<p>He <del>fell</del><ins>rose</ins> then.</p>", "He rose then.", {"deleted text": 4}),
        ("<p>He <s>fell</s> <u>rose</u> then.</p>", "He fell rose then.", None),
        ("<p>A.</p><del><p>Gone.</p></del>", "A.", {"deleted text": 5}),
        ("<h1>The <del>War</del> Siege</h1><p>A.</p>", "A.", {"deleted text": 3}),
        ("<div hidden><p>Gone.</p></div><p hidden='until-found'>He rose.</p>", "He rose.", {"hidden text": 5}),
        ('<p>Here<span class="sr-only"> (new)</span>, <i class="Visually-Hidden">skip</i>.</p>', "Here, .", None),
        ('<p>He rose.<sup class="noprint Inline-Template">[<i>by whom?</i>]</sup></p>', "He rose.", None),
        ("<p class='noprint'>See also.</p><p>He rose.</p>", "He rose.", {"text that is not shown or not printed": 9}),
        ("Choose<select><option>One</option> <option>Two</option></select>now.", "Choose now.", {"controls of forms": 7}),
        ("<p>He rose. <textarea>At Fanyang</textarea></p>", "He rose.", {"controls of forms": 10}),
        ("<p>Name<input value=' An  Lushan '>of Liucheng.</p>", "Name of Liucheng.", {"controls of forms": 9}),
        ("<p>Press<input type=submit value=Send>now.</p>", "Press now.", {"controls of forms": 4}),
        ("<p>He<input type='HIDDEN' value='token'>re<input type=checkbox value=on>.</p>", "Here.", None),
        ("<p>Name <input>.</p>", "Name .", None),
        ("Play<video><p>No films</p></video>it, press<button></button>it.", "Play it, press it.", None),
        ("<p>He rose.</p><iframe srcdoc='&lt;style>p{}&lt;/style>&lt;p>At &lt;b>Fan&lt;/b>yang'>No frames</iframe>", "He rose.", {"frames": 10}),
        ("<p>He rose.</p><iframe src='map.html'>No frames</iframe>", "He rose.", None),
        ("<p>He rose.<button hidden>Send</button><script>s</script></p>", "He rose.", None),
        ('<div role="navigation"><h3>More</h3><p>Index</p></div><p>He rose.</p>', "He rose.", {"menu": 9}),
    ],
)  # fmt: skip
def test_what_a_browser_does_not_show_as_text_is_left_out(body, seen, left_out):
    (document,) = read(f"<html><body>{body}</body></html>")["documents"]
    assert (document.content, document.meta.get("left_out")) == (seen, left_out)


@pytest.mark.parametrize(
    ("heading", "told"),
    [
        ('The siege<a class="headerlink" href="#a">¶</a>', []),
        ('The siege<a class="anchor" aria-hidden="true" href="#a">#</a>', []),
        ("<button>The siege</button>", []),
        ("The siege<button>Copy</button>", ["a.html: skipped (not body text): controls of forms (4 characters)."]),
    ],
)
def test_a_heading_that_is_a_button_is_read_but_no_link_or_button_beside_one(heading, told):
    result = read(f'<html><body><h2 id="a">{heading}</h2><p>It fell.</p></body></html>')
    assert (result["documents"][0].meta["section"], result["warnings"]) == (["The siege"], told)


def test_the_words_below_more_levels_than_a_parser_reads_are_kept_and_told_of():
    deep = "<div>" * 3_000 + "<p>deep</p>" + "</div>" * 3_000
    result = read(f"<html><body><p>first</p>{deep}<p>last</p></body></html>")
    assert [document.content for document in result["documents"]] == ["first", "deep", "last"]
    (warning,) = result["warnings"]
    assert "nested too deeply" in warning


@pytest.mark.parametrize("end", ["</body></html>", "</BODY >", "</html>", "</body></html>\n<html><body>"])
def test_the_words_behind_the_end_of_a_page_are_read(end):
    result = read(f"<html><body><p>He rose.<br>In 755.</p>{end}<p>It <b>fell</b>.</p>{end}Then.")
    assert [document.content for document in result["documents"]] == ["He rose.\nIn 755.", "It fell.", "Then."]


ORIGINAL, TRANSLATED = "白日登山望烽火，\n黄昏饮马傍交河。", "By day we climb,\nat dusk we ride."


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        ("<p>He said <q>go</q> and <q>“stay”</q>.</p>", ["He said “go” and “stay”."]),
        ("<p><label>Name</label><button>Send</button><select><option>One</option></select></p>", ["Name"]),
        ("<p>Let <math><msup><mi>x</mi><mn>2</mn></msup></math>.</p>", ["Let x^{2}."]),
        ("<p>The area <mjx-container><svg><g/></svg></mjx-container> in feet.</p>", ["The area in feet."]),
        ('<p>It fell.<div class="docnav"><a href="/a">Prev</a> | <a href="/b">Next</a></div></p>', ["It fell."]),
        ("<p>Tang &amp Song,&nbsp R&D, &lt 5 &deg; &copy; &copy 755</p>", ["Tang & Song, R&D, < 5 ° © © 755"]),
        ("<p>&Tang &lord; <a href='?a=1&copy=2&lt=3'>AT&T</a> &ampere &not.</p>", ["&Tang &lord; AT&T &ampere ¬."]),
        ("<p>An\x0cLushan\x0brose,\x02 Li\x0cBai</p>", ["An Lushan rose, Li Bai"]),
        ("<x-a><template shadowrootmode='open'>He <slot>rose</slot></template></x-a><template>no</template>", ["He rose"]),
        ("<p>City <datalist><option>Kucha</option></datalist><meter>60%</meter><progress>7</progress>at</p>", ["City at"]),
        ("<p><my-card>An</my-card><my-card>Shi</my-card><my-end>.</my-end> It</p>", ["An\nShi\n.\nIt"]),
        ("<p><my-em>Wo</my-em>rds and <my-em>let</my-em><b>ters</b> <my-key>C</my-key></p>", ["Words and letters C"]),
        ('<div class="navigation">Steer by <a href="/a">stars</a>.</div>', ["Steer by stars."]),
        ('<p>It fell<span class="mw-editsection">[<a href="/e">edit</a>]</span>.</p>', ["It fell."]),
        # What stands apart is not joined.
        ("<svg><title>A map</title><desc>of it</desc><text><tspan x='0'>one</tspan><tspan x='0' dy='1em'>two</tspan></text></svg>",
         ["A map", "of it", "one\ntwo"]),
        ("<svg><text><tspan x='0'>o<tspan>ne</tspan></tspan></text></svg>", ["one"]),
        ("a<dialog>b</dialog>c<marquee>d</marquee>e<xmp>f</xmp><listing>g</listing>h", list("abcdefgh")),
        # Years that number a list are read, and counts are not.
        ("<ol start='755'><li>He rose.<ul><li>At dawn.</li></ul></li><li>He fell.</li></ol>", ["755. He rose.\nAt dawn.\n756. He fell."]),
        ("<ol><li value='755'>He rose.</li><li value='763'>Peace.</li></ol>", ["755. He rose.\n763. Peace."]),
        ("<ol start='12'><li>He rose.</li><li value='20'>Peace.</li></ol>", ["He rose.\nPeace."]),
        # A row of a table is one line.
        ("<table><tr><td>Kucha<br>(Anxi)</td><td>9<br/><br/>li</td></tr><tr><td>Merv</td></tr></table>", ["Kucha (Anxi) | 9 li\nMerv"]),
        ("<table><tr><td>Kucha</td><td><span style='display:block'>9</span>li</td></tr></table>", ["Kucha | 9 li"]),
        ("<table><tr><td>Kucha<br>(Anxi)</td></tr><tr><td>Merv</td></tr></table>", ["Kucha\n(Anxi)", "Merv"]),
        # A cell of several rows is in each of them.
        ("<table><tr><td rowspan=2>Kucha</td><td>747</td></tr><tr><td>748</td></tr><tr><td>Merv</td><td>9</td></tr></table>",
         ["Kucha | 747\nKucha | 748\nMerv | 9"]),
        ("<table><tr><td>a</td><td rowspan=3>b</td><td>c</td></tr><tr><td>d</td><td>e</td></tr><tr><td>f</td></tr></table>",
         ["a | b | c\nd | b | e\nf | b"]),
        ("<table><tr><th rowspan=2>A</th><th colspan=2>B</th></tr><tr><th>C</th><th>D</th></tr></table>", ["A | B\nA | C | D"]),
        ("<table><tr><td rowspan=99999999999>a</td><td colspan=x>b</td></tr><tr><td>c</td></tr></table>", ["a | b\na | c"]),
        # Texts in lines side by side are read one after the other, but not where only some cells have lines.
        (f"<table><tr><td>{ORIGINAL}</td><td>{TRANSLATED}</td></tr></table>", [ORIGINAL, TRANSLATED]),
        (f"<table><tr><th>李颀</th><th>Li Qi</th></tr><tr><td>{ORIGINAL}</td><td>{TRANSLATED}</td></tr></table>", ["李颀", "Li Qi", ORIGINAL, TRANSLATED]),
        (f"<table><tr><td><p>One</p><p>two</p></td><td>{TRANSLATED}</td></tr></table>", ["One", "two", TRANSLATED]),
        (f"<table><tr><td>{TRANSLATED}</td><td>755</td></tr></table>", ["By day we climb, at dusk we ride. | 755"]),
        (f"<table><tr><td>{TRANSLATED}</td><td>One\ntwo</td></tr><tr><td>a</td><td>b</td></tr></table>", ["By day we climb, at dusk we ride. | One two\na | b"]),
    ],
)  # fmt: skip
def test_a_page_is_read_as_it_is_shown(body, texts):
    page = f"<html><body>{body}</body></html>".replace("\n", "<br/>")
    documents = read(page)["documents"]
    assert [document.content for document in documents] == texts
    assert {document.meta["kind"] for document in documents if " | " in document.content} <= {"table"}


LINE, ITEMS = "<p class='poem'>First<{0}>Second</{1}>third</p>", "<span>Born</span><b>1809</b>"
STYLE = (
    ".poem span.line, p.other, .entry, .poem em, .prose cite{display:block} .initial{display:block} .initial{float : left}"
    "@media print{.row{display:flex}} .top, .toc > li{gap:1em;display : grid} .hint:hover{display:flex}"
)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (LINE.format("span style='display: block'", "span"), "First\nSecond\nthird"),
        (LINE.format("span style='color:red; DISPLAY:table-row'", "span"), "First\nSecond\nthird"),
        (LINE.format("span class='Line x'", "span"), "First\nSecond\nthird"),
        (LINE.format("strong class='line'", "strong"), "FirstSecondthird"),
        (LINE.format("strong class='entry'", "strong"), "First\nSecond\nthird"), (LINE.format("em", "em"), "First\nSecond\nthird"),
        (LINE.format("cite", "cite"), "FirstSecondthird"), (LINE.format("span style='display:inline-block'", "span"), "FirstSecondthird"),
        (LINE.format("span style='display:block;float:left'", "span"), "FirstSecondthird"),
        (LINE.format("span class='initial'", "span"), "FirstSecondthird"), (LINE.format("span class='poem'", "span"), "FirstSecondthird"),
        ("<p><span style='display:block'>Second</span> and <span style='display:block'>third</span></p>", "Second\nand\nthird"),
        # The boxes of a row are not joined.
        (f"<div style='display: flex'>{ITEMS}</div>", "Born\n1809"), (f"<div style='display:inline-grid'>{ITEMS}</div>", "Born\n1809"),
        (f"<div style='display:inline'>{ITEMS}</div>", "Born1809"), (f"<div class='x row'>{ITEMS}</div>", "Born\n1809"),
        (f"<div class='rows'>{ITEMS}</div>", "Born1809"), (f"<div class='row' style='color:red'>{ITEMS}</div>", "Born\n1809"),
        (f"<ul class='toc'><li>{ITEMS}</li></ul>", "Born\n1809"), (f"<ul><li>{ITEMS}</li></ul>", "Born1809"),
        (f"<div class='row'><span>{ITEMS}</span></div>", "Born1809"), ("<div class='hint'>Born<span>1809</span></div>", "Born1809"),
        ("<div class='row'>Born<span>1809</span>in <i>Kent</i></div>", "Born\n1809\nin\nKent"),
    ],
)  # fmt: skip
def test_what_is_shown_as_a_line_or_a_box_of_its_own_is_one(body, text):
    result = read(f"<html><head><style>{STYLE}</style></head><body>{body}<p>End.</p></body></html>")
    assert [document.content for document in result["documents"]] == [text, "End."]


def test_the_words_of_a_heading_or_a_note_in_lines_of_their_own_are_not_joined():
    lines = "<span style='display:block'>The</span><span style='display:block'>siege</span>"
    note = f"<aside id='n' role='doc-footnote'>1 {lines} fell.</aside>"
    body = f"<h1>{lines}</h1><p>It fell.<a href='#n' role='doc-noteref'>1</a></p>{note}"
    [document] = read(f"<html><body>{body}</body></html>")["documents"]
    assert (document.meta["section"], document.content) == (["The siege"], "It fell. [Note: The siege fell.]")


@pytest.mark.parametrize(
    ("before", "times", "is_read"),
    [("", 1, True), ("Wait …", 1, False), ("Wait …", 60, True), ("Wait …" * 100, 60, False)],
)
def test_a_page_that_hides_most_of_its_text_is_read(before, times, is_read):
    hidden = "He rose in winter. " * times
    style = "<style>#app{display:none}</style>"
    result = read(f"<html><head>{style}</head><body><p>{before}</p><div id='app'><p>{hidden}</p></div></body></html>")
    assert ("He rose" in result["documents"][-1].content) is is_read
    assert any("nothing was left out" in warning for warning in result["warnings"]) is is_read


# How a style sheet hides a part of a page, and whether that is read: where it is shown elsewhere or can be opened, it is.
HIDDEN = {
    ".h{display:none}": False, "/* } */ P.H , .other { color: red; DISPLAY : none !important }": False,
    "#h{display:none}": False, ".main .h{display:none}": False, "@media screen{.x{color:red} .h{display:none}}": False,
    "@font-face{src:url(a)} .h{display:none}": False, ".other .h{display:none}": True, "p.h.x{display:none}": True,
    ".h:hover{display:none}": True, "@media print{.x{color:red} .h{display:none}}": True,
    "@media (max-width:600px){.h{display:none}}": True, "@layer base{.h{display:none}}": False,
    ".other{color:red; .h{display:none}}": True, "}.h{display:none": True,
    ".h{display:none} .h.open{display:block}": True, ".h{display:none} input:checked ~ .h{display:block}": True,
    "body{display:none}": True, ".h{visibility:visible}": True,
}  # fmt: skip


@pytest.mark.parametrize("style", HIDDEN)
def test_what_a_style_sheet_never_shows_is_left_out_and_told(style):
    body = "<div class='main'><p>First.</p><p class='h' id='h'>Second.</p></div>"
    result = read(f"<!DOCTYPE html><html><head><style>{style}</style></head><body>{body}</body></html>")
    assert [document.content for document in result["documents"]] == ["First.", "Second."][: 1 + HIDDEN[style]]
    told = "a.html: skipped (not body text): hidden text (7 characters)."
    assert (told in result["warnings"]) is not HIDDEN[style]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("安禄山反于\n  范阳，\r\n率兵\n南下。", "安禄山反于范阳，率兵南下。"),
        ("安禄山\n<b>反于</b>\n范阳", "安禄山反于范阳"),
        ("安禄山 <b>反于</b> 范阳 南", "安禄山 反于 范阳 南"),
        ("他在\nKucha\n驻军", "他在 Kucha 驻军"),
        ("안녹산이\n범양에서", "안녹산이 범양에서"),
        ("安禄山<br/>\n反", "安禄山\n反"),
    ],
)
def test_a_line_of_the_file_that_ends_between_han_characters_ends_no_word(body, text):
    for result in (
        read(f"<html><body><p>{body}</p></body></html>"),
        read(f"<html><body><div>{body}</div></body></html>"),
    ):
        assert [document.content for document in result["documents"]] == [text]
    pre = read(f"<html><body><pre>{body}</pre></body></html>")["documents"][0].content
    assert pre.count("\n") == body.replace("<br/>", "\n").count("\n")


@pytest.mark.parametrize("page", ["<html><body> </body></html>", "<script>x</script>", "<html>"])
def test_a_page_without_text_is_named(page):
    (entry,) = read(page)["skipped"]
    assert (entry["source"], entry["cause"]) == ("a.html", "no text was found in it")


# What a page of many begins with, what each opens, what is between, and what each closes.
LONG = {
    "cells of several rows": ("<table>", f"<tr><td rowspan=900>{'x' * 90}</td><td>y</td></tr>", "</table>", ""),
    "links to one place": ("<p id='i'>x</p>", "<p>x<a href='#i'>1</a></p>" * 4, "", ""),
    "links in links": ("<p>x", "<a href='#x'>", "1", "</a>"),
    "raised in raised": ("<p>x", "<sup>", "1", "</sup>"),
    "lines in lines": ("<p>", "<i style='display:block'>x", "", "</i>"),
    "pages in pages": ("<p>x", "<span class='pagenum'>1", "", "</span>"),
    "unread in unread": ("<p>x", "<span aria-hidden='true'>1", "", "</span>"),
    "sections in sections": ("", "<section><h2>x</h2><p>x</p>", "", "</section>"),
    "headings in headings": ("", "<h2>x", "", "</h2>"),
    "notes in notes": ("<p>x ", "<span class='footnote'>x ", "", "</span>"),
    "boxes in boxes": ("<style>.a i .a i .b{display:flex}</style><p>x", "<i class='a b'>x", "", "</i>"),
    "rules": ("<style>.a{}", ".a .b{display:flex;{/**/", "</style><p class='b'>x", ""),
    "buttons of a heading": ("<h2>", "<button>x</button>" * 8, "</h2><p>x</p>", ""),
}


@pytest.mark.parametrize("what", LONG)
def test_time_grows_with_the_size_of_a_page(what):
    before, opens, between, closes = LONG[what]

    def page(count):
        return f"<html><body>{before}{opens * count}{between}{closes * count}{'</p>' * (closes > '')}</body></html>"

    assert read(page(1_600))["documents"]
    assert_grows_with_length(read, page, 800)
