import html
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.claims.citations import CitedClaim, Format
from shiguan.claims.citations import write_cited as write_cited_claims
from shiguan.claims.claim_support import Support
from shiguan.claims.claims import find_marks, split_claims

LINK = '<sup class="citation"><a href="#source-{0}">[{0}]</a></sup>'


def write_cited(parts, numbers, form, verdict="supported"):
    support = Support(0.9, verdict, "")
    cited = [
        CitedClaim(claim, support, tuple((number, support) for number in of_claim))
        for claim, of_claim in zip(parts.claims, numbers, strict=True)
    ]
    return write_cited_claims(parts, cited, form)


def test_markdown_writes_all_marks_alike():
    parts = split_claims("He rose [Source 1, 9]. 郭子儀討之。【2】")
    text, places = write_cited(parts, [(1,), (2,)], "markdown")
    assert text == "He rose [1]. 郭子儀討之。[2]"
    assert [text[start:end] for start, end in places] == ["He rose [1].", "郭子儀討之。"]


def test_html_is_escaped_and_marks_are_links():
    parts = split_claims("x<y 'z' > & more [1].\nNext.")
    text, places = write_cited(parts, [(1,), ()], "html")
    assert text == ("x&lt;y &#x27;z&#x27; &gt; &amp; more " + LINK.format(1) + ".<br>\nNext.")
    assert text[slice(*places[1])] == "Next."


def test_plain_has_no_marks():
    text, places = write_cited(split_claims("He rose [1]. He fell [2]."), [(1, 2), (2,)], "plain")
    assert text == "He rose. He fell."
    assert places == [(0, 8), (9, 17)]


def test_added_marks_stand_behind_their_claim():
    text, places = write_cited(split_claims("He rose. 他敗了。"), [(1,), (2,)], "markdown")
    assert text == "He rose. [1] 他敗了。[2]"
    assert [text[start:end] for start, end in places] == ["He rose.", "他敗了。"]


def test_a_mark_that_is_not_its_claims_is_left_out_and_one_that_is_missing_is_added():
    parts = split_claims("He rose [1]. He fell [2].")
    assert write_cited(parts, [(2,), ()], "markdown")[0] == "He rose [2]. He fell."


@pytest.mark.parametrize(
    ("answer", "numbers", "shown"),
    [
        ("He flew [2].", (), "He flew ⚠."),
        ("He flew [2].", (2,), "He flew ⚠[2]."),
        ("他会飞。[2]", (), "他会飞⚠。"),
        ("He flew", (), "He flew ⚠"),
        ("“He flew!”", (), "“He flew ⚠!”"),
    ],
)
def test_a_claim_without_support_has_a_sign_before_its_stop(answer, numbers, shown):
    text, ((start, end),) = write_cited(split_claims(answer), [numbers], "markdown", verdict="unsupported")
    assert text == shown
    assert (start, end) == (0, len(shown))


@pytest.mark.parametrize("form", get_args(Format))
@given(answer=st.text() | st.text(alphabet="ab。. [1]【27】\n<&\"'"))
def test_places_are_valid_and_only_known_numbers_are_written(form, answer):
    parts = split_claims(answer)
    text, places = write_cited(
        parts, [[number for number in claim.numbers if number < 3] for claim in parts.claims], form
    )
    for claim, (start, end) in zip(parts.claims, places, strict=True):
        assert 0 <= start < end <= len(text)
        if form == "plain":
            assert text[start:end] == claim.text
    if form == "html":
        bare = text.replace("<br>\n", "").replace(LINK.format(1), "").replace(LINK.format(2), "")
        assert "<" not in bare
        assert ">" not in bare
        assert html.unescape(bare).count("<") == parts.text.count("<")
    if form == "markdown" and not find_marks(parts.text):
        assert all(number in (1, 2) for mark in find_marks(text) for number in mark.numbers)
