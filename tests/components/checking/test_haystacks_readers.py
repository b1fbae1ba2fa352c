"""Haystack's retrievers on the stores of `elasticsearch_qdrant`: allowed, and refused without the tenant's filters."""

from copy import deepcopy

import pytest
import yaml
from tests.conftest import ROOT

from shiguan.checking.pipeline_check import check_pipeline

SIMPLE = yaml.safe_load((ROOT / "pipelines" / "elasticsearch_qdrant" / "simple.yml").read_text(encoding="utf-8"))
READERS = ("bm25_retriever", "embedding_retriever")
CONDITION = {"field": "meta.tenant_id", "operator": "==", "value": "a"}


def findings(tmp_path, change):
    data = deepcopy(SIMPLE)
    change(data)
    path = tmp_path / "mine.yml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    return [str(finding) for finding in check_pipeline(path, "mine.yml").findings]


def unconnected(data, reader):
    edges = data["connections"]
    edges.remove({"sender": "tenant_filter.filters", "receiver": f"{reader}.filters"})


def test_the_shipped_file_names_haystacks_classes_and_is_fine(tmp_path):
    types = {name: SIMPLE["components"][name]["type"].rpartition(".") for name in READERS}
    assert {path for path, _, _ in types.values()} == {
        "haystack_integrations.components.retrievers.elasticsearch.bm25_retriever",
        "haystack_integrations.components.retrievers.qdrant.retriever",
    }
    assert findings(tmp_path, lambda data: None) == []


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_that_nothing_filters_is_refused(tmp_path, reader):
    found = findings(tmp_path, lambda data: unconnected(data, reader))
    assert any(f"Nothing is connected to `{reader}.filters`" in text for text in found)


@pytest.mark.parametrize("reader", READERS)
def test_filters_of_the_file_do_not_count(tmp_path, reader):
    def change(data):
        unconnected(data, reader)
        data["components"][reader]["init_parameters"]["filters"] = CONDITION

    assert any(f"Nothing is connected to `{reader}.filters`" in text for text in findings(tmp_path, change))


@pytest.mark.parametrize("reader", READERS)
def test_filters_of_the_caller_past_the_tenant_are_refused(tmp_path, reader):
    def change(data):
        unconnected(data, reader)
        data["options"]["filters"].append(f"{reader}.filters")

    assert any(
        f"goes to `{reader}.filters` and bypasses the `TenantFilter`" in text for text in findings(tmp_path, change)
    )


@pytest.mark.parametrize("reader", READERS)
def test_a_policy_that_joins_filters_is_refused(tmp_path, reader):
    def change(data):
        data["components"][reader]["init_parameters"]["filter_policy"] = "merge"

    assert any("drops the tenant's" in text for text in findings(tmp_path, change))


def inside_of_another(data):
    """Let the reader of words stand inside a component that hands it `retriever_kwargs`."""
    data["components"]["bm25_retriever"] = {
        "type": "haystack.components.retrievers.multi_query_text_retriever.MultiQueryTextRetriever",
        "init_parameters": {"retriever": data["components"]["bm25_retriever"]},
    }
    unconnected(data, "bm25_retriever")
    data["connections"].remove({"sender": "conversation.word_query", "receiver": "bm25_retriever.query"})
    data["inputs"]["query"].append("bm25_retriever.queries")


def test_a_reader_inside_another_component_is_refused_without_the_filters_that_it_hands_on(tmp_path):
    found = findings(tmp_path, inside_of_another)
    assert any("Nothing is connected to `bm25_retriever.retriever_kwargs`" in text for text in found)

    def past_the_tenant(data):
        inside_of_another(data)
        data["options"]["retriever_kwargs"] = ["bm25_retriever.retriever_kwargs"]

    found = findings(tmp_path, past_the_tenant)
    assert any("goes to `bm25_retriever.retriever_kwargs` and bypasses the `TenantFilter`" in text for text in found)

    def filtered(data):
        inside_of_another(data)
        edge = {"sender": "tenant_filter.retriever_kwargs", "receiver": "bm25_retriever.retriever_kwargs"}
        data["connections"].append(edge)

    assert findings(tmp_path, filtered) == []


@pytest.mark.parametrize("reader", READERS)
def test_a_store_that_is_emptied_when_it_is_built_is_refused(tmp_path, reader):
    def change(data):
        data["components"][reader]["init_parameters"]["document_store"] = {
            "type": "haystack_integrations.document_stores.qdrant.document_store.QdrantDocumentStore",
            "init_parameters": {"url": "http://localhost:6333", "recreate_index": True},
        }

    assert any("empties a store" in text for text in findings(tmp_path, change))
