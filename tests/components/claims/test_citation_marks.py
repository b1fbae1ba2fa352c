import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.claims.claims import find_marks
from shiguan.claims.marks import uniform_marks


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("[1]", [(1,)]), ("[1][3]", [(1,), (3,)]), ("[1, 3]", [(1, 3)]), ("[1,3,1]", [(1, 3)]),
        ("[1-3]", [(1, 2, 3)]), ("[1–3]", [(1, 2, 3)]), ("[1—3]", [(1, 2, 3)]), ("[1, 3-5]", [(1, 3, 4, 5)]),
        ("[5-3]", [(5, 3)]), ("【1】", [(1,)]), ("【１，３】", [(1, 3)]), ("［２］", [(2,)]), ("[1、2]", [(1, 2)]),
        ("[Source 1]", [(1,)]), ("[source 1, source 2]", [(1, 2)]), ("[Sources 1 and 2]", [(1, 2)]),
        ("[Document 2]", [(2,)]), ("[来源1]", [(1,)]), ("【來源 2】", [(2,)]), ("[资料1、资料3]", [(1, 3)]),
        ("[doc_1]", [(1,)]), ("[doc_1, doc_2]", [(1, 2)]), ("[^1]", [(1,)]), ("[ 1 ]", [(1,)]),
        ("[12]", [(12,)]), ("[0]", [(0,)]), ("[1–3] [4]", [(1, 2, 3), (4,)]),
    ],
)  # fmt: skip
def test_marks_are_found_in_every_spelling(text, numbers):
    marks = find_marks(f"claim {text}.")
    assert [mark.numbers for mark in marks] == numbers
    assert "".join(f"claim {text}."[mark.start : mark.end] for mark in marks).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "[sic]", "[1999]", "[1](https://example.org)", "(1)", "[脚注：1]", "[a1]", "1]", "[1",
        "[1.5 km]", "[note 1]",
    ],
)  # fmt: skip
def test_what_is_no_mark_is_left_alone(text):
    assert find_marks(text) == []


@given(st.text() | st.text(alphabet="[]【】［］0123１２,，、-–— sourcedoc_来源^()"))
def test_any_text_gives_marks_in_order(text):
    at = 0
    for mark in find_marks(text):
        assert at <= mark.start < mark.end <= len(text)
        assert mark.numbers
        at = mark.end


def test_a_mark_with_more_digits_than_any_source_has_is_no_citation():
    assert uniform_marks("It fell in 757 [12345678901234567890].") == "It fell in 757 (12345678901234567890)."
    assert find_marks("It fell in 757 [12345678901234567890].") == []
