"""The arithmetic of the simulation, with costs that are easily added up."""

import pytest
from bench.speed.simulation import UnitCosts, graph_seconds, report

COSTS = UnitCosts(
    words_request=1.0, vectors_request=2.0, stored=0.5, graph_small=1.0, graph_large=2.0, packaged_embedder=36.0
)


def test_a_point_costs_more_by_the_logarithm_of_its_graph():
    """1 ms in a graph of 1,000, 2 ms in one of 4,000, so 3 ms in one of 16,000."""
    assert graph_seconds(COSTS, 4_000, 1_000) == pytest.approx(1.0)
    assert graph_seconds(COSTS, 4_000, 4_000) == pytest.approx(8.0)
    assert graph_seconds(COSTS, 4_000, 16_000) == pytest.approx(48.0)


def test_hours_are_unit_costs_times_children():
    lines = report(COSTS, 1_000_000, 2, 4_000)
    assert "| requests, both servers, CPU hours of one thread | 0.8 |" in lines  # 3 ms x 1,000,000
    assert "| embedding with the packaged model, CPU hours of one thread | 10.0 |" in lines
    assert "| largest tenant: children, share | 666,667, 67% |" in lines
