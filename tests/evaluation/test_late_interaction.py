"""The comparison of the orders says what it found, and what it should not have found."""

from pathlib import Path

import pytest
from evaluation.late_interaction import Row, main, misses, table_line

from shiguan.evaluation.intervals import compare_metric

pytestmark = pytest.mark.transformers

BETTER = [0.0] * 10 + [0.5] * 10, [0.5] * 10 + [0.5] * 10
WORSE = BETTER[::-1]
A_LITTLE = [0.5] * 20, [0.52] * 20


def row(values, way="ranked", name="en_squad2", same=0, expected=0):
    change = compare_metric("ndcg@10", *values)
    means = {"recall@5": 0.5, "recall@10": 0.75, "ndcg@10": change.after}
    return Row(name, way, len(values[0]), means, change, same, expected, [])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (row(BETTER), []),
        (row(A_LITTLE), ["gains +0.020 nDCG@10, not 0.03"]),
        (row(A_LITTLE, name="en_multihop"), []),
        (row(WORSE, name="en_multihop"), ["is worse by -0.250 nDCG@10"]),
        (row(WORSE, way="child", name="en_multihop"), []),
        (row(A_LITTLE, name="zh_drcd", same=18, expected=20), ["changes the order of 2 questions that it must not"]),
    ],
)
def test_only_the_way_of_the_pipeline_has_bars(given, expected):
    assert misses(given) == expected


def test_a_row_shows_its_change_with_the_interval():
    line = table_line(row(BETTER))
    assert line.startswith("|  |  | ranked | 0.500 | 0.750 | 0.500 | +0.250 [")
    assert line.endswith("| 0 | pass |")
    assert table_line(row(BETTER, way="fused")) == "| en_squad2 | 20 | fused | 0.500 | 0.750 | 0.500 |  |  |  |"


def test_without_data_it_says_where_they_should_be(tmp_path, capsys):
    assert main(["--data", str(tmp_path), "--sets", "en_squad2"]) == 2
    assert f"{Path(tmp_path) / 'en_squad2'} is missing" in capsys.readouterr().err
