"""What titles, words and classes take out of a book, what they never take, and what is told of it."""

from itertools import pairwise

import pytest
from haystack.dataclasses import ByteStream
from tests.doubles.epub_builder import EpubBuilder, chapter
from tests.doubles.processor_time import assert_grows_with_length

from shiguan.ingest.epub_to_document import EPUBToDocument
from shiguan.ingest.html_page_to_document import HtmlPageToDocument

LONG = "The garrison of Fanyang marched south before dawn. " * 200
IMPRINT_EN = (
    "<p>Copyright © 2009 by Ann Author</p><p>All rights reserved.</p><p>12 Some Street, Leeds</p>"
    "<p>ISBN-13: 978-0-306-40615-7</p>"
)
NOTE_ZH, NOTE_EN = "<h2>作者简介</h2><p>某某，历史学者。</p>", "<h2>About the Author</h2><p>She lives in Leeds.</p>"


def convert(chapters, nav=None, **options):
    """Convert a book of these bodies; each is a file with a line of the table of contents if it has a label."""
    files = {f"c{i}.xhtml": chapter(body) for i, body in enumerate(chapters)}
    lines = "".join(f'<li><a href="c{i}.xhtml">{label}</a></li>' for i, label in (nav or {}).items())
    data = EpubBuilder(chapters=files, **({"nav": lines} if lines else {})).build()
    result = EPUBToDocument(**options).run(sources=[ByteStream(data, meta={"file_path": "b.epub"})])
    assert result["skipped"] == []
    return [document.content for document in result["documents"]], result["warnings"]


def story(title="Chapter"):
    return f"<h1>{title}</h1><p>{LONG}</p>"


def told(parts):
    return [f"b.epub: skipped (not body text): {parts}; `include_front_matter: true` keeps all."]


