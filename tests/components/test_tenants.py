import functools
import inspect

import pytest
from haystack import Document, component
from haystack.components.retrievers import FilterRetriever
from haystack.components.writers import DocumentWriter
from haystack.core.errors import PipelineRuntimeError
from haystack.document_stores.types import DuplicatePolicy

from shiguan.engine.mode_pipeline import ModePipeline
from shiguan.errors import RefusedError
from shiguan.retrieval.tenant_filter import TenantFilter
from shiguan.serving.engine import AnswerRequest
from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore
from shiguan.tenants import asked_by, check_filters, names_tenant, tenant_of

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


def test_whose_filters_they_are_is_said_of_one_tenant_alone():
    assert tenant_of(OURS) == tenant_of(both(TITLE, OURS, OURS)) == "ours"
    for filters in (TITLE, both(OURS, operator="OR"), both(OURS, {**OURS, "value": "theirs"})):
        with pytest.raises(RefusedError, match="name no tenant, or several"):
            tenant_of(filters)


@pytest.fixture
def store(tmp_path):
    store = QdrantEdgeDocumentStore(path=str(tmp_path), embedding_dim=2)
    for name in ("ours", "theirs"):
        store.write_documents([Document(id=name, content="a letter", embedding=[1.0, 0.0], meta={"tenant_id": name})])
    yield store
    store.close()


def doors(store):
    names = {name for name in dir(store) if not name.startswith("_")}
    guarded = {name for name in names if hasattr(getattr(type(store), name, None), "guards_tenant")}
    return {name for name in guarded if not name.startswith("write_")}


ARGUMENTS = {
    "query": "letter", "query_embedding": [1.0, 0.0], "document_ids": ["theirs"], "metadata_fields": ["tenant_id"],
    "metadata_field": "tenant_id", "meta": {"tenant_id": "ours"}, "fields": ["tenant_id"],
    "terms": ["letter"], "language": "en",
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
    new = Document(id="new", meta={"tenant_id": "ours"})
    assert DocumentWriter(again).run(documents=[new]) == {"documents_written": 1}


def test_while_a_pipeline_runs_for_a_tenant_the_doors_stay_shut_to_every_other_one(store):
    theirs = {**OURS, "value": "theirs"}
    with asked_by("ours"):
        assert store.list_ids(both(OURS, TITLE)) == []
        assert store.list_ids(OURS) == ["ours"]
        for door in (store.filter_documents, store.list_ids, store.delete_by_filter, store.count_documents_by_filter):
            with pytest.raises(RefusedError, match="called for the tenant 'theirs' while the pipeline runs for 'ours'"):
                door(both(TITLE, theirs))
        with asked_by(""):
            assert store.list_ids(OURS) == ["ours"]
            with pytest.raises(RefusedError):
                store.list_ids(theirs)
    assert store.list_ids(theirs) == ["theirs"]


@pytest.mark.parametrize("meta", [{"tenant_id": "theirs"}, {"tenant_id": ""}, {}], ids=str)
async def test_while_a_pipeline_runs_for_a_tenant_no_document_of_another_one_is_written(store, meta):
    documents = [Document(id="new", meta={"tenant_id": "ours"}), Document(id="theirs", content="forged", meta=meta)]
    with asked_by("ours"):
        told = r"was given a document of the tenant .* while the pipeline runs for 'ours'"
        with pytest.raises(RefusedError, match=told):
            store.write_documents(documents, policy=DuplicatePolicy.OVERWRITE)
        with pytest.raises(RefusedError):
            await store.write_documents_async(documents, policy=DuplicatePolicy.OVERWRITE)
        assert store.write_documents(documents[:1], policy=DuplicatePolicy.OVERWRITE) == 1
    assert [one.content for one in store.unscoped().filter_documents({**OURS, "value": "theirs"})] == ["a letter"]


@component
class _Finder:
    """Reads what its filters say, whoever they are from."""

    def __init__(self, store):
        self.store = store

    @component.output_types(ids=list[str])
    def run(self, filters: dict):
        return {"ids": self.store.list_ids(filters)}


@pytest.mark.parametrize("nested", [False, True])
def test_a_mode_binds_its_stores_to_the_tenant_who_asks_on_whichever_way_filters_come(store, nested):
    inputs = {"tenant_id": ["tenant_filter.tenant_id"], "filters": ["finder.filters"]}
    pipeline = ModePipeline(metadata={"inputs": inputs})
    pipeline.add_component("finder", _Finder(store))
    pipeline.add_component("tenant_filter", TenantFilter())

    def asked(filters):
        given = {"tenant_id": "ours", "filters": filters}
        by_part = {"tenant_filter": {"tenant_id": "ours"}, "finder": {"filters": filters}}
        return pipeline.run(by_part if nested else given)["finder"]["ids"]

    assert asked(OURS) == ["ours"]
    with pytest.raises(PipelineRuntimeError, match="for the tenant 'theirs' while the pipeline runs for 'ours'"):
        asked({**OURS, "value": "theirs"})
    assert store.list_ids({**OURS, "value": "theirs"}) == ["theirs"]


def among(*values):
    return {"field": "meta.title", "operator": "in", "value": list(values)}


def nested(levels):
    return functools.reduce(lambda inner, _: both(inner, operator="NOT"), range(levels), TITLE)


class Untouched(list):
    """A list that tells when somebody goes through it."""

    def __iter__(self):
        raise AssertionError("somebody went through all values")


@pytest.mark.parametrize(
    ("filters", "told"),
    [
        (among(*map(str, range(180_000))), "180,001 conditions and values, the limit is 256"),
        (both(*[TITLE] * 129), "257 conditions and values, the limit is 256"),
        (nested(600), "11 levels, the limit is 10"),
        (among("x" * 40_000, "y" * 40_000), "80,010 bytes of text, the limit is 65,536"),
        ({**TITLE, "field": "meta." + "x" * 70_000}, "bytes of text"),
        (among("a", "\ud800"), "lone surrogate"),
        ({**TITLE, "field": "meta.\udfff"}, "lone surrogate"),
        ({**TITLE, "value": 10**400}, "1,329 bits, the limit is 63"),
        ({**TITLE, "value": 10**5000}, "16,610 bits"),
        ({**TITLE, "value": float("nan")}, "the number nan"),
        ({**TITLE, "value": float("inf")}, "the number inf"),
        (among(["a"]), "a list or mapping inside of a value"),
        ({**TITLE, "value": {"a": {"b": 1}}}, "a list or mapping"),
    ],
)
def test_a_filter_beyond_the_limits_is_refused_with_limit_and_value(filters, told):
    with pytest.raises(RefusedError, match=told):
        check_filters(filters)
    with pytest.raises(RefusedError, match=told):
        TenantFilter().run(tenant_id="ours", filters=filters)
    with pytest.raises(ValueError, match=told):
        AnswerRequest(query="Who?", filters=filters)


def test_a_filter_at_the_limits_is_taken():
    check_filters(among(*map(str, range(254))))
    check_filters(nested(9))
    check_filters(both(*[TITLE] * 127))
    check_filters({**TITLE, "operator": "==", "value": None})
    check_filters({**TITLE, "operator": ">", "value": 2**62})


def test_a_list_that_is_too_long_is_not_gone_through():
    with pytest.raises(RefusedError, match="180,001"):
        check_filters({**TITLE, "operator": "in", "value": Untouched(range(180_000))})
