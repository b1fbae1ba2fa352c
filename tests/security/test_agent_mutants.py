"""No change of the mode `agent` that gives a model a tool that it must not have gets past the check."""

from copy import deepcopy

import pytest
from tests.doubles.own_modes import PIPELINES, agent_file, outside_tools
from tests.security.agent_mutants import agent_mutants
from tests.security.mutant_parts import checked, load

from shiguan.checking.pipeline_check import check_pipeline

FILES = sorted(PIPELINES.glob("*/agent.yml"))


@pytest.fixture(params=FILES, ids=lambda path: path.parent.name)
def file(request):
    return request.param


def test_a_mutant_is_refused_as_unsafe(file, tmp_path):
    """Each in one of the deployments, by turns."""
    data = load(file)
    mutants = dict(agent_mutants(data))
    assert len(mutants) >= 100
    for name in list(mutants)[FILES.index(file) :: len(FILES)]:
        mutant = deepcopy(data)
        mutants[name](mutant)
        assert mutant != data, name
        assert any(finding.unsafe for finding in checked(mutant, tmp_path).findings), name


def test_tools_that_reach_outside_may_be_switched_on(file, tmp_path):
    path = agent_file(tmp_path, outside_tools("https://example.org"), deployment=file.parent.name)
    assert check_pipeline(path, "agent.yml").findings == []


def test_a_tool_that_reads_documents_and_takes_no_filters_is_named(file, tmp_path):
    data = load(file)
    tools = data["components"]["agent"]["init_parameters"]["tools"]
    store = tools[1]["init_parameters"]["document_store"]
    kind = "haystack.components.retrievers.auto_merging_retriever.AutoMergingRetriever"
    search = tools[0]["init_parameters"]["retriever"]["init_parameters"]
    search["parent_fetcher"] = {"type": kind, "init_parameters": {"document_store": store}}
    found = [str(finding) for finding in checked(data, tmp_path).findings if finding.check == "tenants"]
    assert any(
        "`agent.tools.0.retriever.parent_fetcher` reads a store and takes no `filters`" in text for text in found
    )