@pytest.mark.parametrize(
    ("part", "name", "size"),
    [
        pytest.param(NOTE_ZH, "author note “作者简介”", 4 + 8, id="author-zh"),
        pytest.param(NOTE_ZH.replace("作者简介", "作 者 简 介"), "author note “作者简介”", 15, id="author-zh-spaced"),
        pytest.param(NOTE_EN, "author note “about the author”", 16 + 19, id="author-en"),
        pytest.param("<h1>版权</h1><p>定价：9元</p>", "imprint “版权”", 2 + 5, id="doubtful-title-with-evidence"),
        pytest.param("<h1>版权信息</h1><p>甲乙丙丁</p>", "imprint “版权信息”", 4 + 4, id="imprint-zh"),
        pytest.param("<h1>Contents</h1><p>One</p><p>Two</p>", "contents “contents”", 8 + 6, id="contents"),
        pytest.param(
            '<div class="pg-boilerplate"><h2>THE LICENSE</h2><p>Project Gutenberg is free.</p></div>',
            "licence", 11 + 26, id="licence-by-class",
        ),
        pytest.param(IMPRINT_EN, "imprint", 30 + 20 + 21 + 26, id="imprint-without-title-en"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("at_start", [True, False])
def test_part_at_an_end_is_left_out_told_and_kept_on_request(part, name, size, at_start):
    chapters = [part, story(), story()] if at_start else [story(), story(), part]
    contents, warnings = convert(chapters)
    assert contents == [LONG.strip(), LONG.strip()]
    assert warnings == told(f"{name} ({size} characters)")
    everything, nothing = convert(chapters, include_front_matter=True)
    assert len(everything) > 2
    assert nothing == []


@pytest.mark.parametrize(
    "title",
    [
        *("List of Theorems", "Lists of Figures and Tables", "Table of Figures", "Index of Names", "Subject Index"),
        *("General Index", "Indices", "定理索引", "人名索引", "附图目录", "Sachregister", "Table des figures"),
        *("Предметный указатель", "מפתח השמות", "רשימת איורים", "فهرس الأعلام", "قائمة الجداول"),
    ],
)
def test_list_by_another_name_is_left_out(title):
    lines = "".join(f"<p>Rank, {page}</p>" for page in range(12, 22))
    contents, warnings = convert([story(), story(), f"<h1>{title}</h1>{lines}"])
    assert contents == [LONG.strip(), LONG.strip()]
    assert f"“{title.casefold()}” ({len(title) + 80} characters)" in warnings[0]


def kinds(*chapters):
    files = {f"c{i}.xhtml": chapter(body) for i, body in enumerate(chapters)}
    documents = EPUBToDocument().run(sources=[ByteStream(EpubBuilder(chapters=files).build())])["documents"]
    return [(one.meta["kind"], one.content.split("\n")[0]) for one in documents]


LINKED = "".join(f"<li><a href='c0.xhtml#t{i}'>Theorem {i} on kernels</a> (p. {i})</li>" for i in range(6))
NAMES = "Abel Bolza Cauchy Dini Euler Fermat".split()
ENTRIES = "".join(f"<p>{name}, 1{i}, 4{i}–5{i}</p>" for i, name in enumerate(NAMES))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(f"<p>In this chapter:</p><ul>{LINKED}</ul>", ["text", "list"], id="links"),
        pytest.param(f"<h3>Names</h3>{ENTRIES}<p>Galois, see Abel</p><p>Hilbert, 7n</p>", ["list"] * 8, id="pages"),
        pytest.param(
            "<h3>Figures</h3>" + "".join(f"<p>The map of {name} … {12 + i}</p>" for i, name in enumerate("ABCDEFGH")),
            ["list"] * 8,
            id="rising-pages",
        ),
        pytest.param(f"<p>See <a href='c0.xhtml#t1'>1</a>.</p><ul>{'<li>grain and horses</li>' * 8}</ul>",
                     ["text", "text"], id="a-list-of-things"),
        pytest.param("<ul>" + "".join(f"<li><a href='https://a.org/{i}'>A page</a></li>" for i in range(8)) + "</ul>",
                     ["text"], id="links-out-of-the-book"),
        pytest.param("".join(f"<p>Battle of {name}, 1{i}66</p>" for i, name in enumerate("ABCDEFGH")), ["text"] * 8, id="years"),
        pytest.param("".join(f"<p>x + {i} = {i + 4}</p>" for i in range(9)), ["text"] * 9, id="sums"),
        pytest.param("".join(f"<p>Theorem N{n} A matrix is nonsingular. It reduces to the identity.</p>" for n in range(9)),
                     ["text"] * 9, id="theorems-with-their-statements"),
        pytest.param("<table>" + "".join(f"<tr><td>Fanyang, {i}</td><td>{i}</td></tr>" for i in range(9)) + "</table>",
                     ["table"], id="a-table"),
        pytest.param("".join(f"<p>He counted the horses and found {i}.</p>" for i in range(12, 21)), ["text"] * 9, id="sentences"),
    ],
)  # fmt: skip
def test_list_of_places_in_the_book_is_no_prose(body, expected):
    found = kinds(story(), f"<h1>Two</h1>{body}", story())
    assert [kind for kind, _ in found[1:-1]] == expected


@pytest.mark.parametrize(
    "chapters",
    [
        pytest.param([story(), NOTE_EN, story()], id="in-the-middle"),
        pytest.param([f"{story()}{NOTE_EN}", story()], id="below-a-chapter-in-the-same-file"),
        pytest.param([NOTE_EN, story(), *[NOTE_EN.replace("h2", "h1")] * 2], id="as-often-as-in-an-anthology"),
        pytest.param([NOTE_EN + story() for _ in range(3)], id="an-anthology"),
        pytest.param([NOTE_ZH], id="a-book-of-little-else"),
        pytest.param([f"<h1>About the Author</h1><p>{LONG}</p>", story()], id="too-long"),
        pytest.param([story(), "<h1>Copyright</h1><p>Who owns a poem?</p>"], id="doubtful-title-without-evidence"),
        pytest.param([story(), "<h1>索引</h1><p>" + "一个索引是一棵树。" * 10 + "</p>"], id="index-of-long-lines"),
        pytest.param([story(), "<p>ISBN 978-0-306-40615-7 was printed in Leeds.</p>"], id="two-marks-are-few"),
        pytest.param([story(), "<p>An essay.</p>", IMPRINT_EN + f"<p>{LONG}</p>"], id="imprint-in-a-chapter"),
        *(
            [f"<h1>One</h1>{text}<p>He saw.</p>"]
            for text in (
                '<div class="running-head"><h2>The siege</h2><p>He came.</p></div>', f'<div class="running-head"><p>{LONG}</p></div>',
                '<div class="copyright"><p>He came.</p></div>', '<div epub:type="pagebreak">He came.</div>',
            )
        ),
    ],
)  # fmt: skip
def test_text_of_the_book_is_never_left_out(chapters):
    everything = convert(chapters, include_front_matter=True)[0]
    assert everything
    assert convert(chapters) == (everything, [])


COLOPHON = (
    '<section epub:type="colophon"><p>Set in Caslon<a epub:type="noteref" href="#n">1</a>.</p>'
    '<aside epub:type="footnote" id="n"><p>Cut anew.</p></aside></section>'
)
DEDICATED = f'<h1>Copyright Page</h1>{IMPRINT_EN}<p epub:type="dedication">For Mary</p>'


@pytest.mark.parametrize(
    ("chapters", "nav", "expected"),
    [
        # Text after a line of the contents is no part of it, a stated colophon goes with its notes, a dedication stays.
        (["<p>某某，历史学者。</p>", "<p>献给母亲</p>", story("第一章")], {0: "作者简介", 2: "第一章"}, ["献给母亲", LONG.strip()]),
        ([story(), COLOPHON], None, [LONG.strip()]), ([DEDICATED, story()], None, ["For Mary", LONG.strip()]),
    ],
)  # fmt: skip
def test_of_a_part_that_is_left_out_nothing_else_goes(chapters, nav, expected):
    contents, warnings = convert(chapters, nav)
    assert contents == expected
    assert chapters[1] != COLOPHON or warnings == told("imprint (14 characters)")


@pytest.mark.parametrize(
    "furniture",
    [
        '<div class="running-head">THE SIEGE · 12</div>',
        '<p class="big copyright">© 2009 Ann Author</p>',
        '<div epub:type="pagebreak">— 12 —</div>',
        '<span role="doc-pagebreak">第 12 页</span>',
    ],
)
def test_furniture_by_class_or_role_is_left_out(furniture):
    contents, _ = convert([f"<h1>One</h1><p>He came.</p>{furniture}<p>He saw.</p>"])
    assert contents == ["He came.", "He saw."]


def test_web_page_about_its_author_is_read_whole():
    page = f"<html><body><h1>One</h1><p>Text.</p>{NOTE_EN}{IMPRINT_EN}</body></html>".encode()
    result = HtmlPageToDocument().run([ByteStream(page, meta={"file_path": "p.html"})])
    assert (len(result["documents"]), result["warnings"]) == (6, [])


THEOREMS = "".join(f"<p>Theorem N{n} Matrices of the {n}th kind reduce by rows</p>" for n in range(9))
TITLES = "".join(f"<p>Nonsingular matrices of the {n}th kind</p>" for n in range(9))


@pytest.mark.parametrize("body", [f"<h1>Results</h1>{THEOREMS}", f"<h1>List of Theorems</h1>{TITLES}"])
def test_a_list_of_theorems_in_the_middle_of_a_book_is_a_list(body):
    sentence = "A matrix is nonsingular if its only null vector is zero, and then it has an inverse."
    prose = f"<h1>One</h1>{f'<p>{sentence}</p>' * 300}"
    found = kinds(prose, body, prose)
    assert {kind for kind, text in found if text == sentence} == {"text"}
    assert [kind for kind, text in found if text != sentence] == ["list"] * 9


@pytest.mark.parametrize(
    "poem",
    [
        "<p>Weave a circle<br/>round him thrice,<br/>and close<br/>your eyes</p>",
        "<blockquote><p>Weave a circle round him thrice.</p></blockquote>",
        '<div class="poem"><p>Weave a circle</p><p>round him thrice</p></div>',
    ],
)
def test_a_poem_among_the_contents_stays(poem):
    links = "".join(f'<p><a href="c1.xhtml">Chapter number {n} of the whole book</a></p>' for n in range(1, 12))
    contents, _ = convert([f"<h1>Contents</h1>{links}{poem}", "<p>The text.</p>" * 300])
    assert contents[0].startswith("Weave a circle")
    assert not any("Chapter number" in content for content in contents)


def converted(first, items, files, spine):
    book = EpubBuilder(
        manifest_extra=items, files=files, spine=[first, *spine], chapters={first: chapter("<p>One.</p>")}
    )
    result = EPUBToDocument().run(sources=[ByteStream(book.build(), meta={"file_path": "b.epub"})])
    return [document.content for document in result["documents"]], result["warnings"]


def test_what_the_reading_order_has_beside_pages_is_told_and_pictures_are_not():
    kinds = {"a.xml": "application/xml", "b.jpg": "image/jpeg", "c.txt": "text/plain"}
    items = "".join(f'<item id="{name}" href="{name}" media-type="{kind}"/>' for name, kind in kinds.items())
    files = {f"EPUB/{name}": chapter("<p>Two.</p>") for name in kinds}
    contents, warnings = converted("c.xhtml", items, files, kinds)
    assert contents == ["One.", "Two."]
    assert warnings == ["b.epub: `c.txt` of the reading order is no page; it was left out."]


def test_fallbacks_of_fallbacks_are_followed_in_bounded_time():
    def items_in_a_row(count):
        names = [f"f{number}" for number in range(count)]
        items = "".join(f'<item id="{name}" href="x" media-type="x/y" fallback="{name}0"/>' for name in names)
        items += "".join(f'<item id="{a}0" href="x" media-type="x/y" fallback="{b}0"/>' for a, b in pairwise(names))
        return items, names

    def read(given):
        items, names = given
        assert converted("c.xhtml", items, {}, names)[0] == ["One."]

    assert_grows_with_length(read, items_in_a_row, 2_000)
