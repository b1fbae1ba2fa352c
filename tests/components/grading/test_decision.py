"""Answers with sentences taken out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.claims.claims import split_claims
from shiguan.grading.decision import without_claims


@pytest.mark.parametrize(
    ("answer", "removed", "left"),
    [
        ("He rose [1]. He flew [2][3]. He died [1].", {1}, "He rose[1]. He died[1]."),
        ("他起兵[1]。他会飞[2]。他死了[1]。", {1}, "他起兵[1]。他死了[1]。"),
        ("- Wealth grew [1].\n- Dragons came [2].", {1}, "- Wealth grew[1]."),
        ("1. Wealth grew [1].\n2. Dragons came [2].", {0}, "2. Dragons came[2]."),
        ("## Causes\n\nDragons came [1].\n\n## Results\n\nPeace came [2].", {1}, "## Results\n\nPeace came[2]."),
        ("## Causes\n\nDragons came [1].", {1}, ""),
        ("He rose [1].", {0}, ""),
        ("He rose [1]. - “Who?”", {0}, ""),
        ("He rose [1].", set(), "He rose[1]."),
    ],
)
def test_a_claim_goes_with_its_marks_its_bullet_and_its_heading(answer, removed, left):
    assert without_claims(split_claims(answer), removed) == left


SENTENCES = st.lists(
    st.sampled_from(["He rose early [1].", "He flew away [2][3].", "他起兵[1]。", "It ended."]), min_size=1, max_size=6
)


@given(SENTENCES, st.sets(st.integers(0, 5)))
def test_what_is_left_are_the_other_claims_in_their_order(sentences, removed):
    parts = split_claims(" ".join(sentences))
    left = split_claims(without_claims(parts, removed))
    assert [(one.text, one.numbers) for one in left.claims] == [
        (claim.text, claim.numbers) for index, claim in enumerate(parts.claims) if index not in removed
    ]
