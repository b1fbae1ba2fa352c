"""Answers with sentences taken out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.claims.checker import ClaimChecker
from shiguan.claims.claims import split_claims
from shiguan.grading.sentence_removal import with_their_sentences, without_claims


@pytest.mark.parametrize(("answer", "removed", "left"), [
    ("He rose [1]. He flew [2][3]. He died [1].", {1}, "He rose[1]. He died[1]."),
    ("他起兵[1]。他会飞[2]。他死了[1]。", {1}, "他起兵[1]。他死了[1]。"),
    ("- Wealth grew [1].\n- Dragons came [2].", {1}, "- Wealth grew[1]."),
    ("1. Wealth grew [1].\n2. Dragons came [2].", {0}, "2. Dragons came[2]."),
    ("## Causes\n\nDragons came [1].\n\n## Results\n\nPeace came [2].", {1}, "## Results\n\nPeace came[2]."),
    ("## Causes\n\nDragons came [1].", {1}, ""), ("He rose [1].", {0}, ""), ("He rose [1]. - “Who?”", {0}, ""),
    ("He rose [1].", set(), "He rose[1]."),
])  # fmt: skip
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


PASSAGE = (
    "On the 10th of May he left Fanyang with his army. He had 150,000 men under his command. Zhang Xun held the town of "
    "Suiyang for ten months. 张巡坚守睢阳十个月。城中百姓以树皮和纸充饥。"
)


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        # What is not supported stands behind a whole clause, which may stay.
        ("He had 150,000 men under his command; three eyes saw all [1].", "He had 150,000 men under his command."),
        ("He had 150,000 men under his command, and whales sang to him [1].", "He had 150,000 men under his command."),
        ("He had 150,000 men under his command (whales sang to him) [1].", "He had 150,000 men under his command."),
        ("张巡坚守睢阳十个月，鲸鱼为他歌唱[1]。", "张巡坚守睢阳十个月。"),
        (
            "**Whales in the North**: He had 150,000 men under his command [1].",
            "He had 150,000 men under his command[1].",
        ),
        # What would be left is no sentence: before it, around it, without a verb.
        ("Whales sang to him, and on the 10th of May he left Fanyang with his army [1].", ""),
        ("On the 10th of May he, whom whales sang to at night, left Fanyang with his army [1].", ""),
        ("The town of Suiyang, and whales sang to him [1].", ""),
        ("When he left Fanyang with his army, whales sang to him [1].", ""),
        ("若张巡坚守睢阳十个月，鲸鱼为他歌唱[1]。", ""),
        # Other sentences, and other rows and cells, stay.
        (
            "Whales sang to him, and he had three eyes [1]. He had 150,000 men under his command [1].",
            "He had 150,000 men under his command[1].",
        ),
        ("- Whales sang to him [1].\n- 城中百姓以树皮和纸充饥[1]。", "- 城中百姓以树皮和纸充饥[1]。"),
    ],
)
def test_whole_sentences_are_kept_or_dropped(answer, left):
    checker = ClaimChecker({1: PASSAGE})
    parts = checker.split(answer)
    claims = checker.check(parts)
    failed = {claim.index for claim in claims if claim.support.verdict != "supported"}
    good = {claim.index for claim in claims} - failed
    assert without_claims(parts, with_their_sentences(parts, failed, good)) == left
