"""The risk-coverage curve by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.evaluation.scoring import curve_table, risk_curve


def test_the_curve_of_three_answers_and_a_refusal():
    curve = risk_curve([(0.2, False), (0.9, True), (0.5, True)], refused=1)
    assert [(p.confidence, p.coverage, p.risk) for p in curve.points] == [
        (0.9, 0.25, 0.0),
        (0.5, 0.5, 0.0),
        (0.2, 0.75, pytest.approx(1 / 3)),
    ]
    assert curve.area == pytest.approx(1 / 9)


def test_answers_of_the_same_confidence_come_together():
    curve = risk_curve([(0.5, True), (0.5, False)])
    assert [(p.coverage, p.risk) for p in curve.points] == [(1.0, 0.5)]
    assert curve.area == 0.5


def test_nothing_answered_has_no_curve():
    curve = risk_curve([], refused=3)
    assert (curve.points, curve.area) == ([], 0.0)
    assert curve_table(curve) == []


def test_the_table_has_even_steps_and_the_end():
    rows = curve_table(risk_curve([(1 - at / 20, at % 2 == 0) for at in range(15)], refused=5), steps=2)
    assert [row.coverage for row in rows] == [0.5, 0.75]


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.5, 0.9]), st.booleans()), max_size=20), st.integers(0, 5))
def test_coverage_grows_to_the_share_that_was_answered(answers, refused):
    curve = risk_curve(answers, refused=refused)
    covered = [point.coverage for point in curve.points]
    assert covered == sorted(covered)
    assert all(0 <= point.risk <= 1 for point in curve.points)
    if answers:
        assert covered[-1] == pytest.approx(len(answers) / (len(answers) + refused))
