"""Filters mean on both servers what they mean in Haystack, or are refused."""

import re
from copy import deepcopy

import pytest
from haystack import Document
from haystack.utils.filters import document_matches_filter
from haystack_integrations.document_stores.elasticsearch.filters import _normalize_filters
from haystack_integrations.document_stores.qdrant.filters import convert_filters_to_qdrant
from hypothesis import given, settings
from hypothesis import strategies as st
from qdrant_client import QdrantClient, models
from tests.components.stores.cluster.conftest import ALL, child
from tests.doubles.filter_strategies import comparisons, filters_of
from tests.doubles.stand_in_elasticsearch import matches

from shiguan.errors import RefusedError
from shiguan.stores.cluster.schema import passage_fields, servable

FIELDS = passage_fields(searched=False, keyword_fields=(), bm25_fields=())
OWN = ["seen"]
TYPES = {**{name: spec["type"] for name, spec in FIELDS.items()}, "seen": "keyword"}
METAS = [
    {"tenant_id": tenant, **language, **position, **seen}
    for tenant in ("a", "b")
    for language in ({}, {"language": "zh"})
    for position in ({}, {"position": 0}, {"position": 3})
    for seen in ({}, {"seen": True}, {"seen": False})
]
DOCUMENTS = [Document(id=f"d{number}", content="x", meta=meta) for number, meta in enumerate(METAS)]

texts = st.sampled_from(["a", "b", "zh", "en"])
filters = filters_of(
    comparisons(["meta.tenant_id", "language"], ["==", "!="], texts),
    comparisons(["meta.language", "meta.tenant_id"], ["in", "not in"], st.lists(texts, min_size=1, max_size=3)),
    comparisons(["meta.position"], ["==", "!=", ">", ">=", "<", "<="], st.integers(-1, 4)),
    comparisons(["meta.seen"], ["==", "!="], st.booleans()),
    comparisons(["meta.seen"], ["in", "not in"], st.lists(st.booleans(), min_size=1, max_size=2)),
)


@pytest.fixture(scope="module")
def local():
    client = QdrantClient(":memory:")
    client.create_collection("c", vectors_config=models.VectorParams(size=1, distance=models.Distance.DOT))
    points = [
        models.PointStruct(id=number, vector=[1.0], payload={"id": document.id, "meta": document.meta})
        for number, document in enumerate(DOCUMENTS)
    ]
    client.upsert("c", points)
    yield client
    client.close()


@settings(max_examples=80)
@given(condition=filters)
def test_both_conversions_find_what_haystack_means(local, condition):
    expected = {document.id for document in DOCUMENTS if document_matches_filter(condition, document)}
    before = deepcopy(condition)
    checked = servable(condition, OWN)
    assert condition == before
    query = _normalize_filters(checked)
    words = {document.id for document in DOCUMENTS if matches(query, document.to_dict(), TYPES)}
    found, _ = local.scroll("c", convert_filters_to_qdrant(checked), limit=len(DOCUMENTS))
    assert words == {point.payload["id"] for point in found} == expected


def condition(field="meta.language", operator="==", value="zh"):
    return {"field": field, "operator": operator, "value": value}


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        (condition("meta.colour"), "cannot filter by `meta.colour`"),
        (condition("meta.id"), "cannot filter by `meta.id`"),
        (condition("content"), "cannot filter by `content`"),
        (condition("meta.section", value=["Annals"]), "cannot limit a question to `sections`"),
        (condition(value=None), "`meta.language` with `== None`: the field holds a text"),
        (condition(value=1), "the field holds a text"),
        (condition("meta.position", value=1.5), "the field holds a whole number"),
        (condition("meta.position", value="1"), "the field holds a whole number"),
        (condition("meta.position", value=False), "the field holds a whole number"),
        (condition("id", value=True), "the field holds a text"),
        (condition("colour", value=1), "the field holds a text, true or false"),
        (condition(operator=">", value="zh"), "ranges are of position, start"),
        (condition("meta.position", ">", "1"), "the field holds a whole number"),
        (condition(operator="in", value=[]), "a list has at least one value"),
        (condition(operator="in", value=["zh", None]), "the field holds a text"),
        ({"operator": "AND", "conditions": []}, "at least one condition"),
        ({"operator": "XOR", "conditions": [condition()]}, "none of AND OR NOT"),
        ({"operator": "AND", "conditions": [{"field": "meta.language"}]}, "is not a Haystack filter"),
    ],
)
def test_what_the_servers_would_misread_is_refused(filters, message):
    with pytest.raises(RefusedError, match=re.escape(message)):
        servable(filters, ["colour"] if filters.get("field") == "colour" else ())


def test_a_field_of_ones_own_can_be_added_and_no_filter_stays_none():
    assert servable(condition("colour", value="red"), ["colour"]) == condition("meta.colour", value="red")
    assert servable(None) == servable({}) == {}


@pytest.mark.parametrize(("operator", "expected"), [("in", ["c1", "c3"]), ("not in", ["c2"])])
def test_more_values_than_a_query_takes_become_several(words, operator, expected):
    """Elasticsearch takes 65,536 in one, which its stand-in holds to."""
    words.write_documents([child(number) for number in (1, 2, 3)], ALL)
    values = ["c1", *(f"x{number}" for number in range(140_000)), "c3"]
    assert words.list_ids({"field": "id", "operator": operator, "value": values}) == expected
