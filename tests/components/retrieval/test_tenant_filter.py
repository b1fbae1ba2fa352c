import pytest
from haystack import Document
from haystack.utils.filters import document_matches_filter
from hypothesis import given
from hypothesis import strategies as st
from tests.doubles.filter_strategies import comparisons, filters_of

from shiguan.errors import RefusedError
from shiguan.retrieval.tenant_filter import TenantFilter

TENANT = {"field": "meta.tenant_id", "operator": "==", "value": "a"}


@pytest.mark.parametrize("filters", [None, {}, {"field": "meta.title", "operator": "==", "value": "舊唐書"}])
def test_the_callers_filters_are_joined_by_and(filters):
    joined = {"operator": "AND", "conditions": [TENANT, *([filters] if filters else [])]}
    found = TenantFilter().run(tenant_id="a", filters=filters)
    assert found == {"filters": joined, "retriever_kwargs": {"filters": joined}}


@pytest.mark.parametrize("tenant", ["", "  ", None, 7])
def test_a_missing_tenant_is_refused(tenant):
    with pytest.raises(RefusedError, match="without a tenant"):
        TenantFilter().run(tenant_id=tenant)


@pytest.mark.parametrize(
    "filters",
    [
        "meta.title", ["a"], {"field": "meta.title"}, {"operator": "AND"}, {"operator": "AND", "conditions": ["x"]},
        {"title": ["a"]}, {"operator": "AND", "conditions": None},
        {"operator": "AND", "conditions": {"field": "meta.a", "operator": "==", "value": 1}},
        {"operator": "XOR", "conditions": []}, {"operator": "and", "conditions": []},
        {"operator": ["AND"], "conditions": []}, {"operator": "NOT", "conditions": [{}]},
        {"field": "meta.a", "operator": "==", "value": 1, "conditions": []},
        {"field": "meta.a", "operator": "=", "value": 1}, {"field": "meta.a", "operator": "=="},
        {"field": "", "operator": "==", "value": 1}, {"field": None, "operator": "==", "value": 1},
        {"field": "meta.a", "operator": "in", "value": "abc"},
        {"field": "meta.a", "operator": "not in", "value": None},
        {**TENANT, "more": list(range(5000))}, {"operator": "AND", "conditions": [], "more": 1},
    ],
)  # fmt: skip
def test_a_malformed_filter_is_refused_before_a_store_sees_it(filters):
    with pytest.raises(RefusedError, match="not a Haystack filter"):
        TenantFilter().run(tenant_id="a", filters=filters)


FIELDS = ["meta.tenant_id", "meta.title", "meta.absent"]


@given(filters_of(comparisons(FIELDS, ["==", "!="], st.sampled_from(["a", "b", None]))))
def test_no_filter_reaches_another_tenant(filters):
    found = TenantFilter().run(tenant_id="a", filters=filters)
    joined = found["filters"]
    assert found["retriever_kwargs"] == {"filters": joined}
    for title in ("a", "b", None):
        assert not document_matches_filter(joined, Document(content="x", meta={"tenant_id": "b", "title": title}))
        assert not document_matches_filter(joined, Document(content="x", meta={"title": title}))
