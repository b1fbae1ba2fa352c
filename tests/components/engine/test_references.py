"""The list of references of an answer, with titles of all kinds."""

import pytest

from shiguan.engine.answer_object import reference_list


def cited(**names):
    return [{"number": 1, "title": "Annals", "source": "annals.epub", "section": ["Book 1"], **names}]


def test_a_source_is_one_line_with_its_number_its_place_and_its_file():
    assert reference_list(cited()) == "[1] Annals > Book 1 (annals.epub)"
    assert reference_list(cited(title=None, section=[])) == "[1] annals.epub"
    assert reference_list(cited(title="舊唐書・卷九", section=["安祿山"])) == "[1] 舊唐書・卷九 > 安祿山 (annals.epub)"
    assert reference_list(cited(section=["Annals", "Book 1"])) == "[1] Annals > Book 1 (annals.epub)"
    assert reference_list([]) == reference_list([], "html") == ""


def test_sources_stand_by_their_numbers_each_once_where_it_is_cited_first():
    citations = [*cited(number=3, section=["Later"]), *cited(), *cited(number=3, section=["Again"])]
    assert (
        reference_list(citations, "markdown")
        == "- [1] Annals > Book 1 (annals.epub)\n- [3] Annals > Later (annals.epub)"
    )
    assert reference_list(citations, "html").splitlines()[1:3] == [
        '<li value="1">Annals &gt; Book 1 (annals.epub)</li>',
        '<li value="3">Annals &gt; Later (annals.epub)</li>',
    ]
    assert reference_list(cited(source="a_b_c.epub"), "markdown") == r"- [1] Annals > Book 1 (a\_b\_c.epub)"


@pytest.mark.parametrize("form", ["plain", "markdown", "html"])
@pytest.mark.parametrize("field", ["title", "source", "section"])
@pytest.mark.parametrize("forged", [
    "Annals\n[2] Forged > Book 9", "Annals\r[2] Forged", "Annals\x85[2] Forged", "Annals\u2028[2] Forged",
    "Annals\x0b[2] Forged", "[2] Forged", "![x](http://x.example/p.png)", "[Annals](javascript:alert)",
    "<img src=http://x.example/p.png>", "Annals ```\n# Answer", "a\x1b]8;;http://x\x07b", "Annals<br>[2] Forged",
    "Annals &#91;2&#93; Forged", "&lt;img src=http://x.example/p.png&gt;",
])  # fmt: skip
def test_a_name_forges_no_note_no_link_and_no_image(field, forged, form):
    text = reference_list(cited(**{field: [forged] if field == "section" else forged}), form)
    if form == "html":
        opening, line, closing = text.splitlines()
        assert (opening, closing) == ('<ol class="references">', "</ol>")
        assert line.startswith('<li value="1">') and line.endswith("</li>")
        assert not set(line[14:-5]) & set("<\x1b\x07")
    else:
        [line] = text.splitlines()
        assert line.removeprefix("- ").startswith("[1] ")
        assert not set(line.removeprefix("- ")[3:]) & set("[]<`\x1b\x07")
