import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.claims.citations import scaled_scores


@pytest.mark.parametrize(
    ("scores", "scaled"),
    [
        ([], []),
        ([0.8, 0.2], [0.8, 0.2]),
        ([12.0, 6.0, 0.0], [1.0, 0.5, 0.0]),
        ([-2.0, 0.0, 2.0], [0.0, 0.5, 1.0]),
        ([-2.0, -2.0], [0.5, 0.5]),
        ([None, 0.4], [0.5, 0.4]),
        ([None, None], [0.5, 0.5]),
        ([0.7, 0.7], [0.7, 0.7]),
        ([math.nan, 1.0], [0.5, 1.0]),
        ([math.inf, 0.5], [1.0, 0.5]),
    ],
)
def test_scores_come_to_one_scale(scores, scaled):
    assert list(scaled_scores(dict(enumerate(scores))).values()) == scaled


@given(st.lists(st.none() | st.floats()))
def test_any_scores_end_between_zero_and_one(scores):
    assert all(0.0 <= score <= 1.0 for score in scaled_scores(dict(enumerate(scores))).values())
