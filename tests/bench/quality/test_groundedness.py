"""The numbers of the groundedness table, worked out by hand, and the seeded swaps."""

import pytest
from bench.quality.groundedness import Row, auroc, table, token_overlap
from bench.quality.swaps import swaps

ROWS = [
    {
        "id": "1",
        "lang": "en",
        "title": "War",
        "source": "In May 1755 the general Braddock left Albany with 300 men. He met Washington there.",
        "answers": ["Albany"],
        "evidences": [{"text": "In May 1755 the general Braddock left Albany with 300 men."}],
    },
    {
        "id": "2",
        "lang": "en",
        "title": "War",
        "source": "Nobody knows why they came.",
        "answers": [],
        "evidences": [{"text": "Nobody knows why they came."}],
    },
]


@pytest.mark.parametrize(
    ("positive", "negative", "area"),
    [
        ([0.9, 0.8], [0.1], 1.0),
        ([0.1], [0.9, 0.8], 0.0),
        ([0.5], [0.5], 0.5),
        ([0.9, 0.4], [0.5], 0.5),
        ([], [1.0], 0.5),
    ],
)
def test_the_area_is_the_share_of_pairs_in_order(positive, negative, area):
    assert auroc(positive, negative) == area


def test_token_overlap_is_the_share_of_words_that_stand_anywhere():
    assert token_overlap("He rose in 755", ["he ROSE", "in 756"]) == 0.75
    assert token_overlap("", ["x"]) == 1.0


def test_a_missed_bar_is_shown_as_missed():
    assert Row("x", 0.94, at_least=0.93).holds
    assert not Row("x", 0.06, at_most=0.05).holds
    assert "0.920 (missed)" in table([Row("x", 0.92, at_least=0.93, cases=3)])


def test_a_swap_changes_one_thing_that_the_sentence_does_not_have_twice():
    (swap,) = swaps(ROWS)
    assert swap.claim not in swap.source
    assert swap.claim == swap.evidence.replace(swap.old, swap.new, 1)
    assert swap.kind in ("number", "date", "name")
