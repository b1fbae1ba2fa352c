from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiguan.ingest.passages import OUT_OF_RANGE, partition


def groups(sizes, ends):
    return [sizes[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def cost(sizes, cuts, ends, low, high, target):
    total = sum(cuts[end - 1] for end in ends[:-1])
    for group in groups(sizes, ends):
        size = sum(group)
        if size > high:
            if len(group) > 1:
                return float("inf")
            total += 2 * OUT_OF_RANGE
        elif size < low:
            total += OUT_OF_RANGE * (2 - size / low)
        else:
            total += abs(size - target) / (high - low)
    return total


@pytest.mark.parametrize(
    ("sizes", "cuts", "bounds", "ends"),
    [
        # 20+20 would cut at the expensive place; 10+30 and 30+10 stay in range.
        ([10, 10, 10, 10], [0.0, 5.0, 1.0, 0.0], (10, 30, 20), [1, 4]),
        # Greedy filling would leave 10 alone, and an oversized piece stands alone.
        ([30, 30, 30, 10], [0.0] * 4, (40, 90, 60), [2, 4]), ([60, 500, 60], [0.0] * 3, (50, 150, 80), [1, 2, 3]),
    ],
)  # fmt: skip
def test_pieces_are_shared_out(sizes, cuts, bounds, ends):
    assert partition(sizes, cuts, **dict(zip(("low", "high", "target"), bounds, strict=True))) == ends


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 40), st.sampled_from([0.0, 0.3, 5.0, 50.0])), min_size=1, max_size=9))
def test_no_other_partition_costs_less(pieces):
    sizes, cuts = [p[0] for p in pieces], [p[1] for p in pieces]
    bounds = {"low": 10, "high": 30, "target": 18}
    found = cost(sizes, cuts, partition(sizes, cuts, **bounds), **bounds)
    count = len(sizes)
    every = [
        [*inner, count] for many in range(count) for inner in combinations(range(1, count), many)
    ]  # fmt: skip
    assert found == pytest.approx(min(cost(sizes, cuts, ends, **bounds) for ends in every))


def test_a_hundred_thousand_empty_or_tiny_pieces_are_no_burden():
    ends = partition([0, 1] * 50_000, [0.0] * 100_000, low=50, high=150, target=80)
    assert ends[-1] == 100_000
    assert all(50 <= sum(([0, 1] * 50_000)[a:b]) <= 150 for a, b in zip([0, *ends], ends, strict=False))
