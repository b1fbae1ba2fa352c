"""What is read of pictures and formulas: words that describe, TeX, and no placeholders."""

import pytest
from haystack.dataclasses import ByteStream
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from tests.doubles.epub_builder import EpubBuilder, chapter

from shiguan.ingest.epub.pictures import formula_text
from shiguan.ingest.epub_to_document import EPUBToDocument


def read(body):
    data = EpubBuilder(chapters={"ch1.xhtml": chapter(body)}).build()
    return EPUBToDocument().run(sources=[ByteStream(data)])["documents"]


def contents(body):
    return [one.content for one in read(body)]


def math(inner, attributes=""):
    return f'<math xmlns="http://www.w3.org/1998/Math/MathML" {attributes}>{inner}</math>'


SQUARE = "<msup><mi>x</mi><mn>2</mn></msup>"
NOTHING = [
    "Alternative text not available", "No alternative text provided.", "alt text", "Image description",
    "image not available", "Insert alt text here", "Decorative image", "Image: image001.png",
    "C:\\books\\my map 01.jpg", "Figure 3.2", "Image 1 of 12", "Front cover", "https://example.org/the map.png",
    "תמונה 12", "אין טקסט חלופי", "图片说明 12",
]  # fmt: skip


@pytest.mark.parametrize("alternative", NOTHING)
def test_alternative_that_describes_nothing_is_dropped(alternative):
    assert contents(f'<p>Before.</p><img src="a.png" alt="{alternative}"/><p>After.</p>') == ["Before.", "After."]


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ("<mi>x</mi>", "x"), (SQUARE, "x^{2}"),
        ("<mi>T</mi><mo>&#8289;</mo><mo>(</mo><mi>x</mi><mo>)</mo><mo>=</mo><mi>A</mi><mo>&#8290;</mo><mi>x</mi>", "T (x) = A x"),
        ("<mo>{</mo><mi>u</mi><mo>,</mo><mi>v</mi><mo>}</mo>", "\\{u, v\\}"),
        (
            "<mo>[</mo><mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr>"
            "<mtr><mtd><mn>3</mn></mtd><mtd><mn>4</mn></mtd></mtr></mtable><mo>]</mo>",
            "[1 & 2 \\\\ 3 & 4]",
        ),
        ("<msup><mi>ℝ</mi><mi>n</mi></msup>", "\\mathbb{R}^{n}"),
        (f'<semantics>{SQUARE}<annotation encoding="application/x-tex">{{\\displaystyle x^2}}</annotation></semantics>', "x^2"),
        (f'<semantics>{SQUARE}<annotation encoding="StarMath 5.0">x sup 2</annotation></semantics>', "x^{2}"),
        ("<msub><mi>x</mi></msub>", "x"), ("<ci>x</ci>", "x"),
        ("<mmultiscripts><mi>C</mi><mi>k</mi><none/><mprescripts/><mi>n</mi><none/></mmultiscripts>", "_{n}C_{k}"),
        ("x + 1", "x + 1"), ("<mrow>" * 2000 + "<mi>x</mi>" + "</mrow>" * 2000, "x"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("attributes", ["", 'alttext="Alternative text not available"', 'display="block"'])
def test_formula_is_read_as_tex_where_it_stands(inner, expected, attributes):
    assert contents(f"<p>Let {math(inner, attributes)}, then go.</p>") == [f"Let {expected}, then go."]


TEX_BESIDE = 'alttext="{\\displaystyle x^{2}}"'


FORMULA = f"<span>{math(SQUARE, TEX_BESIDE)}</span>"
SCRIPT = '<script type="math/tex; mode=display">x^2</script>'
NO_WORDS = 'alttext="Alternative text not available"'
DRAWN = '<svg xmlns="http://www.w3.org/2000/svg"><title>Image</title><desc>Image not available</desc></svg>'
BESIDE = [
    f'{FORMULA}<img class="fallback" alt="{{\\displaystyle x^{{2}}}}" src="f.svg"/>',
    f'{FORMULA}<span class="katex-html" aria-hidden="true">x2</span>', f"{FORMULA}{SCRIPT}", f"{FORMULA}<span>\\(x^{{2}}\\)</span>",
    f"{FORMULA} <code>$x^{{2}}$</code>", f"{FORMULA}<i>x<sup>2</sup></i>", FORMULA + math(SQUARE),
    f'<span class="MathJax"><nobr aria-hidden="true">x2</nobr><span class="assistive">{math(SQUARE)}</span></span>',
    f'<span class="MathJax_Preview">x2</span>{math(SQUARE)}{SCRIPT}',
]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # A formula is read once, whatever stands beside it; equal ones apart are read each.
        *((f"<p>Let {beside} be.</p>", ["Let x^{2} be."]) for beside in BESIDE),
        (f"<p>{math(SQUARE)} and {math(SQUARE)} <b>x2</b> and <b>x2</b></p>", ["x^{2} and x^{2} and x2"]),
        (f"<p>Let {SCRIPT} be.</p>", ["Let x^2 be."]),
        # Without content it is read by the words beside it.
        (f"<p>Let {math('', TEX_BESIDE)} be.</p>", ["Let x^{2} be."]),
        (f"<p>Let {math('', NO_WORDS)} be.</p>", ["Let be."]),
        ('<p>Let <img class="tex" alt="E=mc^2" src="f.png"/> be.</p>', ["Let E=mc^2 be."]),
        # Words in it are plain.
        (math("<mtext>Building</mtext><mtext>the</mtext><mtext>matrix</mtext>"), ["Building the matrix"]),
        (math("<mtext>if&#160;</mtext><mi>x</mi><mo>=</mo><msub><mtext>all</mtext><mi>i</mi></msub>"), ["if x = all_{i}"]),
        (math('<semantics><annotation encoding="x-tex">x\\text{ if }y \\mathrm{d}z</annotation></semantics>'), ["x if y d z"]),
        # A mixed fraction keeps its numbers apart.
        ("<p>It is 2<sup>2</sup>⁄<sub>3</sub> long, or <sup>1</sup>⁄<sub>2</sub>.</p>", ["It is 2 2⁄3 long, or 1⁄2."]),
        ("<p>It is 3<sup>1</sup>/<sub>2</sub> long, says he<sup>1</sup>/<sup>2</sup>.</p>", ["It is 3 1/2 long, says he/."]),
        # An alternative that comes again and again describes nothing, nor do titles and pictures that no reader is shown.
        ('<p>One.</p><img src="a.png" alt="Ein Bild ohne Beschreibung"/>' * 6 + '<img src="b.png" alt="A map of the Yellow River"/>',
         ["One."] * 6 + ["[Image: A map of the Yellow River]"]),
        ('<img src="a.png" alt="A bar chart of grain prices"/>' * 2, ["[Image: A bar chart of grain prices]"] * 2),
        (f'<p>Text.</p>{DRAWN}<img src="a.png" aria-hidden="true" alt="A map of the Yellow River"/>', ["Text."]),
    ],
)  # fmt: skip
def test_pictures_and_formulas_are_read_as_they_are_seen(body, expected):
    assert contents(body) == expected


