from copy import deepcopy
from dataclasses import replace

import pytest
from haystack import Document
from haystack.components.preprocessors import HierarchicalDocumentSplitter
from haystack.document_stores.in_memory import InMemoryDocumentStore

from shiguan.errors import RefusedError
from shiguan.retrieval.parent_document_fetcher import ParentDocumentFetcher
from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore


def parent(name, tenant="a"):
    return Document(id=name, content=f"The whole of {name}.", meta={"tenant_id": tenant, "source": f"{name}.txt"})


def child(name, of, score, start=0, end=3, tenant="a"):
    meta = {"parent_id": of, "tenant_id": tenant, "source_id": "s", "start": start, "end": end, "position": 0}
    return Document(id=name, content="", score=score, meta=meta)


TENANT = {"operator": "AND", "conditions": [{"field": "meta.tenant_id", "operator": "==", "value": "a"}]}


@pytest.fixture
def store():
    store = InMemoryDocumentStore()
    store.write_documents([parent("p1"), parent("p2"), parent("p3"), parent("foreign", tenant="b")])
    return store


def fetched(store, *children, filters=TENANT, top_k=None, **parameters):
    result = ParentDocumentFetcher(store, **parameters).run(documents=list(children), filters=filters, top_k=top_k)
    return [document.id for document in result["documents"]], result["warnings"]


def test_parents_have_the_score_of_their_best_child_and_say_what_matched(store):
    children = [child("c2", "p1", 0.8, 4, 7), child("c3", "p2", 0.7, 8, 9), child("c1", "p2", 0.9)]
    before = deepcopy(children)
    documents = ParentDocumentFetcher(store).run(documents=children, filters=TENANT)["documents"]
    assert [(document.id, document.score) for document in documents] == [("p2", 0.9), ("p1", 0.8)]
    assert children == before
    assert "matches" not in store.filter_documents({"field": "id", "operator": "==", "value": "p1"})[0].meta
    assert documents[0].meta["matches"] == [
        {"child_id": "c1", "start": 0, "end": 3, "score": 0.9},
        {"child_id": "c3", "start": 8, "end": 9, "score": 0.7},
    ]
    assert (documents[0].content, documents[0].meta["source"]) == ("The whole of p2.", "p2.txt")


def test_which_parents_come_and_in_which_order(store):
    assert fetched(store) == ([], [])
    # Many poor matches do not outweigh one good one, and the caller's filters apply to parents too.
    poor = [child(f"c{at}", "p1", 0.8) for at in range(9)]
    assert fetched(store, *poor, child("good", "p2", 0.81))[0] == ["p2", "p1"]
    filters = {"field": "meta.source", "operator": "==", "value": "p2.txt"}
    assert fetched(store, child("c1", "p1", 0.9), child("c2", "p2", 0.8), filters=filters)[0] == ["p2"]


@pytest.mark.parametrize(("of_the_list", "expected"), [(0.9, 0.45), (0.03, 0.015), (-1.0, -1.5)])
def test_a_list_of_places_in_a_book_counts_half(store, of_the_list, expected):
    store.write_documents([Document(id="index", content="Abel, 12", meta={"tenant_id": "a", "kind": "list"})])
    children = [child("c1", "index", of_the_list), child("c2", "p1", of_the_list - abs(of_the_list) / 10)]
    documents = ParentDocumentFetcher(store).run(documents=children, filters=TENANT)["documents"]
    assert [document.id for document in documents] == ["p1", "index"]
    assert documents[1].score == pytest.approx(expected)


def test_a_child_that_does_not_say_where_it_stands_brings_its_parent_all_the_same(store):
    unplaced = Document(content="", score=0.5, meta={"parent_id": "p1", "tenant_id": "a"})
    (document,) = ParentDocumentFetcher(store).run(documents=[unplaced], filters=TENANT)["documents"]
    assert (document.content, document.score, document.meta["matches"]) == ("The whole of p1.", 0.5, [])


