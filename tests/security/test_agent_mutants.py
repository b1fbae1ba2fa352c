"""No change of the mode `agent` that gives a model a tool that it must not have gets past the check."""

from copy import deepcopy

import pytest
from tests.doubles.agent_file import PIPELINES, agent_file, outside_tools
from tests.security.agent_mutants import agent_mutants
from tests.security.mutant_parts import checked, load
from tests.security.tenant_mutants import mutants

from shiguan.checking.pipeline_check import check_pipeline

FILES = sorted(PIPELINES.glob("*/agent.yml"))


@pytest.fixture(params=FILES, ids=lambda path: path.parent.name)
def file(request):
    return request.param


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["by turns", "every"])
def test_a_mutant_is_refused_as_unsafe(file, tmp_path, every):
    """Each in one of the deployments, by turns; each in all of them in the slow run."""
    data, let_through, turn = load(file), [], FILES.index(file)
    for name, change in list(agent_mutants(data))[0 if every else turn :: 1 if every else len(FILES)]:
        mutant = deepcopy(data)
        change(mutant)
        assert mutant != data, name
        if not any(finding.unsafe for finding in checked(mutant, tmp_path).findings):
            let_through.append(name)
    assert let_through == []


def test_there_are_at_least_two_hundred_of_the_mode_with_those_of_the_tenant():
    names = [(file, mutant.name) for file in FILES for mutant in mutants(file)]
    names += [(file, name) for file in FILES for name, _ in agent_mutants(load(file))]
    assert len(set(names)) == len(names) >= 200


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
