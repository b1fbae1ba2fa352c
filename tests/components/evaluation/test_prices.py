"""What calls cost."""

import pytest

from shiguan.errors import RefusedError
from shiguan.evaluation.scoring import Price, cost_of, read_prices

TABLE = {"m": Price(input=0.4, output=1.6)}


def test_tokens_read_and_written_have_their_own_prices():
    assert cost_of(TABLE, "m", {"prompt_tokens": 1_000_000, "completion_tokens": 500_000}, 2) == pytest.approx(1.2)


def test_no_call_costs_nothing_whatever_the_model():
    assert cost_of(TABLE, "extractive", {}, 0) == 0.0


@pytest.mark.parametrize(
    ("model", "usage"),
    [
        ("other", {"prompt_tokens": 1, "completion_tokens": 1}),
        ("m", {}),
        ("m", {"prompt_tokens": 0, "completion_tokens": 0}),
    ],
)
def test_an_unknown_cost_is_not_zero(model, usage):
    assert cost_of(TABLE, model, usage, 1) is None


def test_a_table_is_read(tmp_path):
    (tmp_path / "prices.yml").write_text("m: {input: 0.4, output: 2}\n")
    assert read_prices(tmp_path / "prices.yml") == {"m": Price(input=0.4, output=2.0)}


@pytest.mark.parametrize("text", ["", "m: 3", "m: {input: -1, output: 2}", "m: {input: true, output: 2}", "[", "- a"])
def test_a_broken_table_is_refused(tmp_path, text):
    (tmp_path / "prices.yml").write_text(text)
    with pytest.raises(RefusedError, match=r"prices\.yml"):
        read_prices(tmp_path / "prices.yml")


def test_a_missing_table_is_refused(tmp_path):
    with pytest.raises(RefusedError, match="cannot be read"):
        read_prices(tmp_path / "none.yml")