def test_the_children_of_haystacks_splitter_find_their_parents_without_filters_or_offsets():
    splitter = HierarchicalDocumentSplitter(block_sizes={6, 3}, split_overlap=0, split_by="word")
    whole = Document(content="An Lushan rose in Fanyang that winter and the whole court fled")
    split = splitter.run(documents=[whole])["documents"]
    store = InMemoryDocumentStore()
    store.write_documents(split)
    leaf = replace(next(document for document in split if not document.meta["__children_ids"]), score=0.4)
    (found,) = ParentDocumentFetcher(store).run(documents=[leaf])["documents"]
    assert found.id == leaf.meta["__parent_id"]
    assert (found.content.strip(), found.score) == ("An Lushan rose in Fanyang that", 0.4)


def test_top_k_of_the_call_overrides_that_of_the_pipeline(store):
    children = [child("c1", "p1", 0.9), child("c2", "p2", 0.8), child("c3", "p3", 0.7)]
    assert fetched(store, *children, top_k=None)[0] == ["p1", "p2", "p3"]
    fetcher = ParentDocumentFetcher(store, top_k=2)
    assert len(fetcher.run(documents=children, filters=TENANT)["documents"]) == 2
    assert len(fetcher.run(documents=children, filters=TENANT, top_k=1)["documents"]) == 1


@pytest.mark.parametrize(
    ("filters", "why"),
    [
        (TENANT, "1 of 1 passages that matched could not be read from the library; it may be changing right now."),
        ({"field": "meta.source", "operator": "==", "value": "foreign.txt"},
         "1 of 1 passages that matched belong to another tenant than what matched in them, and were left out."),
    ],
)  # fmt: skip
def test_a_parent_of_another_tenant_is_never_returned_whatever_the_filters_let_through(store, filters, why):
    found, (warning,) = fetched(store, child("c1", "foreign", 0.9), filters=filters)
    assert found == []
    assert warning.startswith(why)


def test_parents_that_are_gone_are_reported_and_made_up_for_by_the_next(store):
    children = [child("c0", "gone", 0.95), child("c1", "p1", 0.9), child("c2", "p2", 0.8), child("c3", "p3", 0.7)]
    found, (warning,) = fetched(store, *children, top_k=2)
    assert found == ["p1", "p2"]
    assert warning.startswith("1 of 3 passages that matched could not be read")
    assert fetched(store, *children[1:], top_k=3)[1] == []


def test_documents_without_a_parent_stand_for_themselves(store):
    flat = Document(id="flat", content="A flat document.", score=0.95, meta={"tenant_id": "a"})
    assert fetched(store, flat, child("c1", "p1", 0.9)) == (["flat", "p1"], [])
    # A parent beyond `top_k` is not looked for, and so not missed.
    assert fetched(store, flat, child("c1", "gone", 0.9), top_k=1) == (["flat"], [])


def test_a_store_that_keeps_tenants_apart_is_never_read_without_filters(tmp_path):
    store = QdrantEdgeDocumentStore("parents", path=str(tmp_path), embedding_dim=None)
    with pytest.raises(RefusedError, match=r"Connect `TenantFilter\.filters`"):
        ParentDocumentFetcher(store).run(documents=[child("c1", "p1", 0.9)])
    store.close()


def test_passages_of_a_kind_may_weigh_more_or_less(store):
    store.write_documents([Document(id="quoted", content="“Alas!”", meta={"tenant_id": "a", "kind": "quote"})])
    children = [child("c1", "p1", 0.8), child("c2", "quoted", 0.78)]
    assert fetched(store, *children)[0] == ["p1", "quoted"]
    assert fetched(store, *children, kind_weights={"quote": 1.2})[0] == ["quoted", "p1"]
    below = [child("c1", "p1", -1.0), child("c2", "quoted", -1.1)]
    assert fetched(store, *below, kind_weights={"quote": 1.2})[0] == ["quoted", "p1"]  # -0.88
