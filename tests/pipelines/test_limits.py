"""How large the file of a mode may be: whoever opens it understands it in a minute."""

from pathlib import Path

import pytest
import yaml

PIPELINES = Path(__file__).resolve().parents[2] / "pipelines"
DEPLOYMENTS = sorted(path.parent.name for path in PIPELINES.glob("*/simple.yml"))
# Nodes, edges and lines.
LIMITS = {"simple": (15, 32, 130), "advanced": (20, 48, 180), "precise": (21, 54, 200)}


def test_every_deployment_has_the_modes_that_are_counted():
    assert DEPLOYMENTS == ["elasticsearch_qdrant", "embedded"]
    assert all((PIPELINES / deployment / f"{mode}.yml").is_file() for deployment in DEPLOYMENTS for mode in LIMITS)


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
@pytest.mark.parametrize("mode", LIMITS)
def test_a_mode_has_no_more_nodes_edges_and_lines_than_it_may(deployment, mode):
    text = (PIPELINES / deployment / f"{mode}.yml").read_text(encoding="utf-8")
    definition = yaml.safe_load(text)
    counted = (len(definition["components"]), len(definition["connections"]), len(text.splitlines()))
    too_many = {
        name: f"{count} of {limit}"
        for name, count, limit in zip(("nodes", "edges", "lines"), counted, LIMITS[mode], strict=True)
        if count > limit
    }
    assert too_many == {}


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
@pytest.mark.parametrize("mode", LIMITS)
def test_no_edge_stands_twice_and_every_node_has_one(deployment, mode):
    definition = yaml.safe_load((PIPELINES / deployment / f"{mode}.yml").read_text(encoding="utf-8"))
    edges = [(edge["sender"], edge["receiver"]) for edge in definition["connections"]]
    assert len(set(edges)) == len(edges)
    assert {end.split(".")[0] for edge in edges for end in edge} == set(definition["components"])
