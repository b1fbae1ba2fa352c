import html
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.claims.citations import Format, write_cited
from shiguan.claims.claims import find_marks, split_claims

LINK = '<sup class="citation"><a href="#source-{0}">[{0}]</a></sup>'


def test_markdown_writes_all_marks_alike():
    parts = split_claims("He rose [Source 1, 9]. 郭子儀討之。【2】")
    text, places = write_cited(parts, [(1,), (2,)], "markdown")
    assert text == "He rose [1]. 郭子儀討之。[2]"
    assert [text[start:end] for start, end in places] == ["He rose [1].", "郭子儀討之。"]


def test_html_is_escaped_and_marks_are_links():
    parts = split_claims("<script>alert('x')</script> & more [1].\nNext.")
    text, places = write_cited(parts, [(1,), ()], "html")
    assert text == ("&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt; &amp; more " + LINK.format(1) + ".<br>\nNext.")
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
    assert write_cited(parts, [(2,), ()], "markdown")[0] == "He rose. [2] He fell."


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