def test_formula_stands_in_headings_cells_and_notes():
    body = (
        f"<h2>The space {math(SQUARE)}</h2><table><tr><td>{math(SQUARE)}</td><td>b</td></tr></table>"
        "<p>See<a epub:type='noteref' href='#n'>1</a>.</p>"
        f"<aside epub:type='footnote' id='n'><p>It is {math(SQUARE)}.</p></aside>"
    )
    documents = read(body)
    assert [one.content for one in documents] == ["x^{2} | b", "See [Note: It is x^{2}.]."]
    assert documents[0].meta["section"] == ["The space x^{2}"]


def test_anchor_behind_a_formula_counts_the_letters_of_the_file():
    documents = read(f"<div>{math(SQUARE)} ab<p>cd</p>ef</div>")
    # "x2 ab cd ef": what `element_text` gives of the element.
    assert [(one.content, one.meta["anchor"]["offset"]) for one in documents] == [("x^{2} ab", 0), ("cd", 0), ("ef", 9)]


ELEMENTS = "mrow mi mn mo mfrac msup msub mtable mtr mtd mfenced munderover semantics annotation mtext p".split()
NAMES = st.sampled_from(ELEMENTS)
TREES = st.recursive(
    st.builds(lambda name, text: f"<{name}>{text}</{name}>", NAMES, st.text("ab12+({&lt;", max_size=4).map(lambda t: t.replace("&", "&amp;").replace("<", ""))),
    lambda inner: st.builds(lambda name, kids: f"<{name}>{''.join(kids)}</{name}>", NAMES, st.lists(inner, max_size=4)),
    max_leaves=12,
)  # fmt: skip


@given(TREES)
def test_any_formula_is_read_as_one_line(tree):
    text = formula_text(etree.fromstring(f"<math>{tree}</math>"))
    assert text == " ".join(text.split())
