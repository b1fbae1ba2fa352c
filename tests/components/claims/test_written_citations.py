import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.claims.citations import CitedClaim
from shiguan.claims.citations import write_cited as write_cited_claims
from shiguan.claims.claim_support import Support
from shiguan.claims.claims import find_marks, split_claims


def write_cited(parts, numbers, verdict="supported"):
    support = Support(0.9, verdict, "")
    cited = [
        CitedClaim(claim, support, tuple((number, support) for number in of_claim))
        for claim, of_claim in zip(parts.claims, numbers, strict=True)
    ]
    return write_cited_claims(parts, cited)


def test_markdown_writes_all_marks_alike():
    parts = split_claims("He rose [Source 1, 9]. 郭子儀討之。【2】")
    text, places = write_cited(parts, [(1,), (2,)])
    assert text == "He rose [1]. 郭子儀討之。[2]"
    assert [text[start:end] for start, end in places] == ["He rose [1].", "郭子儀討之。"]


def test_added_marks_stand_behind_their_claim():
    text, places = write_cited(split_claims("He rose. 他敗了。"), [(1,), (2,)])
    assert text == "He rose. [1] 他敗了。[2]"
    assert [text[start:end] for start, end in places] == ["He rose.", "他敗了。"]


def test_a_mark_that_is_not_its_claims_is_left_out_and_one_that_is_missing_is_added():
    parts = split_claims("He rose [1]. He fell [2].")
    assert write_cited(parts, [(2,), ()])[0] == "He rose [2]. He fell."


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
    text, ((start, end),) = write_cited(split_claims(answer), [numbers], verdict="unsupported")
    assert text == shown
    assert (start, end) == (0, len(shown))


@given(answer=st.text() | st.text(alphabet="ab。. [1]【27】\n<&\"'"))
def test_places_are_valid_and_only_known_numbers_are_written(answer):
    parts = split_claims(answer)
    text, places = write_cited(parts, [[number for number in claim.numbers if number < 3] for claim in parts.claims])
    assert all(0 <= start < end <= len(text) for start, end in places)
    if not find_marks(parts.text):
        assert all(number in (1, 2) for mark in find_marks(text) for number in mark.numbers)
