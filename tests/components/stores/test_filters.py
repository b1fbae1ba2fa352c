import json
import math

import pytest
from haystack.dataclasses import Document
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError
from haystack.utils.filters import document_matches_filter
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qdrant_edge import FieldCondition, Filter, MatchValue
from tests.doubles.filter_strategies import comparisons, filters_of

from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore
from shiguan.stores.embedded.reading import translate

KEYS = ["a", "b", "#", "##", "中文", "a b", "a-b", "a[]", "tenant_id"]
NUMBERS = st.one_of(st.integers(-3, 3), st.sampled_from([0.5, -0.5, 1.0, 2.0, 1e12, -1e12, 2**53 - 1, -(2**53) + 1]))
TEXTS = st.sampled_from(["", "x", "y", "书", "a b", "1", "true", "null", "#", '"', "2020-01-01"])
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(KEYS), inner, max_size=2)),
    max_leaves=4,
)
METAS = st.dictionaries(st.sampled_from([*KEYS, 'quo"te', "back\\slash"]), VALUES, max_size=4)
COMPARED = SCALARS
# Of a list any element may match, which Haystack does not know.
FILTERED = st.dictionaries(
    st.sampled_from(KEYS), st.one_of(SCALARS, st.dictionaries(st.sampled_from(KEYS), SCALARS, max_size=2)), max_size=4
)
CONTENTS = st.sampled_from([None, "", "x", "书"])
IDS = ["one", "two", "书", ""]
FIELDS = st.one_of(
    st.sampled_from(KEYS),
    st.sampled_from(KEYS).map("meta.{}".format),
    st.tuples(st.sampled_from(KEYS), st.sampled_from(KEYS)).map(lambda keys: f"meta.{keys[0]}.{keys[1]}"),
)


FILTERS = filters_of(
    comparisons(FIELDS, ["==", "!="], COMPARED),
    comparisons(FIELDS, ["in", "not in"], st.lists(COMPARED, max_size=3)),
    comparisons(FIELDS, [">", ">=", "<", "<="], st.one_of(st.none(), NUMBERS)),
    comparisons(["id"], ["==", "!="], st.sampled_from(IDS)),
    comparisons(["id"], ["in", "not in"], st.lists(st.sampled_from([*IDS, "x", None, 1]))),
    least=0,
    max_leaves=6,
)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = QdrantEdgeDocumentStore(path=str(tmp_path_factory.mktemp("filters")), embedding_dim=2).unscoped()
    yield store
    store.close()


@given(st.lists(st.tuples(CONTENTS, FILTERED), min_size=1, max_size=4), st.lists(FILTERS, min_size=1, max_size=8))
@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_the_store_finds_the_documents_that_haystacks_own_function_matches(store, rows, filters):
    documents = [
        Document(id=id_, content=content, meta=meta, embedding=[1.0, 0.0] if content else None)
        for id_, (content, meta) in zip(IDS, rows, strict=False)
    ]
    # An empty id would be replaced by a hash.
    documents = [document for document in documents if document.id in IDS]
    store.delete_all_documents()
    store.write_documents(documents)
    for condition in filters:
        try:
            expected = [document.id for document in documents if document_matches_filter(condition, document)]
        except (FilterError, TypeError):
            # Where values cannot be compared Haystack fails for all documents, the store for that one only.
            continue
        if truths_meet_numbers(condition, documents):
            continue
        assert sorted(store.list_ids(condition)) == sorted(expected), condition
        assert store.count_documents_by_filter(condition) == len(expected)


def truths_meet_numbers(condition, documents):
    """Python takes True for 1; the store does not."""
    said = json.dumps([condition, [document.meta for document in documents]])
    return ("true" in said or "false" in said) and any(map(str.isdigit, said))


