"""Every pipeline file is loaded, is what it says, and keeps the tenant's documents apart."""

import re
from pathlib import Path

import pytest
import yaml

from shiguan.loading import describe_mode, load_pipeline

PIPELINES = Path(__file__).resolve().parents[2] / "pipelines"
FILES = sorted(PIPELINES.glob("*/*.yml"))
MODES = [path for path in FILES if path.stem != "index"]


def name(path):
    return f"{path.parent.name}/{path.stem}"


def definition(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture(params=FILES, ids=name)
def path(request):
    return request.param


@pytest.fixture(params=MODES, ids=name)
def mode(request):
    return request.param


def test_it_is_built(path):
    pipeline = load_pipeline(path.parent.name, path.stem)
    assert set(pipeline.graph.nodes) == set(definition(path)["components"])


def test_it_opens_with_what_it_is_for_what_it_costs_and_what_it_needs(path):
    comment = describe_mode(path.parent.name, path.stem)
    assert comment.startswith(f"{path.stem}: ")
    assert "LLM calls" in comment
    assert "Needs:" in comment


def test_its_inputs_and_outputs_are_sockets_that_exist(path):
    pipeline = load_pipeline(path.parent.name, path.stem)
    inputs = pipeline.inputs()
    for targets in pipeline.metadata["inputs"].values():
        for target in targets:
            component, socket = target.split(".")
            assert socket in inputs[component], target
    outputs = pipeline.outputs(include_components_with_connected_outputs=True)
    for target in pipeline.metadata["outputs"].values():
        component, socket = target.split(".")
        assert socket in outputs[component], target


def test_every_mandatory_input_is_fed(path):
    """A component that waits for a value that never comes ends a pipeline without an answer and without an error."""
    pipeline = load_pipeline(path.parent.name, path.stem)
    fed = {target for targets in pipeline.metadata["inputs"].values() for target in targets}
    for component, sockets in pipeline.inputs().items():
        for socket, spec in sockets.items():
            if spec["is_mandatory"]:
                assert f"{component}.{socket}" in fed


def test_components_and_connections_stand_in_the_order_of_the_data(path):
    data = definition(path)
    order = list(data["components"])
    for edge in data["connections"]:
        assert edge["sender"].split(".")[0] in order
        assert edge["receiver"].split(".")[0] in order


def test_a_mode_gives_answers_and_documents(mode):
    data = definition(mode)
    assert {"answers", "documents"} <= set(data["outputs"])
    assert {"query", "tenant_id", "filters", "top_k"} <= set(data["inputs"])


def test_every_component_that_takes_filters_takes_them_from_the_tenant_filter(mode):
    pipeline = load_pipeline(mode.parent.name, mode.stem)
    # A loop carries the filters from its starter to its reader, in every round.
    senders = {"tenant_filter", "attempt"}
    fed = {
        receiver
        for sender, receiver, edge in pipeline.graph.edges(data=True)
        if sender in senders and edge["from_socket"].name == edge["to_socket"].name == "filters"
    }
    if "attempt" in pipeline.graph:
        assert "starter" in fed
    takers = {
        component
        for component, node in pipeline.graph.nodes(data=True)
        if "filters" in node["input_sockets"] and component != "tenant_filter"
    }
    assert takers
    assert takers == fed


def test_every_retriever_has_its_filters_fed_even_inside_another_component(mode):
    text = mode.read_text(encoding="utf-8")
    assert "filter_policy" not in text


def test_the_retrieval_alone_needs_no_generator(mode):
    pipeline = load_pipeline(mode.parent.name, mode.stem, outputs=["documents"])
    assert "generator" not in pipeline.graph.nodes
    assert "parent_fetcher" in pipeline.graph.nodes


def test_both_pipelines_of_the_embedder_name_the_same_model(path):
    models = set(re.findall(r"model: (sentence-transformers/\S+)", path.read_text(encoding="utf-8")))
    assert models <= {"sentence-transformers/all-MiniLM-L6-v2"}
