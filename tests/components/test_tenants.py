import inspect

import pytest
from haystack import Document
from haystack.components.retrievers import FilterRetriever
from haystack.components.writers import DocumentWriter

from shiguan.errors import RefusedError
from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore
from shiguan.tenants import names_tenant

OURS = {"field": "meta.tenant_id", "operator": "==", "value": "ours"}
TITLE = {"field": "meta.title", "operator": "==", "value": "Annals"}


def both(*conditions, operator="AND"):
    return {"operator": operator, "conditions": list(conditions)}


@pytest.mark.parametrize("filters", [OURS, both(OURS), both(TITLE, OURS), both(TITLE, both(OURS, TITLE))])
def test_a_tenant_in_the_outermost_and_holds_whatever_stands_beside_it(filters):
    assert names_tenant(filters)


@pytest.mark.parametrize(
    "filters",
    [
        None, {}, [], "ours", TITLE, both(), both(TITLE), both(OURS, operator="OR"), both(OURS, operator="NOT"),
        both(both(OURS, TITLE, operator="OR")), {**OURS, "operator": "!="}, {**OURS, "operator": "in", "value": ["ours"]},
        {**OURS, "value": ""}, {**OURS, "value": " "}, {**OURS, "value": None}, {**OURS, "field": "tenant_id"},
        {**OURS, "field": "meta.tenant", "conditions": [OURS], "operator": "AND"}, {"operator": "AND", "conditions": OURS},
    ],
)  # fmt: skip
def test_anything_else_names_no_tenant(filters):
    assert not names_tenant(filters)


@pytest.fixture
def store(tmp_path):
    store = QdrantEdgeDocumentStore(path=str(tmp_path), embedding_dim=2)
    store.write_documents(
        [
            Document(id=name, content="a letter", embedding=[1.0, 0.0], meta={"tenant_id": name})
            for name in ("ours", "theirs")
        ]
    )
    yield store
    store.close()


def doors(store):
    names = {name for name in dir(store) if not name.startswith("_")}
    return {name for name in names if hasattr(getattr(type(store), name, None), "guards_tenant")}


ARGUMENTS = {
    "query": "letter", "query_embedding": [1.0, 0.0], "document_ids": ["theirs"], "metadata_fields": ["tenant_id"],
    "metadata_field": "tenant_id", "meta": {"tenant_id": "ours"}, "fields": ["tenant_id"],
}  # fmt: skip


@pytest.mark.parametrize("filters", [None, {}, TITLE, both(OURS, TITLE, operator="OR")], ids=range(4))
async def test_every_door_of_a_store_is_shut_without_a_tenant(store, filters):
    assert len(doors(store)) >= 10
    for name in doors(store):
        door = getattr(store, name)
        taken = inspect.signature(door).parameters
        given = {key: value for key, value in ARGUMENTS.items() if key in taken}
        if "filters" in taken:
            given["filters"] = filters
        with pytest.raises(RefusedError, match=r"without a tenant.*store.unscoped\(\)"):
            result = door(**given)
            if inspect.isawaitable(result):
                await result
    assert store.unscoped().count_documents() == 2


def test_under_a_tenant_the_doors_open_on_that_tenants_documents(store):
    assert [document.id for document in store.filter_documents(OURS)] == ["ours"]
    assert [document.id for document in store.bm25_retrieval("letter", both(OURS))] == ["ours"]
    assert [document.id for document in store.embedding_retrieval([1.0, 0.0], filters=OURS)] == ["ours"]
    assert (store.list_ids(OURS), store.count_documents_by_filter(OURS)) == (["ours"], 1)
    assert store.delete_by_filter(OURS) == 1
    assert store.unscoped().list_ids() == ["theirs"]


def test_the_view_for_maintenance_leaves_the_store_itself_shut(store):
    assert len(store.unscoped().filter_documents()) == 2
    with pytest.raises(RefusedError):
        store.filter_documents()


def test_a_store_that_comes_from_yaml_is_shut_and_haystacks_own_readers_meet_it(store):
    again = QdrantEdgeDocumentStore.from_dict(store.unscoped().to_dict())
    assert FilterRetriever(again).run(filters=OURS)["documents"][0].id == "ours"
    with pytest.raises(RefusedError, match=r"QdrantEdgeDocumentStore\.filter_documents"):
        FilterRetriever(again).run()
    assert DocumentWriter(again).run(documents=[Document(id="new", meta={"tenant_id": "ours"})]) == {
        "documents_written": 1
    }