@given(METAS)
@settings(max_examples=60)
def test_documents_come_back_as_they_were_written(store, meta):
    document = Document(id="one", content="x", meta=meta, embedding=[0.6, 0.8])
    store.write_documents([document], DuplicatePolicy.OVERWRITE)
    (found,) = store.filter_documents({"field": "id", "operator": "==", "value": "one"})
    # repr tells 1 from 1.0 and True, and makes nan equal to itself.
    assert repr(found.meta) == repr(meta) or sorted(map(repr, found.meta.items())) == sorted(map(repr, meta.items()))
    assert found.embedding == pytest.approx(document.embedding)
    assert found.content == "x"


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ({"field": "yes", "operator": "==", "value": 1}, ["3"]),
        ({"field": "yes", "operator": ">=", "value": 0}, ["3"]),
        ({"field": "yes", "operator": "==", "value": True}, ["1"]),
        ({"field": "yes", "operator": "!=", "value": True}, ["2", "3"]),
        ({"field": "yes", "operator": "in", "value": [False, "true"]}, ["2"]),
        ({"field": "yes", "operator": "not in", "value": [False, 1]}, ["1"]),
        ({"field": "id", "operator": "==", "value": True}, []),
        ({"field": "section", "operator": "==", "value": "一"}, ["1", "2"]),
        ({"field": "section", "operator": "in", "value": ["二", "x"]}, ["1"]),
        ({"field": "section", "operator": "!=", "value": "二"}, ["2", "3"]),
        ({"field": "section", "operator": "not in", "value": ["二", "x"]}, ["2", "3"]),
        ({"field": "n", "operator": "<", "value": 2}, ["1"]),
        ({"field": "n", "operator": "<=", "value": 2}, ["1", "2"]),
        ({"field": "n", "operator": ">", "value": 2}, ["3"]),
        ({"field": "n", "operator": ">=", "value": 2}, ["2", "3"]),
    ],
)
def test_a_filter_finds_what_meets_it(store, condition, found):
    """True is no number, and of a list any element may match."""
    store.delete_all_documents()
    metas = [
        {"yes": True, "section": ["一", "二"], "n": 1},
        {"yes": False, "section": ["一"], "n": 2},
        {"yes": 1, "n": 3},
    ]
    store.write_documents([Document(id=str(at), meta=meta) for at, meta in enumerate(metas, start=1)])
    assert sorted(store.list_ids(condition)) == found


@pytest.mark.parametrize(
    "condition",
    [
        {"operator": "XOR", "conditions": []},  # and whatever else `check_conditions` refuses
        {"operator": "AND", "conditions": [{}]},
        {"field": "meta.a", "operator": ">", "value": "2020-01-01"},
        {"field": "meta.a", "operator": ">", "value": True}, {"field": "meta.a", "operator": "==", "value": 2**53},
        {"field": "meta.a", "operator": "==", "value": math.nan},
        {"field": "meta.a", "operator": "==", "value": {"x": 1}},
        {"field": "meta.a", "operator": "==", "value": ["x"]}, {"field": "meta.a", "operator": "in", "value": [["x"]]},
        {"field": "content", "operator": "==", "value": "x"}, {"field": "embedding", "operator": "==", "value": None},
        {"field": "meta", "operator": "==", "value": None}, {"field": 'meta.quo"te', "operator": "==", "value": 1},
        {"field": "meta.a", "operator": ">", "value": [1]}, {"field": "nowhere.a", "operator": "==", "value": 1},
    ],
)  # fmt: skip
def test_malformed_filters_are_refused_on_an_empty_store_too(store, condition):
    with pytest.raises(FilterError):
        translate(condition)
    store.delete_all_documents()
    with pytest.raises(FilterError):
        store.filter_documents(condition)


def test_a_document_that_cannot_be_compared_does_not_break_the_query_of_others(store):
    store.delete_all_documents()
    store.write_documents([Document(id="1", meta={"n": 4}), Document(id="2", meta={"n": "soon"}), Document(id="3")])
    assert store.list_ids({"field": "meta.n", "operator": ">", "value": 3}) == ["1"]


def test_a_filter_that_every_vector_is_asked_for_has_no_layers_that_say_nothing():
    tenant = {"field": "meta.tenant_id", "operator": "==", "value": "t"}
    plain = Filter(must=[FieldCondition("m.tenant_id", match=MatchValue("t"))])
    wrapped = {"operator": "AND", "conditions": [tenant]}
    for filters in (tenant, wrapped, {"operator": "AND", "conditions": [wrapped]}):
        assert repr(translate(filters)) == repr(plain)
