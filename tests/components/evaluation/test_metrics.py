import pytest

from shiguan.evaluation.metrics import estimate_mean


def test_an_interval_holds_what_theory_says():
    values = [1.0] * 80 + [0.0] * 20
    estimate = estimate_mean(values)
    # A proportion of .8 over 100: standard error .04.
    assert estimate.value == 0.8
    assert estimate.low == pytest.approx(0.8 - 1.96 * 0.04, abs=0.011)
    assert estimate.high == pytest.approx(0.8 + 1.96 * 0.04, abs=0.011)
    assert estimate_mean(values) == estimate


def test_twenty_of_twenty_is_no_proof_of_one():
    estimate = estimate_mean([1.0] * 20)
    assert (estimate.value, estimate.high) == (1.0, 1.0)
    assert estimate.low == pytest.approx(0.025 ** (1 / 20))  # Clopper and Pearson where all succeed
    assert estimate_mean([0.0] * 20).high == pytest.approx(1 - 0.025 ** (1 / 20))
    assert estimate_mean([0.4, 0.4]).to_json() == {"value": 0.4, "low": 0.4, "high": 0.4, "count": 2}
    with pytest.raises(ValueError, match="needs at least one value"):
        estimate_mean([])
