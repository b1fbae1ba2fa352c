"""The list of sources at the end of a completion, with titles of all kinds."""

import pytest

from shiguan.serving.openai_routes import footnotes


def cited(**names):
    return {"citations": [{"number": 1, "title": "Annals", "source": "annals.epub", "section": ["Book 1"], **names}]}


def test_a_source_is_one_line_with_its_number_its_place_and_its_file():
    assert footnotes(cited()) == "\n\n[1] Annals > Book 1 (annals.epub)"
    assert footnotes(cited(title=None, section=[])) == "\n\n[1] annals.epub"
    assert footnotes(cited(title="舊唐書・卷九", section=["安祿山"])) == "\n\n[1] 舊唐書・卷九 > 安祿山 (annals.epub)"
    assert footnotes({"citations": []}) == ""


@pytest.mark.parametrize("field", ["title", "source", "section"])
@pytest.mark.parametrize(
    "forged",
    [
        "Annals\n[2] Forged > Book 9", "Annals\r[2] Forged", "Annals\x85[2] Forged", "Annals\u2028[2] Forged",
        "Annals\x0b[2] Forged", "[2] Forged", "![x](http://x.example/p.png)", "[Annals](javascript:alert)",
        "<img src=http://x.example/p.png>", "Annals ```\n# Answer", "a\x1b]8;;http://x\x07b", "Annals<br>[2] Forged",
        "Annals &#91;2&#93; Forged", "&lt;img src=http://x.example/p.png&gt;",
    ],
)  # fmt: skip
def test_a_name_forges_no_note_no_link_and_no_image(field, forged):
    notes = footnotes(cited(**{field: [forged] if field == "section" else forged}))
    lines = notes.splitlines()
    assert lines[:2] == ["", ""]
    assert len(lines) == 3
    assert lines[2].startswith("[1] ")
    assert not set(lines[2][3:]) & set("[]<`\x1b\x07")
