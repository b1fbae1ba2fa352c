"""The tenant's filters may reach retrievers inside a component as the arguments with which it runs them."""

from typing import Any

import pytest
from haystack import Document, component
from tests.security.hostile_files import SOUND
from tests.security.mutant_parts import add, checked, part

SEARCH = SOUND["components"]["retriever"]
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
class Both:
    """Hands both kinds on."""

    def __init__(self, retriever: Any) -> None:
        self.retriever = retriever

    @component.output_types(documents=list[Document])
    def run(
        self, queries: list[str], filters: dict[str, Any] | None = None, retriever_kwargs: dict[str, Any] | None = None
    ):
        return {}


def findings(tmp_path, *edges, type_=MULTI, parameters=None, inputs=None):
    data = {
        "components": {name.lower(): {"type": f"{__name__}.{name}"} for name in ("Guard", "Words")},
        "connections": [],
        "inputs": {"query": ["words.query"], "tenant_id": ["guard.tenant_id"], **(inputs or {})},
        "outputs": {"documents": "reader.documents"},
    }
    reader = part(type_, **(parameters or {"retriever": SEARCH}))
    add(data, "reader", reader, edges=[("words.queries", "reader.queries"), *edges])
    return [str(one) for one in checked(data, tmp_path, allow_types=[__name__]).findings]


ARGUMENTS = ("guard.retriever_kwargs", "reader.retriever_kwargs")
FILTERS = ("guard.filters", "reader.filters")
BOTH = {"type_": f"{__name__}.Both"}
GENERATOR = {"type_": "haystack.components.generators.chat.openai.OpenAIChatGenerator", "parameters": {"model": "x"}}


@pytest.mark.parametrize(
    ("edges", "reader"), [([ARGUMENTS], {}), ([FILTERS], BOTH), ([FILTERS, ARGUMENTS], BOTH)], ids=["own", "filters", "both"]
)  # fmt: skip
def test_a_component_that_hands_them_on_to_its_retriever_is_let_through(tmp_path, edges, reader):
    assert findings(tmp_path, *edges, **reader) == []


@pytest.mark.parametrize("sender", ["guard.filters", "guard.other", "words.retriever_kwargs"])
def test_only_the_output_of_that_name_counts(tmp_path, sender):
    (found,) = findings(tmp_path, (sender, "reader.retriever_kwargs"))
    assert f"`reader` is filtered by `{sender}`, which is not `retriever_kwargs` of a `TenantFilter`" in found


@pytest.mark.parametrize(("edges", "options", "words"), [
    pytest.param(
        [("guard.retriever_kwargs", "reader.filters")], BOTH,
        "which is not `filters` of a `TenantFilter`", id="filters from the arguments",
    ),
    pytest.param(
        [FILTERS, ("words.retriever_kwargs", "reader.retriever_kwargs")], BOTH,
        "`words.retriever_kwargs`, which is not", id="arguments of another beside the filters",
    ),
    pytest.param(
        [FILTERS], {**BOTH, "inputs": {"more": ["reader.retriever_kwargs"]}},
        "The input `more` goes to `reader.retriever_kwargs` and bypasses the `TenantFilter`",
        id="arguments of the caller beside the filters",
    ),
    pytest.param([], {}, "nothing is connected to `reader.retriever_kwargs`", id="none"),
    pytest.param(
        [], {"inputs": {"filters": ["reader.retriever_kwargs"]}},
        "The input `filters` goes to `reader.retriever_kwargs` and bypasses the `TenantFilter`",
        id="the caller's alone",
    ),
    pytest.param(
        [("guard.retriever_kwargs", "reader.generation_kwargs")], GENERATOR,
        "sets `reader.generation_kwargs` while the pipeline runs", id="arguments of something else",
    ),
])  # fmt: skip
def test_anything_else_is_refused(tmp_path, edges, options, words):
    assert any(words in text for text in findings(tmp_path, *edges, **options))
