import pytest
from haystack import Document
from haystack.document_stores.in_memory import InMemoryDocumentStore

from shiguan.errors import RefusedError
from shiguan.retrieval.parent_document_fetcher import ParentDocumentFetcher


def parent(name, tenant="a"):
    return Document(id=name, content=f"The whole of {name}.", meta={"tenant_id": tenant, "source": f"{name}.txt"})


def child(name, of, score, start=0, end=3, tenant="a"):
    meta = {"parent_id": of, "tenant_id": tenant, "source_id": "s", "start": start, "end": end, "position": 0}
    return Document(id=name, content="", score=score, meta=meta)


def of_tenant(tenant):
    return {
        "operator": "AND",
        "conditions": [{"field": "meta.tenant_id", "operator": "==", "value": tenant}],
    }


@pytest.fixture
def store():
    store = InMemoryDocumentStore()
    store.write_documents([parent("p1"), parent("p2"), parent("p3"), parent("foreign", tenant="b")])
    return store


def test_parents_come_in_the_order_of_their_best_child(store):
    children = [child("c1", "p2", 0.9), child("c2", "p1", 0.8, 4, 7), child("c3", "p2", 0.7, 8, 9)]
    documents = ParentDocumentFetcher(store).run(documents=children, filters=of_tenant("a"))["documents"]
    assert [(document.id, document.score) for document in documents] == [
        ("p2", 0.9),  # its second match is the lowest of the list, which is worth nothing
        ("p1", 0.8),
    ]
    assert documents[0].meta["matches"] == [
        {"child_id": "c1", "start": 0, "end": 3, "score": 0.9},
        {"child_id": "c3", "start": 8, "end": 9, "score": 0.7},
    ]
    assert documents[0].content == "The whole of p2."
    assert documents[0].meta["source"] == "p2.txt"


def test_two_matches_outweigh_a_slightly_better_one(store):
    scores = {"c1": ("p2", 0.9), "c2": ("p1", 0.8), "c3": ("p1", 0.6), "c4": ("p1", 0.5), "c5": ("p3", 0.1)}
    children = [child(name, of, score) for name, (of, score) in scores.items()]
    documents = ParentDocumentFetcher(store).run(documents=children, filters=of_tenant("a"), top_k=1)["documents"]
    # .8 + .3 * (.6 - .1) = .95; a third match adds nothing.
    assert [(document.id, document.score) for document in documents] == [("p1", pytest.approx(0.95))]


def test_what_every_hit_has_gives_a_second_match_nothing(store):
    # Cosines lie close together: .3 of .84 would put p1 before p2, whatever it says.
    children = [child("c1", "p2", 0.87), child("c2", "p1", 0.85), child("c3", "p1", 0.84), child("c4", "p3", 0.83)]
    documents = ParentDocumentFetcher(store).run(documents=children, filters=of_tenant("a"))["documents"]
    assert [document.id for document in documents] == ["p2", "p1", "p3"]


def test_children_are_ordered_by_score_even_if_they_come_unordered(store):
    children = [child("c1", "p1", 0.1), child("c2", "p2", 0.9)]
    documents = ParentDocumentFetcher(store).run(documents=children, filters=of_tenant("a"))["documents"]
    assert [document.id for document in documents] == ["p2", "p1"]


def test_no_children_give_no_parents_and_no_call(store):
    assert ParentDocumentFetcher(store).run(documents=[]) == {"documents": [], "warnings": []}


def test_top_k_of_the_call_overrides_that_of_the_pipeline(store):
    children = [child("c1", "p1", 0.9), child("c2", "p2", 0.8), child("c3", "p3", 0.7)]
    fetcher = ParentDocumentFetcher(store, top_k=2)
    assert [d.id for d in fetcher.run(documents=children, filters=of_tenant("a"))["documents"]] == ["p1", "p2"]
    assert [d.id for d in fetcher.run(documents=children, filters=of_tenant("a"), top_k=1)["documents"]] == ["p1"]


