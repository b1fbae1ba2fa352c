"""What is written of the citations of an answer: marks, signs, places, anchors and scores."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.claims.citations import CitedClaim, anchor_at, scaled_scores
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
        ("He flew [2].", (), "He flew ⚠."), ("He flew [2].", (2,), "He flew ⚠[2]."), ("他会飞。[2]", (), "他会飞⚠。"),
        ("He flew", (), "He flew ⚠"), ("“He flew!”", (), "“He flew ⚠!”"),
    ],
)  # fmt: skip
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


BLOCKS = [
    {"start": 0, "end": 10, "kind": "text", "anchor": {"href": "a.xhtml", "offset": 0}},
    {"start": 12, "end": 20, "kind": "text", "anchor": {"href": "b.xhtml", "offset": 7}},
]


@pytest.mark.parametrize(
    ("meta", "offset", "anchor"),
    [
        pytest.param({"blocks": BLOCKS}, 3, {"href": "a.xhtml", "offset": 3}, id="in the first block"),
        pytest.param({"blocks": BLOCKS}, 15, {"href": "b.xhtml", "offset": 10}, id="in the second"),
        pytest.param(
            {"blocks": BLOCKS, "anchor": {"href": "a.xhtml"}}, 11, {"href": "a.xhtml"}, id="between: the parent's"
        ),
        pytest.param({"anchor": {"page": 4}}, 100, {"page": 4}, id="a page has no offset to move"),
        pytest.param({}, 0, None, id="nothing known"),
    ],
)
def test_an_anchor_moves_within_its_block(meta, offset, anchor):
    assert anchor_at(meta, offset) == anchor


def test_the_stored_anchor_is_not_changed():
    anchor_at({"blocks": BLOCKS}, 3)
    assert BLOCKS[0]["anchor"] == {"href": "a.xhtml", "offset": 0}


@pytest.mark.parametrize(
    ("scores", "scaled"),
    [
        ([], []), ([0.8, 0.2], [0.8, 0.2]), ([12.0, 6.0, 0.0], [1.0, 0.5, 0.0]),
        ([-2.0, 0.0, 2.0], [0.0, 0.5, 1.0]), ([-2.0, -2.0], [0.5, 0.5]), ([None, 0.4], [0.5, 0.4]),
        ([None, None], [0.5, 0.5]), ([0.7, 0.7], [0.7, 0.7]), ([math.nan, 1.0], [0.5, 1.0]),
        ([math.inf, 0.5], [1.0, 0.5]),
    ],
)  # fmt: skip
def test_scores_come_to_one_scale(scores, scaled):
    assert list(scaled_scores(dict(enumerate(scores))).values()) == scaled


@given(st.lists(st.none() | st.floats()))
def test_any_scores_end_between_zero_and_one(scores):
    assert all(0.0 <= score <= 1.0 for score in scaled_scores(dict(enumerate(scores))).values())
