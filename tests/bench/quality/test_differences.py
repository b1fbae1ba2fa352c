import numpy
import pytest
from bench.quality.differences import compare_metric
from hypothesis import given, settings
from hypothesis import strategies as st


def test_a_clear_gain_is_better_and_its_mirror_image_worse():
    before, after = [0.0] * 20 + [1.0] * 80, [1.0] * 18 + [0.0] * 2 + [1.0] * 80
    gain = compare_metric("recall@5", before, after)
    assert (gain.before, gain.after, gain.difference) == (0.8, 0.98, pytest.approx(0.18))
    assert (gain.gained, gain.lost, gain.verdict) == (18, 0, "better")
    assert compare_metric("recall@5", after, before).verdict == "worse"
    assert compare_metric("false_refusal", before, after).verdict == "worse"


def test_three_questions_each_way_show_nothing():
    before = [1.0] * 3 + [0.0] * 3 + [1.0] * 94
    after = [0.0] * 3 + [1.0] * 3 + [1.0] * 94
    even = compare_metric("recall@5", before, after)
    assert (even.gained, even.lost, even.verdict) == (3, 3, "no difference shown")
    # Differences of +1, -1 and 0: variance 6/99.
    assert even.detectable == pytest.approx((1.959964 + 0.841621) * (6 / 99) ** 0.5 / 10, rel=1e-5)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=14))
def test_verdicts_follow_the_interval(pairs):
    before, after = ([float(pair[side]) for pair in pairs] for side in (0, 1))
    found = compare_metric("recall@5", before, after)
    gained, lost = sum(b > a for a, b in pairs), sum(a > b for a, b in pairs)
    assert (found.gained, found.lost) == (gained, lost)
    assert found.low - 1e-9 <= found.difference <= found.high + 1e-9
    assert (found.verdict == "no difference shown") == (found.low <= 0 <= found.high)


def test_intervals_of_no_effect_exclude_zero_about_as_rarely_as_they_promise():
    draw = numpy.random.default_rng(7)
    wrong = 0
    for _ in range(40):
        before, after = draw.integers(0, 2, size=(2, 80)).astype(float)
        wrong += compare_metric("recall@5", before, after).verdict != "no difference shown"
    assert wrong <= 6  # 40 at 5 %: more than six would happen once in 300 times