def test_a_parent_of_another_tenant_is_never_returned(store):
    result = ParentDocumentFetcher(store).run(documents=[child("c1", "foreign", 0.9)], filters=of_tenant("a"))
    assert result["documents"] == []
    assert "1 of 1 passages" in result["warnings"][0]


def test_a_parent_of_another_tenant_than_its_child_is_refused_whatever_the_filters_let_through(store):
    filters = {"field": "meta.source", "operator": "==", "value": "foreign.txt"}
    result = ParentDocumentFetcher(store).run(documents=[child("c1", "foreign", 0.9)], filters=filters)
    assert result["documents"] == []
    assert result["warnings"] == [
        "1 of 1 passages that matched belong to another tenant than what matched in them, and were left out. The library "
        "was written by something else than `shiguan ingest`, or tampered with: ingest their sources again."
    ]


def test_the_callers_filters_apply_to_parents_too(store):
    filters = {"field": "meta.source", "operator": "==", "value": "p2.txt"}
    children = [child("c1", "p1", 0.9), child("c2", "p2", 0.8)]
    assert [d.id for d in ParentDocumentFetcher(store).run(documents=children, filters=filters)["documents"]] == ["p2"]


def test_a_parent_that_is_gone_is_reported_and_the_others_come(store):
    result = ParentDocumentFetcher(store).run(
        documents=[child("c1", "gone", 0.9), child("c2", "p1", 0.8)], filters=of_tenant("a")
    )
    assert [d.id for d in result["documents"]] == ["p1"]
    assert result["warnings"] == [
        "1 of 2 passages that matched could not be read from the library; it may be changing right now. Ask again, "
        "and ingest the source again if this stays."
    ]


def test_top_k_counts_the_parents_that_are_found(store):
    children = [child("c0", "gone", 0.95), child("c1", "p1", 0.9), child("c2", "p2", 0.8), child("c3", "p3", 0.7)]
    result = ParentDocumentFetcher(store, top_k=2).run(documents=children, filters=of_tenant("a"))
    assert [d.id for d in result["documents"]] == ["p1", "p2"]
    assert result["warnings"][0].startswith("1 of 3 passages that matched could not be read")
    assert ParentDocumentFetcher(store, top_k=3).run(documents=children[1:], filters=of_tenant("a"))["warnings"] == []


def test_a_parent_beyond_top_k_is_not_missed(store):
    flat = Document(id="flat", content="A flat document.", score=0.95, meta={"tenant_id": "a"})
    result = ParentDocumentFetcher(store, top_k=1).run(
        documents=[flat, child("c1", "gone", 0.9)], filters=of_tenant("a")
    )
    assert ([d.id for d in result["documents"]], result["warnings"]) == (["flat"], [])


def test_documents_without_a_parent_stand_for_themselves(store):
    flat = Document(id="flat", content="A flat document.", score=0.5, meta={"tenant_id": "a"})
    documents = ParentDocumentFetcher(store).run(documents=[child("c1", "p1", 0.9), flat], filters=of_tenant("a"))[
        "documents"
    ]
    assert [document.id for document in documents] == ["p1", "flat"]
    assert documents[1].content == "A flat document."


def test_inputs_are_not_changed(store):
    given = child("c1", "p1", 0.9)
    before = given.to_dict()
    ParentDocumentFetcher(store).run(documents=[given], filters=of_tenant("a"))
    assert given.to_dict() == before
    assert "matches" not in store.filter_documents({"field": "id", "operator": "==", "value": "p1"})[0].meta


@pytest.mark.parametrize("top_k", [0, -1])
def test_a_top_k_that_is_not_positive_is_refused(store, top_k):
    with pytest.raises(ValueError, match=f"`top_k` must be positive, got {top_k}"):
        ParentDocumentFetcher(store, top_k=top_k)


def test_parents_are_never_read_without_filters(store):
    with pytest.raises(RefusedError, match=r"Connect `TenantFilter\.filters`"):
        ParentDocumentFetcher(store).run(documents=[child("c1", "p1", 0.9)])
