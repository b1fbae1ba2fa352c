"""The tenant's filters may reach retrievers inside a component as the arguments with which it runs them."""

from typing import Any

import pytest
from haystack import Document, component
from tests.security.hostile_files import SOUND
from tests.security.mutant_parts import checked

MEMORY = SOUND["components"]["retriever"]
MULTI = "haystack.components.retrievers.multi_query_text_retriever.MultiQueryTextRetriever"


@component
class Guard:
    """Gives a tenant's filters in both forms."""

    tenant_role = "filters"

    @component.output_types(filters=dict[str, Any], retriever_kwargs=dict[str, Any], other=dict[str, Any])
    def run(self, tenant_id: str, filters: dict[str, Any] | None = None):
        return {}


@component
class Words:
    """Gives queries, and arguments of its own."""

    @component.output_types(queries=list[str], retriever_kwargs=dict[str, Any])
    def run(self, query: str):
        return {}


@component
class Lone:
    """Reads a store itself and takes arguments that it does not hand on."""

    def __init__(self, document_store: Any) -> None:
        self.document_store = document_store

    @component.output_types(documents=list[Document])
    def run(self, queries: list[str], retriever_kwargs: dict[str, Any] | None = None):
        return {}


@component
class Both:
    """Hands both kinds on."""

    tenant_readers = ("retriever",)

    def __init__(self, retriever: Any) -> None:
        self.retriever = retriever

    @component.output_types(documents=list[Document])
    def run(
        self,
        queries: list[str],
        filters: dict[str, Any] | None = None,
        retriever_kwargs: dict[str, Any] | None = None,
    ):
        return {}


def findings(tmp_path, *edges, type_=MULTI, parameters=None, inputs=None):
    data = {
        "components": {
            "guard": {"type": f"{__name__}.Guard"},
            "words": {"type": f"{__name__}.Words"},
            "reader": {"type": type_, "init_parameters": parameters or {"retriever": MEMORY}},
        },
        "connections": [{"sender": "words.queries", "receiver": "reader.queries"}]
        + [{"sender": sender, "receiver": receiver} for sender, receiver in edges],
        "inputs": {"query": ["words.query"], "tenant_id": ["guard.tenant_id"], **(inputs or {})},
        "outputs": {"documents": "reader.documents"},
    }
    return [str(one) for one in checked(data, tmp_path, allow_types=[__name__]).findings]


ARGUMENTS = ("guard.retriever_kwargs", "reader.retriever_kwargs")
FILTERS = ("guard.filters", "reader.filters")


def test_a_component_that_hands_them_on_to_its_retriever_is_let_through(tmp_path):
    assert findings(tmp_path, ARGUMENTS) == []
    both = {"type_": f"{__name__}.Both"}
    assert findings(tmp_path, FILTERS, **both) == []
    assert findings(tmp_path, FILTERS, ARGUMENTS, **both) == []


@pytest.mark.parametrize(
    ("sender", "words"),
    [
        ("guard.filters", "`guard.filters`, which is not `retriever_kwargs` of a `TenantFilter`"),
        ("guard.other", "`guard.other`, which is not `retriever_kwargs` of a `TenantFilter`"),
        ("words.retriever_kwargs", "`words.retriever_kwargs`, which is not `retriever_kwargs` of a `TenantFilter`"),
    ],
)
def test_only_the_output_of_that_name_counts(tmp_path, sender, words):
    (found,) = findings(tmp_path, (sender, "reader.retriever_kwargs"))
    assert f"`reader` is filtered by {words}" in found


def test_filters_are_not_taken_from_the_arguments(tmp_path):
    found = findings(tmp_path, ("guard.retriever_kwargs", "reader.filters"), type_=f"{__name__}.Both")
    assert any("which is not `filters` of a `TenantFilter`" in text for text in found)


def test_nothing_else_may_come_beside_the_filters(tmp_path):
    extra = ("words.retriever_kwargs", "reader.retriever_kwargs")
    found = findings(tmp_path, FILTERS, extra, type_=f"{__name__}.Both")
    assert any("`words.retriever_kwargs`, which is not" in text for text in found)
    found = findings(tmp_path, FILTERS, type_=f"{__name__}.Both", inputs={"more": ["reader.retriever_kwargs"]})
    assert any(
        "The input `more` goes to `reader.retriever_kwargs` and bypasses the `TenantFilter`" in text for text in found
    )


def test_without_them_it_would_find_every_tenants_documents(tmp_path):
    assert any("Nothing is connected to `reader.retriever_kwargs`" in text for text in findings(tmp_path))
    found = findings(tmp_path, inputs={"filters": ["reader.retriever_kwargs"]})
    assert any(
        "The input `filters` goes to `reader.retriever_kwargs` and bypasses the `TenantFilter`" in text
        for text in found
    )


def test_a_component_that_reads_a_store_itself_needs_filters(tmp_path):
    parameters = {"document_store": MEMORY["init_parameters"]["document_store"]}
    found = findings(tmp_path, ARGUMENTS, type_=f"{__name__}.Lone", parameters=parameters)
    assert any("`reader` reads a store and has no input `filters`" in text for text in found)


def test_no_other_arguments_are_set_while_a_pipeline_runs(tmp_path):
    generator = "haystack.components.generators.chat.openai.OpenAIChatGenerator"
    edge = ("guard.retriever_kwargs", "reader.generation_kwargs")
    found = findings(tmp_path, edge, type_=generator, parameters={"model": "x"})
    assert any("sets `reader.generation_kwargs` while the pipeline runs" in text for text in found)
